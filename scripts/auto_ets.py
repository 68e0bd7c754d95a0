#!/usr/bin/env python3
"""Forecasts every test window with AutoETS or AutoARIMA (statsforecast), for tsdp-evaluate to score next to the model:

    tsdp-data split --config CONFIG --output SPLIT
    scripts/auto_ets.py --split SPLIT --output auto_ets.jsonl
    tsdp-evaluate --run RUN --baseline auto_ets=auto_ets.jsonl
    scripts/auto_ets.py --split SPLIT --model auto_arima --season-length 1 --output auto_arima.jsonl

SPLIT holds test.jsonl, one object {"item_id", "start", "target"} per line: window by window, within a window series by
series, each the series up to and including its window, whose last prediction_length values are not looked at; and
metadata.json with prediction_length and season_length. AutoETS is model ZZZ; both models are fitted anew for each entry on
all values before the window. AutoARIMA with a season takes days on long series (the paper gave up after seven); without
one, --season-length 1, it takes minutes. The quantile q is an end of the central interval of level round(200 |q - 1/2|),
the lower end up to the median; the mean is the point forecast.

Missing values: neither model handles them, so they are filled with the last observed value (leading ones with the first
observed one), as seasonal naive does; an entry with no value at all is forecast as 0. Seasons above 24: AutoETS of
statsforecast silently drops them and fits a model without season; this script does too, with a warning. An entry with too
few values to fit any model is forecast by their mean.

--check EVALUATION.json compares with the series of its section `auto_ets` instead and writes nothing.

Needs scripts/auto_ets_requirements.txt in a virtual environment of its own. One output line per entry:
{"item_id", "forecast_start": place of the first forecast value (from 0), "quantiles": {"0.1": […], …}, "mean": […]}.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import warnings

LEVELS = [0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.975]
LONGEST_SEASON = 24


def fail(text, code=3):
    print(f"auto_ets.py: {text}", file=sys.stderr)
    raise SystemExit(code)


def filled(values):
    """Values with missing ones (None, NaN) replaced by the last observed one, leading ones by the first observed one."""
    known = [value for value in values if value is not None and value == value]
    last, out = known[0] if known else 0.0, []
    for value in values:
        last = value if value is not None and value == value else last
        out.append(float(last))
    return out


def interval_level(quantile):
    return round(200 * abs(quantile - 0.5))


def model_of(kind, season_length):
    from statsforecast import models

    return models.AutoETS(season_length=season_length, model="ZZZ") if kind == "auto_ets" else models.AutoARIMA(season_length=season_length)


def forecast(past, season_length, horizon, kind="auto_ets"):
    """Quantiles by level and mean of the `horizon` steps after `past`."""
    import numpy as np

    series = np.array(filled(past))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = model_of(kind, season_length).forecast(
                y=series, h=horizon, level=sorted({interval_level(q) for q in LEVELS})
            )
        except Exception:  # too short, or no model could be fitted
            result = None
    if result is None or not all(np.all(np.isfinite(values)) for values in result.values()):
        mean = np.full(horizon, float(np.mean(series)) if len(series) else 0.0)
        return {f"{q:g}": mean.tolist() for q in LEVELS}, mean.tolist()
    quantiles = {f"{q:g}": result[("lo-" if q <= 0.5 else "hi-") + str(interval_level(q))].tolist() for q in LEVELS}
    return quantiles, result["mean"].tolist()


def entry_line(task):
    item, past, season_length, horizon, kind = task
    quantiles, mean = forecast(past, season_length, horizon, kind)
    return json.dumps({"item_id": item, "forecast_start": len(past), "quantiles": quantiles, "mean": mean})


def read_split(folder):
    """Metadata and entries of a folder written by `tsdp-data split`."""
    try:
        metadata = json.loads((folder / "metadata.json").read_text())
        horizon, season = int(metadata["prediction_length"]), int(metadata["season_length"])
    except OSError as error:
        fail(f"{folder / 'metadata.json'}: {error.strerror}; expected a folder that tsdp-data split wrote")
    except (ValueError, KeyError, TypeError):
        fail(f"{folder / 'metadata.json'}: found no prediction_length and season_length; expected what tsdp-data split writes")
    entries = []
    try:
        with open(folder / "test.jsonl") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    entry = json.loads(line)
                    item, target = str(entry["item_id"]), list(entry["target"])
                    if not all(value is None or value == "NaN" or isinstance(value, (int, float)) for value in target):
                        raise TypeError
                except (ValueError, KeyError, TypeError):
                    fail(f"{folder / 'test.jsonl'}:{number}: found no item_id and target of numbers; expected an object a line")
                if len(target) < horizon:
                    fail(f"{folder / 'test.jsonl'}:{number}: found {len(target)} values; expected at least {horizon}, the window")
                entries.append((item, [None if value == "NaN" else value for value in target[: len(target) - horizon]]))
    except OSError as error:
        fail(f"{folder / 'test.jsonl'}: {error.strerror}; expected a folder that tsdp-data split wrote")
    return horizon, season, entries


def check(file):
    """Compares with the section auto_ets of reference values, relative to the largest value of a series."""
    import numpy as np

    section = json.loads(file.read_text()).get("auto_ets")
    if section is None:
        fail(f"{file}: found no section auto_ets")
    worst = 0.0
    for series in section["series"]:
        quantiles, mean = forecast(series["y"], series["season_length"], len(series["mean"]))
        scale = np.max(np.abs(series["mean"]))
        difference = np.max(np.abs(np.array(mean) - series["mean"])) / scale
        for level, values in series["quantiles"].items():
            difference = max(difference, np.max(np.abs(np.array(quantiles[level]) - values)) / scale)
        print(f"{series['name']}: largest difference {difference:.1e} of the largest forecast")
        worst = max(worst, difference)
    if not worst < 1e-6:
        fail(f"{file}: forecasts differ by up to {worst:.1e} of the largest; expected less than 1e-6", 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--model", choices=("auto_ets", "auto_arima"), default="auto_ets")
    parser.add_argument("--season-length", type=int, help="instead of the split's own")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    if not options.check and not (options.split and options.output):
        parser.error("--split and --output are needed")
    if options.processes < 1 or (options.season_length is not None and options.season_length < 1):
        parser.error("--processes and --season-length: whole numbers from 1 are expected")
    if not options.check:
        horizon, season, entries = read_split(options.split)
    try:
        import statsforecast  # noqa: F401
    except ImportError:
        fail("no statsforecast; expected an environment with scripts/auto_ets_requirements.txt", 1)
    if options.check:
        return check(options.check)
    season = options.season_length or season
    if season > LONGEST_SEASON and options.model == "auto_ets":
        print(f"auto_ets.py: season {season} is above {LONGEST_SEASON}: AutoETS drops it and fits models without season",
              file=sys.stderr)
    missing = sum(value is None or value != value for _, past in entries for value in past)
    if missing:
        print(f"auto_ets.py: {missing} missing values are filled with the last observed ones", file=sys.stderr)
    tasks = [(item, past, season, horizon, options.model) for item, past in entries]
    part = options.output.with_name(options.output.name + ".part")
    with multiprocessing.Pool(options.processes) as pool, open(part, "w") as file:
        for done, line in enumerate(pool.imap(entry_line, tasks, chunksize=4), 1):
            file.write(line + "\n")
            if done % 100 == 0 or done == len(tasks):
                print(f"\r{done} of {len(tasks)} entries", end="" if done < len(tasks) else "\n", file=sys.stderr, flush=True)
    os.replace(part, options.output)


if __name__ == "__main__":
    main()
