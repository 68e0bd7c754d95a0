#!/usr/bin/env python3
"""Derives every field of a run's ledger a second time, and prints each that disagrees.

    ledger_by_hand.py RUN [RUN...]          exit code 1 if any field disagrees

Written from the theorems (docs/accounting.md, docs/proofs) and from what docs/runs.md and docs/guarantee.md promise, and not from the program that
writes ledgers: what the two have in common is the data, the configuration, and the count of steps under private/. Nothing is taken from the ledger
that can be had from these.

How epsilon is derived. One use is a pair of measures, laid out as 60,000 points with a mass under each; every point's loss is split between the two
nearest losses of a grid so that both masses stay (connect the dots: from above), the uses are composed by one Fourier transform, and the profile is
read off. The error goes with the square of the grid's step, so that half the points tell how large it is. Bins are integrated directly. A value
`Known` has an estimate and an `error`: brackets must meet [estimate - error, estimate + error] and be no wider than they are promised to be.
"""

import functools
import gzip
import hashlib
import json
import math
import pathlib
import sys

import numpy as np

PROMISED_WIDTH = 1e-3  # of epsilon's bracket, relative, where the certificate is of one pair
erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_cdf(x):
    return 0.5 * np.asarray(erfc(-np.asarray(x, dtype=float) / math.sqrt(2)), dtype=float)


def binomial(n, p):
    """The weights of 0 … n successes."""
    if p >= 1:
        return np.eye(n + 1)[n]
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + (i * math.log(p) if i else 0) + (n - i) * math.log1p(-p) for i in range(n + 1)]
    return np.exp(np.array(logs))


# ---- single uses: losses with their masses under the first measure; what is missing to 1 has the loss 0 ----


def mixture_logs(x, means, weights, sigma):
    """The log density at x of a mixture of normals, without the common factor and exp(-x^2 / 2 sigma^2)."""
    terms = [math.log(w) + (m * x - m * m / 2) / sigma**2 for m, w in zip(means, weights) if w > 0]
    return functools.reduce(np.logaddexp, terms)


def points_of(x, log_ratio_to_centre, sigma):
    step = x[1] - x[0]
    return np.exp(log_ratio_to_centre - x * x / 2 / sigma**2) * step / (sigma * math.sqrt(2 * math.pi))


def symmetrised(q, sigma, points):
    """(3.3) for (1-q) N(0) + q N(2) against N(0): losses +L with P's mass and -L with Q's, both where L > 0, which is x > 1."""
    edge = 1 + np.arange(points) * ((1 + 14 * sigma) / points)
    x = edge + (edge[1] - edge[0]) / 2
    p = mixture_logs(x, [0, 2], [1 - q, q], sigma)
    return np.concatenate([p, -p]), np.concatenate([points_of(x, p, sigma), points_of(x, np.zeros_like(x), sigma)])


def mirrored(weights, distance, share, sigma, points):
    """`share` of sum w_i N(-i d) against its mirror image; otherwise nothing is seen (F.1, F.2, tsdp.3)."""
    means = np.arange(len(weights)) * distance
    keep = weights > 1e-300
    means, weights = means[keep], weights[keep]
    far = means[-1] + 14 * sigma
    x = (np.arange(points) + 0.5) * (2 * far / points) - far
    p, q = mixture_logs(x, -means, weights, sigma), mixture_logs(x, means, weights, sigma)
    return p - q, share * points_of(x, p, sigma)


def zero_out(q, sigma, points, removed):
    """(1-q) N(0) + q N(1) against N(0), or the other way round."""
    x = (np.arange(points) + 0.5) * ((1 + 28 * sigma) / points) - 14 * sigma
    p = mixture_logs(x, [0, 1], [1 - q, q], sigma)
    return (p, points_of(x, p, sigma)) if removed else (-p, points_of(x, np.zeros_like(x), sigma))


# ---- composition ----


