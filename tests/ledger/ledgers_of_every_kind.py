#!/usr/bin/env python3
"""Small runs of every kind, each of whose ledgers is derived a second time (ledger_by_hand.py); and ledgers that no run writes, which `verify` must refuse.

    ledgers_of_every_kind.py windows|adaptive|series|starts|stopped --bin build/release/bin
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
import run  # noqa: E402

try:
    import ledger_by_hand
except ImportError as missing:
    run.skip(f"the derivation needs numpy: {missing}")

SERIES = 41  # no multiple of any batch below


def write_data(folder):
    """Series of 60, 63, … 180 values."""
    with open(folder / "series.jsonl", "w") as out:
        for i in range(SERIES):
            values = [round(10 + math.sin(t / 3 + i) + (t * 7919 + i * 104729) % 101 / 200, 3) for t in range(60 + 3 * i)]
            out.write(json.dumps({"item_id": f"s{i}", "start": "2020-01-01 00:00:00", "target": values}) + "\n")
    lines = (folder / "series.jsonl").read_text().splitlines(keepends=True)
    for number, (first, last) in enumerate(((0, 17), (17, 20), (20, SERIES))):
        (folder / f"part{number}.jsonl").write_text("".join(lines[first:last]))
    run.write_series(folder / "table.csv", rows=120, columns=12)
    (folder / "config.yaml").write_text(f"""
