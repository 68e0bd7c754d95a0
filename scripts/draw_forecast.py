#!/usr/bin/env python3
"""Forecasts with an exported model from Python, and draws them against the truth as SVG.

    draw_forecast.py --model RUN/model.pt --data data/gefcom2012_load.txt.gz --series 0,4,9 --at 31532 --output forecast.svg

`--at` is the place of the first forecast value; the values before it are the model's input. Reads LSTNet text.
Needs numpy and torch (the project's .venv has both).
"""

import argparse
import gzip
import json

import numpy as np
import torch

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def load(path):
    """The exported module and the privacy statement it carries."""
    extra = {"privacy.json": "", "model.json": ""}
    module = torch.jit.load(path, _extra_files=extra)
    return module, json.loads(extra["privacy.json"]), json.loads(extra["model.json"])


def panel(title, past, truth, quantiles, left, width, height):
    """One series: its recent past, the truth, and 50 % and 90 % bands."""
    values = np.concatenate([past, truth, quantiles.reshape(-1)])
    low, high = np.nanmin(values), np.nanmax(values)
    steps = len(past) + len(truth)

    def x(i):
        return left + 52 + (width - 64) * i / (steps - 1)

    def y(v):
        return 30 + (height - 66) * (1 - (v - low) / (high - low))

    def line(start, series):
        return " ".join(f"{x(start + i):.1f},{y(v):.1f}" for i, v in enumerate(series) if np.isfinite(v))

    n = len(past)
    out = [f'<text x="{left + 52}" y="18" font-size="13">{title}</text>']
    for lower, upper, opacity in ((0, 4, 0.22), (1, 3, 0.38)):
        edge = [f"{x(n + i):.1f},{y(v):.1f}" for i, v in enumerate(quantiles[upper])]
        edge += [f"{x(n + i):.1f},{y(v):.1f}" for i, v in reversed(list(enumerate(quantiles[lower])))]
        out.append(f'<polygon points="{" ".join(edge)}" fill="#1f6fb4" fill-opacity="{opacity}"/>')
    out.append(f'<polyline points="{line(0, np.concatenate([past, truth]))}" fill="none" stroke="#222" stroke-width="1.4"/>')
    out.append(f'<polyline points="{line(n, quantiles[2])}" fill="none" stroke="#1f6fb4" stroke-width="1.8"/>')
    for v in (low, (low + high) / 2, high):
        out.append(f'<text x="{left + 47}" y="{y(v) + 4:.1f}" font-size="10" text-anchor="end">{v:.1f}</text>')
    for i in range(0, steps + 1, 24):
        place = min(i, steps - 1)
        out.append(f'<text x="{x(place):.1f}" y="{height - 20}" font-size="10" text-anchor="middle">{i - n} h</text>')
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--series", default="0")
    parser.add_argument("--at", type=int, required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    module, privacy, about = load(options.model)
    opener = gzip.open if options.data.endswith(".gz") else open
    with opener(options.data, "rt") as file:
        table = np.array([[float(cell or "nan") for cell in row.split(",")] for row in file], dtype=np.float32)
    chosen = [int(i) for i in options.series.split(",")]
    horizon, shown = about["prediction_length"], 3 * about["prediction_length"]
    past = torch.tensor(table[: options.at, chosen].T.copy())
    with torch.no_grad():
        quantiles, _, _ = module(past, torch.ones_like(past), torch.tensor(LEVELS, dtype=torch.float64))
    width, height = 330, 250
    panels = [
        panel(f"zone {series + 1}, load in MW", table[options.at - shown : options.at, series] / 1000,
              table[options.at : options.at + horizon, series] / 1000, quantiles[i].numpy() / 1000, i * width, width, height)
        for i, series in enumerate(chosen)
    ]
    epsilon = privacy["epsilon"]
    statement = f"epsilon {epsilon['upper']:.3g} at delta {privacy['delta']:g}" if epsilon else "no privacy"
    with open(options.output, "w") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * len(chosen)} {height}" font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(panels) +
            f'\n<text x="52" y="{height - 4}" font-size="11" fill="#555">black: truth · blue: median, 50 % and 90 % bands · '
            f"{about['name']}, {statement}</text>\n</svg>\n"
        )


if __name__ == "__main__":
    main()