class Composed:
    """The profile of `uses` uses of one pair, from above up to rounding."""

    def __init__(self, losses, masses, uses, delta, size):
        masses = np.append(masses, max(0.0, 1 - masses.sum()))
        losses = np.append(losses, 0.0)
        order = np.argsort(losses)
        losses, masses = losses[order], masses[order]
        # Losses so rare that they do not matter to delta count as infinite, so that the grid is as fine as it can be.
        tail = np.cumsum(masses[::-1])[::-1]
        rare = tail * uses < 1e-6 * delta
        beyond = 1 - (1 - tail[rare][0]) ** uses if rare.any() else 0.0
        losses, masses = losses[~rare], masses[~rare]
        low = np.cumsum(masses) * uses < 1e-9 * delta  # moved up: from above
        if low.any() and not low.all():
            losses = np.where(low, losses[~low][0], losses)
        mean, square = (losses * masses).sum(), (losses**2 * masses).sum()
        width = uses * abs(mean) + 9 * math.sqrt(uses * square) + 3 * np.abs(losses).max()
        step = 2 * width / size
        place = np.floor(losses / step).astype(int)
        # Split between both ends so that the masses under both measures stay.
        rest = losses - place * step
        up = masses * np.clip(-np.expm1(-rest) / -math.expm1(-step), 0, 1)
        grid = np.zeros(size)
        np.add.at(grid, place % size, masses - up)
        np.add.at(grid, (place + 1) % size, up)
        composed = np.maximum(np.fft.irfft(np.fft.rfft(grid) ** uses, size), 0)
        self.losses = (np.arange(size) - size // 2) * step
        masses = np.roll(composed, size // 2)
        self.infinite = beyond
        self.first = np.append(np.cumsum(masses[::-1])[::-1], 0.0)  # what lies at and above each loss, under both measures
        self.second = np.append(np.cumsum((masses * np.exp(-self.losses))[::-1])[::-1], 0.0)

    def delta(self, epsilon):
        at = np.searchsorted(self.losses, epsilon)
        return self.infinite + max(0.0, float(self.first[at] - math.exp(epsilon) * self.second[at]))


class Known:
    """A profile delta(epsilon), and how far from the truth it may be, by its own coarser self."""

    def __init__(self, fine, coarse):
        self.fine, self.coarse = fine, coarse

    def delta(self, epsilon):
        """Estimate and error."""
        fine, coarse = self.fine(epsilon), self.coarse(epsilon)
        return fine, abs(fine - coarse) + 1e-6 * fine + 1e-11

    def epsilon(self, delta):
        fine, coarse = inverse(self.fine, delta), inverse(self.coarse, delta)
        return fine, abs(fine - coarse) + 1e-6 * fine + 1e-9


def inverse(profile, delta):
    """The least epsilon >= 0 with profile(epsilon) <= delta."""
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while profile(high) > delta:
        low, high = high, 2 * high
        if high > 1e5:
            return math.inf
    for _ in range(48):
        middle = (low + high) / 2
        if profile(middle) > delta:
            low = middle
        else:
            high = middle
    return high


def composed(pair, uses, delta):
    """pair(points): losses and masses."""
    fine = Composed(*pair(60000), uses, delta, 1 << 18)
    coarse = Composed(*pair(30000), uses, delta, 1 << 17)
    return Known(fine.delta, coarse.delta)


def larger(one, other):
    return Known(lambda e: max(one.fine(e), other.fine(e)), lambda e: max(one.coarse(e), other.coarse(e)))


def gaussian(sensitivity, sigma):
    """Balle and Wang 2018: exact."""
    mu = sensitivity / sigma

    def profile(epsilon):
        first, second = normal_cdf(mu / 2 - epsilon / mu), normal_cdf(-mu / 2 - epsilon / mu)
        return float(first - math.exp(min(epsilon, 700)) * second) if second > 0 else float(first)

    return Known(profile, profile)


def bins(gram, sigma):
    """(1/b) sum N(m_i) against N(0), both ways, from the Gram matrix of the means: what is seen lies in the means' span, and the likelihood ratio
    grows along m_1, as all products are at least 0. So one coordinate is integrated in closed form, the others by the rule of midpoints."""
    b = len(gram)
    means = np.linalg.cholesky(gram / sigma**2)  # row i: m_i / sigma, the first coordinate along m_1

    def profile_of(points):
        axis = (np.arange(points) + 0.5) * ((means.max() + 18) / points) - 9
        axes = np.meshgrid(*[axis] * (b - 1), indexing="ij")
        y = np.stack([a.ravel() for a in axes], axis=1) if b > 1 else np.zeros((1, 0))
        cell = (axis[1] - axis[0]) ** (b - 1)

        def density(mean):
            return np.exp(-((y - mean) ** 2).sum(axis=1) / 2) / (2 * math.pi) ** ((b - 1) / 2) * cell

        offsets = y @ means[:, 1:].T - (means**2).sum(axis=1) / 2 - math.log(b)  # log of the terms of dP/dQ at first coordinate 0

        def edge(level):
            """Where the log ratio passes `level`, along the first coordinate."""
            low, high = np.full(len(y), -60.0), np.full(len(y), 60.0)
            for _ in range(40):
                middle = (low + high) / 2
                below = functools.reduce(np.logaddexp, [offsets[:, i] + means[i, 0] * middle for i in range(b)]) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            return high

        def profile(epsilon):
            at = edge(epsilon)
            removal = sum((density(means[i, 1:]) * normal_cdf(means[i, 0] - at)).sum() for i in range(b)) / b
            removal -= math.exp(epsilon) * (density(np.zeros(b - 1)) * normal_cdf(-at)).sum()
            at = edge(-epsilon)
            addition = (density(np.zeros(b - 1)) * normal_cdf(at)).sum()
            addition -= math.exp(epsilon) * sum((density(means[i, 1:]) * normal_cdf(at - means[i, 0])).sum() for i in range(b)) / b
            return float(max(removal, addition))

        return functools.lru_cache(None)(profile)

    points = 600 if b == 2 else 80
    return Known(profile_of(points), profile_of(points * 3 // 4))


def bins_of_every_epoch(b, uses, sigma, delta):
    """(1/b) sum N(e_i) against N(0), both ways, each composed by itself: the outputs of an epoch, cut into cells, are released."""

    def pair(points, removed):
        cells = round(points ** (1 / b))
        edges = np.linspace(-9 * sigma, 1 + 9 * sigma, cells + 1)
        edges[0], edges[-1] = -np.inf, np.inf
        there, absent = (np.diff(normal_cdf((edges - mean) / sigma)) for mean in (1.0, 0.0))
        without = functools.reduce(np.multiply.outer, [absent] * b)
        with_it = sum(functools.reduce(np.multiply.outer, [there if i == j else absent for j in range(b)]) for i in range(b)) / b
        kept = (without > 1e-30) & (with_it > 1e-30)
        loss = np.log(with_it[kept]) - np.log(without[kept])
        return (loss, with_it[kept]) if removed else (-loss, without[kept])

    return larger(*(composed(functools.partial(pair, removed=removed), uses, delta) for removed in (True, False)))


# ---- what the data and the configuration say ----


def read_config(path):
    values, section = {}, None
    for line in path.read_text().splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        key, _, value = line.strip().partition(": ") if ": " in line else (line.strip().rstrip(":"), "", "")
        if not line.startswith(" "):
            section = key
            continue
        try:
            values[f"{section}.{key}"] = json.loads(value)
        except ValueError:
            values[f"{section}.{key}"] = value
    return values


def read_lengths(config):
    """How many values each series of the data has."""
    path, kind = pathlib.Path(config["dataset.path"]), config["dataset.format"]
    if kind == "synthetic":
        return [config["dataset.synthetic.length"]] * config["dataset.synthetic.series"]
    if "{rank}" in path.name:
        return [length for number in range(config["dataset.files"])
                for length in read_lengths({**config, "dataset.path": str(path).replace("{rank}", str(number))})]
    content = path.read_bytes()
    lines = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode().splitlines()
    if kind == "jsonl":
        return [len(json.loads(line)["target"]) for line in lines if line.strip()]
    if kind == "lstnet":
        return [len(lines)] * len(lines[0].split(","))
    sys.exit(f"{path}: found the format {kind}; this derivation reads jsonl, lstnet and synthetic")


def training_lengths(config):
    """How many values of each series are trained on: those before the test windows and the validation part. Short series are refused, left out, or
    padded to the least length, in which one window can be made."""
    horizon = config["dataset.prediction_length"]
    held_out = config["dataset.validation_length"]
    held_out = 5 * horizon if held_out is None else held_out
    tested = config["dataset.test_windows"] * horizon
    lengths = []
    for length in read_lengths(config):
        part = (length * 8 // 10 if config["dataset.split"] == "lstnet" else length - tested) - held_out
        lengths.append(part)
    least = horizon
    if config["dataset.short_series"] == "drop":
        lengths = [length for length in lengths if length >= least]
    elif config["dataset.short_series"] == "pad":
        lengths = [max(length, least) for length in lengths]
    return lengths


def first_column(config, steps):
    """The strategy matrix's first column, of the mechanisms in closed form."""
    kind, bands = config["privacy.noise.mechanism"], config["privacy.noise.bands"]
    if kind == "bsr":
        root = [1.0]
        for j in range(1, min(bands, steps)):
            root.append(root[-1] * (2 * j - 1) / (2 * j))
        return root + [0.0] * (steps - len(root))
    if kind == "bisr":
        root = [1.0]
        for j in range(1, min(bands, steps)):
            root.append(root[-1] * (2 * j - 3) / (2 * j))
        column = [1.0]
        for t in range(1, steps):
            column.append(-sum(root[j] * column[t - j] for j in range(1, min(t, len(root) - 1) + 1)))
        return column
    return [1.0] + [0.0] * (steps - 1)


class Derivation:
    """What the ledger of a run must say, field by field."""

    def __init__(self, run):
        self.run = run
        self.ledger = json.loads((run / "privacy.json").read_text())
        self.config = read_config(run / "config.yaml")
        self.lengths = training_lengths(self.config)
        self.problems = []

    def option(self, name):
        return self.config[name]

    def expect(self, name, found, expected):
        if found != expected or isinstance(found, bool) != isinstance(expected, bool):
            self.problems.append(f"{name}: found {json.dumps(found)}; {json.dumps(expected)} follows")

    def require(self, name, fine, what):
        if not fine:
            self.problems.append(f"{name}: {what}")

    # -- steps --

    def sizes(self):
        self.whole = self.option("privacy.relation") == "series"
        self.per_series = self.option("sampling.subsequences_per_sequence")
        batch = self.option("sampling.batch_size")
        n = len(self.lengths)
        self.top, self.bottom = self.option("sampling.top_level"), self.option("sampling.bottom_level")
        given, rate = self.option("sampling.batches"), self.option("sampling.rate")
        self.rate = None
        if self.whole and given is not None:
            self.steps_per_epoch, self.rate = given, 1 / given
        elif self.whole and rate is not None:
            self.steps_per_epoch, self.rate = max(1, int(1 / rate)), rate
        else:
            drawn = min(n, batch // self.per_series)
            # Coins need no whole number of series.
            self.rate = min(1.0, batch / (self.per_series * n)) if self.top in ("poisson", "cyclic_poisson") else drawn / n
            if self.whole and self.top in ("deterministic", "shuffled"):
                self.steps_per_epoch = -(-n // drawn)  # the last one is filled with ghosts
            else:
                self.steps_per_epoch = max(1, n * self.per_series // batch)
        identity = self.option("privacy.noise.mechanism") == "identity"
        self.groups = self.option("privacy.noise.bands") if self.top == "cyclic_poisson" and not identity else 1
        self.unit = "round" if self.top == "cyclic_poisson" else "epoch" if self.top in ("deterministic", "shuffled", "balls_in_bins") else "step"

    def check_counts(self):
        ledger = self.ledger
        lines = (self.run / "private/checkpoints/charged").read_text().splitlines()
        words = dict(line.split(" ", 1) for line in lines[1:])
        self.taken, self.charged, self.planned = (ledger[f"steps_{name}"] for name in ("taken", "charged", "planned"))
        # (The count is written first: what is killed in between has a ledger that states the plan.)
        self.require("steps_charged", self.charged == int(lines[0]) or ledger["state"] == "running" and self.charged < int(lines[0]),
                     f"found {self.charged}; {lines[0]} are counted")
        self.expect("steps_planned", self.planned, int(words["planned"]))
        self.expect("run.id", ledger["run"]["id"], words["run"])
        self.expect("run.configuration_sha256", ledger["run"]["configuration_sha256"],
                    hashlib.sha256((self.run / "config.yaml").read_bytes()).hexdigest())
        self.require("steps", 0 <= self.taken <= self.charged <= self.planned, "taken <= charged <= planned does not hold")
        most = self.option("training.max_epochs") * self.steps_per_epoch
        self.require("steps_planned", self.planned <= most, f"found {self.planned}; max_epochs allows {most}")
        if self.unit == "epoch":
            self.expect("steps_planned beyond whole epochs", self.planned % self.steps_per_epoch, 0)
        self.expect("state", ledger["state"] in ("running", "interrupted", "finished"), True)
        finished = ledger["state"] == "finished"
        if finished:
            self.expect("steps_charged of a finished run", self.charged, self.planned)
        self.expect("model.pt is there", (self.run / "model.pt").exists(), finished)
        logged = [json.loads(line)["step"] for line in (self.run / "private/metrics.jsonl").read_text().splitlines()] \
            if (self.run / "private/metrics.jsonl").exists() else []
        self.require("steps_charged", max(logged, default=0) <= int(lines[0]), f"step {max(logged, default=0)} is in the log, {lines[0]} are charged")
        # Of short plans every step is logged, and a few of those that were lost.
        if self.planned < 2000 and ledger["state"] != "running":
            self.require("steps_taken", self.taken <= len(set(logged)), f"found {self.taken}; {len(set(logged))} are in the log")
        steps = self.planned if ledger["state"] == "running" else self.charged
        each = self.steps_per_use = {"step": 1, "epoch": self.steps_per_epoch, "round": self.groups}[self.unit]
        self.uses = -(-steps // each)
        # From below an epoch counts once it is complete: the steps that are missing may be those that read the changed series.
        self.complete = steps // each
        self.most_uses = -(-self.option("training.max_epochs") * self.steps_per_epoch // each)

    def check_mechanism(self):
        found = self.ledger["mechanism"]
        lags = self.option("model.lags")
        self.context = self.option("model.context_length") + (max(lags) - 1 if lags else 0)
        self.horizon = self.option("dataset.prediction_length")
        for name, value in (("top_level", self.top), ("bottom_level", self.bottom), ("num_sequences", len(self.lengths)),
                            ("shortest_sequence", min(self.lengths)), ("longest_sequence", max(self.lengths)),
                            ("context_length", self.context), ("forecast_length", self.horizon),
                            ("subsequences_per_sequence", self.per_series), ("steps_per_epoch", self.steps_per_epoch),
                            ("context_noise", float(self.option("augmentation.context_noise"))),
                            ("forecast_noise", float(self.option("augmentation.forecast_noise")))):
            self.expect(f"mechanism.{name}", found.get(name), value)
        if self.option("sampling.batch_size") is not None:
            self.expect("mechanism.batch_size", found["batch_size"], self.option("sampling.batch_size"))
        else:
            expected = self.rate * len(self.lengths) * self.per_series
            self.require("mechanism.batch_size", abs(found["batch_size"] - expected) < 1, f"found {found['batch_size']}; {expected} are expected in a step")
        if self.whole:
            self.expect("mechanism.record", found.get("record"), "series")
            self.expect("mechanism.batches", found.get("batches"), self.option("sampling.batches"))
            self.expect("mechanism.rate", found.get("rate"), self.option("sampling.rate"))
            if self.top == "shuffled":
                self.expect("mechanism.reshuffle", found.get("reshuffle"), self.option("sampling.reshuffle"))
            if self.top == "cyclic_poisson":
                self.expect("mechanism.groups", found.get("groups"), self.groups)
            self.expect("mechanism.redraw", found.get("redraw", "once"), self.option("sampling.redraw"))

    # -- the theorem --

    def windows(self, length):
        """T, and how many of them a change can touch."""
        t = length - self.horizon + 1
        w = self.option("privacy.w")
        span = self.context + self.horizon
        touched = span + w - 1 if self.option("privacy.relation") == "event" else w * span
        return t, max(0, min(touched, t))

    def profile(self, uses):
        """The theorem, the pair's profile after `uses` uses, and whether the pair is exact for the mechanism (then `bound` is tight)."""
        sigma, delta = float(self.option("privacy.noise_multiplier")), self.option("privacy.delta")
        if self.whole:
            return self.whole_series(uses, sigma, delta)
        share = {"wor": self.rate, "poisson": self.rate}.get(self.top, 1.0)
        parts = [self.windows(length) for length in self.lengths]
        noises = float(self.option("augmentation.context_noise")), float(self.option("augmentation.forecast_noise"))
        single = self.per_series == 1 and self.bottom == "wr"
        if single:
            q = share * max(m / t for t, m in parts)
            if any(noises):
                def kept(noise):  # the total variation between values that differ by v, under noise of so many v
                    return math.erf(1 / (2 * math.sqrt(2) * noise)) if noise > 0 else 1.0
                part = self.horizon / (self.context + self.horizon)
                q *= part * kept(noises[1]) + (1 - part) * kept(noises[0])
            pair = functools.partial(symmetrised, q, sigma)
        elif self.bottom == "wr":
            pair = functools.partial(mirrored, binomial(self.per_series, max(m / t for t, m in parts)), 2.0, share, sigma)
        else:
            weights = binomial(max(m for _, m in parts), max(min(1.0, self.per_series / t) for t, _ in parts))
            pair = functools.partial(mirrored, weights, 1.0, share, sigma)
        theorem = {"poisson": "tsdp.3", "shuffled": "tsdp.4"}.get(self.top)
        if theorem is None:
            turn = self.top == "deterministic"
            theorem = ("4.2" if turn else "4.4") if single else ("E.1" if turn else "F.1") if self.bottom == "wr" else ("E.8" if turn else "F.2")
            if any(noises):
                theorem = "4.5" if noises[0] == noises[1] else "G.1"
        return theorem, composed(pair, uses, delta)

    def whole_series(self, uses, sigma, delta):
        if self.top == "cyclic_poisson":
            pair = functools.partial(zero_out, min(1, self.groups * self.rate), sigma / self.reach())
            return "series.cyclic_poisson", larger(*(composed(functools.partial(pair, removed=removed), uses, delta) for removed in (True, False)))
        if self.option("privacy.noise.mechanism") != "identity":
            return "series.matrix", self.correlated(uses, sigma)
        if self.top == "deterministic":
            return "series.deterministic", gaussian(math.sqrt(uses), sigma)
        if self.top == "shuffled":
            return "series.shuffled", gaussian(math.sqrt(uses), sigma)
        if self.top == "wor":
            return "series.wor", composed(functools.partial(symmetrised, self.rate, sigma), uses, delta)
        if self.top == "poisson":
            return "series.poisson", larger(*(composed(functools.partial(zero_out, self.rate, sigma, removed=removed), uses, delta) for removed in (True, False)))
        if self.option("sampling.redraw") == "every_epoch":
            return "series.bins_redrawn", bins_of_every_epoch(self.steps_per_epoch, uses, sigma, delta)
        return "series.balls_in_bins", bins(np.eye(self.steps_per_epoch) * uses, sigma)

    def reach(self):
        """What one part of a series moves the sums by: the norm of a column of the matrix, of which parts of cyclic batches do not meet."""
        return math.hypot(*first_column(self.config, self.groups)) if self.top == "cyclic_poisson" else 1.0

    def correlated(self, uses, sigma):
        """All planned steps of the matrix: a run of fewer costs no more, and has the matrix's leading part."""
        b = self.steps_per_epoch
        steps = uses * b
        column = first_column(self.config, self.most_uses * b)
        matrix = np.array([[column[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)])
        means = np.stack([matrix[:, i::b].sum(axis=1) for i in range(b)])
        gram = means @ means.T
        return bins(gram, sigma) if self.top == "balls_in_bins" else gaussian(math.sqrt(gram.diagonal().max()), sigma)

    # -- what follows --

    def check_epsilon(self):
        ledger, delta = self.ledger, self.option("privacy.delta")
        self.expect("delta", ledger["delta"], delta)
        self.expect("target_epsilon", ledger["target_epsilon"], float(self.option("privacy.target_epsilon")))
        self.expect("noise_multiplier", ledger["noise_multiplier"], float(self.option("privacy.noise_multiplier")))
        self.expect("clip_norm", ledger["clip_norm"], self.option("privacy.clip_norm"))
        self.expect("clipping", ledger["clipping"], self.option("privacy.clipping"))
        self.expect("composition_unit", ledger["composition_unit"], self.unit)
        self.expect("compositions", ledger["compositions"], self.uses)
        lower, upper = ledger["epsilon"]["lower"], ledger["epsilon"]["upper"]
        self.require("epsilon", 0 <= lower <= upper, f"found [{lower}, {upper}]")
        self.require("target_epsilon", upper <= ledger["target_epsilon"], f"epsilon {upper} passes the target")
        if self.uses == 0:
            self.expect("epsilon of no step", [lower, upper], [0.0, 0.0])
            return
        theorem, training = self.profile(self.uses)
        self.expect("theorem", ledger["theorem"], theorem)
        estimate, error = training.epsilon(delta)
        self.total = training
        loosest = estimate
        least, _ = self.total.epsilon(delta)
        adaptive = self.option("privacy.composition") == "adaptive"
        self.expect("composition", ledger.get("composition", "symmetrised"), "adaptive" if adaptive else "symmetrised")
        self.bounded = adaptive or theorem == "series.matrix"
        if adaptive:
            least = self.one_direction(self.uses).epsilon(delta)[0]
            self.require("epsilon.lower", lower >= least * (1 - 2 * PROMISED_WIDTH) - error, f"found {lower}; the same direction in every step costs {least}")
        self.require("epsilon.upper", upper >= least - error, f"found {upper}, which is below {least}")
        if self.complete == self.uses:
            below = estimate
        else:
            below = self.profile(self.complete)[1].epsilon(delta)[0] if self.complete else 0.0
        self.require("epsilon.lower", lower <= below + error, f"found {lower}, which is above {below}")
        if theorem == "series.matrix":
            steps = self.uses * self.steps_per_epoch
            column = np.array(first_column(self.config, steps))
            mean = sum(np.concatenate([np.zeros(i * self.steps_per_epoch), column])[:steps] for i in range(self.uses))
            loosest = gaussian(float(np.linalg.norm(mean)), float(self.option("privacy.noise_multiplier"))).epsilon(delta)[0]
        self.require("epsilon.upper", upper <= loosest * (1 + 2 * PROMISED_WIDTH) + error, f"found {upper}; {loosest} is certified")
        if not adaptive and theorem not in ("series.matrix", "series.shuffled", "series.wor"):
            self.require("epsilon.lower", lower >= below * (1 - 2 * PROMISED_WIDTH) - error, f"found {lower}; {below} is known from below")
        if theorem == "series.wor":
            self.expect("epsilon.lower, which nothing certifies", lower, 0.0)
        self.check_plan(theorem)

    def one_direction(self, uses):
        sigma, delta = float(self.option("privacy.noise_multiplier")), self.option("privacy.delta")
        q = {"wor": self.rate, "poisson": self.rate}.get(self.top, 1.0) * max(m / t for t, m in map(self.windows, self.lengths))

        def pair(points, removed):
            losses, masses = zero_out(q, sigma / 2, points, removed)  # N(2, sigma) is N(1, sigma / 2) in other units
            return losses, masses

        return larger(*(composed(functools.partial(pair, removed=removed), uses, delta) for removed in (True, False)))

    def check_plan(self, theorem):
        """The most steps within the target: one use more must pass it (where the profile is known), unless max_epochs ends the run."""
        if self.bounded or self.planned >= self.option("training.max_epochs") * self.steps_per_epoch:
            return
        planned_uses = -(-self.planned // self.steps_per_use)
        _, more = self.profile(int(planned_uses * 1.002) + 1)
        estimate, error = more.epsilon(self.option("privacy.delta"))
        target = self.option("privacy.target_epsilon")
        self.require("steps_planned", estimate + error >= target, f"found {self.planned}; {int(planned_uses * 1.002) + 1} uses cost {estimate} of {target}")

    def check_groups(self):
        epsilon, delta = self.ledger["epsilon"]["upper"], self.ledger["delta"]
        expected = []
        for series in (2, 3, 5, 10):
            grown = delta * sum(math.exp(min(700.0, i * epsilon)) for i in range(series))
            if grown < 1:
                expected.append((series, series * epsilon, grown))
        found = [(one["series"], one["epsilon"], one["delta"]) for one in self.ledger["groups"]["of"] if one["delta"] < 1]
        self.expect("groups", [one[0] for one in found], [one[0] for one in expected])
        for (series, e, d), (_, expected_e, expected_d) in zip(found, expected):
            self.require(f"groups.{series}.epsilon", expected_e <= e <= expected_e * (1 + 1e-9), f"found {e}; {expected_e} follows")
            self.require(f"groups.{series}.delta", expected_d * (1 - 1e-13) <= d <= expected_d * (1 + 1e-9), f"found {d}; {expected_d} follows")

    def two_in_a_row(self, delta):
        """2e for the least e with (1 + exp(e)) delta(e) <= delta: out of the data and in again, each of which costs (e, delta(e))."""
        low, high = 0.0, 1.0
        while (1 + math.exp(high)) * self.total.delta(high)[0] > delta:
            low, high = high, 2 * high
            if high > 600:
                return math.inf
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if (1 + math.exp(middle)) * self.total.delta(middle)[0] > delta else (low, middle)
        return 2 * high

    def check_substitution(self):
        """A series in another's place, at the run's delta: sums move by at most 2 wherever it takes part (given batches, bins or coins), or it is out of the data and in
        again; samples without replacement are accounted for as replaced already."""
        found = self.ledger.get("substitution")
        self.expect("substitution is there", found is not None, self.whole)
        if found is None:
            return
        epsilon, delta = self.ledger["epsilon"]["upper"], self.ledger["delta"]
        theorem = self.ledger["theorem"]
        self.expect("substitution.delta", found["delta"], delta)
        if theorem == "series.wor":
            self.expect("substitution.epsilon", found["epsilon"], epsilon)
            return
        if theorem == "series.matrix":
            # A replaced series is a changed one: it costs no less than the stated lower end, and two in a row of the fixed batches' cost are more than enough.
            self.require("substitution.epsilon", found["epsilon"] >= self.ledger["epsilon"]["lower"], f"found {found['epsilon']}, less than the lower end")
            return
        expected = gaussian(2 * self.reach() * math.sqrt(self.uses), float(self.option("privacy.noise_multiplier"))).epsilon(delta)[0]
        # Two in a row is 2 epsilon at least: beyond 40 it is not looked for.
        if theorem in ("series.poisson", "series.cyclic_poisson", "series.balls_in_bins", "series.bins_redrawn") and epsilon <= 20:
            expected = min(expected, self.two_in_a_row(delta))
        self.require("substitution.epsilon", expected * (1 - 3e-3) <= found["epsilon"] <= expected * 1.03 + 1e-9,
                     f"found {found['epsilon']}; {expected} follows from both bounds")

    def check_ranks(self):
        """For whoever knows all batches nothing is amplified: a Gaussian mechanism each time that a series may take part, with sums that move by what it may hold."""
        found = self.ledger.get("ranks")
        self.expect("ranks is there", found is not None, "{rank}" in self.option("dataset.path"))
        if found is None:
            return
        self.expect("ranks.files", found["files"], self.option("dataset.files"))
        self.expect("ranks.delta", found["delta"], self.ledger["delta"])
        bounded = self.whole or self.bottom == "wr"
        if self.option("privacy.noise.mechanism") != "identity" or not bounded:
            self.expect("ranks.epsilon", found["epsilon"], None)
            return
        steps = self.planned if self.ledger["state"] == "running" else self.charged
        once_an_epoch = self.top in ("deterministic", "shuffled", "balls_in_bins")
        times = -(-steps // (self.steps_per_epoch if once_an_epoch else self.groups))
        moved = (2 if self.option("sampling.largest_batch") else 1) if self.whole else 2 * self.per_series
        expected = gaussian(moved * math.sqrt(times), float(self.option("privacy.noise_multiplier"))).epsilon(found["delta"])[0]
        self.require("ranks.epsilon", expected * (1 - 1e-6) <= found["epsilon"] <= expected * 1.01, f"found {found['epsilon']}; {expected} follows")
        self.require("not_covered", "operates a rank" in " ".join(self.ledger["not_covered"]), "nothing is said of those who operate ranks")

    def check_attack(self):
        """No test has more than delta(0), nor a true-positive rate above the least of e^eps alpha + delta(eps); within 3 % of both."""
        found = self.ledger["attack"]
        rate = found["false_positive_rate"]
        self.expect("attack.false_positive_rate", rate, 1e-3)
        advantage, error = self.total.delta(0.0)
        grid = np.linspace(0, max(4 * self.ledger["epsilon"]["upper"], 1), 60)
        true_positive = min(math.exp(e) * rate + self.total.fine(e) for e in grid)
        least_advantage, least_rate = advantage, 0.0
        if self.option("privacy.composition") == "adaptive":
            one = self.one_direction(self.uses)
            least_advantage = one.delta(0.0)[0]
        if self.ledger["theorem"] not in ("series.matrix",) and self.option("privacy.composition") != "adaptive":
            def bound(e):
                return math.exp(e) * rate + self.total.fine(e)

            best = min(grid, key=bound)
            least_rate = min(bound(e) for e in np.linspace(max(0, best - grid[1]), best + grid[1], 200)) * (1 - 1e-3)
        self.require("attack.advantage", found["advantage"] >= least_advantage - error, f"found {found['advantage']}; a test has {least_advantage}")
        self.require("attack.true_positive_rate", found["true_positive_rate"] >= least_rate, f"found {found['true_positive_rate']}; a test has {least_rate}")
        if self.ledger["theorem"] != "series.matrix":
            self.require("attack.advantage", found["advantage"] <= 1.03 * advantage + error, f"found {found['advantage']}; {advantage} is certified")
            self.require("attack.true_positive_rate", found["true_positive_rate"] <= 1.03 * true_positive, f"found {found['true_positive_rate']}; {true_positive} is certified")

    def check_gaussian(self):
        """delta(eps) is at most that of N(mu, 1) against N(0, 1), plus delta, at places of our own; 4 % less mu is too little at one of them."""
        found = self.ledger["gaussian"]
        self.expect("gaussian.delta", found["delta"], self.ledger["delta"])
        grid = np.linspace(0, self.ledger["epsilon"]["upper"], 67)
        one = self.one_direction(self.uses) if self.option("privacy.composition") == "adaptive" else None

        def beyond(mu, profile):
            of_mu = gaussian(mu, 1.0).fine
            return any(profile(e) > of_mu(e) + self.ledger["delta"] for e in grid)

        if self.ledger["theorem"] != "series.matrix":  # a proven bound, of which the hand knows no lower end

            def least(e):
                estimate, error = (one or self.total).delta(e)
                return estimate - error

            self.require("gaussian.mu", not beyond(found["mu"], least), f"found {found['mu']}; a test passes it")
        if not self.bounded:
            self.require("gaussian.mu", beyond(0.96 * found["mu"], self.total.fine), f"found {found['mu']}; less is certified")
        self.require("gaussian.regret", 0 <= found["regret"] <= 1, f"found {found['regret']}")

    def check_relation(self):
        kind, w, v = self.option("privacy.relation"), self.option("privacy.w"), self.option("privacy.v")
        found = self.ledger["relation"]
        self.expect("relation.kind", found["kind"], kind)
        if not self.whole:
            self.expect("relation.w", found["w"], w)
            self.expect("relation.v", found["v"], v)
        text = found["text"]
        facts = ["one whole series"] if self.whole else ["one series", "one value" if w == 1 else str(w)]
        if v is not None and not self.whole:
            facts.append(f"{v:g}")
        if kind == "user" and w > 1:
            facts.append("anywhere")
        if kind == "event" and w > 1:
            facts.append("consecutive")
        for fact in facts:
            self.require("relation.text", fact in text, f"found {text!r}, without {fact!r}")
        statement = self.ledger["statement"]
        self.require("statement", text in statement and f"Theorem {self.ledger['theorem']}" in statement, f"found {statement!r}")
        stated = float(statement[1:].split(",")[0]) if statement.startswith("(") else -1.0
        upper = self.ledger["epsilon"]["upper"]
        self.require("statement", upper <= stated <= upper * (1 + 2e-3) + 1e-12, f"found {stated} for the upper end {upper}")
        self.require("statement", float(statement.split(", ")[1].split(")")[0]) == self.ledger["delta"], f"found {statement!r}, of another delta")

    def check_words(self):
        ledger = self.ledger
        self.expect("epsilon_covers", ledger["epsilon_covers"], ["model"])
        self.expect("bound", ledger["bound"] in ("tight", "upper"), True)
        if ledger["theorem"] in ("E.1", "F.1", "F.2", "G.1", "4.5", "tsdp.3", "tsdp.4", "series.wor", "series.shuffled", "series.matrix") \
                or self.option("privacy.composition") == "adaptive" and ledger["epsilon"]["lower"] < ledger["epsilon"]["upper"] * 0.99:
            self.expect("bound", ledger["bound"], "upper")
        covered = " ".join(ledger["not_covered"])
        for fact in ("private/", "other runs on the same data", "several series", "validation and test values", "time that training took", "lengths of the series",
                     "missing", "own recent values", "floating-point"):
            if fact == "several series" and "household" in covered:
                continue
            self.require("not_covered", fact in covered, f"nothing is said of {fact!r}")
        for name in self.option("dataset.covariates.columns") or []:
            protected = self.option("dataset.covariates.private")
            self.require("not_covered", (name in covered) != protected, f"the covariate {name!r} is {'' if protected else 'not '}protected")
            self.expect("protected covariates", ledger["covariates"].get("protected", False), protected)
        if ledger["state"] != "finished":
            self.require("not_covered", "copy" in covered or "copies" in covered, "nothing is said of copies that go on")
        warnings = " ".join(ledger["warnings"]) + ledger["statement"]
        self.expect("a warning of a delta above 1 / N", any("delta" in one for one in ledger["warnings"]), self.option("privacy.delta") * len(self.lengths) >= 1)
        self.expect("reproducible", ledger["reproducible"], self.option("training.reproducible"))
        if ledger["reproducible"]:
            self.require("warnings", "not for release" in warnings.lower(), "a reproducible run is not for release, and nothing says so")
        needs_certificate = self.whole or self.option("privacy.composition") == "adaptive"
        if needs_certificate:
            certificate = ledger.get("certificate") or {}
            self.require("certificate", bool(certificate.get("upper")), "no theorem is named for the upper end")
            self.expect("certificate.lower is named", certificate.get("lower") is not None, ledger["theorem"] != "series.wor")
        self.expect("choice is there", ledger.get("choice") is not None, False)
        kind = self.option("privacy.noise.mechanism")
        self.expect("noise is there", ledger.get("noise") is not None, kind != "identity")
        if ledger.get("noise"):
            self.expect("noise.mechanism", ledger["noise"]["mechanism"], kind)
            self.expect("noise.steps", ledger["noise"]["steps"], self.option("training.max_epochs") * self.steps_per_epoch)
            column = np.array(first_column(self.config, ledger["noise"]["steps"]))
            inverse = kind == "bisr"
            if inverse:  # the first column of C^-1, which is that of C^-1 applied to the first unit vector
                column = np.linalg.solve(np.array([[column[i - j] if i >= j else 0.0 for j in range(len(column))] for i in range(len(column))]), np.eye(len(column))[0])
            name = "inverse_first_column" if inverse else "matrix_first_column"
            stated = np.array(ledger["noise"].get(name, []))
            self.require(f"noise.{name}", 0 < len(stated) <= len(column) and np.allclose(stated, column[:len(stated)], rtol=1e-12, atol=0)
                         and np.abs(column[len(stated):]).max(initial=0) < 1e-12, f"found {list(stated)}")

    def check_start(self):
        """The start's origin, by following the chain of ledgers that it holds."""
        ledger = self.ledger
        start, named = ledger.get("start") or {}, self.option("model.start")
        self.expect("synthetic_data is there", ledger.get("synthetic_data") is not None, self.option("dataset.format") == "synthetic")
        weights = self.run / "start.safetensors"
        self.expect("a start that is not fresh", start["origin"] != "fresh", named != "fresh")
        self.expect("start.safetensors is there", weights.exists(), named != "fresh")
        if start.get("prior", "none") != self.option("model.prior"):
            self.expect("start.prior", start.get("prior"), self.option("model.prior"))
        if named == "fresh":
            self.require("start.origin", start.get("origin", "fresh") == "fresh" and "trained" not in start, f"found {json.dumps(start)}")
            return
        self.expect("start.weights_sha256", start.get("weights_sha256"), hashlib.sha256(weights.read_bytes()).hexdigest())
        # The file holds the ledger of the run that made it, which holds that of the run before.
        content = weights.read_bytes()
        at = json.loads(json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]["privacy.json"])
        first = at
        chain = []
        while at:
            if "synthetic_data" not in at:
                chain.append(at)
            at = (at.get("start") or {}).get("trained")
        expected = "synthetic" if not chain else "trained" if all(one["private"] and not one["reproducible"] for one in chain) else "trained_without_privacy"
        self.expect("start.origin", start["origin"], expected)
        if chain:
            self.require("statement", "start" in ledger["statement"], "nothing is said of the start, which was trained on data")
            self.expect("a start without privacy in the statement", "without privacy" in ledger["statement"], expected == "trained_without_privacy")
        self.expect("start.trained", start.get("trained"), first if chain else None)

    def check(self):
        self.sizes()
        self.check_counts()
        self.check_mechanism()
        self.check_start()
        private = self.option("privacy.enabled")
        self.expect("private", self.ledger["private"], private)
        if not private:
            self.expect("epsilon without privacy", self.ledger.get("epsilon"), None)
            self.require("statement", "No privacy" in self.ledger["statement"], f"found {self.ledger['statement']!r}")
            for name in ("theorem", "delta", "groups", "attack", "gaussian", "relation", "certificate", "substitution"):
                self.expect(f"{name} without privacy", self.ledger.get(name), None)
            return self.problems
        self.check_epsilon()
        if self.uses:
            self.check_groups()
            self.check_substitution()
            self.check_ranks()
            self.check_attack()
            self.check_gaussian()
        self.check_relation()
        self.check_words()
        return self.problems


def main():
    wrong = 0
    for name in sys.argv[1:]:
        problems = Derivation(pathlib.Path(name)).check()
        wrong += len(problems)
        for problem in problems:
            print(f"{name}: {problem}")
    if not sys.argv[1:]:
        sys.exit("usage: ledger_by_hand.py RUN [RUN...]")
    print(f"{len(sys.argv) - 1} ledgers, {wrong} fields that do not follow")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
