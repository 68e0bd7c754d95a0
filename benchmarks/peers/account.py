#!/usr/bin/env python3
"""Times tsdp's accountant next to dp_accounting, in one run on one core. Run by hand:

    python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/requirements.txt
    build/peers/bin/python benchmarks/peers/account.py --bin build/release/bin/tsdp-account-bench --json peers.json

This takes about ten minutes, fewer with --settings traffic.

Contestants of a question take turns, round after round, so that a slow spell of the machine hits all of them; each turn
warms up first, with the same number of answers. Neither the start of a process nor an import is timed. tsdp makes pair and
accountant anew for every answer (except where "one more k" says so) and answers with a certified bracket. Its peers:

  mixture      from_mixture_gaussian_mechanism, as is. It composes the two directions separately and takes the larger
               epsilon, which is *not* an upper bound where neighbours differ by substitution: a less demanding question.
  symmetrised  the question that tsdp answers: the symmetrised profile, made into a PLD by dp_accounting's pessimistic
               connect-the-dots. The profile is evaluated here, in NumPy, for all grid points at once; "ready" leaves that
               and the PLD out of the time. An upper estimate only, without an allowance for rounding.
"""

import argparse
import functools
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # one core: no threads fighting for it

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from scipy import special

DELTA = 1e-7
STEPS = 10_000
PRECISION = 1e-5  # relative width of tsdp's brackets
FINE, COARSE = 1e-4, 1e-3  # dp_accounting's default discretisation, and the one of the paper's experiments
SEARCH_EPSILONS = (0.5, 1.0, 2.0)
SCALING = tuple(10**i for i in range(2, 7))


# ---- dp_accounting ---------------------------------------------------------------------------------------------------


def symmetrised_pld(q, sigma, h):
    """The PLD of H_sym of (1 − q) N(0, σ²) + q N(2, σ²) against N(0, σ²) on multiples of h, by connect-the-dots.

    H_sym(e^ε) = P(X > x) − e^ε Q(X > x) with log dP/dQ(x) = ε for ε ≥ 0, and H_sym(e^−ε) = 1 − e^−ε + e^−ε H_sym(e^ε).
    """
    # As far out as dp_accounting itself goes: P leaves out a mass of e^−50.
    x_max = 2.0 - sigma * special.ndtri_exp(-50.0)
    n = math.ceil(math.log1p(q * math.expm1((2.0 * x_max - 2.0) / sigma**2)) / h)
    losses = h * np.arange(n + 1)
    growth = np.expm1(losses)
    x = 0.5 * sigma**2 * np.log1p(growth / q) + 1.0
    positive = np.maximum(q * special.ndtr((2.0 - x) / sigma) - (q + growth) * special.ndtr(-x / sigma), 0.0)
    negative = -np.expm1(-losses[1:]) + np.exp(-losses[1:]) * positive[1:]
    deltas = np.concatenate((negative[::-1], positive))
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(h, -n, n, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf.to_dense_pmf())


def mixture_epsilon(q, sigma):
    pld = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        standard_deviation=sigma,
        sensitivities=[0.0, 2.0],
        sampling_probs=[1.0 - q, q],
        pessimistic_estimate=True,
        value_discretization_interval=FINE,
    )
    return {"epsilon": pld.self_compose(STEPS).get_epsilon_for_delta(DELTA)}


def ready_epsilon(pld):
    return {"epsilon": pld.self_compose(STEPS).get_epsilon_for_delta(DELTA)}


def built_epsilon(q, sigma):
    return ready_epsilon(symmetrised_pld(q, sigma, FINE))


def most_steps(pld, epsilon):
    """The most steps within epsilon: doubling until too many, then bisection."""
    probes = 0

    def fits(steps):
        nonlocal probes
        probes += 1
        return pld.self_compose(steps).get_delta_for_epsilon(epsilon) <= DELTA

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return {"steps": low, "probes": probes}


# ---- taking turns ----------------------------------------------------------------------------------------------------


def time_here(work, warm_up, repetitions, seconds):
    """A turn of a contestant in this process: `warm_up` answers, then at least `repetitions` and for `seconds`."""
    times = []
    gc.collect()
    gc.disable()  # as timeit does
    try:
        start = time.perf_counter()
        while len(times) < warm_up + repetitions or time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            if len(times) == warm_up:
                start = begin
            answer = work()
            times.append(1e3 * (time.perf_counter() - begin))
    finally:
        gc.enable()
    return {"ms": times[warm_up:], "answer": answer}


