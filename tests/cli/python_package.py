#!/usr/bin/env python3
"""The Python package's own tests (python/tests, which follow docs/python.md and the docstrings, too), with the programs of this build. `--reads`: those of
what is read, and of what training writes and says, which need no trained models of every kind; `--formats`: those of models rebuilt and in other formats;
`--models`: those that compare forecasts with the programs'; `--federated`: those of ranks whose messages others carry; without any the
others.

Needs the Python packages of scripts/requirements-test.txt.
"""

import os
import pathlib
import subprocess
import sys

import run

try:
    import gluonts  # noqa: F401
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    run.skip(error)

PARTS = {
    "--reads": ["tests/test_frames.py", "tests/test_files.py", "tests/test_training.py"],
    "--formats": ["tests/test_formats.py"],
    "--models": ["tests/test_model.py"],
    "--federated": ["tests/test_federated.py"],
}
part = next((option for option in PARTS if option in sys.argv), None)
if part:
    sys.argv.remove(part)


def test(binaries, folder):
    package = pathlib.Path(__file__).resolve().parents[2] / "python"
    environment = dict(os.environ, PYTHONPATH=str(package / "src"), TSDP_BIN=str(binaries.resolve()), PYTHONDONTWRITEBYTECODE="1")
    which = PARTS[part] if part else ["tests", *(f"--ignore={file}" for files in PARTS.values() for file in files)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}", *which]
    done = subprocess.run(command, cwd=package, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


run.in_empty_folder(test)
