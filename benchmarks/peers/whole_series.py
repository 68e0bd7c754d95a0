#!/usr/bin/env python3
"""Sets what tsdp certifies for whole series next to two other libraries that calibrate noise for them, in one run. Run by hand:

    python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/whole_series_requirements.txt
    build/peers/bin/python benchmarks/peers/whole_series.py --bin build/release/bin/tsdp-account

The question: which noise multiplier does a run need for epsilon at delta 1e-5, and which total error does it have (sigma^2
times the mean over all steps of the squared error of prefix sums, as `tsdp-account strategy` defines it; computed here by one
function for all)? Noise multipliers are those of a C of sensitivity 1: of one part of a series for Poisson batches and bins,
of all its parts for fixed batches.

  jax-privacy      Poisson batches with independent noise and cyclic Poisson batches with banded noise, through its own
                   BandMFExecutionPlanConfig; its BLT for fixed batches, with dp_accounting's Gaussian mechanism.
  PLD_accounting   random allocation, which is bins drawn anew in every epoch. Bins drawn once are one epoch with the noise
                   over the root of the epochs. It has no calibration, so its upper end is bisected here to 0.2 % of the noise.

Each peer's noise is then given back to tsdp, with the peer's own coefficients of C, and tsdp's bracket of epsilon stands beside
what the peer says: an upper end, or both ends. They contradict each other if they have no value in common. tsdp's times are of
whole processes; the peers' leave out imports, but not compilation. It takes about ten minutes.
"""

import argparse
import functools
import importlib.metadata
import json
import math
import os
import subprocess
import tempfile
import time
import warnings

warnings.filterwarnings("ignore", category=ImportWarning)

import dp_accounting
import jax
import numpy as np
import PLD_accounting
from jax_privacy.experimental import execution_plan
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

jax.config.update("jax_enable_x64", True)

DELTA = 1e-5
SETTINGS = ((100, 10, 1.0), (100, 1, 1.0), (100, 1, 4.0), (1000, 1, 1.0), (25, 40, 1.0))  # batches of an epoch, epochs, epsilon
BANDS, BUFFERS = 4, 2
POISSON = ["--top-level", "poisson"]
CYCLIC = ["--top-level", "cyclic_poisson"]
FIXED = ["--top-level", "deterministic"]
ONCE = ["--top-level", "balls_in_bins"]
ANEW = [*ONCE, "--redraw", "every_epoch"]


def timed(call, *arguments):
    start = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - start, answer


