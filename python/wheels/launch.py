"""Starts the programs of the installed wheels. Nothing is imported that takes long: a program should start in a moment."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

BUILT_FOR = "torch.txt"  # the version of torch, and the names of its libraries, that the programs beside it were linked with


def _folder(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return None if found is None or not found.submodule_search_locations else Path(list(found.submodule_search_locations)[0])


def _torch_libraries(built_for: Path) -> list[Path]:
    """The folders of torch's libraries. Ends the program unless they are those that it was linked with: others would end it in the middle of its work."""
    version, *libraries = built_for.read_text().split()
    folder = _folder("torch")
    found = None if folder is None else importlib.metadata.version("torch")
    if folder is None or found is None or found.split("+")[0] != version or not all((folder / "lib" / name).exists() for name in libraries):
        build = "CUDA" if "libtorch_cuda.so" in libraries else "CPUs"
        print(
            f"tsdp: found {'no torch' if found is None else f'torch {found}'}; expected torch {version} for {build}, which this build of tsdp is linked with: "
            f"pip install torch=={version}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    # The build of torch for CUDA has CUDA's own libraries beside it, in packages of NVIDIA's.
    return [folder / "lib", *sorted(folder.parent.glob("nvidia/*/lib"))]


def main() -> None:
    name = Path(sys.argv[0]).name
    for package in ("tsdp_account", "tsdp_programs"):
        folder = _folder(package)
        if folder is None or not (folder / "bin" / name).is_file():
            continue
        if (folder / BUILT_FOR).is_file():
            before = os.environ.get("LD_LIBRARY_PATH")
            os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([*map(str, _torch_libraries(folder / BUILT_FOR)), *([before] if before else [])])
        os.environ.setdefault("TSDP_PYTHON", sys.executable)
        program = str(folder / "bin" / name)
        os.execv(program, [program, *sys.argv[1:]])
    print(f"{name}: found no such program in the installed tsdp; install tsdp and tsdp_account again, of one version", file=sys.stderr)
    raise SystemExit(1)
