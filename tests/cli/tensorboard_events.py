#!/usr/bin/env python3
"""TensorBoard reads what a run logs: every scalar of metrics.jsonl at its step, once, also after a killed run was resumed.

Needs the Python package tensorboard (scripts/requirements-test.txt).
"""

import json
import os
import signal
import socket
import struct
import subprocess
import time

import run

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
except ImportError as error:
    run.skip(error)

TAGS = {
    "loss": "train/loss",
    "gradient_norm_median": "train/gradient_norm_median",
    "clipped_share": "train/clipped_share",
    "validation_loss": "validation/loss",
    "epsilon_upper": "privacy/epsilon_upper",
}


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def logged(folder):
    """By tag: [(step, value), …] of metrics.jsonl."""
    out = {tag: [] for tag in TAGS.values()}
    for line in (folder / "private/metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for name, tag in TAGS.items():
            if name in entry:
                out[tag].append((entry["step"], single(entry[name])))
    return out


def read(folder):
    accumulator = EventAccumulator(str(folder / "private/tensorboard"), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]}


def taken_again(folder):
    """How many events earlier files hold of steps that a later file begins anew."""
    files = [[event for event in LegacyEventFileLoader(str(path)).Load()]
             for path in sorted((folder / "private/tensorboard").iterdir())]
    count = 0
    for number, events in enumerate(files):
        start = next(event for event in events if event.HasField("session_log"))
        count += sum(event.HasField("summary") and event.step >= start.step for earlier in files[:number] for event in earlier)
    return count


def compare(folder, files):
    expected, found = logged(folder), read(folder)
    assert set(found) == set(expected), (set(found), set(expected))
    for tag, values in expected.items():
        assert values and found[tag] == values, (tag, values[:3], found[tag][:3], len(values), len(found[tag]))
    steps = [step for step, _ in expected["train/loss"]]
    assert steps == sorted(set(steps))
    epsilons = [value for _, value in expected["privacy/epsilon_upper"]]
    assert epsilons == sorted(epsilons) and len(epsilons) > 5, epsilons
    ledger = json.loads((folder / "privacy.json").read_text())
    assert epsilons[-1] == single(ledger["epsilon"]["upper"]), (epsilons[-1], ledger["epsilon"])
    names = sorted(os.listdir(folder / "private/tensorboard"))
    assert len(names) == files, names
    host = socket.gethostname().encode()
    for name in names:
        path = folder / "private/tensorboard" / name
        assert path.stat().st_mode & 0o777 == 0o600, name
        if len(host) > 3:
            assert host not in name.encode() and host not in path.read_bytes(), name
    assert (folder / "private/tensorboard").stat().st_mode & 0o777 == 0o700
    print(f"{len(names)} files, {sum(map(len, expected.values()))} scalars agree")


def main(binaries, folder):
    run.write_series(folder / "series.txt")
    config = run.write_config(folder / "config.yaml", folder / "series.txt", training__max_epochs=1000)
    whole = folder / "whole"
    run.program(binaries, "tsdp-train", "--quiet", "--threads", "1", "--config", config, "--output", whole)
    compare(whole, 1)

    # Checkpoints are so rare that steps are taken, and logged, again.
    run.write_config(config, folder / "series.txt", training__max_epochs=20000, training__checkpoint_seconds=0.7,
                     privacy__target_epsilon=80.0)
    killed = folder / "killed"
    command = [str(binaries / "tsdp-train"), "--quiet", "--threads", "1"]
    process = subprocess.Popen([*command, "--config", config, "--output", killed], stderr=subprocess.DEVNULL)
    for number, wait in enumerate((1.0, 1.2, 1.1, 0.6)):
        while process.poll() is None and len(list(killed.glob("private/tensorboard/*"))) <= number:
            time.sleep(0.01)
        time.sleep(wait)
        assert process.poll() is None, "ended before it was killed"
        if number == 3:
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        # A crash may cut off an event in the middle; that must not hide what later files hold.
        last = sorted(killed.glob("private/tensorboard/*"))[-1]
        last.write_bytes(last.read_bytes()[:-5])
        process = subprocess.Popen([*command, "--resume", killed], stderr=subprocess.DEVNULL)
    expected, found = logged(killed), read(killed)
    for tag, values in expected.items():
        steps = [step for step, _ in found[tag]]
        assert steps and steps == sorted(set(steps)), f"{tag}: steps twice or out of order"
        # At most the last event of each file that was cut off is lost.
        assert not set(found[tag]) - set(values), (tag, sorted(set(found[tag]) - set(values))[:5])
        assert len(set(values) - set(found[tag])) <= 3, (tag, sorted(set(values) - set(found[tag]))[:5])
    dropped = taken_again(killed)
    assert dropped > 0, "no step was logged twice: this run shows nothing"
    print(f"killed 3 times, {dropped} events of steps taken again are not shown twice")


if __name__ == "__main__":
    run.in_empty_folder(main)
