#!/usr/bin/env python3
"""Loads exported models with Python's torch.jit.load: of every forecaster, quantiles, means and sample paths from given
draws must be the training program's at any batch size; and the CRPS of a trained one must be tsdp-evaluate's.

Skipped where this Python has no torch or numpy; on a build server that is a failure.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

from run import skip

try:
    import numpy as np
    import torch
except ImportError as error:
    skip(error)

LEVELS = np.arange(1, 10) / 10
HORIZON, WINDOWS = 30, 5


def compare_all(writer):
    """What `writer` (tests/export/parity_cases.cpp) wrote, against the exports."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([writer, folder], check=True)
        names = sorted(path.stem for path in pathlib.Path(folder).glob("*.pt") if not path.stem.endswith("_case"))
        assert len(names) == 4, names
        for name in names:
            model = torch.jit.load(f"{folder}/{name}.pt")
            case = dict(torch.jit.load(f"{folder}/{name}_case.pt").named_buffers())
            features = case["time_features"] if case["time_features"].numel() else None
            scale = case["samples"].abs().amax(dim=(1, 2), keepdim=True)
            for rows in (slice(0, 1), slice(3, 5), slice(0, 7)):
                with torch.no_grad():
                    quantiles, mean, samples = model(
                        case["past_target"][rows], case["past_observed"][rows], torch.tensor(LEVELS),
                        None if features is None else features[rows], case["draws"][rows])
                close = lambda found, expected: bool(
                    ((found - expected).abs() <= 1e-5 * (expected.abs() + scale[rows][:, :, : 1])).all())
                assert close(samples, case["samples"][rows]), (name, rows, "samples")
                if "mean" in case:
                    assert close(mean[:, None], case["mean"][rows][:, None]), (name, rows, "mean")
                    assert close(quantiles, case["quantiles"][rows]), (name, rows, "quantiles")
                else:
                    assert torch.equal(mean, samples.mean(1)), (name, rows)
                with torch.no_grad():  # and draws of its own
                    own = model(case["past_target"][rows], case["past_observed"][rows], None,
                                None if features is None else features[rows], None, 11)
                assert own[2].shape[1] == 11 and own[0].shape[1] == 9
            print(f"{name}: agrees")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writer", required=True, help="the program parity_cases")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args()
    binaries, root = pathlib.Path(options.bin), pathlib.Path(options.root)
    compare_all(options.writer)
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        config = root / "configs/exchange_rate.yaml"
        subprocess.run([binaries / "tsdp-train", "--quiet", "--config", config, "--output", run,
                        "--set", "training.max_epochs=100"], check=True)
        scored = subprocess.run([binaries / "tsdp-evaluate", "--quiet", "--json", "--run", run], check=True,
                                capture_output=True, text=True)
        report = json.loads(scored.stdout)
        extra = {"privacy.json": ""}
        model = torch.jit.load(str(run / "model.pt"), _extra_files=extra)
        ledger = json.loads(extra["privacy.json"])
        assert ledger == json.loads((run / "privacy.json").read_text()), "the model carries another ledger"
        table = np.loadtxt(root / "data/exchange_rate.txt.gz", delimiter=",").astype(np.float32)
        first = len(table) * 4 // 5 + 1
        loss, size, windows = np.zeros(len(LEVELS)), 0.0, 0
        for window in range(WINDOWS):
            at = first + window * HORIZON
            past = torch.tensor(table[:at].T.copy())  # the whole past: the model takes what it needs
            with torch.no_grad():
                quantiles, _, _ = model(past, torch.ones_like(past), torch.tensor(LEVELS))
                one, _, _ = model(past[3:4], torch.ones_like(past[3:4]), torch.tensor(LEVELS))
            # A quantile may lie near 0, where only the size of the others tells what rounding is.
            close = torch.allclose(quantiles[3:4], one, rtol=1e-5, atol=1e-6 * one.abs().max().item())
            assert close, "a window depends on its batch"
            target = table[at : at + HORIZON].T[:, None, :].astype(np.float64)
            forecast = quantiles.numpy().astype(np.float64)
            below = (target <= forecast) - LEVELS[None, :, None]
            loss += 2 * np.abs((forecast - target) * below).sum(axis=(0, 2))
            size += np.abs(target).sum()
            windows += len(target)
        crps = (loss / size).mean()
        expected = report["metrics"]["mean_weighted_quantile_loss"]
        print(f"CRPS in Python {crps:.9g}, tsdp-evaluate {expected:.9g}")
        assert windows == report["windows"]
        assert abs(crps / expected - 1) < 1e-5


if __name__ == "__main__":
    main()