def time_tsdp(binary, case, options, warm_up, repetitions, seconds):
    """A turn of tsdp, likewise, in its own process, which inherits the core."""
    options = options | {"delta": DELTA, "warm-up": warm_up, "repetitions": repetitions, "seconds": seconds}
    command = [binary, case] + [f"--{name}={value}" for name, value in options.items()]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    turn = {key: said.pop(key) for key in ("ms", "cold_ms", "peak_mb")}
    return turn | {"answer": said}


def compete(question, contestants, rounds):
    """{name: function that takes a turn} → {name: figures of all turns}."""
    turns = {name: [] for name in contestants}
    for i in range(rounds):
        print(f"{question}: round {i + 1} of {rounds}", file=sys.stderr)
        for name, take_turn in contestants.items():
            turns[name].append(take_turn())
    rows = {}
    for name, taken in turns.items():
        times = [t for turn in taken for t in turn["ms"]]
        rows[name] = {"median_ms": statistics.median(times), "min_ms": min(times), "answer": taken[-1]["answer"], "ms": times}
        if "cold_ms" in taken[0]:
            rows[name]["cold_ms"] = statistics.median(turn["cold_ms"] for turn in taken)
            rows[name]["peak_mb"] = max(turn["peak_mb"] for turn in taken)
    return rows


# ---- the questions ---------------------------------------------------------------------------------------------------


def ask_all(options):
    tsdp = functools.partial(time_tsdp, options.bin)
    turn = (options.warm_up, options.repetitions, options.seconds)
    listed = subprocess.run([options.bin, "settings"], check=True, capture_output=True, text=True).stdout
    settings = [s for s in json.loads(listed) if s["name"] in options.settings or not options.settings]
    results = {}

    def here(work, *arguments):
        return lambda: time_here(lambda: work(*arguments), *turn)

    for s in settings:
        q, sigma = s["q"], s["sigma"]
        precise = {"setting": s["name"], "steps": STEPS, "precision": PRECISION}
        contestants = {
            "tsdp": lambda o=precise: tsdp("epsilon", o, *turn),
            "mixture": here(mixture_epsilon, q, sigma),
            "symmetrised, built": here(built_epsilon, q, sigma),
            "symmetrised, ready": here(ready_epsilon, symmetrised_pld(q, sigma, FINE)),
        }
        results.setdefault("epsilon", {})[s["name"]] = compete(f"epsilon, {s['name']}", contestants, options.rounds)

    s = settings[0]
    plds = {h: symmetrised_pld(s["q"], s["sigma"], h) for h in (FINE, COARSE)}
    for epsilon in SEARCH_EPSILONS:
        wanted = {"setting": s["name"], "epsilon": epsilon}
        contestants = {"tsdp": lambda o=wanted: tsdp("max-uses", o, *turn)}
        contestants |= {f"ready, {h:g}": here(most_steps, pld, epsilon) for h, pld in plds.items()}
        results.setdefault("most steps", {})[epsilon] = compete(f"most steps, epsilon {epsilon:g}", contestants, options.rounds)

    for steps in SCALING:
        wanted = {"setting": s["name"], "steps": steps, "precision": PRECISION}
        contestants = {
            "anew": lambda o=wanted: tsdp("epsilon", o, *turn),
            "one more k": lambda o=wanted: tsdp("next", o, options.warm_up, 10, 0.0),  # every time 1 % further
        }
        results.setdefault("scaling", {})[steps] = compete(f"scaling, {steps} steps", contestants, options.rounds)

    # A plan is made once: nothing is warm.
    results["plan"] = compete("plan", {"tsdp": lambda: tsdp("plan", {}, 0, 1, 0.0)}, options.rounds)["tsdp"]
    return s["name"], results


def disagreements(results):
    """A sound upper estimate is never below a certified lower end; the peer's rounding is granted 1e-9."""
    for name, rows in results["epsilon"].items():
        lower, found = rows["tsdp"]["answer"]["lower"], rows["symmetrised, ready"]["answer"]["epsilon"]
        if found < lower * (1.0 - 1e-9):
            yield f"{name}: dp_accounting's epsilon {found!r} is below tsdp's lower end {lower!r}"
    for epsilon, rows in results["most steps"].items():
        found = rows[f"ready, {FINE:g}"]["answer"]["steps"]
        if found > 1.001 * rows["tsdp"]["answer"]["uses"] + 1:
            yield f"most steps, epsilon {epsilon:g}: dp_accounting finds {found}, tsdp {rows['tsdp']['answer']['uses']}"


