"""Forecasts of Darts' TimeSeries. Needs the package darts."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, overload

import numpy as np
import pandas as pd

from .errors import DataError, UsageError, no_package
from .frames import Series, series_of_table
from .model import Model

try:
    from darts import TimeSeries
    from darts.models.forecasting.forecasting_model import GlobalForecastingModel
    from darts.utils.likelihood_models.base import quantile_names
except ImportError as error:  # pragma: no cover
    raise no_package("darts", "forecasts of its series need") from error


class TsdpForecaster(GlobalForecastingModel):
    """Forecasts TimeSeries as Darts' own global models do, in `historical_forecasts` and `backtest`, too. It is trained: there is no `fit`, so these need
    `retrain=False`."""

    def __init__(self, model: Model) -> None:
        super().__init__(add_encoders=None)
        self.model = model
        self._fit_called = True  # What Darts asks before it forecasts.

    def fit(self, *args: Any, **kwargs: Any) -> "TsdpForecaster":
        """Raises UsageError: further training would cost privacy that the statement of the model does not count."""
        raise UsageError("fit: found a model that is trained already; expected predict, or retrain=False in historical_forecasts, backtest and residuals")

    @overload
    def predict(
        self,
        n: int,
        series: Sequence[TimeSeries],
        *,
        num_samples: int = ...,
        quantiles: Sequence[float] | None = ...,
        random_state: int | None = ...,
        **of_darts: Any,
    ) -> list[TimeSeries]: ...

    @overload
    def predict(
        self,
        n: int,
        series: TimeSeries,
        *,
        num_samples: int = ...,
        quantiles: Sequence[float] | None = ...,
        random_state: int | None = ...,
        **of_darts: Any,
    ) -> TimeSeries: ...

    def predict(
        self,
        n: int,
        series: TimeSeries | Sequence[TimeSeries],
        *,
        num_samples: int = 1,
        quantiles: Sequence[float] | None = None,
        random_state: int | None = None,
        **of_darts: Any,
    ) -> TimeSeries | list[TimeSeries]:
        """Forecasts of the `n` steps after the last row of each series, in units of the data.

        Each component is forecast by itself. NaN values are missing values. With `num_samples` above 1 the values have shape
        (n, components, num_samples): sample paths, the same every time with `random_state`. With 1 they are medians, of shape
        (n, components, 1). With `quantiles` they are these, as components `load_q0.100` and so on, which Darts' metrics know;
        `historical_forecasts` takes them in `predict_kwargs`. Of Darts' further arguments, `verbose` and `show_warnings` change nothing.

        Returns a TimeSeries for a TimeSeries and a list for a list, in order. Raises UsageError for arguments that do not
        fit, as an `n` above `model.prediction_length`, and DataError for series that do not.
        """
        _require_no_more(of_darts)
        steps = self.model._steps(n)
        if num_samples < 1:
            raise UsageError(f"num_samples: found {num_samples}; expected at least 1")
        if quantiles is not None and num_samples > 1:
            raise UsageError(f"quantiles: found them beside num_samples {num_samples}; expected one of the two")
        several = [series] if isinstance(series, TimeSeries) else list(series)
        columns = [self._columns(one) for one in several]
        paths = num_samples if num_samples > 1 else None
        levels = [0.5] if quantiles is None else [float(level) for level in quantiles]
        found = self.model._forecast([column for of_one in columns for column in of_one], levels, paths, random_state)
        out = []
        for one, of_one in zip(several, columns):
            # Of each component: an array (values a step, steps).
            parts = [drawn if paths else of_levels for _, (_, of_levels, _, drawn) in zip(of_one, found)]
            values = np.stack(parts)[:, :, :steps].transpose(2, 0, 1)
            out.append(_forecast_of(one, values, None if quantiles is None else levels))
        return out[0] if isinstance(series, TimeSeries) else out

    @property
    def supports_multivariate(self) -> bool:
        """Components are forecast one by one."""
        return True

    @property
    def supports_probabilistic_prediction(self) -> bool:
        """`num_samples` may be above 1."""
        return True

    @property
    def supports_optimized_historical_forecasts(self) -> bool:
        """Darts calls `predict` for each time."""
        return False

    @property
    def output_chunk_length(self) -> int:
        """The steps that the model forecasts."""
        return self.model.prediction_length

    @property
    def extreme_lags(self) -> tuple[int | None, int | None, int | None, int | None, int | None, int | None, int]:
        """The first and the last step of a series that Darts must give for a forecast: one value of the past is enough."""
        return (-1, self.model.prediction_length - 1, None, None, None, None, 0)

    @property
    def min_train_samples(self) -> int:
        """None of them are trained on; Darts expects at least one."""
        return 1

    @property
    def _target_window_lengths(self) -> tuple[int, int]:
        return 1, self.model.prediction_length

    @property
    def _model_encoder_settings(self) -> tuple[int | None, int | None, bool, bool, list[int] | None, list[int] | None]:
        return 1, self.model.prediction_length, False, False, None, None

    def _columns(self, series: Any) -> list[Series]:
        if not isinstance(series, TimeSeries):
            raise DataError(f"found a {type(series).__name__}; expected a TimeSeries of Darts, or a list of them")
        what = f"series '{', '.join(map(str, series.components))}'"
        if series.n_samples > 1:
            raise DataError(f"{what}: found {series.n_samples} samples; expected one value a step and component")
        if not isinstance(series.time_index, pd.DatetimeIndex):
            raise DataError(f"{what}: found steps without times; expected moments, {self.model.frequency} apart")
        times = series.time_index.append(pd.DatetimeIndex([series.end_time() + series.freq]))
        month_day = self.model.frequency.month_day_of(times)
        if (times != self.model.frequency.steps_from(times[0], len(times), month_day)).any():
            raise DataError(f"{what}: found steps of {series.freq_str}; expected {self.model.frequency}, the frequency of this model")
        table = series.values(copy=False).astype("float64")
        return series_of_table(series.components, series.start_time(), table, self.model.frequency, None, month_day)


def _require_no_more(of_darts: Mapping[str, Any]) -> None:
    """Raises UsageError for an argument of Darts that a forecast would depend on."""
    for name, value in of_darts.items():
        if name not in ("verbose", "show_warnings") and value is not None and value is not False:
            raise UsageError(f"found the argument {name}; expected none but num_samples, quantiles and random_state (covariates: model.with_covariates(frame).to_darts())")


def _forecast_of(series: TimeSeries, values: np.ndarray, levels: list[float] | None) -> TimeSeries:
    """`values` (steps, components, samples or levels) as the continuation of `series`."""
    times = pd.date_range(series.end_time() + series.freq, periods=len(values), freq=series.freq)
    values = values.astype(series.dtype)
    if levels is None:
        return TimeSeries.from_times_and_values(
            times, values, freq=series.freq, columns=series.components, static_covariates=series.static_covariates, hierarchy=series.hierarchy
        )
    names = [name for component in series.components for name in quantile_names(levels, component)]
    return TimeSeries.from_times_and_values(times, values.reshape(len(values), -1, 1), freq=series.freq, columns=names)
