#!/usr/bin/env python3
"""Threads of every program that computes with LibTorch sleep soon when they wait, unless the environment says how they
are to wait."""

import os
import re
import subprocess
import time

import run

PROGRAMS = ("tsdp-train", "tsdp-evaluate", "tsdp-forecast", "tsdp-audit")


def waits_by(program, **environment):
    """(GOMP_SPINCOUNT, OMP_WAIT_POLICY) that OpenMP says it read when the program, or what replaced it, was loaded."""
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    result = subprocess.run([str(program), "--version"], env={**plain, **environment, "OMP_DISPLAY_ENV": "verbose"}, capture_output=True,
                            text=True, check=True, timeout=60)
    return tuple(re.findall(name + r" = '(.*)'", result.stderr)[-1] for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"))


def run_waits_by(binaries, folder, **environment):
    """(GOMP_SPINCOUNT, OMP_WAIT_POLICY) that a run has while it trains; its process is the one that was started."""
    run.write_series(folder / "series.txt")
    config = run.write_config(folder / "config.yaml", folder / "series.txt", training__max_epochs=10**6,
                              training__validate_every=10**5, privacy__target_epsilon=60.0)
    output = folder / f"run{len(list(folder.iterdir()))}"
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    process = subprocess.Popen([str(binaries / "tsdp-train"), "--quiet", "--threads", "1", "--config", str(config), "--output", str(output)],
                               env={**plain, **environment})
    deadline = time.monotonic() + 60
    while not (output / "private" / "checkpoints").is_dir():
        assert process.poll() is None and time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.01)
    with open(f"/proc/{process.pid}/environ", "rb") as file:
        found = dict(entry.split("=", 1) for entry in file.read().decode().split("\0") if "=" in entry)
    process.kill()
    process.wait()
    return found.get("GOMP_SPINCOUNT"), found.get("OMP_WAIT_POLICY")


def main(binaries, folder):
    for name in PROGRAMS:
        program = binaries / name
        assert waits_by(program)[0] == "10000", name
        assert waits_by(program, OMP_WAIT_POLICY="active")[1] == "ACTIVE", name
        assert waits_by(program, GOMP_SPINCOUNT="7")[0] == "7", name
    assert run_waits_by(binaries, folder) == ("10000", None)
    assert run_waits_by(binaries, folder, OMP_WAIT_POLICY="active") == (None, "active")
    assert run_waits_by(binaries, folder, GOMP_SPINCOUNT="7") == ("7", None)
    print("waiting threads: as promised")


if __name__ == "__main__":
    run.in_empty_folder(main)
