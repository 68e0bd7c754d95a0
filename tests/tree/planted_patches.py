"""Every patch of tests/planted/ applies to the tree as it is, and says what is wrong, what to build and which test catches it.
(Whether that test does is for scripts/planted_errors.sh, which takes an hour.)"""

import re
import shutil
import subprocess
import sys

from sources import ROOT, skip

if shutil.which("patch") is None:
    skip("no program 'patch'")
failures = []
patches = sorted((ROOT / "tests/planted").glob("*.patch"))
tests = "\n".join(file.read_text() for file in [*(ROOT / "tests").rglob("*_test.cpp"), ROOT / "tests/CMakeLists.txt"])
scripts = re.findall(r"tsdp_add_run_test\((\w+)", (ROOT / "tests/CMakeLists.txt").read_text())
for patch in patches:
    head = patch.read_text().split("\n--- ", 1)[0]
    fields = dict(re.findall(r"^(Targets|Caught by): (.+)$", head, re.MULTILINE))
    if set(fields) != {"Targets", "Caught by"}:
        failures.append(f"{patch.name}: expected lines 'Targets: …' and 'Caught by: …' before the patch")
        continue
    for name in re.split(r",\s*", fields["Caught by"]):
        suite, _, test = name.partition(".")
        if name not in scripts and (not test or suite not in tests or test.split("/")[0] not in tests):
            failures.append(f"{patch.name}: names the test {name}, which is not there")
    command = ["patch", "--dry-run", "--strip=1", "--fuzz=0", "--batch", "--forward", "--input", str(patch)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        failures.append(f"{patch.name}: no longer applies: {done.stdout.strip()}")
print("\n".join(failures) or f"{len(patches)} patches apply")
sys.exit(1 if failures or not patches else 0)
