"""Makes the pages of the public headers (docs/Doxyfile) in a folder of its own; any warning is a failure."""

import shutil
import subprocess
import sys
import tempfile

from sources import ROOT, skip

if shutil.which("doxygen") is None:
    skip("no doxygen; scripts/test.sh installs it")
with tempfile.TemporaryDirectory() as folder:
    settings = (ROOT / "docs/Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {folder}\n"
    done = subprocess.run(["doxygen", "-"], cwd=ROOT, input=settings, capture_output=True, text=True, check=False)
print(done.stdout + done.stderr)
sys.exit(done.returncode)
