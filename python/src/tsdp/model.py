"""Models as tsdp-train and tsdp-export write them."""

from __future__ import annotations

import copy
import dataclasses
import numbers
import os
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Sequence

import numpy as np
import pandas as pd
import torch

from .archive import read_archive
from .calendars import Frequency
from .covariates import Covariates
from .draws import key_of, uniforms
from .errors import DataError, UsageError, first_line
from .external import External
from .frames import Series, series_of
from .ledger import Ledger
from .rebuilt import forecaster_of

if TYPE_CHECKING:
    from .darts import TsdpForecaster
    from .gluonts import TsdpPredictor

_LEAST_LEVEL = 1e-6  # as tsdp-forecast has it

DEFAULT_QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SAMPLE_PATHS = 100
_BATCH_ROWS = 256
_BATCH_DRAWS = 50_000_000


def load(file: str | os.PathLike[str], device: str | torch.device = "cpu", *, trust: bool = False) -> "Model":
    """The model of a `model.pt`, on the CPU or another `device` of PyTorch.

    Reads weights and sizes as data and builds the forecaster in plain PyTorch: no code in the archive runs. `trust`: runs that code instead, for a
    model that this package does not know; it can do whatever you may. (`tsdp-account verify` derives the statement anew.)

    Raises DataError for a file that is not there or is no such model. Warns of a model whose run was not finished.
    """
    path = os.fspath(file)
    archive = read_archive(path)
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"device: found {device!r} ({first_line(error)}); expected cpu or cuda") from None
    module = _run_archive(path, where) if trust else forecaster_of(archive, path).to(where)
    model = Model(module, archive.about, Ledger(archive.privacy), where)
    if model.privacy.document and not model.privacy.is_finished:
        at = archive.about.get("unfinished", {})
        warnings.warn(f"{path}: its run is not finished: these are the weights after step {at.get('step', '?')} of {at.get('of', '?')}", stacklevel=2)
    return model


def _run_archive(path: str, device: str | torch.device) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*torch.jit.load.*")  # It is deprecated; its category differs between releases.
            return torch.jit.load(path, map_location=device)  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise DataError(f"{path}: its code cannot be loaded ({first_line(error)}); expected a model that tsdp-train or tsdp-export wrote") from None


def _are_numbers(found: Any) -> bool:
    """Whether it is a list of numbers."""
    try:
        return all(isinstance(one, numbers.Real) for one in found)
    except TypeError:
        return False


