#!/usr/bin/env python3
"""scripts/auto_ets.py: missing values, levels, mistakes; and its forecasts where statsforecast is installed.

    auto_ets_script.py --root ROOT
"""

import argparse
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    script = root / "scripts" / "auto_ets.py"
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

        if importlib.util.find_spec("statsforecast") is None:
            print("no statsforecast: forecasts not tried")
            return
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
        golden = root / "tests/golden/evaluation.json"
        assert run("--check", golden).returncode == 0


if __name__ == "__main__":
    main()
