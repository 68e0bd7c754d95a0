"""Builds the forecaster of a `model.pt` from its data, in plain PyTorch. Everything that it says of itself is checked first."""

from __future__ import annotations

import math
import sys
from typing import Any, NoReturn

import torch

from .archive import Archive
from .errors import DataError
from .mixture import Candidates, Forecaster
from .networks import NETWORKS, Network

_NETWORK = "network."  # before the number and the weights' names of each other network, with a point
_MIXTURE = ("mixture.log_weights", "mixture.log_spread", "mixture.moves")  # what was trained of the mixture
_START = "start."  # before the names of the weights that training began with, where they are a candidate
_LARGEST_LENGTH = 1_000_000
_MOST_VARIABLES = 100
_PRIORS = ("none", "last_value", "seasonal_naive")
_EXTRA_SEASONS = {"seasonal_regression": 6}


class _Sizes:
    """What a model is built from, or a part of it; `read` are the checked values."""

    def __init__(self, found: Any, path: str, prefix: str = "") -> None:
        self.found, self.path, self.prefix = found, path, prefix
        self.read: dict[str, Any] = {}
        if not isinstance(found, dict):
            self.refuse("sizes", "the sizes that the model is built from")

    def refuse(self, key: str, expected: str) -> NoReturn:
        raise DataError(f"{self.path}: model: {self.prefix}{key}: expected {expected}")

    def number(self, key: str, least: int, most: int, absent: int | None = None) -> None:
        self.read[key] = self.checked(key, self.found.get(key, absent), least, most)

    def checked(self, key: str, value: Any, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(key, f"an integer from {least} to {most}")
        return int(value)

    def real(self, key: str, absent: float | None = None) -> None:
        value = self.found.get(key)
        if value is None and absent is not None:
            self.read[key] = absent
            return
        # An integer may be larger than any number in double precision.
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
            self.refuse(key, "a number")
        self.read[key] = float(value)

    def flag(self, key: str, absent: bool | None = None) -> None:
        value = self.found.get(key, absent)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        self.read[key] = value

    def one_of(self, key: str, names: tuple[str, ...], absent: str | None = None) -> None:
        value = self.found.get(key, absent)
        if value not in names:
            self.refuse(key, f"one of {', '.join(names)}")
        self.read[key] = value

    def items(self, key: str, most: int) -> list[Any]:
        value = self.found.get(key)
        if not isinstance(value, list) or len(value) > most:
            self.refuse(key, "a list")
        return value


def _sizes(found: Any, path: str, prefix: str = "") -> _Sizes:
    sizes = _Sizes(found, path, prefix)
    sizes.number("context_length", 1, _LARGEST_LENGTH)
    sizes.number("prediction_length", 1, _LARGEST_LENGTH)
    sizes.read["lags"] = [sizes.checked("lags", lag, 1, _LARGEST_LENGTH) for lag in sizes.items("lags", 10_000)]
    sizes.number("time_features", 0, 1000)
    sizes.number("covariates", 0, max(0, sizes.read["time_features"] - 1), 0)
    sizes.number("variables", 1, _MOST_VARIABLES, 1)
    sizes.real("default_scale")
    # Models from before these were options have none of them.
    sizes.flag("imputes", False)
    sizes.real("lower_bound", -math.inf)
    sizes.real("upper_bound", math.inf)
    sizes.one_of("prior", _PRIORS, "none")
    sizes.number("season", 1, _LARGEST_LENGTH, 1)
    if not sizes.read["lower_bound"] < sizes.read["upper_bound"]:
        sizes.refuse("lower_bound", "a number below upper_bound")
    return sizes


def _mixture(sizes: _Sizes, path: str, covariates: int) -> dict[str, Any] | None:
    """Of a model that is told of at most `covariates` at every step."""
    if sizes.found.get("mixture") is None:
        return None
    mixture = _Sizes(sizes.found["mixture"], path, "mixture.")
    mixture.number("windows", 1, 1000)
    mixture.flag("skips_outliers", False)
    mixture.flag("widens_tails", False)
    mixture.flag("trained", False)
    mixture.number("stride", sizes.read["prediction_length"], _LARGEST_LENGTH)
    members = []
    for item in mixture.items("members", 100):
        member = _Sizes(item, path, "mixture.members.")
        member.one_of("method", ("start", *Candidates.METHODS))
        member.number("season", 1, _LARGEST_LENGTH)
        member.number("seasons", 1, _LARGEST_LENGTH)
        members.append(member.read)
    mixture.read["covariates"] = 0
    if any(member["method"] == "covariate_quantiles" for member in members):
        mixture.number("covariates", 1, covariates)
    names = mixture.items("external", 100) if "external" in mixture.found else []
    if not all(isinstance(name, str) for name in names):
        mixture.refuse("external", "a list of names")
    mixture.read["external"] = names
    networks = []
    for item in mixture.items("networks", 100) if "networks" in mixture.found else []:
        if isinstance(item, dict) and "every" in item and "prediction_length" not in item:  # it follows
            every = _Sizes(item, path, "mixture.networks.")
            every.number("every", 1, _LARGEST_LENGTH)
            item = item | {"prediction_length": -(-sizes.read["prediction_length"] // every.read["every"])}
        network = _sizes(item, path, "mixture.networks.")
        network.one_of("model", tuple(name for name, kind in NETWORKS.items() if not kind.reads_time_features and not kind.samples_paths))
        network.read["sampled_forecasts"] = False
        if network.read["variables"] > 1:
            network.refuse("variables", "1 beside a network's own")
        if network.read["covariates"] > 0:
            network.refuse("covariates", "none beside a network's own")
        network.number("every", 1, _LARGEST_LENGTH, 1)
        steps = -(-sizes.read["prediction_length"] // network.read["every"])
        if network.read["prediction_length"] != steps:
            network.refuse("prediction_length", f"{steps}, as of the model")
        networks.append(network.read)
    if not members and not names and not networks:
        mixture.refuse("members", "a list of candidates")
    mixture.read["members"], mixture.read["networks"] = members, networks
    return mixture.read


def _past_length(network: Network, others: list[Network], mixture: dict[str, Any] | None) -> int:
    """How many past values a forecast reads, as Mixture::past_length of the programs has it."""
    if mixture is None:
        return network.past_length
    horizon, longest = network.prediction_length, max(one.past_length * one.every for one in (network, *others))
    for member in mixture["members"]:
        seasons = member["seasons"] + _EXTRA_SEASONS.get(member["method"], 0) + -(-horizon // member["season"])
        longest = max(longest, member["season"] * seasons)
    return int(longest + mixture["windows"] * mixture["stride"])


def _bound(value: float, kind: torch.dtype, upwards: bool) -> float:
    """A bound in the precision of the weights, rounded inwards, so that nothing cut there is outside."""
    rounded = float(torch.tensor(value, dtype=kind))
    if math.isfinite(value) and (rounded < value if upwards else rounded > value):
        towards = torch.tensor(math.inf if upwards else -math.inf, dtype=kind)
        rounded = float(torch.nextafter(torch.tensor(value, dtype=kind), towards))
    return rounded


def _require_stated_networks(archive: Archive, path: str) -> None:
    """The ledger must name each network that the model holds beside its own once, and no other."""
    mixture = archive.about["sizes"].get("mixture") or {}
    held = sorted(str(one.get("name")) for one in mixture.get("networks", []))
    start = archive.privacy.get("start")
    stated = sorted(start.get("networks") or {}) if isinstance(start, dict) else []
    if held != stated:
        raise DataError(
            f"{path}: privacy.json: start.networks: found {', '.join(stated) or 'none'}; the model holds {', '.join(held) or 'none'}; expected a model "
            "as tsdp-export or tsdp-train wrote it"
        )


def forecaster_of(archive: Archive, path: str) -> Forecaster:
    """Raises DataError, beginning with `path`, for a model that this package does not know, or whose weights are not those of its sizes."""
    about = archive.about
    described = _Sizes(about, path)
    for key in ("name", "frequency"):
        if not isinstance(about.get(key), str):
            described.refuse(key, "a text")
    for key in ("past_length", "prediction_length"):
        described.number(key, 1, _LARGEST_LENGTH)
    for key in ("time_features", "covariates", "variables"):
        if not isinstance(about.get(key, []), list) or not all(isinstance(name, str) for name in about.get(key, [])):
            described.refuse(key, "a list of names")
    if not isinstance(about.get("unfinished", {}), dict):
        described.refuse("unfinished", "the step of the weights")
    name = about["name"]
    if name not in NETWORKS:
        raise DataError(
            f"{path}: found a model '{name}'; this package builds {', '.join(NETWORKS)} "
            "(trust=True runs the code in the archive instead, if you trust where it is from)"
        )
    whole_sizes = _sizes(about.get("sizes"), path)
    whole_sizes.flag("sampled_forecasts")
    sizes, kind = whole_sizes.read, NETWORKS[name]
    mixture = _mixture(whole_sizes, path, sizes["time_features"] - 1 if kind.reads_time_features else sizes["covariates"])
    stored = dict(archive.weights)
    precision = next((weight.dtype for weight in stored.values()), torch.float32)
    if sizes["variables"] > 1 and (not kind.joins_variables or len(about.get("variables", [])) != sizes["variables"]):
        raise DataError(f"{path}: model: variables: expected their names, of a model that forecasts them together")
    if kind.reads_time_features and (not sizes["lags"] or sizes["time_features"] < 1):
        raise DataError(f"{path}: model: lags, time_features: expected some of each, for {name}")

    def network(kind: type[Network], sizes: dict[str, Any], prefix: str) -> Network:
        sizes = sizes | {"lower_bound": _bound(sizes["lower_bound"], precision, True), "upper_bound": _bound(sizes["upper_bound"], precision, False)}
        if not sizes["lower_bound"] < sizes["upper_bound"]:
            raise DataError(f"{path}: model: {prefix}lower_bound: expected a number below upper_bound, in the precision of the weights, too")

        def width_of(weight: str, axis: int) -> int:
            found = stored.get(prefix + weight)
            if found is None or found.dim() <= axis or found.size(axis) < 1:
                raise DataError(f"{path}: weights '{prefix}{weight}': have another type or shape than the model of these sizes")
            return found.size(axis)

        weights = {}
        for weight, shape in kind.shapes(sizes, width_of).items():
            found = stored.pop(prefix + weight, None)
            if found is None or tuple(found.shape) != shape or found.dtype != precision:
                raise DataError(f"{path}: weights '{prefix}{weight}': have another type or shape than the model of these sizes")
            if not bool(torch.isfinite(found).all()):
                raise DataError(f"{path}: holds weights that are not finite; expected a model that trained to its end")
            weights[weight] = found
        made = kind(sizes, weights)
        if made.prior != "none" and not made.season <= made.longest_season:
            raise DataError(f"{path}: model: season: expected at most {made.longest_season}")
        return made

    has_start = mixture is not None and any(member["method"] == "start" for member in mixture["members"])
    start = network(kind, sizes, _START) if has_start else None
    whole = network(kind, sizes, "")
    others = [network(NETWORKS[one["model"]], one, f"{_NETWORK}{i}.") for i, one in enumerate(mixture["networks"] if mixture else [])]
    trained = None
    if mixture is not None and mixture["trained"]:
        forecasts = 1 + len(mixture["members"]) + len(mixture["networks"]) + len(mixture["external"])
        trained = tuple(stored.pop(name, None) for name in _MIXTURE)
        for name, found, shape in zip(_MIXTURE, trained, ((2, forecasts), (1,), (forecasts,))):
            if found is None or tuple(found.shape) != shape or found.dtype != precision or not bool(torch.isfinite(found).all()):
                raise DataError(f"{path}: weights '{name}': expected finite ones, for each forecast that is mixed")
    if stored:
        raise DataError(f"{path}: holds weights that the model has not")
    _require_stated_networks(archive, path)
    past = _past_length(whole, others, mixture)
    if past > _LARGEST_LENGTH or about["past_length"] != past or about["prediction_length"] != whole.prediction_length:
        raise DataError(f"{path}: model: past_length and prediction_length are not those of its sizes")
    return Forecaster(whole, start, others, mixture, past, trained).eval()
