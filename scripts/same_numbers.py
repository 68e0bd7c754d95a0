#!/usr/bin/env python3
"""Compares the answers of two builds of tsdp-account, to the bit, over random settings of every row of the table of theorems:
    scripts/same_numbers.py BIN BIN [--settings 500] [--seed 1]
BIN: folders that hold tsdp-account. Prints each difference and exits with 1 if there is one. For use before and after a change that must leave all numbers as they are."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("builds", nargs=2, type=pathlib.Path)
options.add_argument("--settings", type=int, default=500)
options.add_argument("--seed", type=int, default=1)
given = options.parse_args()

MECHANISMS = ["identity", "bsr", "bisr", "band_mf", "band_inv_mf", "blt"]


def log_uniform(draw, low, high, digits=4):
    return f"{low * (high / low) ** draw.random():.{digits}g}"


def of_windows(draw):
    theorem = draw.choice(["", "", "", "4.2", "4.3", "4.4", "4.5", "E.7", "E.8", "F.1", "G.1", "tsdp.1", "tsdp.2", "tsdp.3", "tsdp.4"])
    words = ["--num-sequences", draw.randint(2, 400), "--sequence-length", draw.randint(100, 4000), "--context-length", draw.randint(1, 48),
             "--forecast-length", draw.randint(1, 24), "--batch-size", draw.choice([1, 2, 8, 32])]
    if theorem:
        words += ["--theorem", theorem]
    else:
        words += ["--top-level", draw.choice(["wor", "poisson", "deterministic"]), "--bottom-level", draw.choice(["wr", "poisson"])]
    if draw.random() < 0.4:
        words += ["--relation", draw.choice(["event", "user"]), "--w", draw.randint(1, 5)]
    if theorem in ("4.5", "tsdp.3", "tsdp.4") or draw.random() < 0.2:
        words += ["--v", log_uniform(draw, 0.1, 2), "--context-noise", log_uniform(draw, 0.5, 5)]
        if theorem != "4.5" and draw.random() < 0.5:
            words += ["--forecast-noise", log_uniform(draw, 0.5, 5)]
    if draw.random() < 0.15:
        words += ["--subsequences-per-sequence", draw.choice([2, 3])]
    if draw.random() < 0.15:
        words += ["--composition", "adaptive", "--noise-multiplier", log_uniform(draw, 3, 12)]
    return words, {"steps": draw.choice([1, 7, 100, 2000])}


def of_series(draw):
    sampler = draw.choice(["deterministic", "shuffled", "poisson", "wor", "balls_in_bins", "balls_in_bins"])
    words = ["--relation", "series", "--top-level", sampler, "--batches", draw.choice([2, 5, 16, 60, 200])]
    if sampler == "shuffled" and draw.random() < 0.5:
        words += ["--reshuffle", "once"]
    if draw.random() < 0.2:
        words += ["--direction", draw.choice(["remove", "add"])]
    if sampler in ("deterministic", "balls_in_bins") and draw.random() < 0.6:
        words += ["--mechanism", draw.choice(MECHANISMS)]
        if draw.random() < 0.3:
            words += ["--method", draw.choice(["auto", "renyi", "gram", "deterministic", "conditional"])]
    return words, {"epochs": draw.choice([1, 2, 5, 12])}


def of_flat_data(draw):
    theorem = draw.choice(["C.1", "C.2"])
    words = ["--theorem", theorem, "--num-records", draw.randint(1000, 100000), "--batch-size", draw.choice([1, 16, 64])]
    return words + (["--window-length", draw.randint(2, 100)] if theorem == "C.2" else []), {"steps": draw.choice([1, 10, 500])}


def question(number):
    draw = random.Random(f"{given.seed} {number}")
    words, length = draw.choices([of_windows, of_series, of_flat_data], weights=[5, 5, 1])[0](draw)
    command = draw.choice(["epsilon", "delta", "steps", "sigma", "profile"])
    if command == "sigma":
        if "--noise-multiplier" in words:
            at = words.index("--noise-multiplier")
            del words[at:at + 2]
    elif "--noise-multiplier" not in words:
        words += ["--noise-multiplier", log_uniform(draw, 0.7, 20)]
    if command != "steps":
        words += [f"--{name}" if first else value for name, value in length.items() for first in (True, False)]
    if command in ("epsilon", "steps", "sigma"):
        words += ["--delta", draw.choice(["1e-5", "1e-7", "1e-10"])]
    if command in ("delta", "steps", "sigma"):
        words += ["--epsilon", log_uniform(draw, 0.1, 8)]
    if command == "profile":
        words += ["--epsilons", "0,0.3,1,4"]
    return [command, *map(str, words)]


def answer(build, words):
    environment = {**os.environ, "TSDP_CACHE_DIR": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([build / "tsdp-account", *words, "--json", "--quiet"], capture_output=True, text=True, env=environment, check=False)
    return (done.returncode, json.loads(done.stdout)) if done.returncode == 0 else (done.returncode, done.stderr)


def compare(number):
    words = question(number)
    return words, [answer(build, words) for build in given.builds]


answered = different = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for asked, (one, other) in pool.map(compare, range(given.settings)):
        answered += one[0] == 0
        if one[0] != other[0] or (one[0] == 0 and one[1] != other[1]):
            different += 1
            print(f"tsdp-account {' '.join(asked)}\n  {one}\n  {other}", flush=True)
print(f"{given.settings} settings, {answered} answered by both (the others are refused), {different} different")
sys.exit(1 if different or 2 * answered < given.settings else 0)
