#!/usr/bin/env python3
"""scripts/auto_ets.py: missing values, levels, mistakes, and what it makes of a model's answers, by a stand-in for
statsforecast; with --forecasts, its forecasts by statsforecast itself (skipped, exit code 77, where that is not installed).

    auto_ets_script.py --root ROOT [--forecasts]
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from run import SKIPPED

# In place of statsforecast: forecasts that tell what the model was given. The point forecast counts on from the last
# value, intervals are as wide as their level, and a series of fewer than three values cannot be fitted.
STAND_IN = """
import numpy as np


class Counting:
    def __init__(self, season_length):
        self.season_length = season_length

    def forecast(self, y, h, level):
        if len(y) < 3:
            raise ValueError("too short")
        if y[0] == 666.0:
            return {"mean": np.full(h, np.nan)}
        mean = y[-1] + 1000.0 * self.season_length + np.arange(1.0, h + 1.0)
        out = {"mean": mean}
        for one in level:
            out[f"lo-{one}"], out[f"hi-{one}"] = mean - one, mean + one
        return out


class AutoETS(Counting):
    def __init__(self, season_length, model):
        assert model == "ZZZ", model
        super().__init__(season_length)


class AutoARIMA(Counting):
    def forecast(self, y, h, level):
        return {name: values + 100.0 for name, values in super().forecast(y, h, level).items()}
