"""The four forecasters in plain PyTorch, as the programs' exported modules compute them.

B: windows; P: past values that a network reads; H: steps to forecast; A: levels; S: sample paths; F: time features of a step. Only operations that
every export format knows are used, in double precision where the programs have it.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Forecast = tuple[Tensor, Tensor, Tensor | None]
Weights = Mapping[str, Tensor]
Shapes = dict[str, tuple[int, ...]]

_HEADS = 4  # of attention
_LARGEST_INPUT = 10.0
_LEAST_SHARE_OF_MEAN_SCALE = 1e-3
_LEAST_MEAN_SCALE = 1e-10
_ON_LINE, _WEIGHTS_ON_LINE = np.polynomial.legendre.leggauss(24)
_NODES, _NODE_WEIGHTS = (0.25 * (1.0 + _ON_LINE) ** 2).tolist(), (0.5 * _WEIGHTS_ON_LINE).tolist()  # v² of ∫_0^1 dv
_ORDER = list(range(48))
_TERMS = [math.prod((k - 0.5) / k for k in range(1, n + 1)) for n in _ORDER]  # of the power series


def normal_quantile(level: Tensor) -> Tensor:
    """Of levels in (0, ½]: -y of Acklam's (2003) rational approximation; relative error below 1.2e-9."""

    def ratio(x: Tensor, over: list[float], under: list[float]) -> Tensor:
        top, bottom = torch.full_like(x, over[0]), torch.full_like(x, under[0])
        for a in over[1:]:
            top = top * x + a
        for b in under[1:]:
            bottom = bottom * x + b
        return top / bottom

    central = level - 0.5
    middle = ratio(
        central * central,
        [-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02, 1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00],
        [-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02, 6.680131188771972e01, -1.328068155288572e01, 1.0],
    )
    tail = ratio(
        torch.sqrt(-2.0 * torch.log(level)),
        [-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00, -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00],
        [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0],
    )
    return torch.where(level < 0.02425, tail, central * middle)


def log_gamma_half_step(x: Tensor) -> Tensor:
    """log Γ(x + ½) − log Γ(x) for x ≥ 1, in double precision: by the asymptotic series at x + 8, and Γ's recurrence."""
    steps = torch.arange(8, dtype=x.dtype, device=x.device)
    shift = torch.log((x.unsqueeze(-1) + steps) / (x.unsqueeze(-1) + steps + 0.5)).sum(-1)
    r = 1.0 / (x + 8.0)
    r2 = r * r
    series = 0.125 - r2 * (1.0 / 192 - r2 * (1.0 / 640 - r2 * (17.0 / 14336 - r2 * (31.0 / 18432 - r2 * 691.0 / 180224))))
    return 0.5 * torch.log(x + 8.0) - r * series + shift


