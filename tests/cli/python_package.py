#!/usr/bin/env python3
"""The Python package's own tests (python/tests, which follow docs/python.md and the docstrings, too), with the programs of this build.

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


def test(binaries, folder):
    package = pathlib.Path(__file__).resolve().parents[2] / "python"
    environment = dict(os.environ, PYTHONPATH=str(package / "src"), TSDP_BIN=str(binaries.resolve()), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}", "tests"]
    done = subprocess.run(command, cwd=package, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


run.in_empty_folder(test)
