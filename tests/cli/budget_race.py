#!/usr/bin/env python3
"""Starts runs in pairs on one budget file and kills them at random moments: what is charged never passes the budget.

    budget_race.py --bin build/release/bin --kills 200

Each round starts two tsdp-train processes at once with the same --budget and kills both (SIGKILL) after a random time of at most
what a whole run takes on this machine, or lets them end. After every round: the budget file is whole; every run that has a checkpoint is charged with its whole plan; nothing was
admitted beyond the budget. At the end all runs together cost at most the budget by tsdp-account total, too.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

CONFIG = """dataset: {path: series.txt, format: lstnet, frequency: 1h, start: "2015-01-01", prediction_length: 4,
  season_length: 24, split: last, test_windows: 1, validation_length: 0}
model: {context_length: 8}
sampling: {batch_size: 2}
privacy: {noise_multiplier: 8.0, delta: 1.0e-6, target_epsilon: 1.0}
training: {max_epochs: 10, checkpoint_seconds: 0.05}
"""
EPSILON, DELTA = 4.0, 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    randomness = random.Random(options.seed)
    programs = pathlib.Path(options.bin).resolve()
    kills = refused = finished = number = charges = spent = seen = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.yaml").write_text(CONFIG)
        (folder / "series.txt").write_text("".join(f"{1 + i % 24},{100 + i % 7}\n" for i in range(200)))

        def call(program, *arguments):
            return subprocess.run([str(programs / program), *arguments], cwd=folder, capture_output=True, text=True, check=False)

        made = call("tsdp-account", "budget", "budget.json", "--epsilon", str(EPSILON), "--delta", str(DELTA))
        if made.returncode != 0:
            sys.exit(made.stderr)

        def start(budget, output):
            return subprocess.Popen(
                [str(programs / "tsdp-train"), "--quiet", "--threads", "1", "--config", "config.yaml", "--budget", budget,
                 "--output", output], cwd=folder, stderr=subprocess.PIPE, text=True)

        # How long two at once take here: on a slow machine a second is too early to be charged.
        call("tsdp-account", "budget", "first.json", "--epsilon", str(EPSILON), "--delta", str(DELTA))
        begin = time.monotonic()
        for process in [start("first.json", f"first{i}") for i in range(2)]:
            if process.wait() != 0:
                sys.exit(process.stderr.read())
        whole = time.monotonic() - begin
        while kills < options.kills or (seen == 0 and number < 20 * options.kills):
            pair = []
            for _ in range(2):
                number += 1
                pair.append(start("budget.json", f"run{number}"))
            wait = randomness.uniform(0.05, 1.1 * whole)
            for process in pair:
                try:
                    process.wait(timeout=wait)
                    errors = process.stderr.read()
                    if process.returncode == 0:
                        finished += 1
                    elif process.returncode == 4 and "would pass the budget" in errors:
                        refused += 1
                    else:
                        sys.exit(f"tsdp-train ended with {process.returncode}: {errors}")
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    kills += 1
                wait = randomness.uniform(0.0, 0.2)
            budget = json.loads((folder / "budget.json").read_text())
            seen = max(seen, len(budget["charges"]))
            charged = {charge["run"]: charge["compositions"] for charge in budget["charges"]}
            if len(charged) != len(budget["charges"]):
                sys.exit("a run is charged twice")
            runs = [path for path in folder.glob("run*") if (path / "privacy.json").exists()]
            for run in runs:
                ledger = json.loads((run / "privacy.json").read_text())
                if ledger["compositions"] > charged.get(ledger["run"]["id"], -1):
                    sys.exit(f"{run}: states {ledger['compositions']} uses and is charged {charged.get(ledger['run']['id'])}")
            if refused > 4:  # the budget is spent: a new one, so that charges go on being made
                check_total(call, runs)
                charges += len(charged)
                spent += 1
                for path in ["budget.json", *[run.name for run in folder.glob("run*")]]:
                    subprocess.run(["rm", "-rf", str(folder / path)], check=True)
                call("tsdp-account", "budget", "budget.json", "--epsilon", str(EPSILON), "--delta", str(DELTA))
                refused = 0
        charges += len(json.loads((folder / "budget.json").read_text())["charges"])
        if charges == 0:
            sys.exit("no run lived long enough to be charged: nothing was tested")
        check_total(call, [path for path in folder.glob("run*") if (path / "privacy.json").exists()])
    print(f"{number} runs started in pairs, {kills} killed, {finished} finished, {charges} charged, {spent} budgets spent and refusing: "
          "none was ever passed")


def check_total(call, runs):
    if not runs:
        return
    total = call("tsdp-account", "total", *[run.name for run in runs], "--delta", str(DELTA), "--json")
    if total.returncode != 0:
        sys.exit(total.stderr)
    upper = json.loads(total.stdout)["epsilon"]["upper"]
    if upper > EPSILON:
        sys.exit(f"all runs together cost epsilon {upper}, more than the budget of {EPSILON}")


if __name__ == "__main__":
    main()
