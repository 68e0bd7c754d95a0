#!/usr/bin/env python3
"""Times tsdp's accountant for Poisson batches of records beside dp_accounting, in one run. Run by hand:

    python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/requirements.txt
    build/peers/bin/python benchmarks/peers/batch_samplers.py --bin build/release/bin/tsdp-account

The question of figure 4 of Chua et al. (2024): epsilon at delta 1e-6 after one epoch of T steps at rate 1/T. Ours is a bracket and is
told no grid; its times are those of whole processes. dp_accounting (from_gaussian_mechanism, pessimistic) is asked at ever finer
discretisations; its times leave start and import out. They take turns, three rounds; medians.
"""

import argparse
import json
import statistics
import subprocess
import time

from dp_accounting.pld import privacy_loss_distribution

DELTA = 1e-6


def ours(program, steps, sigma):
    start = time.perf_counter()
    answer = json.loads(
        subprocess.run(
            [program, "epsilon", "--relation", "series", "--top-level", "poisson", "--batches", str(steps), "--epochs", "1",
             "--noise-multiplier", str(sigma), "--delta", str(DELTA), "--json"],
            check=True, capture_output=True).stdout)
    return time.perf_counter() - start, answer["epsilon"]


def theirs(steps, sigma, interval):
    start = time.perf_counter()
    step = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=1.0 / steps, value_discretization_interval=interval)
    epsilon = step.self_compose(steps).get_epsilon_for_delta(DELTA)
    return time.perf_counter() - start, epsilon


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="tsdp-account")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| T | sigma | tsdp: epsilon | s | dp_accounting at | epsilon | above tsdp's lower end | s | times ours |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for steps, sigma, intervals in ((100_000, 1.3, (1e-4, 1e-5, 5e-6, 1e-6)), (10_000, 1.3, (1e-4, 1e-5)), (1_000, 0.7, (1e-4, 1e-5))):
        for interval in intervals:
            own, peer = [], []
            for _ in range(options.rounds):
                seconds, bracket = ours(options.bin, steps, sigma)
                own.append(seconds)
                seconds, epsilon = theirs(steps, sigma, interval)
                peer.append(seconds)
            mine, other = statistics.median(own), statistics.median(peer)
            print(f"| {steps} | {sigma} | [{bracket['lower']:.6f}, {bracket['upper']:.6f}] | {mine:.3f} | {interval:g} | {epsilon:.6f} "
                  f"| {epsilon / bracket['lower'] - 1:.2%} | {other:.2f} | {other / mine:.0f} |", flush=True)


if __name__ == "__main__":
    main()
