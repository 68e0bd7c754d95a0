#!/usr/bin/env python3
"""Times tsdp's accountant for Poisson batches of records next to dp_accounting, in one run. Run by hand:

    python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/requirements.txt
    build/peers/bin/python benchmarks/peers/batch_samplers.py --bin build/release/bin/tsdp-account-bench

The question of figure 4 of Chua et al. (2024): a bracket of epsilon at delta 1e-6 after one epoch of T steps at rate 1/T,
with a relative width of at most 1e-3. Ours is given no grid. dp_accounting (from_gaussian_mechanism, its pessimistic and
its optimistic estimate) is asked at ever finer discretisations. Both answer in a running process, with everything made
anew; they take turns; medians are shown.
"""

import argparse
import json
import statistics
import subprocess
import time

from dp_accounting.pld import privacy_loss_distribution

DELTA = 1e-6


def ours(program, steps, sigma):
    answer = json.loads(
        subprocess.run(
            [program, "poisson", "--steps", str(steps), "--sigma", str(sigma), "--delta", str(DELTA), "--precision", "1e-3"],
            check=True, capture_output=True).stdout)
    return answer["ms"], (answer["lower"], answer["upper"])


def theirs(steps, sigma, interval):
    def end(pessimistic):
        step = privacy_loss_distribution.from_gaussian_mechanism(
            sigma, pessimistic_estimate=pessimistic, sampling_prob=1.0 / steps, value_discretization_interval=interval,
            use_connect_dots=pessimistic)  # it has connected dots only for upper ends
        return step.self_compose(steps).get_epsilon_for_delta(DELTA)

    start = time.perf_counter()
    bracket = end(False), end(True)
    return 1e3 * (time.perf_counter() - start), bracket


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="tsdp-account-bench")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| T | sigma | tsdp: epsilon | ms | dp_accounting at | epsilon | relative width | ms | times ours |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for steps, sigma, intervals in ((100_000, 1.3, (1e-4, 1e-6, 1e-7)), (10_000, 1.3, (1e-4, 1e-5, 1e-6)), (1_000, 0.7, (1e-3, 1e-4))):
        theirs(steps, sigma, intervals[0])  # warm-up
        for interval in intervals:
            own, peer = [], []
            for _ in range(options.rounds):
                times, mine = ours(options.bin, steps, sigma)
                own += times
                milliseconds, other = theirs(steps, sigma, interval)
                peer.append(milliseconds)
            mine_ms, other_ms = statistics.median(own), statistics.median(peer)
            print(f"| {steps} | {sigma} | [{mine[0]:.6f}, {mine[1]:.6f}] | {mine_ms:.1f} | {interval:g} | [{other[0]:.6f}, {other[1]:.6f}] "
                  f"| {(other[1] - other[0]) / other[1]:.1e} | {other_ms:.0f} | {other_ms / mine_ms:.0f} |", flush=True)


if __name__ == "__main__":
    main()
