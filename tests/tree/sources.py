"""What checks of the tree share: its root, the C++ sources, and how a check skips."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "cli", "examples", "include", "models", "src", "tests")

sys.path.append(str(ROOT / "tests/cli"))
from run import skip  # noqa: E402,F401


def cpp_files() -> list[pathlib.Path]:
    return sorted(file for folder in FOLDERS for ending in ("*.h", "*.cpp", "*.cu") for file in (ROOT / folder).rglob(ending))