def student_t_quantile(df: Tensor, level: Tensor) -> Tensor:
    """Quantiles of Student's t with df > 2 degrees of freedom (larger than 1e6 are taken as that), in double precision; they broadcast.

    Hill's (1970) approximation, then Newton's steps on the distribution function: for t² ≤ ν by Gauss–Legendre quadrature of
    F(t) − ½ = c t ∫_0^1 (1 + t² v²/ν)^{−(ν+1)/2} dv, further out by the power series of the incomplete beta function (DLMF 8.17.7).
    """
    df, level = torch.broadcast_tensors(df.clamp(max=1e6), level)
    tail = torch.minimum(level, 1.0 - level)
    two = 2.0 * tail
    a = 1.0 / (df - 0.5)
    b = 48.0 / (a * a)
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * torch.sqrt(a * (0.5 * math.pi)) * df
    y = torch.pow(d * two, 2.0 / df)
    normal = normal_quantile(tail)
    c_near = torch.where(df < 5.0, c + 0.3 * (df - 4.5) * (normal + 0.6), c)
    c_near = (((0.05 * d * normal - 5.0) * normal - 7.0) * normal - 2.0) * normal + b + c_near
    n2 = normal * normal
    near = (((((0.4 * n2 + 6.3) * n2 + 36.0) * n2 + 94.5) / c_near - n2 - 3.0) / b + 1.0) * normal
    near = torch.exp(a * near * near) - 1.0
    far = ((1.0 / (((df + 6.0) / (df * y) - 0.089 * d - 0.822) * (df + 2.0) * 3.0) + 0.5 / (df + 4.0)) * y - 1.0) * (df + 1.0) / (df + 2.0) + 1.0 / y
    t = torch.sqrt((df * torch.where(y > 0.05 + a, near, far)).clamp(min=0.0))
    half = 0.5 * df
    log_front = log_gamma_half_step(half) - 0.5 * math.log(math.pi)
    log_density_front = log_front - 0.5 * torch.log(df)
    nodes, weights, order, terms = (torch.tensor(part, dtype=df.dtype, device=df.device) for part in (_NODES, _NODE_WEIGHTS, _ORDER, _TERMS))
    of_half = half.unsqueeze(-1) / (half.unsqueeze(-1) + order) * terms
    for _ in range(4):
        share = t * t / df
        integral = (torch.exp((-0.5 * (df + 1.0)).unsqueeze(-1) * torch.log1p(share.unsqueeze(-1) * nodes)) * weights).sum(-1)
        value = torch.exp(log_density_front) * t * integral - (0.5 - tail)
        log_x = torch.log((1.0 / (1.0 + share)).clamp(max=0.5))
        total = (of_half * torch.exp(log_x.unsqueeze(-1) * order)).sum(-1)
        value = torch.where(share > 1.0, tail - 0.5 * torch.exp(log_front + half * log_x) * total / half, value)
        t = (t - value / torch.exp(log_density_front - 0.5 * (df + 1.0) * torch.log1p(share))).clamp(min=0.0)
    return torch.where(level < 0.5, -t, t)


class Levels:
    """Levels (A) of quantiles, with what all networks of a forecast share: log |t| of Student's t at 20 Chebyshev nodes of 1/ν in (0, ½), (20, A)."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.angles = (torch.arange(20, dtype=torch.float64, device=values.device) + 0.5) * (math.pi / 20)

    @functools.cached_property
    def log_t(self) -> Tensor:
        df = 4.0 / (1.0 + torch.cos(self.angles))
        return torch.log(student_t_quantile(df.unsqueeze(1), self.values).abs().clamp(min=1e-30))


def student_t_quantiles(df: Tensor, levels: Levels) -> Tensor:
    """(B, H) and (A) -> (B, A, H): log |t| is a smooth function of 1/ν, so it is interpolated by the polynomial through its values at the nodes
    (barycentric formula)."""
    angles, known = levels.angles, levels.log_t
    nodes = torch.cos(angles)
    gaps = (4.0 / df.double().clamp(2.0, 1e6) - 1.0).unsqueeze(2) - nodes
    gaps = torch.where(gaps.eq(0.0), torch.full_like(gaps, 1e-30), gaps)
    signs = torch.tensor([1.0, -1.0] * 10, dtype=torch.float64, device=df.device)
    shares = torch.sin(angles) * signs / gaps
    t = torch.exp(shares.matmul(known) / shares.sum(2, keepdim=True))
    return (torch.sign(levels.values - 0.5) * t).transpose(1, 2)


def student_t_draw(df: Tensor, uniform: Tensor) -> Tensor:
    """Student-t draws from two uniforms in (0, 1] each, by Bailey's polar method."""
    power = -2.0 * torch.log(uniform[..., 0]) / df
    if torch.compiler.is_exporting():
        power = power.double()  # ONNX has exp(x) − 1 for expm1(x), which loses digits where df is large.
    return torch.sqrt(df * torch.expm1(power).to(df.dtype)) * torch.cos(2.0 * math.pi * uniform[..., 1])


def order_statistics(samples: Tensor, levels: Tensor) -> Tensor:
    """Of samples (B, S, H) those next to the levels (A): (B, A, H)."""
    places = torch.round((samples.size(1) - 1) * levels.double()).long()
    return torch.sort(samples, 1)[0].index_select(1, places)


