#!/usr/bin/env python3
"""Threads of every program that computes with LibTorch sleep soon when they wait, unless the environment says how they
are to wait; and there are as many as OMP_NUM_THREADS says, unless --threads says otherwise."""

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


def while_it_trains(binaries, folder, look, options, **environment):
    """What `look` finds of the process of a run that has taken steps; the process is the one that was started."""
    run.write_series(folder / "series.txt")
    config = run.write_config(folder / "config.yaml", folder / "series.txt", training__max_epochs=10**6,
                              training__validate_every=10**5, privacy__target_epsilon=60.0)
    output = folder / f"run{len(list(folder.iterdir()))}"
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    process = subprocess.Popen([str(binaries / "tsdp-train"), "--quiet", "--config", str(config), "--output", str(output), *options],
                               env={**plain, **environment})
    deadline = time.monotonic() + 60
    metrics = output / "private" / "metrics.jsonl"
    while not metrics.exists() or metrics.stat().st_size == 0:
        assert process.poll() is None and time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.01)
    found = look(process.pid)
    process.kill()
    process.wait()
    return found


def waits(pid):
    """(GOMP_SPINCOUNT, OMP_WAIT_POLICY)"""
    with open(f"/proc/{pid}/environ", "rb") as file:
        found = dict(entry.split("=", 1) for entry in file.read().decode().split("\0") if "=" in entry)
    return found.get("GOMP_SPINCOUNT"), found.get("OMP_WAIT_POLICY")


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def main(binaries, folder):
    for name in PROGRAMS:
        program = binaries / name
        assert waits_by(program)[0] == "10000", name
        assert waits_by(program, OMP_WAIT_POLICY="active")[1] == "ACTIVE", name
        assert waits_by(program, GOMP_SPINCOUNT="7")[0] == "7", name
    one = ("--threads", "1")
    assert while_it_trains(binaries, folder, waits, one) == ("10000", None)
    assert while_it_trains(binaries, folder, waits, one, OMP_WAIT_POLICY="active") == (None, "active")
    assert while_it_trains(binaries, folder, waits, one, GOMP_SPINCOUNT="7") == ("7", None)
    alone = while_it_trains(binaries, folder, threads, one, OMP_NUM_THREADS="3")
    assert while_it_trains(binaries, folder, threads, (), OMP_NUM_THREADS="1") == alone
    for options, said in (((), "3"), (("--threads", "3"), "1")):
        # Some begin with the first large operator.
        def more(pid):
            deadline = time.monotonic() + 60
            while threads(pid) < alone + 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            return threads(pid)

        assert while_it_trains(binaries, folder, more, options, OMP_NUM_THREADS=said) >= alone + 2
    print("waiting threads: as promised")


if __name__ == "__main__":
    run.in_empty_folder(main)
