#!/usr/bin/env python3
"""Sets tsdp's certified cost of correlated noise next to jax-privacy's Monte-Carlo accountant, in one run. Run by hand:

    python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/matrix_requirements.txt
    build/peers/bin/python benchmarks/peers/matrix_mechanisms.py --bin build/release/bin/tsdp-account

The question: for BandMF with four bands (tsdp's coefficients, given to both) and balls in bins, at the noise multiplier
that tsdp certifies for a target, what is epsilon at delta 1e-5? tsdp answers with a bracket that always holds, in a process
of its own. jax-privacy draws privacy losses and gives an estimate. The delta that may be reported with it is larger than
the estimated one (its `get_overall_delta`), and reporting delta 1e-5 after estimating 0.8e-5 takes the number of draws in
its `minimum_samples_to_calibrate`. The time for that many is extrapolated from the draws that were made.
"""

import argparse
import json
import subprocess
import time

import numpy as np
from jax_privacy import batch_selection
from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation

DELTA = 1e-5


def ours(program, command, bins, epochs, extra):
    arguments = [program, command, "--relation", "series", "--top-level", "balls_in_bins", "--batches", str(bins), "--epochs", str(epochs),
                 "--mechanism", "band_mf", "--bands", "4", "--delta", str(DELTA), "--json", *extra]
    start = time.perf_counter()
    answer = json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)
    return time.perf_counter() - start, answer


def epsilon_of(losses):
    """The epsilon at which the estimate of delta is DELTA."""
    low, high = 0.0, float(np.max(losses))
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if delta_calculation.delta_from_epsilon_and_samples(middle, losses) > DELTA:
            low = middle
        else:
            high = middle
    return high


def theirs(bins, epochs, sigma, column, seconds, seed):
    strategy = batch_selection.BallsInBinsSampling(iterations=bins * epochs, cycle_length=bins)
    generator = np.random.default_rng(seed)
    losses = {True: [], False: []}
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for positive in (True, False):
            found, _ = sample_generation.get_privacy_loss_sample(
                strategy, sigma, column, seed=generator, positive_sample=positive, num_samples=1000)
            losses[positive].append(found)
    spent = time.perf_counter() - start
    count = 1000 * len(losses[True])
    return max(epsilon_of(np.concatenate(part)) for part in losses.values()), count, spent / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="tsdp-account")
    parser.add_argument("--seconds", type=float, default=120.0, help="of drawing, for each row")
    options = parser.parse_args()
    needed = delta_calculation.minimum_samples_to_calibrate(0.8 * DELTA, DELTA)
    print("| bins | epochs | sigma | tsdp: epsilon | s | jax-privacy: estimate | draws | s a draw, both directions | "
          f"to report delta 1e-5: {needed:.2g} draws |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for bins, epochs, target in ((100, 1, 1.0), (100, 1, 4.0), (100, 10, 1.0), (100, 10, 4.0)):
        _, calibrated = ours(options.bin, "sigma", bins, epochs, ["--epsilon", str(target)])
        sigma = calibrated["noise_multiplier"]
        spent, answer = ours(options.bin, "epsilon", bins, epochs, ["--noise-multiplier", str(sigma)])
        column = np.array(answer["noise"]["coefficients"])
        estimate, count, each = theirs(bins, epochs, sigma, column, options.seconds, seed=bins + epochs)
        bracket = answer["epsilon"]
        print(f"| {bins} | {epochs} | {sigma:.4f} | [{bracket['lower']:.4f}, {bracket['upper']:.4f}] | {spent:.1f} | {estimate:.4f} | {count} | "
              f"{1e6 * each:.0f} us | {each * needed / 3600:.1f} hours |", flush=True)


if __name__ == "__main__":
    main()
