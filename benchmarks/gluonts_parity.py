#!/usr/bin/env python3
"""The same weights in tsdp and in GluonTS: forecasts and scores for a shipped data set, end to end, side by side.

    benchmarks/gluonts_parity.py --bin build/release/bin [--models simple_ff dlinear itransformer deepar] [--json FILE]

Trains each model for a few epochs without privacy, scores it with `tsdp-evaluate --json`, copies the weights of its
model.pt into GluonTS's network, forecasts the same windows with GluonTS's predictor and scores them with GluonTS's
evaluator. SimpleFF and DLinear forecast a distribution: all metrics must agree to 1e-5 of their size (GluonTS works in
single precision). The others draw 100 sample paths from other random numbers: their metrics must agree to 5 %, those of
single quantiles to 15 %. GluonTS's MAE_Coverage is left out: it is not the mean of |coverage - q| of its own coverages,
which are compared.

Needs benchmarks/gluonts_parity_requirements.txt in a virtual environment of its own.
"""

import argparse
import contextlib
import gzip
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA, FREQUENCY, START = "exchange_rate", "D", "1990-01-01"
HORIZON, WINDOWS, SEASON, CONTEXT = 30, 5, 7, 30
LAGS = [1, 2, 3, 4, 5, 6, 7, 14, 21]
LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
# Our names for GluonTS's metrics.
METRICS = {"mean_wQuantileLoss": "mean_weighted_quantile_loss", "ND": "ND", "NRMSE": "NRMSE", "RMSE": "RMSE", "MSE": "MSE",
           "MASE": "MASE", "sMAPE": "sMAPE", "MAPE": "MAPE", "MSIS": "MSIS"}
METRICS |= {f"wQuantileLoss[{q}]": ("weighted_quantile_loss", str(q)) for q in LEVELS}
METRICS |= {f"Coverage[{q}]": ("coverage", str(q)) for q in LEVELS}


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


def train_and_score(binaries, folder, model):
    settings = {"model.name": model, "model.context_length": CONTEXT, "privacy.enabled": "false", "training.max_epochs": 400,
                "sampling.batch_size": 32, "sampling.subsequences_per_sequence": 4}
    if model == "deepar":
        settings["model.lags"] = json.dumps(LAGS)
    if model == "itransformer":
        settings["model.sampled_forecasts"] = "true"
    command = [binaries / "tsdp-train", "--quiet", "--config", ROOT / f"configs/{DATA}.yaml", "--output", folder / model]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    run(command)
    scores = json.loads(run([binaries / "tsdp-evaluate", "--run", folder / model, "--json", "--quiet"]))
    return scores["metrics"], torch.jit.load(folder / model / "model.pt")


def estimator_of(model, weights):
    common = {"prediction_length": HORIZON, "context_length": CONTEXT}
    if model == "simple_ff":
        from gluonts.torch.model.simple_feedforward import SimpleFeedForwardEstimator

        hidden = weights["nn_0_bias"].numel()
        return SimpleFeedForwardEstimator(hidden_dimensions=[hidden, weights["nn_2_bias"].numel() // HORIZON], **common)
    if model == "dlinear":
        from gluonts.torch.model.d_linear import DLinearEstimator

        return DLinearEstimator(hidden_dimension=weights["linear_trend_bias"].numel() // HORIZON, **common)
    if model == "itransformer":
        from gluonts.torch.model.i_transformer import ITransformerEstimator

        return ITransformerEstimator(**common)
    from gluonts.torch.model.deepar import DeepAREstimator

    return DeepAREstimator(freq=FREQUENCY, lags_seq=LAGS, **common)


def gluonts_scores(model, ours):
    """The aggregate metrics of GluonTS's network with the weights of `ours`."""
    from gluonts.dataset.common import ListDataset
    from gluonts.evaluation import Evaluator, make_evaluation_predictions

    weights = {name: value for name, value in ours.named_parameters()}
    estimator = estimator_of(model, weights)
    module = estimator.create_lightning_module()
    state, used = module.state_dict(), set()
    for name in state:
        short = name.removeprefix("model.").replace(".", "_")
        if short in weights:
            assert state[name].shape == weights[short].shape, (name, state[name].shape, weights[short].shape)
            state[name] = weights[short].detach().clone()
            used.add(short)
    assert used == set(weights), f"weights without a place in GluonTS's network: {set(weights) - used}"
    module.load_state_dict(state)
    module.eval()
    predictor = estimator.create_predictor(estimator.create_transformation(), module)
    with gzip.open(ROOT / f"data/{DATA}.txt.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32)
    first = len(table) * 4 // 5 + 1
    multivariate = model == "itransformer"  # its network has an axis of series; each is its own here
    series = [table[: first + (window + 1) * HORIZON, column] for window in range(WINDOWS) for column in range(table.shape[1])]
    entries = [{"start": START, "target": target[None] if multivariate else target} for target in series]
    dataset = ListDataset(entries, freq=FREQUENCY, one_dim_target=not multivariate)
    forecasts, _ = make_evaluation_predictions(dataset, predictor, num_samples=100)
    forecasts = list(forecasts)
    if multivariate:
        forecasts = [forecast.copy_dim(0) for forecast in forecasts]
    truth = [pd.Series(target, index=pd.period_range(START, periods=len(target), freq=FREQUENCY)) for target in series]
    evaluator = Evaluator(quantiles=LEVELS, seasonality=SEASON, num_workers=None)
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        return evaluator([frame.to_frame() for frame in truth], forecasts)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--models", nargs="+", default=["simple_ff", "dlinear", "itransformer", "deepar"])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    rows, bad = [], []
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            metrics, module = train_and_score(options.bin, pathlib.Path(folder), model)
        theirs = gluonts_scores(model, module)
        exact = model in ("simple_ff", "dlinear")
        print(f"{model}\n  {'metric':24} {'tsdp':>12} {'GluonTS':>12} {'difference':>11}")
        for name, place in METRICS.items():
            ours = metrics[place[0]][place[1]] if isinstance(place, tuple) else metrics[place]
            relative = abs(ours - theirs[name]) / max(abs(theirs[name]), 1e-12)
            allowed = 1e-5 if exact else 0.15 if name == "MSIS" or "[" in name else 0.05
            if name.startswith("Coverage"):  # shares of 1200 values: absolutely
                relative, allowed = abs(ours - theirs[name]), 1e-3 if exact else 0.05
            rows.append({"model": model, "metric": name, "tsdp": ours, "gluonts": float(theirs[name])})
            if not relative <= allowed:
                bad.append(f"{model}, {name}: {relative:.1e}, at most {allowed:g} is expected")
            if "[" not in name:
                print(f"  {name:24} {ours:12.7g} {theirs[name]:12.7g} {relative:11.1e}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if bad:
        sys.exit("\n".join(bad))
    print("all metrics agree")


if __name__ == "__main__":
    main()
