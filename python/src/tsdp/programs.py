"""tsdp's programs as functions."""

from __future__ import annotations

import json
import os
import shutil
import re
import subprocess
import sysconfig
import warnings
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from .errors import ProgramError, UsageError, error_of_exit

_SECONDS_BETWEEN_LOOKS = 0.3


def program(name: str) -> str:
    """Where a program is: in the folder that TSDP_BIN names, where this Python installs programs, on PATH, or in the build of the checkout that this
    package lies in."""
    folder = os.environ.get("TSDP_BIN")
    if folder:
        found = Path(folder) / name
        if not found.is_file():
            raise ProgramError(f"TSDP_BIN: found '{folder}', in which there is no {name}; expected the folder of tsdp's programs")
        return str(found)
    installed = Path(sysconfig.get_path("scripts")) / name
    on_path = str(installed) if installed.is_file() else shutil.which(name)
    if on_path:
        return on_path
    for parent in Path(__file__).resolve().parents:
        built = parent / "build" / "release" / "bin" / name
        if built.is_file():
            return str(built)
    raise ProgramError(f"found no {name}; install it (pip install tsdp_account, or tsdp for all programs), or build it and name its folder in TSDP_BIN")


class Said(NamedTuple):
    """What a program said: its result, and the lines on stderr, without the time of day; none of them where it was not quiet."""

    result: str
    lines: list[str]


def run_program(name: str, arguments: Sequence[str], *, quiet: bool = True, watch: Callable[[], None] | None = None) -> Said:
    """Runs a program. Raises the error of its exit code, with its own line. Its warnings are Python's, too; with `quiet` False all that it says goes to
    stderr as it says it. `watch` is called a few times a second while it runs."""
    with subprocess.Popen(
        [program(name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, encoding="utf-8", errors="replace"
    ) as process:
        try:
            result, said_there = _outputs(process, watch)
        except BaseException:
            process.kill()
            raise
    lines = [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in (said_there or "").splitlines() if line.strip()]
    if process.returncode != 0:
        said = lines[-1] if lines else f"{name} ended with exit code {process.returncode}; what it said is above"
        raise error_of_exit(process.returncode, said.removeprefix(f"{name}: "))
    for line in lines:
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    return Said(result, lines)


def _outputs(process: subprocess.Popen[str], watch: Callable[[], None] | None) -> tuple[str, str | None]:
    """What a program wrote to stdout and stderr, once it has ended."""
    while watch is not None:
        try:
            return process.communicate(timeout=_SECONDS_BETWEEN_LOOKS)
        except subprocess.TimeoutExpired:
            watch()
    return process.communicate()


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
    found: dict[str, Any] = json.loads(run_program("tsdp-account", [command, "--json", *map(str, arguments), *arguments_of(options)]).result)
    return found
