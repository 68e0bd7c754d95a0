#!/usr/bin/env python3
"""Kills tsdp-train at random moments, resumes it, and compares the end with an uninterrupted run of the same key.

    kill_and_resume.py --program build/release/bin/tsdp-train --config configs/exchange_rate.yaml --kills 200 --mode keyed|reproducible

Every run is begun, killed at its first checkpoint and copied; the copy goes on without interruption. The original is
killed (SIGKILL, every fifth time SIGINT) and resumed again and again. Both must end with the same weights and optimizer
state, bit for bit, and with every planned step charged once.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def tensors(checkpoint):
    """The raw tensors of a checkpoint (a safetensors file), by name."""
    content = checkpoint.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    places = {name: about["data_offsets"] for name, about in header.items() if name not in ("__metadata__", "sha256")}
    return {name: content[begin + first:begin + last] for name, (first, last) in places.items()}


class Session:
    def __init__(self, options, folder):
        self.options = options
        self.run = folder / "run"
        self.reference = folder / "reference"
        self.program = options.program

    def start(self, *arguments):
        return subprocess.Popen([self.program, "--quiet", *arguments], stderr=subprocess.PIPE, text=True)

    def begin(self):
        settings = {
            "training.reproducible": str(self.options.mode == "reproducible").lower(),
            "training.max_epochs": str(self.options.epochs),
            "training.validate_every": "100",
            "training.checkpoint_seconds": "0.05",
            "privacy.target_epsilon": "50",
            "privacy.noise_multiplier": "2",
        }
        settings.update(assignment.split("=", 1) for assignment in self.options.set)
        assignments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        process = self.start("--config", self.options.config, "--output", str(self.run), *assignments)
        while not (self.run / "privacy.json").exists():
            if process.poll() is not None:
                sys.exit(f"tsdp-train ended before its first checkpoint: {process.stderr.read()}")
            time.sleep(0.005)
        process.kill()
        process.wait()
        shutil.copytree(self.run, self.reference)

    def kill_once(self, randomness, number):
        """True if the run was killed, False if it ended by itself before."""
        last = self.run / "private/checkpoints/last.pt"
        was = last.stat().st_mtime_ns
        process = self.start("--resume", str(self.run))
        # Some checkpoints later and between two of them; now and then before there is a new one, while the process begins.
        for _ in range(randomness.randrange(8)):
            while process.poll() is None and last.stat().st_mtime_ns == was:
                time.sleep(0.002)
            was = last.stat().st_mtime_ns
        try:
            process.wait(timeout=randomness.uniform(0.0, 0.2))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT if number % 5 == 4 else signal.SIGKILL)
            process.wait()
            return True
        if process.returncode != 0:
            sys.exit(f"resume failed with {process.returncode}: {process.stderr.read()}")
        return False

    def finish(self, folder):
        process = self.start("--resume", str(folder))
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"resume failed with {process.returncode}: {errors}")

    def compare(self):
        self.finish(self.run)
        self.finish(self.reference)
        ours = tensors(self.run / "private/checkpoints/last.pt")
        theirs = tensors(self.reference / "private/checkpoints/last.pt")
        if not ours or ours != theirs:
            sys.exit("the resumed run ends with other weights than the uninterrupted one")
        ledgers = [json.loads((folder / "privacy.json").read_text()) for folder in (self.run, self.reference)]
        for key in set(ledgers[0]) | set(ledgers[1]):
            if key not in ("run", "timestamps") and ledgers[0].get(key) != ledgers[1].get(key):
                sys.exit(f"the ledgers differ in {key}: {ledgers[0].get(key)}, {ledgers[1].get(key)}")
        for folder in (self.run, self.reference):
            ledger = json.loads((folder / "privacy.json").read_text())
            counts = [ledger[key] for key in ("steps_taken", "steps_charged", "steps_planned")]
            if len(set(counts)) != 1 or ledger["epsilon"]["upper"] > ledger["target_epsilon"]:
                sys.exit(f"the ledger does not add up: {counts}, epsilon {ledger['epsilon']}")
        lines = [json.loads(line) for line in (self.run / "private/metrics.jsonl").read_text().splitlines()]
        steps = [line["step"] for line in lines if "loss" in line]
        if not steps or steps != sorted(set(steps)):
            sys.exit("the metrics of replayed steps are there twice")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="tsdp-train, or build/release/tests/fake_device_train")
    parser.add_argument("--config", required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--mode", choices=["keyed", "reproducible"], default="keyed")
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="further settings of the run")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    options = parser.parse_args()
    randomness = random.Random(options.seed)
    kills = 0
    runs = 0
    while kills < options.kills:
        with tempfile.TemporaryDirectory() as folder:
            session = Session(options, pathlib.Path(folder))
            session.begin()
            runs += 1
            while kills < options.kills and session.kill_once(randomness, kills):
                kills += 1
            session.compare()
    print(f"{kills} kills in {runs} runs, {options.mode}: same weights, optimizer state and ledger")


if __name__ == "__main__":
    main()
