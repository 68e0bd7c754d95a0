"""A model as it forecasts: its network mixed with candidates that need no training, each weighed by how it did on the series' own past.

What a candidate is, and how they are mixed, stands in the programs' `include/tsdp/settings/mixture.h`. Values are (B, L), oldest first, NaN where
missing. Samples are (B, S, K), levels (A).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Mapping, Sequence

import torch
from torch import Tensor

from .networks import Forecast, Levels, Network

_SPREADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5)
_REGRESSORS = 8
_Pair = tuple[Tensor, Tensor]


def mean_of_known(sample: Tensor, dim: int) -> Tensor:
    known = ~torch.isnan(sample)
    return torch.where(known, sample, torch.zeros_like(sample)).sum(dim) / known.sum(dim).to(sample.dtype)


def known_or(values: Tensor, other: Tensor) -> Tensor:
    return torch.where(torch.isnan(values), other, values)


def empirical(sample: Tensor, levels: Tensor) -> _Pair:
    """Quantiles (B, A, K), interpolated between order statistics, and means (B, K); NaN of nothing."""
    rows = sample.transpose(1, 2)
    missing = torch.isnan(rows)
    # Sorts of other programs do not say where NaN goes.
    ordered = torch.sort(torch.where(missing, torch.full_like(rows, math.inf), rows), 2)[0]
    count = (~missing).sum(2, keepdim=True)
    last = (count - 1).clamp(min=0)
    place = levels.to(sample.dtype).reshape(1, 1, -1) * last.to(sample.dtype)
    below = place.floor().long()
    low = ordered.gather(2, below)
    high = ordered.gather(2, torch.minimum(below + 1, last))
    found = torch.where(count > 0, low + (place - below.to(place.dtype)) * (high - low), torch.full_like(low, math.nan))
    return found.transpose(1, 2), mean_of_known(sample, 1)


def last_seasons(values: Tensor, season: int, count: int) -> Tensor:
    """(B, S, m), the last season first."""
    missing = season * count - values.size(1)
    if missing > 0:
        values = torch.cat([torch.full_like(values[:, :1], math.nan).expand(-1, missing), values], 1)
    return values[:, values.size(1) - season * count :].reshape(-1, count, season).flip(1)


class Candidates:
    """The forecasts of H steps after `values` that need no training: quantiles (B, A, H) and means (B, H). `told` are covariates, (B, K, L + H)."""

    METHODS = ("seasonal_quantiles", "moved_quantiles", "seasonal_naive_bands", "last_value_bands", "seasonal_regression", "covariate_quantiles")

    def __init__(self, values: Tensor, told: Tensor, levels: Tensor, horizon: int) -> None:
        self.values, self.told, self.levels, self.horizon = values, told, levels, horizon

    @functools.cached_property
    def of_all(self) -> _Pair:
        return empirical(self.values.unsqueeze(2), self.levels)

    def otherwise(self, found: _Pair, read: int) -> _Pair:
        """Where nothing is known of a step: what is known of the last `read` values, or of all, or 0."""
        quantiles, mean = found
        for q, m in (empirical(self.values[:, max(0, self.values.size(1) - read) :].unsqueeze(2), self.levels), self.of_all):
            quantiles, mean = known_or(quantiles, q), known_or(mean, m)
        return known_or(quantiles, torch.zeros_like(quantiles)), known_or(mean, torch.zeros_like(mean))

    def seasonal_quantiles(self, season: int, count: int, moved: bool = False) -> _Pair:
        values, levels = self.values, self.levels
        sample = last_seasons(values, season, count)
        if moved:
            level = mean_of_known(sample, 2).unsqueeze(2)
            sample = sample + (level[:, :1] - level)
        steps = torch.arange(self.horizon, device=values.device) % season
        quantiles, mean = empirical(sample[:, :, : min(self.horizon, season)], levels)
        return self.otherwise((quantiles.index_select(2, steps), mean.index_select(1, steps)), season * count)

    def moved_quantiles(self, season: int, count: int) -> _Pair:
        return self.seasonal_quantiles(season, count, moved=True)

    def covariate_quantiles(self, season: int, count: int) -> _Pair:
        values, length, covariates = self.values, self.values.size(1), self.told.size(1)
        sample = last_seasons(values.double(), season, count)
        known = ~torch.isnan(sample)
        then = last_seasons(self.told[:, :, :length].double().reshape(-1, length), season, count).reshape(-1, covariates, count, season)
        times = known.to(sample.dtype).sum(1)
        number = times.sum(1).clamp(min=1.0).reshape(-1, 1, 1)
        total = torch.where(known.unsqueeze(1), then, torch.zeros_like(then)).sum(2)
        mean = torch.where(times.unsqueeze(1) > 0.0, total / times.clamp(min=1.0).unsqueeze(1), total.sum(2, keepdim=True) / number)
        less = torch.where(known.unsqueeze(1), then, mean.unsqueeze(2)) - mean.unsqueeze(2)
        x = less.reshape(-1, covariates, count * season)
        least = torch.where(known, sample, torch.full_like(sample, math.inf)).amin([1, 2]).reshape(-1, 1, 1)
        most = torch.where(known, sample, torch.full_like(sample, -math.inf)).amax([1, 2]).reshape(-1, 1, 1)
        signed = least < 0.0  # else logarithms are regressed
        tenth = 0.1 * torch.where(known, sample, torch.zeros_like(sample)).sum([1, 2]).reshape(-1, 1, 1) / number
        tenth = torch.where(tenth > 0.0, tenth, torch.ones_like(tenth))
        sample = torch.where(signed, sample, torch.log(sample + tenth))
        error = sample - mean_of_known(sample, 1).unsqueeze(1)
        y = known_or(error, torch.zeros_like(error)).reshape(-1, count * season, 1)
        unit = torch.sqrt(torch.square(x).sum(2, keepdim=True) / number)
        unit = torch.where(unit > 0.0, unit, torch.ones_like(unit))
        ridge = 0.01 * torch.eye(covariates, dtype=torch.float64, device=values.device)
        normal = x.matmul(x.transpose(1, 2)) / number / unit / unit.transpose(1, 2) + ridge
        weights = (solved(normal, x.matmul(y) / number / unit) / unit).transpose(1, 2)
        low, high = x.amin(2, keepdim=True), x.amax(2, keepdim=True)
        steps = torch.arange(self.horizon, device=values.device) % season
        now = self.told[:, :, length:].double() - mean.index_select(2, steps)
        now = torch.minimum(torch.maximum(now, low - 0.5 * (high - low)), high + 0.5 * (high - low))
        residual = sample - weights.matmul(x).reshape(-1, count, season)
        moved = residual.index_select(2, steps) + weights.matmul(now)
        moved = torch.where(signed, moved, torch.exp(moved) - tenth)
        first, last = least - 0.5 * (most - least), most + 0.5 * (most - least)
        first = torch.where(signed | (first > 0.0), first, torch.zeros_like(first))
        moved = torch.where(moved < first, first, torch.where(moved > last, last, moved))  # NaN stays
        return self.otherwise(empirical(moved.to(values.dtype), self.levels), season * count)

    def seasonal_naive_bands(self, season: int, count: int) -> _Pair:
        values, levels, length = self.values, self.levels, self.values.size(1)
        # Missing values are the last known one; those before the first known one are that.
        known = ~torch.isnan(values)
        places = torch.arange(length, device=values.device).expand_as(values)
        last = torch.where(known, places, torch.full_like(places, -1))
        first = torch.where(known, places, torch.full_like(places, length - 1)).min(1, keepdim=True)[0]
        reach = 1
        while reach < length:  # A running maximum, which no export format knows.
            last = torch.cat([last[:, :reach], torch.maximum(last[:, reach:], last[:, :-reach])], 1)
            reach *= 2
        filled = values.gather(1, torch.maximum(last, first))
        filled = known_or(filled, torch.zeros_like(filled))
        steps = torch.arange(self.horizon, device=values.device)
        point = filled[:, length - season :].index_select(1, steps % season)
        bands, means = [], []
        for seasons in range(1, (self.horizon - 1) // season + 2):
            apart = seasons * season
            begin = max(apart, length - season * count)
            q, m = empirical((values[:, begin:] - values[:, begin - apart : length - apart]).unsqueeze(2), levels)
            bands.append(q)
            means.append(m)
        q = torch.cat(bands, 2).index_select(2, steps // season)
        m = torch.cat(means, 1).index_select(1, steps // season)
        return point.unsqueeze(1) + known_or(q, torch.zeros_like(q)), point + known_or(m, torch.zeros_like(m))

    last_value_bands = seasonal_naive_bands

    def seasonal_regression(self, season: int, count: int) -> _Pair:
        values, levels = self.values, self.levels
        ahead = (self.horizon - 1) // season + 1
        read = count + 6 + ahead
        found = last_seasons(values.double(), season, read).flip(1)
        known = ~torch.isnan(found)
        place = mean_of_known(found, 1).unsqueeze(1).expand_as(found)
        everything = mean_of_known(found.reshape(-1, read * season), 1)
        everything = known_or(everything, torch.zeros_like(everything)).reshape(-1, 1, 1).expand_as(found)
        filled = known_or(found, known_or(place, everything))
        centre = filled.mean([1, 2], keepdim=True)
        scale = torch.sqrt(torch.square(filled - centre).mean([1, 2], keepdim=True))
        scale = torch.where(scale > 0.0, scale, torch.ones_like(scale))
        filled = (filled - centre) / scale
        towards = torch.tensor([0.3, 0.0, 0.0, 0.0, 0.7, 0.0, 0.0, 0.0], dtype=torch.float64, device=values.device).unsqueeze(1)
        ridge = 0.01 * torch.eye(_REGRESSORS, dtype=torch.float64, device=values.device)
        quantiles, means = [], []
        for seasons in range(1, ahead + 1):
            inputs = regressors(filled, read - count - seasons, count)
            outputs = filled[:, read - count :]
            fitted = known[:, read - count :]
            x = inputs.reshape(-1, count * season, _REGRESSORS)
            weighted = x * fitted.reshape(-1, count * season, 1).to(x.dtype)
            number = weighted[:, :, 7].sum(1).clamp(min=1.0).reshape(-1, 1, 1)
            residual = outputs.reshape(-1, count * season, 1) - x.matmul(towards)
            normal = weighted.transpose(1, 2).matmul(x) / number + ridge
            weights = (solved(normal, weighted.transpose(1, 2).matmul(residual) / number) + towards).unsqueeze(1)
            errors = torch.where(fitted, outputs - inputs.matmul(weights).squeeze(3), torch.full_like(outputs, math.nan))
            steps = min(season, self.horizon - (seasons - 1) * season)
            point = regressors(filled, read - 1, 1).matmul(weights).squeeze(3).squeeze(1)[:, :steps]
            q, m = empirical(errors[:, :, :steps], levels)
            quantiles.append(point.unsqueeze(1) + known_or(q, torch.zeros_like(q)))
            means.append(point + known_or(m, torch.zeros_like(m)))
        centre, scale = centre.squeeze(2), scale.squeeze(2)
        whole = torch.cat(quantiles, 2) * scale.unsqueeze(2) + centre.unsqueeze(2)
        return whole.to(values.dtype), (torch.cat(means, 1) * scale + centre).to(values.dtype)


def regressors(seasons: Tensor, first: int, count: int) -> Tensor:
    """(B, S, m, 8): what the S seasons from `first` on are regressed on, where each is the last one known."""
    last = seasons[:, first : first + count]
    lagged = [seasons[:, first - lag : first - lag + count] for lag in (1, 2, 3, 4, 5, 6)]
    week = torch.stack([last, *lagged], 3).mean(3)
    level = last.mean(2, keepdim=True).expand_as(last)
    end = last[:, :, last.size(2) - max(1, last.size(2) // 8) :].mean(2, keepdim=True).expand_as(last)
    return torch.stack([last, lagged[0], lagged[1], lagged[5], week, level, end, torch.ones_like(last)], 3)


def solved(normal: Tensor, right: Tensor) -> Tensor:
    """normal⁻¹ right of (B, n, n), positive definite, and (B, n, 1), by elimination; which needs no pivots there."""
    rows = torch.cat([normal, right], 2)
    for k in range(normal.size(1)):
        pivot = rows[:, k : k + 1] / rows[:, k : k + 1, k : k + 1]
        below = rows - rows[:, :, k : k + 1] * pivot
        rows = torch.cat([below[:, :k], pivot, below[:, k + 1 :]], 1)
    return rows[:, :, normal.size(1) :]


def outliers(values: Tensor) -> Tensor:
    """Whether each of (B, L) is further from the median than ten times as far as 99 % of the known values, of 100 or more."""

    def ordered(rows: Tensor) -> Tensor:  # Sorts of other programs do not say where NaN goes.
        return torch.sort(torch.where(torch.isnan(rows), torch.full_like(rows, math.inf), rows), 1)[0]

    count, last = (~torch.isnan(values)).sum(1, keepdim=True), values.size(1) - 1
    median = ordered(values).gather(1, torch.div(count, 2, rounding_mode="floor").clamp(max=last))
    distance = (values - median).abs()
    usual = ordered(distance).gather(1, torch.div(99 * count, 100, rounding_mode="floor").clamp(max=last))
    return (distance > 10.0 * usual) & (usual > 0.0) & (count >= 100)


def logit(levels: Tensor) -> Tensor:
    return torch.log(levels) - torch.log1p(-levels)


def between_deciles(deciles: Tensor, levels: Tensor) -> Tensor:
    """(B, E, 9, H) at 0.1, …, 0.9 -> (B, E, A, H): linear in the logit of the level, also beyond the ends."""
    known, wanted = logit(torch.arange(1, 10, device=levels.device).double() / 10.0), logit(levels)
    below = (wanted.unsqueeze(1) > known[1:8]).sum(1)
    gap = (known[1:] - known[:8]).index_select(0, below)
    share = ((wanted - known.index_select(0, below)) / gap).to(deciles.dtype).unsqueeze(1)
    low, high = deciles.index_select(2, below), deciles.index_select(2, below + 1)
    return low + share * (high - low)


def quantile_loss(quantiles: Tensor, values: Tensor, levels: Tensor) -> Tensor:
    """(…, A, H) and (…, H) -> (…), summed over levels and known steps."""
    error = (values.unsqueeze(-2) - quantiles).double()
    level = levels.reshape(-1, 1)
    loss = torch.maximum(level * error, (level - 1.0) * error)
    return torch.where(torch.isnan(values).unsqueeze(-2), torch.zeros_like(loss), loss).sum([-1, -2])


class Forecaster(torch.nn.Module):
    """(past_target (B, any), past_observed (B, any), levels (A), time_features (B, any + H, F) or None, draws (B, S, H, 2) or None, external (B, J + 1, E, 10, H) or
    None: the quantiles 0.1, …, 0.9 and the mean by other programs of the coming window and of those before it, NaN where not known) -> quantiles (B, A, H), means (B, H), samples (B, S, H) or None, in units of the data. Longer pasts are cut, shorter ones padded in front. A model
    that forecasts by sampling needs draws."""

    log_weights: Tensor
    log_spread: Tensor
    moves: Tensor

    def __init__(self, network: Network, start: Network | None, networks: Sequence[Network], mixture: Mapping[str, Any] | None, past_length: int, trained: Sequence[Tensor] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.network = network
        self.start = start
        self.networks = torch.nn.ModuleList(networks)
        self.reach = max(one.past_length * one.every for one in (network, *networks))  # of all networks
        self.past_length = past_length
        self.members: list[tuple[str, int, int]] = [] if mixture is None else [(m["method"], m["season"], m["seasons"]) for m in mixture["members"]]
        self.external: list[str] = [] if mixture is None else mixture["external"]
        self.skips_outliers = mixture is not None and bool(mixture["skips_outliers"])
        self.widens_tails = mixture is not None and bool(mixture["widens_tails"])
        self.windows = 0 if mixture is None else int(mixture["windows"])
        self.stride = 1 if mixture is None else int(mixture["stride"])
        self.covariates = 0 if mixture is None else int(mixture["covariates"])  # that candidates read: the last time features before the age
        self.from_samples = network.from_samples
        self.at_a_time = 1  # of the past windows; more take more memory
        # What was trained of the mixture: of each candidate what is added to the logarithm of its weight, at the middle step and per half
        # horizon further, the logarithm of a factor of the spread, and of each candidate by how many quarters of its distance forecasts are moved.
        candidates = 1 + len(self.members) + len(self.networks) + len(self.external)
        if trained is None:
            trained = torch.zeros((2, candidates)), torch.zeros(1), torch.zeros(candidates)
        for name, found in zip(("log_weights", "log_spread", "moves"), trained):
            self.register_buffer(name, found)

    def forward(self, past_target: Tensor, past_observed: Tensor, levels: Tensor, time_features: Tensor | None, draws: Tensor | None, external: Tensor | None = None) -> Forecast:
        network, length, horizon = self.network, self.past_length, self.network.prediction_length
        given = past_target.size(1)
        observed = torch.where(torch.isnan(past_target), torch.zeros_like(past_target), past_observed.to(past_target.dtype))
        past = torch.where(observed.eq(0.0), torch.zeros_like(past_target), past_target) * observed
        features = past.new_zeros((past.size(0), given + horizon, 0)) if time_features is None else time_features.to(past.dtype)
        if not network.reads_time_features:
            features = features[:, :, :0]
        if given > length:
            past, observed, features = past[:, given - length :], observed[:, given - length :], features[:, given - length :]
        elif given < length:
            past = torch.nn.functional.pad(past, (length - given, 0))
            observed = torch.nn.functional.pad(observed, (length - given, 0))
            features = torch.nn.functional.pad(features, (0, 0, length - given, 0))
        asked = levels.double()
        if not self.members and not self.networks and not self.external:
            found: Forecast = network(past, observed, features, Levels(asked), draws)
            return found
        return self._mixed(past, observed, features, asked, draws, None if external is None else external.to(past.dtype))

    @staticmethod
    def _run(network: Any, past: Tensor, observed: Tensor, features: Tensor, levels: Levels, draws: Tensor | None) -> Forecast:
        """Of the end of a past."""
        length, horizon = network.past_length, network.prediction_length
        window = past[:, past.size(1) - length :], observed[:, observed.size(1) - length :], features[:, features.size(1) - length - horizon :]
        found: Forecast = network(*window, levels, draws)
        return found

    @staticmethod
    def _run_on_each(network: Any, past: Tensor, observed: Tensor, levels: Levels, horizon: int) -> _Pair:
        """Of another network, on every so many values up to the end, beginning at each."""
        rows, every, length = past.size(0), network.every, network.past_length

        def each_of(values: Tensor) -> Tensor:
            last = values[:, values.size(1) - length * every :]
            return last.reshape(rows, length, every).transpose(1, 2).reshape(rows * every, length)

        def in_turn(forecasts: Tensor) -> Tensor:  # (B * every, A, their H) -> (B, A, H)
            return forecasts.unflatten(0, (rows, every)).permute(0, 2, 3, 1).flatten(2)[:, :, :horizon]

        window = each_of(past)
        q, mean, _ = network(window, each_of(observed), window.new_zeros((rows * every, length + network.prediction_length, 0)), levels, None)
        return in_turn(q), in_turn(mean.unsqueeze(1)).squeeze(1)

    def _candidates(self, past: Tensor, observed: Tensor, features: Tensor, values: Tensor, told: Tensor, levels: Levels, draws: Tensor | None) -> _Pair:
        """(B, K, A, H) and (B, K, H)."""
        found = []
        candidates = Candidates(values, told, levels.values, self.network.prediction_length)
        for method, season, count in self.members:
            if method == "start":
                assert self.start is not None
                found.append(self._run(self.start, past, observed, features, levels, draws)[:2])
            else:
                found.append(getattr(candidates, method)(season, count))
        for network in self.networks:
            found.append(self._run_on_each(network, past, observed, levels, self.network.prediction_length))
        if not found:
            horizon = self.network.prediction_length
            return past.new_zeros((past.size(0), 0, levels.values.size(0), horizon)), past.new_zeros((past.size(0), 0, horizon))
        return torch.stack([q for q, _ in found], 1), torch.stack([m for _, m in found], 1)

    def _mixed(self, past: Tensor, observed: Tensor, features: Tensor, asked: Tensor, uniform: Tensor | None, external: Tensor | None) -> Forecast:
        horizon, length, reach = self.network.prediction_length, self.past_length, self.reach
        rows = past.size(0)
        values = torch.where(observed > 0.0, past, torch.full_like(past, math.nan))
        if self.skips_outliers:
            far = outliers(values)
            values = torch.where(far, torch.full_like(values, math.nan), values)
            past, observed = (torch.where(far, torch.zeros_like(values), part) for part in (past, observed))
        deciles = torch.arange(1, 10, device=past.device).double() / 10.0
        at_deciles = Levels(deciles)
        draws = uniform if self.from_samples else None
        # What each candidate would have forecast of the last windows: (B, J, K, A, H), the last window first.
        ends = length - self.stride * torch.arange(1, self.windows + 1, device=past.device)

        def of_windows(whole: Tensor, ends: Tensor, before: int, after: int) -> Tensor:
            """(B, J, before + after, …): the steps about each end."""
            places = ends.unsqueeze(1) + torch.arange(-before, after, device=past.device)
            return whole.index_select(1, places.flatten()).unflatten(1, (ends.size(0), before + after))

        # As long as the longest, so that they are one tensor; no candidate counts what is missing.
        padding = self.stride * (self.windows - 1)
        padded = torch.nn.functional.pad(values, (padding, 0), value=math.nan)
        age = max(0, features.size(2) - 1)
        told = features[:, :, age - self.covariates : age]
        padded_told = torch.nn.functional.pad(told, (0, 0, padding, 0))
        forecasts = []
        for some in ends.split(self.at_a_time):
            count = some.size(0)
            # Window by window, so that the variables of a series stay side by side.
            windows = [
                of_windows(whole, some, reach, further).transpose(0, 1).flatten(0, 1) for whole, further in ((past, 0), (observed, 0), (features, horizon))
            ]
            drawn = None if draws is None else draws.repeat(count, 1, 1, 1)
            q, _, _ = self._run(self.network, *windows, at_deciles, drawn)
            before = of_windows(padded, some + padding, length - self.stride, 0).transpose(0, 1).flatten(0, 1)
            beside = of_windows(padded_told, some + padding, length - self.stride, horizon).transpose(0, 1).flatten(0, 1)
            candidates, _ = self._candidates(*windows, before, beside.transpose(1, 2), at_deciles, drawn)
            both = torch.cat([q.unsqueeze(1), candidates], 1)
            forecasts.append(both.unflatten(0, (count, rows)).transpose(0, 1))
        places = torch.arange(length, device=past.device).expand_as(values)
        begins = torch.where(torch.isnan(values), torch.full_like(places, length), places).min(1, keepdim=True)[0]
        counts = begins < ends - max([horizon] + [season for _, season, _ in self.members])
        truth = of_windows(values, ends, 0, horizon)
        truth = torch.where(counts.unsqueeze(2), truth, torch.full_like(truth, math.nan))
        history = torch.cat(forecasts, 1)
        counting = (~torch.isnan(truth)).any(2)
        takes_part = None  # of other programs, those that have the coming window and all that count
        if external is not None:
            known = (~torch.isnan(external)).flatten(3).all(3)
            external = torch.where(torch.isnan(external), torch.zeros_like(external), external)
            history = torch.cat([history, external[:, 1:, :, :9]], 2)
            takes_part = known[:, 0] & (known[:, 1:] | ~counting.unsqueeze(2)).all(1)
            takes_part = torch.cat([torch.ones_like(history[:, 0, known.size(2) :, 0, 0]).gt(0.0), takes_part], 1)
        ages = torch.exp(-torch.arange(1, self.windows + 1, device=past.device).double() / 14.0)
        losses = (ages.unsqueeze(1) * quantile_loss(history, truth.unsqueeze(2), deciles)).sum(1)
        if takes_part is not None:
            losses = torch.where(takes_part, losses, torch.zeros_like(losses))
        number = 9.0 * (ages * (~torch.isnan(truth)).sum(2)).sum(1, keepdim=True)
        most = (losses.min(1, keepdim=True)[0] / number.clamp(min=1e-30)).unsqueeze(2)
        losses = losses + 1e-9 * losses.max(1, keepdim=True)[0]
        counted = counting.sum(1, keepdim=True).double()
        losses = torch.where(losses > 0.0, losses, torch.ones_like(losses))  # all are 0 then, and weigh the same
        evidence = -counted.clamp(max=8.0) * torch.log(losses)
        twice = [1.0] + [0.0] * len(self.members) + [1.0] * len(self.networks) + [0.0] * len(self.external)
        evidence = evidence + math.log(2.0) * torch.tensor(twice, dtype=evidence.dtype, device=evidence.device)
        if takes_part is not None:
            evidence = torch.where(takes_part, evidence, torch.full_like(evidence, -math.inf))
        steps = torch.arange(horizon, device=past.device).double()
        tilt = self.log_weights.double()
        tilt = tilt[0].unsqueeze(1) + tilt[1].unsqueeze(1) * ((2.0 * steps - (horizon - 1)) / max(1, horizon - 1))
        weights = torch.softmax(evidence.unsqueeze(2) + tilt, 1).to(past.dtype)  # (B, K, H)
        mixed = (history * weights.unsqueeze(1).unsqueeze(3)).sum(2)
        middle = mixed[:, :, 4:5]
        spreads = torch.tensor(_SPREADS, dtype=past.dtype, device=past.device)

        def log_best_spread(quantiles: Tensor, levels: Tensor) -> Tensor:
            """(B, 1): of the spreads about the medians, the one that would have done best."""
            wide = middle.unsqueeze(1) + spreads.reshape(-1, 1, 1, 1) * (quantiles - middle).unsqueeze(1)
            by_spread = (ages * quantile_loss(wide, truth.unsqueeze(1), levels)).sum(2)
            return torch.log(spreads.double().index_select(0, by_spread.argmin(1)).unsqueeze(1))

        share = counted / (counted + 3.0)
        log_spread = share * log_best_spread(mixed, deciles)
        log_outer = torch.zeros_like(log_spread)  # further at the levels 0.05 and 0.95
        if self.widens_tails:
            ends = torch.tensor([0.05, 0.95], dtype=torch.float64, device=past.device)
            tails = middle + torch.exp(log_spread).to(past.dtype).reshape(-1, 1, 1, 1) * (between_deciles(mixed, ends) - middle)
            log_outer = (share * log_best_spread(tails, ends) + (1.0 - share) * math.log(1.2)).clamp(min=0.0)
        # The forecast. Sample i of S at a step is the mixture's quantile at its rank there among the network's samples.
        asked = torch.cat([asked, torch.full_like(deciles[:1], 0.5)])
        count_asked = asked.size(0)
        window = past[:, length - reach :], observed[:, length - reach :], features[:, features.size(1) - reach - horizon :]
        levels = Levels(asked)
        q, mean, samples = self._run(self.network, *window, levels, uniform)
        order = None
        if samples is not None:
            ordered, order = torch.sort(samples, 1)
            count = samples.size(1)
            q = torch.cat([q, ordered], 1)
            asked = torch.cat([asked, (torch.arange(count, device=past.device).double() + 0.5) / max(1, count)])
            levels = Levels(asked)
        candidates, means = self._candidates(*window, values, told.transpose(1, 2), levels, draws)
        if external is not None:
            candidates = torch.cat([candidates, between_deciles(external[:, 0, :, :9], asked)], 1)
            means = torch.cat([means, external[:, 0, :, 9]], 1)
        both = torch.cat([q.unsqueeze(1), candidates], 1)
        mixed = (both * weights.unsqueeze(2)).sum(1)
        middle = mixed[:, count_asked - 1 : count_asked]
        apart = torch.minimum(torch.maximum(0.25 * (both[:, :, count_asked - 1].double() - middle), -most), most)
        move = (apart * self.moves.double().unsqueeze(1)).sum(1, keepdim=True).to(past.dtype)
        log_spread = log_spread + self.log_spread.double()
        far = ((logit(asked).abs() - math.log(3.0)) / (math.log(19.0) - math.log(3.0))).clamp(0.0, 1.0)  # from level 0.75 to 0.95
        spread = torch.exp(log_spread + log_outer * far).unsqueeze(2).to(past.dtype)
        mixed = middle + spread * (mixed - middle)
        mean = (torch.cat([mean.unsqueeze(1), means], 1) * weights).sum(1)
        mean = middle.squeeze(1) + torch.exp(log_spread).to(past.dtype) * (mean - middle.squeeze(1))
        mixed, mean = mixed + move, mean + move.squeeze(1)
        low, high = self.network.lower_bound, self.network.upper_bound
        # Of few samples all may lie on one side of the median: in order again, since outer ones are moved further.
        drawn = None if order is None else torch.sort(mixed[:, count_asked:], 1)[0].gather(1, torch.sort(order, 1)[1]).clamp(low, high)
        return mixed[:, : count_asked - 1].clamp(low, high), mean.clamp(low, high), drawn