dataset: {{path: {folder}/series.jsonl, frequency: 1h, prediction_length: 3, season_length: 4, split: last, test_windows: 2, validation_length: 6}}
model: {{name: simple_ff, context_length: 6, width: 4}}
sampling: {{top_level: wor, bottom_level: wr, batch_size: 3}}
privacy: {{noise_multiplier: 2, clip_norm: 0.1, target_epsilon: 8, delta: 1.0e-5, composition: symmetrised}}
training: {{max_epochs: 3, validate_every: 1000, checkpoint_seconds: 0}}
""")


def series(top, **settings):
    return {"privacy.relation": "series", "sampling.top_level": top, "sampling.batch_size": 15, "privacy.noise_multiplier": 4, "privacy.target_epsilon": 20, **settings}


TWO_WINDOWS = {"sampling.subsequences_per_sequence": 2, "privacy.noise_multiplier": 6}
TABLE = {"dataset.path": "{folder}/table.csv", "dataset.format": "lstnet", "dataset.start": '"2020-01-01"'}

FILES = {"dataset.path": "{folder}/part{rank}.jsonl"}

SYNTHETIC = {"dataset.format": "synthetic", "dataset.path": "hourly", "dataset.synthetic.series": 20, "dataset.synthetic.length": 100}

# Settings by name, in groups that are tests of their own; `from` names the run whose model is the start.
RUNS = {
    "windows": {
        "ended by max_epochs": {},
        "ended by the target": {"privacy.target_epsilon": 1.5, "training.max_epochs": 1000},
        "ended by the target, in turn": {"sampling.top_level": "deterministic", "privacy.target_epsilon": 3, "training.max_epochs": 1000},
        "calibrated, reproducible, large delta": {"privacy.noise_multiplier": "auto", "training.reproducible": "true", "privacy.target_epsilon": 1, "privacy.delta": 0.03},
        "equal lengths, any three values": {**TABLE, "privacy.relation": "user", "privacy.w": 3, "privacy.noise_multiplier": 4},
        "five consecutive values, lags": {"privacy.w": 5, "model.name": "deepar", "model.lags": "[7,1,2]", "model.context_length": 3, "privacy.noise_multiplier": 3,
                                          "training.max_epochs": 1, "sampling.batch_size": 8},
        "two windows a series": {**TWO_WINDOWS, "sampling.batch_size": 5},
        "two windows a series, in turn": {**TWO_WINDOWS, "sampling.batch_size": 5, "sampling.top_level": "deterministic"},
        "windows by coins": {**TWO_WINDOWS, "sampling.batch_size": 5, "sampling.bottom_level": "poisson", "privacy.relation": "user", "privacy.w": 2},
        "windows by coins, shuffled": {**TWO_WINDOWS, "sampling.bottom_level": "poisson", "sampling.top_level": "shuffled"},
        "series by coins": {"sampling.top_level": "poisson"},
        "both by coins": {**TWO_WINDOWS, "sampling.batch_size": 5, "sampling.bottom_level": "poisson", "sampling.top_level": "poisson"},
        "two windows a series, in files of ranks": {**TWO_WINDOWS, **FILES, "sampling.batch_size": 5},
        "shuffled, in files of ranks": {**FILES, "sampling.top_level": "shuffled"},
        "windows by coins, in files of ranks": {**FILES, "sampling.bottom_level": "poisson"},
        "noise on the data": {"augmentation.context_noise": 0.5, "augmentation.forecast_noise": 1, "privacy.v": 0.5},
    },
    "adaptive": {
        "composed adaptively": {"privacy.composition": "adaptive", "privacy.noise_multiplier": 6, "training.max_epochs": 1, "sampling.batch_size": 4},
    },
    "series": {
        "whole series, in turn": series("deterministic"),
        "whole series, shuffled": series("shuffled", **{"sampling.subsequences_per_sequence": 2}),
        "whole series, by coins": series("poisson", **{"sampling.subsequences_per_sequence": 2}),
        "whole series, by coins of a rate": series("poisson", **{"sampling.batch_size": "null", "sampling.rate": 0.3}),
        "whole series, a sample": series("wor"),
        "whole series, in bins": series("balls_in_bins", **{"sampling.batch_size": "null", "sampling.batches": 2}),
        "whole series, in bins of every epoch": series("balls_in_bins", **{"sampling.batch_size": "null", "sampling.batches": 2, "sampling.redraw": "every_epoch"}),
        "whole series, in bins, in files of ranks": series("balls_in_bins", **FILES, **{"sampling.batch_size": "null", "sampling.batches": 2}),
        "whole series, by coins, in files of ranks": series("poisson", **FILES),
        "whole series, cyclic coins": series("cyclic_poisson", **{"sampling.batch_size": "null", "sampling.batches": 5, "privacy.noise.mechanism": "bsr", "privacy.noise.bands": 4, "privacy.noise_multiplier": 6}),
        "bins with correlated noise": series("balls_in_bins", **{"privacy.noise.mechanism": "bsr", "privacy.noise.bands": 2, "privacy.noise_multiplier": 6}),
        "in turn with correlated noise": series("deterministic", **{"privacy.noise.mechanism": "bisr", "privacy.noise.bands": 3, "privacy.noise_multiplier": 9}),
    },
    "starts": {
        "private": {},
        "not private": {"privacy.enabled": "false"},
        "synthetic": SYNTHETIC,
        "from a private run": {"from": "private"},
        "from a run from a private run": {"from": "from a private run"},
        "from a run without privacy": {"from": "not private"},
        "from a run from a run without privacy": {"from": "from a run without privacy"},
        "from synthetic series": {"from": "synthetic"},
        "synthetic, from a private run": {**SYNTHETIC, "from": "private"},
        "from synthetic series and before them a private run": {"from": "synthetic, from a private run"},
        "not private, from a private run": {"from": "private", "privacy.enabled": "false"},
    },
}
LONG = {"training.max_epochs": 150, "privacy.noise_multiplier": 4}
STOPPED = {
    "stopped": {**LONG, "model.prior": "last_value"},
    "stopped, whole series, shuffled": series("shuffled", **{"training.max_epochs": 500, "privacy.noise_multiplier": 40}),
    "stopped, in turn with correlated noise": {**RUNS["series"]["in turn with correlated noise"], "training.max_epochs": 300, "privacy.noise_multiplier": 200},
}


class Runs:
    def __init__(self, binaries, folder):
        self.binaries, self.folder, self.problems, self.count = binaries, folder, [], 0
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def place(self, name):
        return self.folder / name.replace(" ", "_").replace(",", "")

    def begin(self, name, settings):
        settings = dict(settings)
        start = settings.pop("from", None)
        if start:
            settings["model.start"] = self.place(start) / "model.pt"
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}".replace("{folder}", str(self.folder)))]
        return self.start("--config", self.folder / "config.yaml", "--output", self.place(name), *words)

    def start(self, *arguments, threads=1):
        return subprocess.Popen([self.binaries / "tsdp-train", "--quiet", "--threads", str(threads), *map(str, arguments)], stderr=subprocess.PIPE, text=True,
                                env=self.environment)

    def finish(self, name, process):
        _, errors = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{name}: tsdp-train ended with {process.returncode}: {errors}")

    def stop(self, name, process, how, beyond=0):
        """Sends the signal once the ledger has steps beyond so many. Kills come at once: after the first few steps a fast machine charges all that are left."""
        place = self.place(name)
        while process.poll() is None and self.charged(place) <= beyond:
            time.sleep(0.001)
        if how != signal.SIGKILL:
            time.sleep(0.03)
        process.send_signal(how)
        _, errors = process.communicate()
        if process.returncode not in (130, -signal.SIGKILL):
            sys.exit(f"{name}: expected to be stopped, ended with {process.returncode}: {errors}")

    @staticmethod
    def charged(place):
        try:
            return json.loads((place / "privacy.json").read_text())["steps_charged"]
        except OSError:
            return 0

    def derive(self, name, **facts):
        place = self.place(name)
        ledger = json.loads((place / "privacy.json").read_text())
        found = ledger_by_hand.Derivation(place).check()
        found += [f"{key}: found {ledger[key]}; expected {value}" for key, value in facts.items() if ledger[key] != value]
        self.problems += [f"{name}: {problem}" for problem in found]
        self.count += 1
        return ledger

    def planned(self, name, ledger):
        """What a plan says before a run is what its ledger says after it."""
        answer = subprocess.run([self.binaries / "tsdp-train", "--config", self.place(name) / "config.yaml", "--dry-run", "--json", "--quiet"],
                                capture_output=True, text=True, env=self.environment, check=True)
        plan = json.loads(answer.stdout)
        self.problems += [f"{name}: {key}: planned {plan[key]}; the ledger says {ledger[key]}"
                          for key in ("theorem", "bound", "composition", "composition_unit", "compositions", "epsilon", "target_epsilon") if plan[key] != ledger[key]]

    def stopped(self):
        for name, settings in STOPPED.items():
            self.stop(name, self.begin(name, settings), signal.SIGINT)
            self.derive(name, state="interrupted")

    def stopped_and_resumed(self):
        for name, settings in (("killed", LONG), ("killed, in turn", {**LONG, "sampling.top_level": "deterministic", "privacy.target_epsilon": 40})):
            # A kill right at a checkpoint before the next steps are charged loses none, and shows nothing.
            if not any(self.killed_twice(f"{name}, {attempt}", settings) for attempt in range(4)):
                self.problems.append(f"{name}: no kill of four lost a step that is counted as lost")

    def killed_twice(self, name, settings):
        """Killed, resumed where its steps cannot be replayed, stopped, resumed so again, ended. Whether steps were lost both times."""
        self.stop(name, self.begin(name, settings), signal.SIGKILL)
        if not self.has_steps_left(self.derive(name, state="running")):
            return False
        self.stop(name, self.start("--resume", self.place(name), threads=2), signal.SIGINT, self.charged(self.place(name)))
        stopped = self.derive(name, state="interrupted")
        self.refused(name, stopped, "steps_charged", state="finished",
                     not_covered=[one for one in stopped["not_covered"] if "copies" not in one])  # which go on from what is not finished
        self.refused(name, stopped, "steps_taken", steps_taken=stopped["steps_charged"] + 1)
        self.stop(name, self.start("--resume", self.place(name), threads=2), signal.SIGKILL, stopped["steps_charged"])
        if not self.has_steps_left(self.derive(name, state="running")):
            return False
        self.finish(name, self.start("--resume", self.place(name), threads=1))
        ended = self.derive(name, state="finished", steps_planned=stopped["steps_planned"])
        first, both = (one["steps_charged"] - one["steps_taken"] for one in (stopped, ended))
        return 0 < first < both

    @staticmethod
    def has_steps_left(ledger):
        return ledger["steps_charged"] < ledger["steps_planned"]

    def refused(self, name, ledger, why, **changes):
        """`verify` must not take the ledger with these changes, because of `why`."""
        forged = self.folder / "forged.json"
        for content, codes in ((ledger, (0,)), ({**ledger, **changes}, (3, 4))):
            forged.write_text(json.dumps(content))
            answer = subprocess.run([self.binaries / "tsdp-account", "verify", forged], capture_output=True, text=True, env=self.environment)
            if answer.returncode not in codes or (content is not ledger and why not in answer.stdout + answer.stderr):
                self.problems.append(f"{name}, with {changes}: verify ended with {answer.returncode} and said {answer.stdout + answer.stderr!r}")


def test(binaries, folder):
    write_data(folder)
    runs = Runs(binaries, folder)
    for name, settings in RUNS.get(GROUP, {}).items():
        runs.finish(name, runs.begin(name, settings))
        ledger = runs.derive(name, state="finished")
        if GROUP == "adaptive":
            runs.planned(name, ledger)
    if GROUP == "stopped":
        runs.stopped()
        runs.stopped_and_resumed()
    for problem in runs.problems:
        print(problem)
    print(f"{runs.count} ledgers, {len(runs.problems)} fields that do not follow")
    sys.exit(1 if runs.problems or not runs.count else 0)


if __name__ == "__main__":
    GROUP = sys.argv.pop(1)
    run.in_empty_folder(test)
