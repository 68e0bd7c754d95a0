#!/usr/bin/env python3
"""Every record of accountant.json through the command line of tsdp-account.

    golden_accountant.py --bin build/release/bin [--golden DIR] [--only REGEX]

Reads accountant.json in --golden, in the folder that TSDP_GOLDEN_DIR names, or in tests/golden. Exit code 0: all
records agree; 1: some do not (one line each), or the project's own folder lacks the file or a section; 77: another folder
lacks the file, or every section. A section that another folder lacks is skipped with a word.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

OPTIONS = {
    "N": "--num-sequences",
    "L": "--sequence-length",
    "LC": "--context-length",
    "LF": "--forecast-length",
    "Lambda": "--batch-size",
    "lambda": "--subsequences-per-sequence",
    "sigma": "--noise-multiplier",
    "sigma_C": "--context-noise",
    "sigma_F": "--forecast-noise",
    "relation": "--relation",
    "w": "--w",
    "N_total": "--num-records",
    "W": "--window-length",
    "theorem": "--theorem",
}


class Checks:
    def __init__(self, program):
        self.program = program
        self.failures = []
        self.record = None

    def expect(self, holds, text):
        if not holds:
            self.failures.append(f"{self.record}: {text}")

    def ask(self, command, params, **question):
        words = [self.program, command, "--json"]
        for key, value in params.items():
            if key in OPTIONS:
                words += [OPTIONS[key], repr(value) if isinstance(value, float) else str(value)]
            else:  # w_shift is the w of Theorem 4.5, told by --w
                self.expect(key == "w_shift" and value == params.get("w", 1), f"unknown parameter {key}")
        if params.get("sigma_F") or params.get("sigma_C"):
            words += ["--v", "1"]
        words += [f"--{name}={value}" for name, value in question.items()]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            self.expect(False, f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
            return None
        answer = json.loads(done.stdout)
        self.expect(answer["theorem"] == params["theorem"], f"answers by Theorem {answer['theorem']}")
        optimistic = answer["bound"] == "optimistic_lower" and answer["compositions"] > 1
        self.expect(answer.get("rigorous", True) != optimistic, f"rigorous: {answer.get('rigorous')}")
        return answer

    def single(self, record):
        points = record["points"]
        answer = self.ask("profile", record["params"], epsilons=",".join(repr(p["eps"]) for p in points))
        if answer is None:
            return
        self.expect(len(answer["profile"]) == len(points), "another number of points")
        self.expect(answer["compositions"] == 1, "more than one use")
        for found, point in zip(answer["profile"], points):
            expected = float(point["delta"])
            low, high = found["delta"]["lower"], found["delta"]["upper"]
            at = f"epsilon {point['eps']}: found [{low}, {high}], expected {point['delta']}"
            self.expect(found["epsilon"] == point["eps"], at)
            if point["eps"] < 0:
                self.expect(low - 1e-15 <= expected <= high + 1e-15 and high - low <= 1e-12, at)
            else:
                self.expect(low * (1 - 1e-15) <= expected <= high * (1 + 1e-15), at)
                if expected >= 1e-249:
                    self.expect(high - low <= 4e-9 * expected, at)

    def uses(self, record):
        """The option that asks for k uses of one theorem's mechanism."""
        epoch = record["params"]["theorem"] in ("4.2", "4.3", "E.1", "E.8")
        return {"epochs" if epoch else "steps": record["k"]}

    def composed(self, record):
        for query in record["eps_of_delta"]:
            answer = self.ask("epsilon", record["params"], delta=repr(query["delta"]), **self.uses(record))
            if answer is not None:
                low, high = answer["epsilon"]["lower"], answer["epsilon"]["upper"]
                at = f"delta {query['delta']}: found [{low}, {high}], expected [{query['lo']}, {query['hi']}]"
                self.expect(high >= query["lo"] and low <= query["hi"] and high <= query["hi"] * (1 + 5e-4), at)
                self.expect(answer["compositions"] == record["k"], f"{answer['compositions']} compositions")
        for query in record["delta_of_eps"]:
            answer = self.ask("delta", record["params"], epsilon=repr(query["eps"]), **self.uses(record))
            if answer is not None:
                low, high = answer["delta"]["lower"], answer["delta"]["upper"]
                at = f"epsilon {query['eps']}: found [{low}, {high}], expected [{query['lo']}, {query['hi']}]"
                self.expect(high >= query["lo"] and low <= query["hi"], at)

    def epochs(self, record):
        answer = self.ask("steps", record["params"], epsilon=repr(record["eps"]), delta=repr(record["delta"]))
        if answer is None:
            return
        least = record["max_steps_lo"] - -(-record["max_steps_lo"] // 1000)
        self.expect(least <= answer["steps"] <= record["max_steps_hi"],
                    f"{answer['steps']} steps, expected {least} to {record['max_steps_hi']}")
        self.expect(answer["epochs"] == answer["steps"] // record["steps_per_epoch"], f"{answer['epochs']} epochs")
        self.expect(answer["epsilon"]["upper"] <= record["eps"] and answer["budget_left"] >= 0, "over budget")

    def calibration(self, record):
        answer = self.ask("sigma", record["params"], epsilon=repr(record["eps"]), delta=repr(record["delta"]),
                          **self.uses(record))
        if answer is not None:
            sigma = answer["noise_multiplier"]
            self.expect(record["sigma_lo"] <= sigma <= record["sigma_hi"] * 1.002,
                        f"sigma {sigma}, expected {record['sigma_lo']} to {record['sigma_hi']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    here = pathlib.Path(__file__).resolve().parent
    own = here.parent / "golden"
    folder = pathlib.Path(options.golden or os.environ.get("TSDP_GOLDEN_DIR") or own).resolve()
    file = folder / "accountant.json"
    if not file.exists():
        print(f"{file}: absent" if folder == own else f"{file}: absent, skipped")
        return 1 if folder == own else 77
    golden = json.loads(file.read_text())
    checks = Checks(str(pathlib.Path(options.bin) / "tsdp-account"))
    count = 0
    for section in ("single", "composed", "epochs", "calibration"):
        if not golden.get(section):
            checks.record = file
            if folder == own:
                checks.expect(False, f"section {section} is absent")
            else:
                print(f"{file}: section {section} is absent, skipped")
        for record in golden.get(section, []):
            checks.record = f"{section} {record['id']}"
            if re.search(options.only, checks.record):
                getattr(checks, section)(record)
                count += 1
    for failure in checks.failures:
        print(failure)
    print(f"{count} records, {len(checks.failures)} failures")
    if count == 0 and not checks.failures:
        return 1 if folder == own or options.only else 77
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
