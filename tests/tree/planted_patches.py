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
tests = {
    f"{suite}.{name}"
    for file in (ROOT / "tests").rglob("*_test.cpp")
    for suite, name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", file.read_text())
}
cmake = "\n".join(file.read_text() for file in ROOT.rglob("CMakeLists.txt") if "build" not in file.relative_to(ROOT).parts)
# A name with a variable of a loop in it stands for any.
scripts = [re.sub(r"\$\{\w+\}", r"\\w+", name) for name in re.findall(r"(?:tsdp_add_(?:run|kill)_test\(|add_test\(NAME )([\w.${}]+)", cmake)]
targets = {"programs", *re.findall(r"(?:tsdp_add_test|add_executable)\(([\w-]+)", cmake)}
targets |= {f"{folder.name}_test" for folder in (ROOT / "tests").rglob("*") if any(folder.glob("*_test.cpp"))}
targets |= {program.stem.replace("_", "-") for program in (ROOT / "cli").glob("tsdp_*.cpp")}
for patch in patches:
    head = patch.read_text().split("\n--- ", 1)[0]
    fields = dict(re.findall(r"^(Targets|Caught by): (.+)$", head, re.MULTILINE))
    if set(fields) != {"Targets", "Caught by"}:
        failures.append(f"{patch.name}: expected lines 'Targets: …' and 'Caught by: …' before the patch")
        continue
    for name in re.split(r",\s*", fields["Caught by"]):
        if name.split("/")[0] not in tests and not any(re.fullmatch(script, name) for script in scripts):
            failures.append(f"{patch.name}: names the test {name}, which is not there")
    for target in fields["Targets"].split():
        if target not in targets:
            failures.append(f"{patch.name}: names the target {target}, which is not there")
    command = ["patch", "--dry-run", "--strip=1", "--fuzz=0", "--batch", "--forward", "--input", str(patch)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        failures.append(f"{patch.name}: no longer applies: {done.stdout.strip()}")
print("\n".join(failures) or f"{len(patches)} patches apply")
sys.exit(1 if failures or not patches else 0)
