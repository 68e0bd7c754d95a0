"""tsdp's programs as functions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping, Sequence

from .errors import ProgramError, UsageError, error_of_exit


def program(name: str) -> str:
    """Where a program is: in the folder that TSDP_BIN names, on PATH, or in the build of the checkout that this package lies in."""
    folder = os.environ.get("TSDP_BIN")
    if folder:
        found = Path(folder) / name
        if not found.is_file():
            raise ProgramError(f"TSDP_BIN: found '{folder}', in which there is no {name}; expected the folder of tsdp's programs")
        return str(found)
    on_path = shutil.which(name)
    if on_path:
        return on_path
    for parent in Path(__file__).resolve().parents:
        built = parent / "build" / "release" / "bin" / name
        if built.is_file():
            return str(built)
    raise ProgramError(f"found no {name}; build it (scripts/setup.sh), and put it on PATH or name its folder in TSDP_BIN")


def run_program(name: str, arguments: Sequence[str], *, quiet: bool = True) -> str:
    """What the program prints. Raises the error of its exit code, with its own line; progress goes to stderr unless `quiet`."""
    done = subprocess.run(
        [program(name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line for line in (done.stderr or "").splitlines() if line.strip()]
        said = lines[-1] if lines else f"{name} ended with exit code {done.returncode}; what it said is above"
        raise error_of_exit(done.returncode, said.removeprefix(f"{name}: "))
    return done.stdout


def arguments_of(options: Mapping[str, Any]) -> list[str]:
    """Options of a program from keyword arguments.

    >>> arguments_of({"noise_multiplier": 4, "epsilons": [0.5, 1], "json": True, "theorem": None})
    ['--noise-multiplier=4', '--epsilons=0.5,1', '--json']
    """
    out = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(option)
        elif isinstance(value, (list, tuple)):
            out.append(f"{option}={','.join(str(item) for item in value)}")
        else:
            out.append(f"{option}={value}")
    return out


def account(command: str, *arguments: str, **options: Any) -> dict[str, Any]:
    """What `tsdp-account COMMAND --json` answers, as a dictionary; options as keywords: `noise_multiplier=4` is `--noise-multiplier 4`.

    `account("verify", "runs/mine")` and `account("total", "runs/a", "runs/b", delta=1e-7)` take runs. A certified number is a
    dictionary with `lower` and `upper`. Raises UsageError, DataError or PrivacyError for what the program refuses, and ProgramError
    where it is not found.
    """
    if not command or command.startswith("-"):
        raise UsageError(f"command: found '{command}'; expected one of tsdp-account's, such as epsilon, delta, steps or sigma")
    found: dict[str, Any] = json.loads(run_program("tsdp-account", [command, "--json", *map(str, arguments), *arguments_of(options)]))
    return found