# ---- the tables ------------------------------------------------------------------------------------------------------


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def short(value):
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def ms(row):
    return f"{short(row['median_ms'])} ({short(row['min_ms'])})"


def times_of(row, base):
    return f"{ms(row)}, **{short(row['median_ms'] / base['median_ms'])}×**"


def markdown(first, results):
    parts = [
        f"Epsilon at delta {DELTA:g} after {STEPS} steps; tsdp to a relative width of {PRECISION:g}, dp_accounting at "
        f"discretisation {FINE:g}. Milliseconds: median (minimum), × tsdp's median; cold: first answer of a process."
    ]
    rows = []
    for name, r in results["epsilon"].items():
        a, found = r["tsdp"]["answer"], r["symmetrised, ready"]["answer"]["epsilon"]
        rows.append([name, ms(r["tsdp"]), short(r["tsdp"]["cold_ms"]), f"{a['lower']:.7f}, {a['upper']:.7f}"]
                    + [times_of(r[n], r["tsdp"]) for n in ("symmetrised, ready", "symmetrised, built", "mixture")]
                    + [f"{found:.7f} ({found / a['upper'] - 1.0:+.1e})", f"{r['mixture']['answer']['epsilon']:.4f}"])
    parts.append(table(["setting", "tsdp", "cold", "tsdp lower, upper", "symmetrised, ready", "symmetrised, built", "mixture",
                        "symmetrised: epsilon (above tsdp's upper)", "mixture: epsilon, unsound here"], rows))

    parts.append(f"Most steps within epsilon at delta {DELTA:g}, {first}; tsdp with construction, dp_accounting's PLD is ready.")
    rows = []
    for epsilon, r in results["most steps"].items():
        row = [f"{epsilon:g}", ms(r["tsdp"]), str(r["tsdp"]["answer"]["uses"])]
        for h in (FINE, COARSE):
            peer = r[f"ready, {h:g}"]
            row += [times_of(peer, r["tsdp"]), f"{peer['answer']['steps']} ({peer['answer']['probes']} probes)"]
        rows.append(row)
    parts.append(table(["epsilon", "tsdp", "steps", f"ready at {FINE:g}", "steps", f"ready at {COARSE:g}", "steps"], rows))

    parts.append(f"tsdp's epsilon to {PRECISION:g} by steps, {first}; one more k: on an accountant that has answered before.")
    rows = [[str(k), ms(r["anew"]), ms(r["one more k"]), f"{r['anew']['answer']['upper']:.6g}", f"{r['anew']['peak_mb']:.0f} MB"]
            for k, r in results["scaling"].items()]
    parts.append(table(["steps", "anew", "one more k", "epsilon", "peak memory"], rows))

    plan = results["plan"]
    parts.append(f"Most steps for all settings at six epsilons (0.25 to 8), one cold process: {ms(plan)} ms, "
                 f"peak memory {plan['peak_mb']:.0f} MB.")
    return "\n\n".join(parts)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return model


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(description="Times tsdp's accountant beside dp_accounting.")
    parser.add_argument("--bin", default=os.path.join(root, "build", "release", "bin", "tsdp-account-bench"))
    parser.add_argument("--json", metavar="FILE", help="all figures, with every single time")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--repetitions", type=int, default=1, help="timed answers a turn, at least")
    parser.add_argument("--seconds", type=float, default=0.3, help="timed for so long a turn, at least")
    parser.add_argument("--warm-up", type=int, default=1, help="answers before those")
    parser.add_argument("--settings", nargs="*", default=[], help="only these; the first is searched and scaled")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    options = parser.parse_args()
    if not os.path.exists(options.bin):
        parser.error(f"--bin: there is no {options.bin}; the target tsdp-account-bench makes it")
    os.sched_setaffinity(0, {options.cpu})

    versions = {name: importlib.metadata.version(name) for name in ("dp-accounting", "numpy", "scipy")}
    versions["python"] = platform.python_version()
    first, results = ask_all(options)
    print(f"{machine()}, one core; " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "\n")
    print(markdown(first, results))
    if options.json:
        report = {"machine": machine(), "versions": versions, "delta": DELTA, "steps": STEPS, "precision": PRECISION}
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report | results, out, indent=1)
    found = list(disagreements(results))
    for line in found:
        print("account.py: " + line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
