"""A predictor for GluonTS. Needs the package gluonts."""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterator

import numpy as np
import pandas as pd

from .errors import DataError, no_package
from .frames import Series
from .model import DEFAULT_QUANTILES, Model

try:
    from gluonts.model.forecast import QuantileForecast, SampleForecast
    from gluonts.model.predictor import Predictor
except ImportError as error:  # pragma: no cover
    raise no_package("gluonts", "predictors for it need") from error

_ENTRIES_AT_ONCE = 256


class TsdpPredictor(Predictor):
    """Forecasts entries of a GluonTS data set: quantiles, or sample paths where the model forecasts by sampling or `samples` are asked for."""

    def __init__(self, model: Model, samples: int | None = None) -> None:
        super().__init__(prediction_length=model.prediction_length, lead_time=0)
        self.model = model
        self.samples = samples

    def predict(self, dataset: Any, num_samples: int | None = None, **kwargs: Any) -> Iterator[Any]:
        """A forecast an entry, in order. `num_samples` counts where paths are drawn."""
        by_paths = self.samples is not None or self.model.forecasts_by_sampling
        paths = (self.samples or num_samples) if by_paths else None
        entries = iter(dataset)
        while batch := list(islice(entries, _ENTRIES_AT_ONCE)):
            for entry in batch:
                self._check_start(entry)
            series = [Series(entry.get("item_id"), _moment(entry["start"]), np.asarray(entry["target"], dtype="float64")) for entry in batch]
            found = self.model._forecast(series, DEFAULT_QUANTILES, paths, None)
            for entry, (one, quantiles, mean, drawn) in zip(batch, found):
                first = entry["start"] + len(one.values)
                if by_paths:
                    yield SampleForecast(samples=drawn, start_date=first, item_id=one.item_id)
                else:
                    yield QuantileForecast(
                        forecast_arrays=np.vstack([quantiles, mean]),
                        forecast_keys=[repr(level) for level in DEFAULT_QUANTILES] + ["mean"],
                        start_date=first,
                        item_id=one.item_id,
                    )

    def _check_start(self, entry: Any) -> None:
        start, frequency = entry["start"], self.model.frequency
        what = f"entry '{entry.get('item_id')}'"
        if not isinstance(start, pd.Period):
            raise DataError(f"{what}: found a start of type {type(start).__name__}; expected a pandas.Period, as GluonTS' PandasDataset and ListDataset make")
        if (start + 1).to_timestamp() != frequency.steps_from(start.to_timestamp(), 2)[1]:
            raise DataError(f"{what}: found steps of {start.freqstr}; expected {frequency}, the frequency of this model")


def _moment(start: pd.Period) -> pd.Timestamp:
    return start.to_timestamp()
