"""Holds every C++ source to .clang-format; --fix formats them in place. The version of clang-format is pinned in
scripts/requirements-test.txt, since versions differ in what they make of the same style."""

import argparse
import pathlib
import subprocess
import sys

from sources import ROOT, cpp_files, skip

PROGRAM = pathlib.Path(sys.executable).parent / "clang-format"

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--fix", action="store_true", help="format the files that differ")
fix = options.parse_args().fix
if not PROGRAM.exists():
    skip(f"no {PROGRAM}; scripts/test.sh installs it")
done = subprocess.run([PROGRAM, "--style=file", "--dry-run", "--Werror", *cpp_files()], cwd=ROOT, capture_output=True, text=True, check=False)
if fix and done.returncode != 0:
    # Only files that differ: the others keep their time, and what was built of them.
    differing = sorted({line.partition(":")[0] for line in done.stderr.splitlines() if ": error: " in line})
    done = subprocess.run([PROGRAM, "--style=file", "-i", *differing], cwd=ROOT, capture_output=True, text=True, check=False)
if done.returncode != 0:
    print(done.stderr[:4000])
    print(f"mend: {sys.executable} {pathlib.Path(__file__).relative_to(ROOT)} --fix, then the patches of tests/planted that no longer apply")
sys.exit(done.returncode)