def mean_scale(target: Tensor, observed: Tensor, default_scale: float) -> Tensor:
    """Mean size of the observed values, (B, 1)."""
    count = observed.sum(1, keepdim=True)
    mean = (target * observed).abs().sum(1, keepdim=True) / count.clamp(min=1.0)
    return torch.where(count.eq(0.0), torch.full_like(mean, default_scale), mean).clamp(min=_LEAST_MEAN_SCALE)


def context_mean(past: Tensor, observed: Tensor, context: int) -> Tensor:
    seen = observed[:, past.size(1) - context :]
    return (past[:, past.size(1) - context :] * seen).sum(1, keepdim=True) / seen.sum(1, keepdim=True).clamp(min=1.0)


def repeated(rows: Tensor, times: int) -> Tensor:
    """Each row `times` times, one after the other."""
    return rows.unsqueeze(1).expand(-1, times, *rows.shape[1:]).flatten(0, 1)


class Network(torch.nn.Module):
    """A forecaster of pasts of the length that it reads: (past_target (B, P), past_observed (B, P), features (B, P + H, F), levels (A), uniform
    (B, S, H, 2) or None) -> quantiles (B, A, H), means (B, H), samples (B, S, H) or None."""

    head = "args_proj.proj"
    samples_paths = False
    reads_time_features = False
    joins_variables = False  # whether it may forecast the variables of a series together

    def __init__(self, sizes: Mapping[str, Any], weights: Weights) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.covariates = covariates_of(sizes)  # that the head is told of
        self.variables = int(sizes.get("variables", 1))  # of a series, that are forecast together: rows that are side by side
        self.reads_time_features = type(self).reads_time_features or self.covariates > 0
        self.context_length = int(sizes["context_length"])
        self.prediction_length = int(sizes["prediction_length"])
        self.every = int(sizes.get("every", 1))  # how many steps of the series one of its own takes, beside another network
        self.lags = list(sizes["lags"])
        self.default_scale = float(sizes["default_scale"])
        self.prior = str(sizes["prior"])
        self.season = int(sizes["season"])
        self.imputes = bool(sizes["imputes"]) and self.prior == "none"
        self.lower_bound, self.upper_bound = float(sizes["lower_bound"]), float(sizes["upper_bound"])
        self.from_samples = self.samples_paths or bool(sizes["sampled_forecasts"])
        for name, weight in weights.items():
            self.register_buffer(name.replace(".", "_"), weight)

    @classmethod
    def shapes(cls, sizes: Mapping[str, Any], width_of: Callable[[str, int], int]) -> Shapes:
        """Shapes of all weights; `width_of(name, axis)` is an extent of one of them, from which those follow that no size tells."""
        raise NotImplementedError

    @property
    def past_length(self) -> int:
        return self.context_length

    @property
    def longest_season(self) -> int:
        """Of a prior."""
        return self.context_length

    def weight(self, name: str) -> Tensor:
        found = getattr(self, name.replace(".", "_"))
        assert isinstance(found, Tensor)
        return found

    def linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

    def student_t(self, steps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """df, location and scale of what the head makes of (…, D)."""
        weight, bias = (torch.cat([self.weight(f"{self.head}.{i}.{part}") for i in range(3)]) for part in ("weight", "bias"))
        df, loc, scale = F.linear(steps, weight, bias).unbind(-1)
        return 2.0 + F.softplus(df), loc, F.softplus(scale).clamp(min=torch.finfo(scale.dtype).eps)

    def filled_past(self, past: Tensor, observed: Tensor, mean_scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With a prior: the past with its mean for what is missing, that mean, and the window's scale; the last two of the context."""
        mean = context_mean(past, observed, self.context_length)
        values = torch.where(observed > 0.0, past, mean)
        recent = values[:, past.size(1) - self.context_length :]
        if self.prior == "last_value" and self.context_length > 1:
            spread = (recent[:, 1:] - recent[:, :-1]).abs().mean(1, keepdim=True)
        else:
            spread = (recent - mean).abs().mean(1, keepdim=True)
        return values, mean, torch.maximum(spread, mean_scale * _LEAST_SHARE_OF_MEAN_SCALE).clamp(min=_LEAST_MEAN_SCALE)

    def frame(self, past: Tensor, observed: Tensor, mean_scale: Tensor) -> tuple[Tensor, Tensor, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]]:
        """The window in units of its own, its scale, and what the prior makes of df, location and scale."""
        if self.prior == "none":
            return past / mean_scale, mean_scale, lambda df, loc, scale: (df, loc, scale, mean_scale)
        values, mean, own_scale = self.filled_past(past, observed, mean_scale)
        steps = torch.arange(self.prediction_length, device=past.device)
        if self.prior == "last_value":
            centre = values[:, -1:]
            naive = centre.expand(past.size(0), self.prediction_length)
            growth = torch.sqrt((steps + 1).to(past.dtype))
        else:
            centre = mean
            naive = values.index_select(1, torch.remainder(steps, self.season) + (past.size(1) - self.season))
            growth = torch.ones(self.prediction_length, dtype=past.dtype, device=past.device)
        scaled = ((values - centre) / own_scale).clamp(-_LARGEST_INPUT, _LARGEST_INPUT)
        return scaled, own_scale, lambda df, loc, scale: (df, loc * growth + naive / own_scale, scale * growth, own_scale)

    def distribution(self, past: Tensor, observed: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        """df, location and scale (B, H), in units of the last result (B, 1)."""
        raise NotImplementedError

    def head_of(self, steps: Tensor, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """df, location and scale of hidden units (B, H · D); beside them stand the covariates of each step less their mean over the past, and that mean."""
        steps = steps.reshape(steps.size(0), self.prediction_length, -1)
        if self.covariates > 0:
            past, age = features.size(1) - self.prediction_length, features.size(2) - 1  # the age is 0 before a series begins
            known = features[:, :, age - self.covariates : age]
            places = features[:, :past, age:].ne(0.0).to(features.dtype).sum(1, keepdim=True)
            mean = known[:, :past].sum(1, keepdim=True) / places.clamp(min=1.0)
            ahead = known[:, past:]
            steps = torch.cat([steps, ahead - mean, mean.expand_as(ahead)], 2)
        return self.student_t(steps)

    def paths(self, past: Tensor, observed: Tensor, features: Tensor, uniform: Tensor) -> Tensor:
        """Of a model that samples paths instead: (B, S, H)."""
        raise NotImplementedError

    def forward(self, past: Tensor, observed: Tensor, features: Tensor, levels: Levels, uniform: Tensor | None) -> Forecast:
        if self.imputes:
            past = torch.where(observed > 0.0, past, context_mean(past, observed, self.context_length))
        samples = None
        if self.samples_paths:
            assert uniform is not None
            samples = self.paths(past, observed, features, uniform)
        else:
            df, loc, scale, unit = self.distribution(past, observed, features)
            if uniform is not None:
                samples = unit.unsqueeze(1) * (loc.unsqueeze(1) + scale.unsqueeze(1) * student_t_draw(df.unsqueeze(1), uniform))
        if samples is not None:
            samples = samples.clamp(self.lower_bound, self.upper_bound)
        if self.from_samples:
            assert samples is not None
            return order_statistics(samples, levels.values), samples.mean(1), samples
        t = student_t_quantiles(df, levels)
        quantiles = (unit.unsqueeze(1) * (loc.unsqueeze(1) + scale.unsqueeze(1) * t)).to(past.dtype)
        return quantiles.clamp(self.lower_bound, self.upper_bound), (unit * loc).clamp(self.lower_bound, self.upper_bound), samples


def covariates_of(sizes: Mapping[str, Any]) -> int:
    """How many the head is told of; older models, and those that read them elsewhere, have none."""
    return int(sizes.get("covariates", 0))


def _linear(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _head(name: str, width: int) -> Shapes:
    return {key: shape for i in range(3) for key, shape in _linear(f"{name}.{i}", 1, width).items()}


class SimpleFeedForward(Network):
    @classmethod
    def shapes(cls, sizes: Mapping[str, Any], width_of: Callable[[str, int], int]) -> Shapes:
        width = width_of("nn.0.weight", 0)
        return {
            **_linear("nn.0", width, sizes["context_length"]),
            **_linear("nn.2", width * sizes["prediction_length"], width),
            **_head(cls.head, width + 2 * covariates_of(sizes)),
        }

    def distribution(self, past: Tensor, observed: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        scaled, _, placed = self.frame(past, observed, past.abs().mean(1, keepdim=True).clamp(min=1e-5))
        steps = self.linear(torch.relu(self.linear(scaled, "nn.0")), "nn.2")
        return placed(*self.head_of(steps, features))


class DLinear(Network):
    @classmethod
    def shapes(cls, sizes: Mapping[str, Any], width_of: Callable[[str, int], int]) -> Shapes:
        inputs = width_of(f"{cls.head}.0.weight", 1)
        width = inputs - 2 * covariates_of(sizes)
        outputs = width * sizes["prediction_length"]
        parts = {key: shape for name in ("linear_seasonal", "linear_trend") for key, shape in _linear(name, outputs, sizes["context_length"]).items()}
        return {**parts, **_head(cls.head, inputs)}

    def distribution(self, past: Tensor, observed: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        scaled, _, placed = self.frame(past, observed, mean_scale(past, observed, self.default_scale))
        trend = F.avg_pool1d(F.pad(scaled.unsqueeze(1), (12, 12), "replicate"), 25, 1).squeeze(1)
        steps = self.linear(scaled - trend, "linear_seasonal") + self.linear(trend, "linear_trend")
        return placed(*self.head_of(steps, features))


class ITransformer(Network):
    joins_variables = True

    @classmethod
    def shapes(cls, sizes: Mapping[str, Any], width_of: Callable[[str, int], int]) -> Shapes:
        width, inputs = width_of("emebdding.weight", 0), width_of(f"{cls.head}.0.weight", 1)  # GluonTS's spelling
        step_width = inputs - 2 * covariates_of(sizes)
        out = _linear("emebdding", width, sizes["context_length"] + 2)
        for layer in ("encoder.layers.0", "encoder.layers.1"):
            up = width_of(f"{layer}.linear1.weight", 0)
            out |= {f"{layer}.self_attn.in_proj_weight": (3 * width, width), f"{layer}.self_attn.in_proj_bias": (3 * width,)}
            out |= {**_linear(f"{layer}.self_attn.out_proj", width, width), **_linear(f"{layer}.linear1", up, width), **_linear(f"{layer}.linear2", width, up)}
            out |= {f"{layer}.{norm}.{part}": (width,) for norm in ("norm1", "norm2") for part in ("weight", "bias")}
        out |= {"encoder.norm.weight": (width,), "encoder.norm.bias": (width,)}
        return {**out, **_linear("projection", step_width * sizes["prediction_length"], width), **_head(cls.head, inputs)}

    def attention(self, stacked: Tensor) -> Tensor:
        """(B, 3 D): query, key and value. The variables of a series attend to each other."""
        width = stacked.size(1) // 3
        query, key, value = stacked.unflatten(0, (-1, self.variables)).unflatten(2, (3, _HEADS, width // _HEADS)).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(width // _HEADS), -1)
        return (weights @ value).transpose(1, 2).flatten(0, 1).flatten(1)

    def distribution(self, past: Tensor, observed: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        scaled, scale, placed = self.frame(past, observed, mean_scale(past, observed, self.default_scale))
        level = torch.log(scale) if self.prior == "none" else torch.zeros_like(scale)
        x = self.linear(torch.cat([scaled, torch.zeros_like(scale), level], 1), "emebdding")
        width = x.size(1)

        def norm(of: Tensor, name: str) -> Tensor:
            return F.layer_norm(of, [width], self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))

        for layer in ("encoder.layers.0", "encoder.layers.1"):
            weight, bias = (self.weight(f"{layer}.self_attn.in_proj_{part}") for part in ("weight", "bias"))
            # Attention of one token: its value.
            value = F.linear(x, weight[2 * width :], bias[2 * width :]) if self.variables == 1 else self.attention(F.linear(x, weight, bias))
            x = norm(x + self.linear(value, f"{layer}.self_attn.out_proj"), f"{layer}.norm1")
            x = norm(x + self.linear(torch.relu(self.linear(x, f"{layer}.linear1")), f"{layer}.linear2"), f"{layer}.norm2")
        steps = self.linear(norm(x, "encoder.norm"), "projection")
        return placed(*self.head_of(steps, features))


class DeepAR(Network):
    head = "param_proj.proj"
    samples_paths = True
    reads_time_features = True

    @classmethod
    def shapes(cls, sizes: Mapping[str, Any], width_of: Callable[[str, int], int]) -> Shapes:
        width = width_of("rnn.weight_hh_l0", 1)
        inputs = len(sizes["lags"]) + 3 + sizes["time_features"]
        out: Shapes = {"embedder._embedders.0.weight": (1, 1)}
        for layer, read in enumerate((inputs, width)):
            out |= {f"rnn.weight_ih_l{layer}": (4 * width, read), f"rnn.weight_hh_l{layer}": (4 * width, width)}
            out |= {f"rnn.bias_{kind}_l{layer}": (4 * width,) for kind in ("ih", "hh")}
        return {**out, **_head(cls.head, width)}

    @property
    def past_length(self) -> int:
        return self.context_length + max(self.lags) - 1

    @property
    def longest_season(self) -> int:
        return max(self.lags)

    def cell(self, x: Tensor, state: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        out = []
        for layer, (h, c) in enumerate(state):
            gates = F.linear(x, self.weight(f"rnn.weight_ih_l{layer}"), self.weight(f"rnn.bias_ih_l{layer}"))
            gates = gates + F.linear(h, self.weight(f"rnn.weight_hh_l{layer}"), self.weight(f"rnn.bias_hh_l{layer}"))
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            x = torch.sigmoid(o) * torch.tanh(c)
            out.append((x, c))
        return out

    def paths(self, past: Tensor, observed: Tensor, features: Tensor, uniform: Tensor) -> Tensor:
        length, context, paths = past.size(1), self.context_length, uniform.size(1)
        own_scale = mean_scale(past[:, length - context :], observed[:, length - context :], self.default_scale)
        if self.prior == "none":
            scale, values, centre, level = own_scale, past / own_scale, torch.zeros_like(own_scale), torch.log(own_scale)
        else:
            filled, mean, scale = self.filled_past(past, observed, own_scale)
            centre = filled[:, length - context : length - context + 1] if self.prior == "last_value" else mean
            values, level = (filled - centre) / scale, torch.zeros_like(scale)
        known = self.weight("embedder._embedders.0.weight").expand(past.size(0), 1)
        static = torch.cat([known, torch.zeros_like(scale), level], 1)
        lags = torch.tensor(self.lags, device=past.device)

        def read(values: Tensor, place: int, static: Tensor, features: Tensor) -> Tensor:
            lagged = values.index_select(1, place - lags)
            if self.prior != "none":
                lagged = lagged.clamp(-_LARGEST_INPUT, _LARGEST_INPUT)
            return torch.cat([lagged, static, features], 1)

        none = torch.zeros_like(values[:, :1]).expand(-1, self.weight("rnn.weight_hh_l0").size(1))
        state = [(none, none), (none, none)]
        for place in range(length - context + 1, length + 1):
            state = self.cell(read(values, place, static, features[:, place]), state)
        state = [(repeated(h, paths), repeated(c, paths)) for h, c in state]
        static, values = repeated(static, paths), repeated(values, paths)
        drawn = uniform.reshape(-1, self.prediction_length, 2)
        for k in range(self.prediction_length):
            if k > 0:
                state = self.cell(read(values, length + k, static, repeated(features[:, length + k], paths)), state)
            df, loc, spread = self.student_t(state[1][0])
            if self.prior != "none":
                loc = loc + values[:, values.size(1) - self.season]
            values = torch.cat([values, (loc + spread * student_t_draw(df, drawn[:, k])).unsqueeze(1)], 1)
        drawn_paths = values[:, length:].reshape(past.size(0), -1, self.prediction_length)
        return centre.unsqueeze(1) + drawn_paths * scale.unsqueeze(1)


NETWORKS: dict[str, type[Network]] = {"simple_ff": SimpleFeedForward, "dlinear": DLinear, "itransformer": ITransformer, "deepar": DeepAR}
