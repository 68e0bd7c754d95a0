#!/usr/bin/env python3
"""docs/tutorial.md, followed to the letter: its blocks of commands and of Python, one after the other, in an empty folder.

Needs the Python packages of scripts/requirements-test.txt.
"""

import os
import pathlib
import re
import subprocess
import sys

import run

try:
    import pandas  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    run.skip(error)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test(binaries, folder):
    text = (ROOT / "docs/tutorial.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks].count("python") == 1 and len(blocks) >= 6, blocks
    environment = dict(os.environ, PATH=f"{binaries.resolve()}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "python/src"), PYTHONDONTWRITEBYTECODE="1")
    output = ""
    for kind, code in blocks:
        command = ["bash", "-euo", "pipefail", "-c", code] if kind == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        output += done.stdout + done.stderr
    for expected in ("60 series of 3000 to 3000 values", "steps (", "learning_rate", "agrees: epsilon in", "CRPS ", "unique_id,ds,y",
                     "item_id,timestamp,mean,0.1,0.5,0.9", "-differential privacy, where two data sets are neighbours"):
        assert expected in output, f"{expected}\n{output}"
    # What the page says of the files, and no key of the randomness when the run is over.
    for name in ("model.pt", "privacy.json", "config.yaml", "private/report.html"):
        assert (folder / "run" / name).is_file(), name
    print("the tutorial works as it stands")


run.in_empty_folder(test)