"""


def check_with_stand_in(script, folder, split):
    """Everything but the model: which entries, values and season it is given, and what becomes of its answers."""
    (folder / "statsforecast").mkdir()
    (folder / "statsforecast/__init__.py").touch()
    (folder / "statsforecast/models.py").write_text(STAND_IN)
    entries = [{"item_id": "whole", "start": "2020-01-01", "target": [1.0, 2.0, 3.0, 4.0, 50.0, 60.0]},
               {"item_id": "holes", "start": "2020-01-01", "target": [None, 2.0, 3.0, "NaN", 50.0, 60.0]},
               {"item_id": "short", "start": "2020-01-01", "target": [5.0, 8.0, 1.0, 1.0]},
               {"item_id": "unfit", "start": "2020-01-01", "target": [666.0, 0.0, 0.0, 9.0, 9.0]},
               {"item_id": "none", "start": "2020-01-01", "target": [1.0, 1.0]}]
    (split / "test.jsonl").write_text("".join(json.dumps(entry) + "\n\n" for entry in entries))
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*more):
        done = subprocess.run([sys.executable, script, "--split", split, "--output", folder / "out.jsonl", "--processes", "2",
                               *more], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done
        assert not (folder / "out.jsonl.part").exists()
        return done, [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]

    arima = ("--model", "auto_arima")
    for season, more in ((4, ()), (7, ("--season-length", "7")), (25, ("--season-length", "25")), (1, (*arima, "--season-length", "1")), (4, arima),
                         (25, (*arima, "--season-length", "25"))):
        done, found = run(*more)
        more_of_it = 100.0 if "auto_arima" in more else 0.0
        assert ("season 25 is above 24" in done.stderr) == (season == 25 and not more_of_it), done
        assert "2 missing values" in done.stderr, done
        assert [(one["item_id"], one["forecast_start"]) for one in found] == [
            ("whole", 4), ("holes", 4), ("short", 2), ("unfit", 3), ("none", 0)], found
        for one, last in zip(found, (4.0, 3.0)):
            mean = [last + 1000.0 * season + more_of_it + k for k in (1.0, 2.0)]
            assert one["mean"] == mean, one
            width = {"0.025": -95, "0.05": -90, "0.1": -80, "0.2": -60, "0.25": -50, "0.3": -40, "0.4": -20, "0.5": 0,
                     "0.6": 20, "0.7": 40, "0.75": 50, "0.8": 60, "0.9": 80, "0.95": 90, "0.975": 95}
            assert one["quantiles"] == {q: [m + w for m in mean] for q, w in width.items()}, one
        for one, mean in zip(found[2:], (6.5, 222.0, 0.0)):
            assert one["mean"] == [mean] * 2, one
            assert len(one["quantiles"]) == 15 and all(row == [mean] * 2 for row in one["quantiles"].values()), one


def check_forecasts(script, root, folder):
    """By statsforecast itself."""
    def run(*arguments):
        return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)

    (folder / "metadata.json").write_text(json.dumps({"prediction_length": 3, "season_length": 4}))
    series = [10 + t % 4 + 0.01 * t for t in range(43)]
    entries = [{"item_id": "whole", "start": "2020-01-01", "target": series},
               {"item_id": "holes", "start": "2020-01-01", "target": [None, *series[1:20], None, *series[21:]]},
               {"item_id": "short", "start": "2020-01-01", "target": [5.0, 1.0, 2.0, 3.0]}]
    (folder / "test.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    done = run("--split", folder, "--output", folder / "out.jsonl", "--processes", "1")
    assert done.returncode == 0, done
    assert "2 missing values" in done.stderr, done
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [(one["item_id"], one["forecast_start"]) for one in found] == [("whole", 40), ("holes", 40), ("short", 1)]
    assert all(len(one["mean"]) == 3 and all(len(row) == 3 for row in one["quantiles"].values()) for one in found)
    assert max(abs(a - b) for a, b in zip(found[0]["quantiles"]["0.5"], series[40:])) < 0.5
    assert found[2]["mean"] == [5.0] * 3
    done = run("--split", folder, "--output", folder / "arima.jsonl", "--processes", "1", "--model", "auto_arima")
    assert done.returncode == 0, done
    found = [json.loads(line) for line in (folder / "arima.jsonl").read_text().splitlines()]
    assert max(abs(a - b) for a, b in zip(found[0]["quantiles"]["0.5"], series[40:])) < 0.5
    checked = run("--check", root / "tests/golden/evaluation.json")
    assert checked.returncode == 0, checked


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--forecasts", action="store_true")
    options = parser.parse_args()
    root = options.root
    script = root / "scripts" / "auto_ets.py"
    if options.forecasts:
        # Not among what test.sh installs, so that its absence is no failure on a build server either.
        if importlib.util.find_spec("statsforecast") is None:
            print("skipped: no statsforecast (scripts/auto_ets_requirements.txt)")
            sys.exit(SKIPPED)
        with tempfile.TemporaryDirectory() as name:
            check_forecasts(script, root, pathlib.Path(name))
        return
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("auto_ets", script)
    auto_ets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(auto_ets)

    assert auto_ets.filled([None, 2.0, math.nan, 3.0, None]) == [2.0, 2.0, 2.0, 3.0, 3.0]
    assert auto_ets.filled([None, None]) == [0.0, 0.0]
    assert auto_ets.filled([]) == []
    assert [auto_ets.interval_level(q) for q in (0.025, 0.1, 0.25, 0.4, 0.5, 0.6, 0.9, 0.975)] == [95, 80, 50, 20, 0, 20, 80, 95]

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*arguments):
            return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)

        def expect_failure(code, *parts):
            done = run("--split", folder, "--output", folder / "out.jsonl")
            lines = done.stderr.strip().splitlines()
            assert done.returncode == code and len(lines) == 1 and done.stdout == "", done
            assert all(part in lines[0] for part in parts), (parts, lines)
            assert not (folder / "out.jsonl").exists()

        assert run("--split", folder).returncode == 2
        expect_failure(3, "metadata.json", "tsdp-data split")
        (folder / "metadata.json").write_text("{}")
        expect_failure(3, "metadata.json", "prediction_length")
        (folder / "metadata.json").write_text(json.dumps({"prediction_length": 3, "season_length": 4}))
        expect_failure(3, "test.jsonl", "tsdp-data split")
        for text, part in (('{"item_id": "a"}', "item_id and target"), ("[]", "item_id and target"),
                           ('{"item_id": "a", "target": [1, "x"]}', "item_id and target"),
                           ('{"item_id": "a", "target": [1, 2]}', "found 2 values")):
            (folder / "test.jsonl").write_text('{"item_id": "b", "target": [1, 2, 3, 4]}\n' + text + "\n")
            expect_failure(3, "test.jsonl:2", part)

        # What follows needs numpy, which the Python of LibTorch has; a build without LibTorch takes any Python.
        if importlib.util.find_spec("numpy") is None:
            print("skipped: no numpy")
            sys.exit(SKIPPED)
        (folder / "stand_in").mkdir()
        (folder / "metadata.json").write_text(json.dumps({"prediction_length": 2, "season_length": 4}))
        check_with_stand_in(script, folder / "stand_in", folder)


if __name__ == "__main__":
    main()