def tsdp(program, command, *arguments):
    return json.loads(subprocess.run([program, command, *map(str, arguments), "--delta", str(DELTA), "--json"],
                                     check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def column(noise, steps):
    """The first column of C from what an answer of tsdp says about its noise."""
    if noise is None:
        return np.ones(1)
    if "coefficients" in noise:
        return np.array(noise["coefficients"])
    decays = np.array(noise["decays"])[:, None] ** np.arange(steps - 1)
    return np.concatenate([[1.0], np.array(noise["weights"]) @ decays])


def mean_error(c, steps):
    """The mean over the steps of the squared error of prefix sums of C^-1 Z, for independent Z of variance 1."""
    sums = np.zeros(steps)
    for t in range(steps):
        m = min(t, len(c) - 1)
        sums[t] = (1.0 - np.dot(c[1:m + 1], sums[t - m:t][::-1])) / c[0]
    return np.mean(np.cumsum(sums**2))


def sensitivity(c, steps, separation, parts):
    """Of a C with a first column that is not negative and does not rise."""
    moved = np.zeros(steps)
    for start in range(0, parts * separation, separation):
        length = min(len(c), steps - start)
        moved[start:start + length] += c[:length]
    return np.linalg.norm(moved)


# ---- the peers: noise multiplier, the first column of C, and (lower end, upper end) of epsilon there --------------------


def jax_poisson(bands, batches, epochs, epsilon):
    steps = batches * epochs
    config = execution_plan.BandMFExecutionPlanConfig.default(
        num_bands=bands, iterations=steps, epsilon=epsilon, delta=DELTA, sampling_prob=bands / batches)
    event = config.plan.dp_event
    found = dp_accounting.pld.PLDAccountant(execution_plan.NeighboringRelation.REPLACE_SPECIAL).compose(event).get_epsilon(DELTA)
    return event.event.event.noise_multiplier, np.asarray(config.strategy, dtype=float), (None, found)


def jax_blt(batches, epochs, epsilon):
    steps = batches * epochs
    blt = buffered_toeplitz.optimize(n=steps, min_sep=batches, max_participations=epochs, error="mean", min_buffers=BUFFERS,
                                     max_buffers=BUFFERS)
    sigma = dp_accounting.calibrate_dp_mechanism(dp_accounting.pld.PLDAccountant, dp_accounting.GaussianDpEvent, epsilon, DELTA)
    found = dp_accounting.pld.PLDAccountant().compose(dp_accounting.GaussianDpEvent(sigma)).get_epsilon(DELTA)
    return sigma, np.asarray(blt.toeplitz_coefs(steps), dtype=float), (None, found)


def allocation(sigma, batches, epochs, accuracy=-1.0):
    """Of bins drawn anew. A negative accuracy is its default: ends within 10 %."""
    upper, lower = PLD_accounting.gaussian_allocation_epsilon_range(
        delta=DELTA, sigma=sigma, num_steps=batches, num_epochs=epochs, epsilon_accuracy=accuracy)
    return lower, upper


def pld_bins(once, batches, epochs, epsilon):
    scale, rounds = (math.sqrt(epochs), 1) if once else (1.0, epochs)
    ends = functools.cache(lambda sigma: allocation(sigma, batches, rounds))
    low = high = 1.0
    while ends(high)[1] > epsilon:
        low, high = high, 2.0 * high
    while ends(low)[1] <= epsilon:
        low, high = 0.5 * low, low
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if ends(middle)[1] > epsilon else (low, middle)
    return scale * high, np.ones(1), ends(high)


# ---- tables ----------------------------------------------------------------------------------------------------------


def verdict(mine, peer):
    """Where the peer's ends of epsilon lie beside tsdp's, for the same mechanism."""
    lower, upper = peer
    if upper < mine[0] or (lower is not None and lower > mine[1]):
        return "CONTRADICTION"
    if upper > mine[1]:
        return "above ours" if lower is None else "around ours" if lower <= mine[0] else "overlaps ours"
    return "inside ours" if lower is None or lower >= mine[0] else "overlaps ours"


def row(program, label, sampler, mechanism, parts, call, batches, epochs, epsilon):
    steps = batches * epochs
    where = ["--relation", "series", *sampler, "--batches", batches, "--epochs", epochs]
    spent, answer = timed(tsdp, program, "sigma", *where, *mechanism, "--epsilon", epsilon)
    c = column(answer.get("noise"), steps)
    sigma = answer["noise_multiplier"]
    peer_spent, (peer_sigma, peer_c, peer) = timed(call, batches, epochs, epsilon)
    # The peer's mechanism, given to tsdp. Its sigma is for sensitivity 1, tsdp's for the coefficients as they are.
    peer_noise = peer_sigma * sensitivity(peer_c, steps, batches, parts)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(list(peer_c), file)
        file.flush()
        given = ["--mechanism", "file", "--coefficients", file.name] if mechanism else []
        bracket = tsdp(program, "epsilon", *where, *given, "--noise-multiplier", repr(float(peer_noise)))["epsilon"]
    mine = bracket["lower"], bracket["upper"]
    theirs = f"{peer[1]:.6f}" if peer[0] is None else f"[{peer[0]:.4f}, {peer[1]:.4f}]"
    print(f"| {batches} x {epochs} | {epsilon:g} | {label} | "
          f"{sigma / sensitivity(c, steps, batches, parts):.4f} | {sigma**2 * mean_error(c, steps):.2f} | {spent:.2f} | "
          f"{peer_sigma:.4f} | {peer_noise**2 * mean_error(peer_c, steps):.2f} | {peer_spent:.1f} | "
          f"[{mine[0]:.6f}, {mine[1]:.6f}] | {theirs} | {verdict(mine, peer)} |", flush=True)


def calibrations(program):
    print("| batches x epochs | epsilon | batches, noise | tsdp: sigma | total error | s | peer: sigma | total error | s | "
          "epsilon at the peer's sigma: tsdp | peer | |")
    print("|" + " --- |" * 12)
    for batches, epochs, epsilon in SETTINGS:
        rest = batches, epochs, epsilon
        banded = ["--mechanism", "band_mf", "--bands", BANDS]
        row(program, "Poisson, independent", POISSON, [], 1, lambda *setting: jax_poisson(1, *setting), *rest)
        row(program, f"cyclic Poisson, {BANDS} bands", CYCLIC, banded, 1, lambda *setting: jax_poisson(BANDS, *setting), *rest)
        row(program, f"fixed, BLT of {BUFFERS}", FIXED, ["--mechanism", "blt", "--buffers", BUFFERS], epochs, jax_blt, *rest)
        row(program, "bins drawn anew, independent" if epochs > 1 else "bins, independent", ANEW if epochs > 1 else ONCE, [], 1,
            lambda *setting: pld_bins(False, *setting), *rest)
        if epochs > 1:
            row(program, "bins drawn once, independent", ONCE, [], 1, lambda *setting: pld_bins(True, *setting), *rest)


def choices(program, batches, epochs, epsilon):
    """Total error by number of bands, and what each library chooses by itself."""
    steps = batches * epochs
    print("\n| bands | tsdp: total error | s | jax-privacy: total error | s |\n| --- | --- | --- | --- | --- |")
    for bands in (1, 2, 4, 8, 16, 32, 64):
        where = ["--relation", "series", *CYCLIC, "--batches", batches, "--epochs", epochs, "--mechanism", "band_mf", "--bands", bands]
        spent, answer = timed(tsdp, program, "sigma", *where, "--epsilon", epsilon)
        peer_spent, (sigma, c, _) = timed(jax_poisson, bands, batches, epochs, epsilon)
        print(f"| {bands} | {answer['noise_multiplier']**2 * mean_error(column(answer['noise'], steps), steps):.2f} | {spent:.2f} | "
              f"{(sigma * np.linalg.norm(c))**2 * mean_error(c, steps):.2f} | {peer_spent:.1f} |", flush=True)
    spent, answer = timed(tsdp, program, "strategy", "--steps", steps, "--epochs", epochs, "--epsilon", epsilon)
    best = min(answer["strategy"], key=lambda entry: entry["total_error"])
    print(f"\ntsdp strategy: {best['mechanism']} in {best['top_level']}, {best.get('groups', 1)} groups, "
          f"total error {best['total_error']:.2f}, {spent:.1f} s for all mechanisms and samplers")
    spent, (c, deviation) = timed(lambda: toeplitz.optimize_coefs_for_amplifications(
        steps, dataset_size=10 * batches, expected_batch_size=10, epsilon=epsilon, delta=DELTA))
    print(f"jax-privacy optimize_coefs_for_amplifications: {len(c)} bands, total error {deviation**2 * mean_error(np.asarray(c), steps):.2f}, "
          f"{spent:.1f} s")


def narrow(program):
    """One answer at tsdp's own sigma, by the accuracy that PLD_accounting is asked for."""
    print("\n| batches x epochs | sigma | tsdp: epsilon | s | PLD_accounting asked for | epsilon | s |\n|" + " --- |" * 7)
    for (batches, epochs, epsilon), accuracies in (((100, 1, 1.0), (-1.0, 0.01)), ((100, 1, 4.0), (-1.0, 0.01)), ((100, 10, 1.0), (-1.0,))):
        where = ["--relation", "series", *(ANEW if epochs > 1 else ONCE), "--batches", batches, "--epochs", epochs]
        sigma = tsdp(program, "sigma", *where, "--epsilon", epsilon)["noise_multiplier"]
        spent, answer = timed(tsdp, program, "epsilon", *where, "--noise-multiplier", sigma)
        for accuracy in accuracies:
            peer_spent, (lower, upper) = timed(allocation, sigma, batches, epochs, accuracy)
            print(f"| {batches} x {epochs} | {sigma:.5f} | [{answer['epsilon']['lower']:.5f}, {answer['epsilon']['upper']:.5f}] | {spent:.2f} | "
                  f"{'its default' if accuracy < 0 else accuracy} | [{lower:.5f}, {upper:.5f}] | {peer_spent:.1f} |", flush=True)


def fine(program, batches, epochs, epsilon):
    """Poisson steps on a grid ten times finer than jax-privacy's default, and tsdp at a relative width of 1e-6."""
    print("\n| a step's rate | steps | sigma | tsdp: epsilon | s | dp_accounting, grid 1e-5: upper end | s |\n|" + " --- |" * 7)
    for bands in (1, BANDS):
        where = ["--relation", "series", *POISSON, "--batches", batches // bands, "--epochs", epochs]
        steps = batches // bands * epochs
        sigma = tsdp(program, "sigma", *where, "--epsilon", epsilon)["noise_multiplier"]
        spent, answer = timed(tsdp, program, "epsilon", *where, "--noise-multiplier", sigma, "--precision", 1e-6)
        step = dp_accounting.PoissonSampledDpEvent(bands / batches, dp_accounting.GaussianDpEvent(sigma))
        accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-5)
        peer_spent, upper = timed(lambda: accountant.compose(step, steps).get_epsilon(DELTA))
        print(f"| {bands / batches:g} | {steps} | {sigma:.6f} | [{answer['epsilon']['lower']:.7f}, {answer['epsilon']['upper']:.7f}] | {spent:.2f} | "
              f"{upper:.7f} | {peer_spent:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="tsdp-account")
    parser.add_argument("--only", nargs="+", choices=("calibrations", "choices", "narrow", "fine"))
    options = parser.parse_args()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("jax-privacy", "PLD_accounting", "numba", "dp-accounting", "jax", "numpy"))
    print(f"{', '.join(versions)}; load before: {os.getloadavg()[0]:.1f}\n")
    tables = {"calibrations": lambda: calibrations(options.bin), "choices": lambda: choices(options.bin, *SETTINGS[0]),
              "narrow": lambda: narrow(options.bin), "fine": lambda: fine(options.bin, *SETTINGS[0])}
    for name, table in tables.items():
        if name in (options.only or tables):
            table()
    print(f"\nload after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
