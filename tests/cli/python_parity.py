#!/usr/bin/env python3
"""Loads an exported model with Python's torch.jit.load and scores it there: the CRPS must be tsdp-evaluate's.

Exit code 77 (skipped) where this Python has no torch or numpy.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LEVELS = np.arange(1, 10) / 10
HORIZON, WINDOWS = 30, 5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--root", required=True)
    options = parser.parse_args()
    binaries, root = pathlib.Path(options.bin), pathlib.Path(options.root)
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
            assert torch.allclose(quantiles[3:4], one, rtol=1e-5), "a window depends on its batch"
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