class Model:
    """A trained forecaster with its privacy statement."""

    def __init__(self, module: Any, about: dict[str, Any], privacy: Ledger, device: torch.device) -> None:
        self._module = module
        self._device = device
        self.about: dict[str, Any] = about
        self.privacy: Ledger = privacy
        self.name: str = about["name"]
        self.frequency: Frequency = Frequency.parse(about["frequency"])
        self.past_length: int = int(about["past_length"])
        self.prediction_length: int = int(about["prediction_length"])
        self.time_features: list[str] = list(about.get("time_features", []))
        self.covariates: list[str] = list(about.get("covariates", []))
        self.variables: list[str] = list(about.get("variables", []))  # of a series, that it forecasts together; empty: each by itself
        mixture = (about.get("sizes") or {}).get("mixture") or {}
        self.external_candidates: list[str] = list(mixture.get("external", []))
        self._record = (int(mixture.get("windows", 0)), int(mixture.get("stride", 1)))
        self._known: Covariates | None = None

    def __repr__(self) -> str:
        return f"Model({self.name}, {self.prediction_length} steps of {self.frequency}; {self.privacy.statement})"

    def with_covariates(self, frame: pd.DataFrame) -> "Model":
        """This model with what it is told of every step beside the series: the covariates `self.covariates` of `frame`, whose DatetimeIndex has every
        step from the start of the series to the end of their forecasts; or of each series, of a frame indexed by names and times, or by names. Raises DataError for frames that do not fit, UsageError for a model that
        reads none."""
        if not self.covariates:
            raise UsageError("covariates: given to a model that reads none; expected none")
        out = copy.copy(self)
        out._known = Covariates.of_frame(frame, self.covariates, self.frequency)
        return out

    @property
    def forecasts_by_sampling(self) -> bool:
        """Whether quantiles and means are those of sample paths; else those of each step's distribution."""
        return bool(self._module.from_samples)

    def predict(
        self,
        frame: pd.DataFrame | pd.Series,
        n: int | None = None,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        samples: int | None = None,
        seed: int | None = None,
        item_id: str | None = None,
        timestamp: str | None = None,
        target: str | Sequence[str] | None = None,
        candidates: Sequence[str | os.PathLike[str]] = (),
    ) -> pd.DataFrame:
        """Forecasts of the steps after the end of each series.

        `frame` is long (item_id, timestamp, target) or wide (a DatetimeIndex, a column a series); NaN and missing rows are
        missing values. Times with a zone are read as the programs do: in UTC, and in local time where a step is a day or longer;
        forecasts have the zone of the series. `n`: the first n steps of `prediction_length`. `samples`: so many paths, as columns sample_0 …; a
        model that forecasts by sampling draws 100 otherwise. `seed`: the same paths every time, those of `tsdp-forecast
        --seed`. `target`: the column of values, or those of several variables, which then are series NAME/TARGET; without it, the variables that the
        model forecasts together. `candidates`: files NAME.jsonl with forecasts of other programs, and exported models NAME.pt, that the model is mixed with
        (`external_candidates`), as for `tsdp-forecast --candidates`.

        Returns a frame with the columns item_id, timestamp, mean and one a quantile ("0.1"), a row a series and step.
        Raises DataError for frames and UsageError for arguments that do not fit.
        """
        steps = self._steps(n)
        series = series_of(frame, self.frequency, item_id, timestamp, (self.variables or None) if target is None else target)
        parts = []
        for result in self._forecast(series, quantiles, samples, seed, self._external(candidates, series)):
            one, quantile_values, mean, paths = result
            columns: dict[str, Any] = {
                "item_id": one.item_id,
                "timestamp": self._times_after(one, steps),
                "mean": mean[:steps],
            }
            for level, values in zip(quantiles, quantile_values):
                columns[repr(float(level))] = values[:steps]
            if samples is not None:
                for path, values in enumerate(paths):
                    columns[f"sample_{path}"] = values[:steps]
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def to_gluonts(self, samples: int | None = None) -> "TsdpPredictor":
        """A GluonTS predictor of sample paths, `samples` of them, or of quantiles. Raises ImportError without the package gluonts."""
        from .gluonts import TsdpPredictor

        self._require_one_variable("GluonTS")
        return TsdpPredictor(self, samples)

    def to_darts(self) -> "TsdpForecaster":
        """A model of Darts' kind, trained: `model.to_darts().predict(n, series, num_samples=100)`, and `historical_forecasts` and `backtest` with
        `retrain=False`. Raises ImportError without the package darts."""
        from .darts import TsdpForecaster

        self._require_one_variable("Darts")
        return TsdpForecaster(self)

    def _external(self, candidates: Sequence[str | os.PathLike[str]], series: Sequence[Series]) -> External:
        """What the candidates forecast of the windows at the ends of `series`, and of those by which they are judged."""
        out = External(candidates, self.external_candidates, self.prediction_length)
        windows, stride = self._record
        for name, file in out.models.items():
            model = load(file, self._device)
            if model.prediction_length != self.prediction_length or model.frequency != self.frequency or model.external_candidates:
                raise UsageError(
                    f"candidates: {file}: found a model of {model.prediction_length} steps of {model.frequency}, mixed with "
                    f"{len(model.external_candidates)} candidates of other programs; expected {self.prediction_length} of {self.frequency}, mixed with none"
                )
            if model.covariates:
                model._known = self._known if model.covariates == self.covariates else None
            made = {}
            for window in range(windows + 1):
                back = window * stride
                earlier = [dataclasses.replace(one, values=one.values[: len(one.values) - back]) for one in series if len(one.values) > back]
                for one, deciles, mean, _ in model._forecast(earlier, DEFAULT_QUANTILES, None, 0):
                    made[str(one.item_id), back] = np.vstack([deciles, mean]).astype("float32")
            out.add(name, made)
        return out

    def _steps(self, n: int | None) -> int:
        if n is not None and not (isinstance(n, numbers.Integral) and 1 <= n <= self.prediction_length):
            raise UsageError(f"n: found {n!r}; expected 1 to {self.prediction_length}, the steps that this model forecasts")
        return self.prediction_length if n is None else n

    def _times_after(self, one: Series, steps: int) -> pd.DatetimeIndex:
        return self.frequency.with_zone(one.times(self.frequency, len(one.values) + steps)[len(one.values) :], one.zone)

    def _forecast(
        self, series: Sequence[Series], quantiles: Sequence[float], samples: int | None, seed: int | None, external: External | None = None
    ) -> Iterable[tuple[Series, np.ndarray, np.ndarray, np.ndarray]]:
        """Of each series: itself, quantiles (levels, steps), mean (steps), sample paths (paths, steps)."""
        levels = [float(level) for level in quantiles] if _are_numbers(quantiles) else []
        if not levels or any(not _LEAST_LEVEL <= level <= 1.0 - _LEAST_LEVEL for level in levels) or len(set(levels)) < len(levels):
            raise UsageError(f"quantiles: found {quantiles!r}; expected a list of different numbers from {_LEAST_LEVEL} to 1 - {_LEAST_LEVEL}")
        if samples is not None and (not isinstance(samples, numbers.Integral) or samples < 1):
            raise UsageError(f"samples: found {samples!r}; expected a whole number of at least 1")
        paths = samples if samples is not None else _SAMPLE_PATHS if self.forecasts_by_sampling else 0
        rows = max(1, min(_BATCH_ROWS, _BATCH_DRAWS // max(1, 2 * paths * self.prediction_length)))
        if self.variables:
            self._require_variables(series)
            rows = max(1, rows // len(self.variables)) * len(self.variables)
        key = key_of(seed)
        asked = torch.tensor(levels, dtype=torch.float64, device=self._device)
        for begin in range(0, len(series), rows):
            batch = series[begin : begin + rows]
            past = np.zeros((len(batch), self.past_length), dtype="float32")
            observed = np.zeros_like(past)
            for row, one in enumerate(batch):
                values = one.values[-self.past_length :]
                known = ~np.isnan(values)
                past[row, self.past_length - len(values) :] = np.where(known, values, 0.0)
                observed[row, self.past_length - len(values) :] = known
            if not np.isfinite(past).all():
                raise DataError("found a value that single precision does not hold; expected values below 3e38")
            shape = (len(batch), paths, self.prediction_length, 2)
            drawn = uniforms(key, "forecast", begin, int(np.prod(shape))).reshape(shape)
            with torch.inference_mode():
                more = {"external": external.of(batch, self.frequency, *self._record).to(self._device)} if external is not None and external.names else {}
                found = self._module(
                    torch.from_numpy(past).to(self._device),
                    torch.from_numpy(observed).to(self._device),
                    asked,
                    self._features(batch),
                    torch.from_numpy(drawn).to(self._device),
                    **more,
                )
            quantile_values, mean, path_values = (part.double().cpu().numpy() for part in found)
            if not np.isfinite(quantile_values).all() or not np.isfinite(mean).all():
                raise DataError("found a forecast that is not finite; the model did not train to finite weights, or a value is too large")
            for row, one in enumerate(batch):
                yield one, quantile_values[row], mean[row], path_values[row]

    def _require_one_variable(self, package: str) -> None:
        if self.variables:
            raise UsageError(f"{package}: found a model that forecasts {', '.join(self.variables)} of each series together, for which it is not implemented; expected model.predict")

    def _require_variables(self, series: Sequence[Series]) -> None:
        """Raises UsageError unless these are all variables of one series after the other."""
        count = len(self.variables)
        for place, one in enumerate(series):
            first, name = series[place - place % count], self.variables[place % count]
            if len(series) % count or one.variable != name or one.whole != first.whole or len(one.values) != len(first.values):
                raise UsageError(
                    f"target: found series '{one.item_id}'; this model forecasts {', '.join(self.variables)} of each series together: expected a long frame "
                    "with these columns, in this order as the target"
                )

    def _features(self, batch: Sequence[Series]) -> torch.Tensor | None:
        if not self.time_features:
            return None
        if self.covariates and self._known is None:
            raise UsageError(f"covariates: not given; this model reads {', '.join(self.covariates)}: expected model.with_covariates(frame).predict(…)")
        out = np.zeros((len(batch), self.past_length + self.prediction_length, len(self.time_features)), dtype="float32")
        calendar = [name for name in self.time_features if name not in self.covariates]
        if self._known is not None:
            self._known.check_clock(batch)
        for row, one in enumerate(batch):
            length = min(len(one.values), self.past_length)
            count = len(one.values) + self.prediction_length
            features = self.frequency.features(calendar, one.start, count, one.month_day)
            if self._known is not None:
                known = self._known.rows(one, count)
                features = np.hstack([features[:, :-1], known, features[:, -1:]])  # The age comes last.
            out[row, self.past_length - length :] = features[len(one.values) - length :]
        return torch.from_numpy(out).to(self._device)
