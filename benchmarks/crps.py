#!/usr/bin/env python3
"""Trains every forecaster without privacy as GluonTS does by default and prints the CRPS for several seeds:

    benchmarks/crps.py --bin build/release/bin [--seeds 1 2 3 4 5] [--json FILE]

5,000 steps of 32 windows, Adam 1e-3, the batch's gradient norm bounded by 10, best mean training loss of 50 steps kept
(deepar's rate halves on plateaus of it, as GluonTS's does). The last seven rolling windows of each file are the test,
everything before them is training, and nothing is validation. A published range of GluonTS 0.15.1 (three seeds) is shown
next to each figure.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# GluonTS's default lags for the two frequencies.
HOURLY_LAGS = [*range(1, 8), *(lag for day in range(1, 8) for lag in range(24 * day - 1, 24 * day + 2)),
               *(lag for day in (14, 21, 28, 30) for lag in range(24 * day - 1, 24 * day + 2))]
DAILY_LAGS = [*range(1, 9), 13, 14, 15, 20, 21, 22, 27, 28, 29, 30, 31, 56, 84, 363, 364, 365, 727, 728, 729, 1091, 1092, 1093]

SETS = {
    "gefcom2012_load": {"context": 96, "windows_a_series": 2, "lags": HOURLY_LAGS,
                        "gluonts": {"simple_ff": (0.060, 0.068), "dlinear": (0.058, 0.070),
                                    "itransformer": (0.060, 0.080), "deepar": (0.070, 0.077)}},
    "exchange_rate": {"context": 30, "windows_a_series": 4, "lags": DAILY_LAGS,
                      "gluonts": {"simple_ff": (0.012, 0.018), "dlinear": (0.011, 0.014),
                                  "itransformer": (0.013, 0.024), "deepar": (0.012, 0.018)}},
}


def train(binaries, name, setting, model, seed):
    assignments = {
        "dataset.split": "last", "dataset.test_windows": 7, "dataset.validation_length": 0,
        "model.name": model, "model.context_length": setting["context"],
        "sampling.batch_size": 32, "sampling.subsequences_per_sequence": setting["windows_a_series"],
        "privacy.enabled": "false", "optimizer.gradient_norm_bound": 10,
        "training.max_epochs": 5000, "training.validate_every": 50, "training.checkpoint": "best", "training.seed": seed,
    }
    if model == "deepar":
        assignments["model.lags"] = json.dumps(setting["lags"])
        # The only one of GluonTS's four estimators here that halves its rate on plateaus of the training loss.
        assignments["optimizer.plateau_looks"] = 10
    with tempfile.TemporaryDirectory() as folder:
        command = [binaries / "tsdp-train", "--quiet", "--json", "--threads", "1", "--config", ROOT / f"configs/{name}.yaml",
                   "--output", f"{folder}/run"]
        for key, value in assignments.items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}, {model}, seed {seed}: {done.stderr.strip()}")
        result = json.loads(done.stdout)
    assert result["plan"]["steps"] == 5000, result["plan"]
    return {"crps": result["metrics"]["mean_weighted_quantile_loss"],
            "seasonal_naive": result["baselines"]["seasonal_naive"]["mean_weighted_quantile_loss"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--models", nargs="+", default=["simple_ff", "dlinear", "itransformer", "deepar"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time, of one thread each")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    print("| set | model | CRPS, one seed each | mean | GluonTS | seasonal naive |\n| --- | --- | --- | --- | --- | --- |")
    for name in options.sets:
        setting = SETS[name]
        for model in options.models:
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                runs = list(pool.map(lambda seed: train(options.bin, name, setting, model, seed), options.seeds))
            scores = [run["crps"] for run in runs]
            low, high = setting["gluonts"][model]
            rows.append({"set": name, "model": model, "crps": scores, "gluonts": [low, high]})
            print(f"| {name} | {model} | {', '.join(f'{score:.4f}' for score in scores)} | {statistics.mean(scores):.4f} | "
                  f"{low:.3f}–{high:.3f} | {runs[0]['seasonal_naive']:.4f} |", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
