"""A module uses only modules above it in the folder guide of CONTRIBUTING.md, which lists all of them in order of dependency; src/privacy/ holds a
module in each of its folders. Only two files of cli/ use research/, and what is
installed (include/) uses only what is installed. Read from the #include lines of src/, include/tsdp/, models/ and cli/."""

import re
import sys

from sources import ROOT

guide = (ROOT / "CONTRIBUTING.md").read_text().split("## The folder guide", 1)[1].split("\n## ", 1)[0]
order = re.findall(r"^\| `([\w/]+?)/?` \|", guide, re.MULTILINE)
failures = []


def module_of(path):
    """The module that a path from the root belongs to: src/NAME/…, src/privacy/NAME/…, include/tsdp/… likewise, or NAME/…"""
    parts = [part for part in path.split("/") if part not in ("src", "include", "tsdp")]
    return "/".join(parts[:2]) if parts[0] == "privacy" else parts[0]


folders = {module_of(file.relative_to(ROOT).as_posix()) for folder in ("src", "include/tsdp") for file in (ROOT / folder).glob("*/**/*.[hc]*")} | {"models", "cli"}
for name in sorted(folders - set(order)):
    failures.append(f"{name}: is no module of the folder guide in CONTRIBUTING.md; add its row")
for name in sorted(set(order) - folders):
    failures.append(f"{name}: stands in the folder guide in CONTRIBUTING.md, and there is no such folder")

seen = 0
for folder in ("src", "include/tsdp", "models", "cli"):
    for file in sorted((ROOT / folder).rglob("*")):
        if file.suffix not in (".h", ".cpp", ".cu"):
            continue
        relative = file.relative_to(ROOT).as_posix()
        own = module_of(relative)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#include ["<](?:\.\./)*(?:tsdp/)?(\w+/.*)[">]', line)
            used = module_of(found[1]) if found else None
            if used not in order or own not in order:
                continue
            seen += 1
            if order.index(used) > order.index(own):
                failures.append(f"{relative}:{number}: {own} uses {used}, which stands below it in the folder guide of CONTRIBUTING.md")
            installed = folder == "include/tsdp" or relative in ("models/forecaster.h", "models/prior.h", "models/scalers.h", "models/student_t.h")
            if installed and not line.lstrip().startswith('#include "tsdp/') and not found[1].startswith("models/"):
                failures.append(f"{relative}:{number}: a header that is installed uses {found[1]}, which is not")
            if used == "research" and own != "research" and relative not in ("cli/account_estimate.cpp", "cli/account_figure.cpp"):
                failures.append(f"{relative}:{number}: uses research, whose numbers are no bounds: nothing that states a privacy cost may")
if seen < 500:
    failures.append(f"only {seen} includes of modules were found: is this check still reading what it should?")
print("\n".join(failures) if failures else f"{seen} includes of {len(order)} modules, each of its own module or of one above it")
sys.exit(1 if failures else 0)
