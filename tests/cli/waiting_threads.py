#!/usr/bin/env python3
"""Threads of every program that computes with LibTorch sleep soon when they wait, unless the environment says how they
are to wait."""

import os
import re
import subprocess

import run

PROGRAMS = ("tsdp-train", "tsdp-evaluate", "tsdp-forecast", "tsdp-audit")


def waits_by(program, **environment):
    """(GOMP_SPINCOUNT, OMP_WAIT_POLICY) that OpenMP says it read when the program, or what replaced it, was loaded."""
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    result = subprocess.run([str(program), "--version"], env={**plain, **environment, "OMP_DISPLAY_ENV": "verbose"}, capture_output=True,
                            text=True, check=True, timeout=60)
    return tuple(re.findall(name + r" = '(.*)'", result.stderr)[-1] for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"))


def main(binaries, _):
    for name in PROGRAMS:
        program = binaries / name
        assert waits_by(program)[0] == "10000", name
        assert waits_by(program, OMP_WAIT_POLICY="active")[1] == "ACTIVE", name
        assert waits_by(program, GOMP_SPINCOUNT="7")[0] == "7", name
    print("waiting threads: as promised")


if __name__ == "__main__":
    run.in_empty_folder(main)
