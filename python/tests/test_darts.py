"""Forecasts of Darts' TimeSeries are those of frames. Without Darts only its absence is tested."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tsdp
from conftest import assert_close, hourly_frame


def darts_series() -> list[Any]:
    """The series of `hourly_frame`, whose missing rows and values are NaN."""
    darts = pytest.importorskip("darts")
    return [
        darts.TimeSeries.from_dataframe(rows.dropna(), "timestamp", "target", fill_missing_dates=True, freq="h").with_columns_renamed("target", name)
        for name, rows in hourly_frame().groupby("item_id", sort=False)
    ]


def test_medians_quantiles_and_paths_are_those_of_frames(run: tsdp.Run) -> None:
    model, series = run.model, darts_series()
    expected = model.predict(hourly_frame(), quantiles=[0.1, 0.5], samples=7, seed=5)
    forecaster = model.to_darts()
    paths = forecaster.predict(6, series, num_samples=7, random_state=5)
    assert isinstance(paths, list)
    for one, found in zip(series, paths):
        mine = expected[expected["item_id"] == one.components[0]]
        assert found.all_values().shape == (6, 1, 7) and found.freq == one.freq
        assert list(found.time_index) == list(mine["timestamp"])
        assert list(found.components) == list(one.components)
        assert_close(found.all_values()[:, 0], mine[[f"sample_{i}" for i in range(7)]])
    expected = model.predict(hourly_frame(), quantiles=[0.1, 0.5], seed=5)
    medians = forecaster.predict(6, series, random_state=5)
    levels = forecaster.predict(6, series, quantiles=[0.1, 0.5], random_state=5)
    for one, median, found in zip(series, medians, levels):
        mine = expected[expected["item_id"] == one.components[0]]
        assert median.is_deterministic and found.is_deterministic
        assert_close(median.values()[:, 0], mine["0.5"])
        assert_close(found.values(), mine[["0.1", "0.5"]])


def test_one_series_in_one_out_and_fewer_steps_are_the_first_ones(run: tsdp.Run) -> None:
    series = darts_series()[0]
    forecaster = run.model.to_darts()
    whole = forecaster.predict(6, series, num_samples=9, random_state=1)
    part = forecaster.predict(n=2, series=series, num_samples=9, random_state=1)
    assert part == whole[:2]
    assert series.append(part.mean(axis=2)).end_time() == series.end_time() + 2 * series.freq
    assert forecaster.predict(2, []) == []
    for n in (0, 7):
        with pytest.raises(tsdp.UsageError, match=f"found {n}; expected 1 to 6"):
            forecaster.predict(n, series)


def test_components_are_forecast_by_themselves(run: tsdp.Run) -> None:
    darts = pytest.importorskip("darts")
    wide = hourly_frame().pivot(index="timestamp", columns="item_id", values="target")
    wide = wide.reindex(pd.date_range(wide.index[0], wide.index[-1], freq="h"))
    about = pd.DataFrame({"zone": range(5)})
    series = darts.TimeSeries.from_dataframe(wide, static_covariates=about).astype("float32")
    expected = run.model.predict(wide, quantiles=[0.5, 0.9], samples=3, seed=2)
    found = run.model.to_darts().predict(6, series, num_samples=3, random_state=2)
    assert found.all_values().shape == (6, 5, 3) and found.dtype == np.float32
    assert found.static_covariates.equals(series.static_covariates)
    for place, name in enumerate(series.components):
        mine = expected[expected["item_id"] == name]
        assert_close(found.all_values()[:, place], mine[[f"sample_{i}" for i in range(3)]])
    levels = run.model.to_darts().predict(6, series[["meter 0", "meter 1"]], quantiles=[0.5, 0.9])
    # (As many digits as this release of Darts writes.)
    assert [name.rstrip("0") for name in levels.components] == ["meter 0_q0.5", "meter 0_q0.9", "meter 1_q0.5", "meter 1_q0.9"]


def test_forecasts_begin_after_the_last_row(run: tsdp.Run) -> None:
    series = darts_series()[0]
    values = series.all_values()
    values[-2:] = np.nan
    found = run.model.to_darts().predict(1, series.with_values(values))
    assert found.start_time() == series.end_time() + series.freq


def test_metrics_of_darts_read_the_forecasts(run: tsdp.Run) -> None:
    metrics = pytest.importorskip("darts.metrics")
    series = [one[:200] for one in darts_series()[:2]]
    past, truth = [one[:-6] for one in series], [one[-6:] for one in series]
    forecaster = run.model.to_darts()
    assert np.isfinite(metrics.mae(truth, forecaster.predict(6, past))).all()
    of_levels = metrics.mql(truth, forecaster.predict(6, past, quantiles=[0.1, 0.5]), q=[0.1, 0.5])
    of_paths = metrics.mql(truth, forecaster.predict(6, past, num_samples=3000, random_state=1), q=[0.1, 0.5])
    assert np.shape(of_levels) == (2, 2)
    # Quantiles of a model that samples are those of 100 paths.
    np.testing.assert_allclose(of_paths, of_levels, rtol=0.5 if run.model.forecasts_by_sampling else 0.1)


def test_historical_forecasts_are_those_of_the_series_until_then(run: tsdp.Run) -> None:
    series = [one[:150] for one in darts_series()[:2]]
    forecaster = run.model.to_darts()
    assert isinstance(forecaster, pytest.importorskip("darts.models.forecasting.forecasting_model").GlobalForecastingModel)
    asked = {"forecast_horizon": 6, "start": 130, "start_format": "position", "stride": 7, "retrain": False, "random_state": 5}
    whole = forecaster.historical_forecasts(series, last_points_only=False, num_samples=3, **asked)
    last = forecaster.historical_forecasts(series, last_points_only=True, num_samples=3, **asked)
    assert [len(of_one) for of_one in whole] == [3, 3]
    for one, forecasts, ends in zip(series, whole, last):
        for place, found in enumerate(forecasts):
            past = one[: 130 + 7 * place]
            assert found == forecaster.predict(6, past, num_samples=3, random_state=5)
            assert ends.time_index[place] == past.end_time() + 6 * one.freq
            np.testing.assert_array_equal(ends.all_values()[place], found.all_values()[-1])
    # One value of the past is enough for the first of them.
    first = forecaster.historical_forecasts(series[0][:9], forecast_horizon=6, retrain=False, last_points_only=False)
    assert first[0].start_time() == series[0].time_index[1]


def test_a_backtest_scores_what_is_forecast(run: tsdp.Run) -> None:
    metrics = pytest.importorskip("darts.metrics")
    series = darts_series()[0][:150]
    forecaster = run.model.to_darts()
    asked = {"forecast_horizon": 6, "start": 130, "start_format": "position", "stride": 7, "retrain": False, "random_state": 5}
    pasts = [series[:130], series[:137], series[:144]]
    by_hand = [metrics.mae(series, forecaster.predict(6, past, random_state=5)) for past in pasts]
    np.testing.assert_allclose(forecaster.backtest(series, metric=metrics.mae, **asked), np.mean(by_hand), rtol=1e-6)
    by_hand = [metrics.mql(series, forecaster.predict(6, past, quantiles=[0.1, 0.9], random_state=5), q=[0.1, 0.9]) for past in pasts]
    found = forecaster.backtest(series, metric=metrics.mql, predict_kwargs={"quantiles": [0.1, 0.9]}, metric_kwargs={"q": [0.1, 0.9]}, **asked)
    np.testing.assert_allclose(found, np.mean(by_hand, axis=0), rtol=1e-6)


def test_a_trained_model_is_not_trained_again(run: tsdp.Run) -> None:
    series = darts_series()[0]
    forecaster = run.model.to_darts()
    with pytest.raises(tsdp.UsageError, match="expected predict, or retrain=False"):
        forecaster.backtest(series, forecast_horizon=6, start=-20, start_format="position")  # retrains unless it is told not to
    with pytest.raises(tsdp.UsageError, match="found 7; expected 1 to 6"):
        forecaster.historical_forecasts(series, forecast_horizon=7, start=-20, start_format="position", retrain=False)
    with pytest.raises(tsdp.UsageError, match="found the argument past_covariates"):
        forecaster.predict(6, series, past_covariates=series)


def test_what_does_not_fit_is_named(run: tsdp.Run) -> None:
    darts = pytest.importorskip("darts")
    forecaster, series = run.model.to_darts(), darts_series()[0]
    with pytest.raises(tsdp.UsageError, match="num_samples: found 0"):
        forecaster.predict(6, series, num_samples=0)
    with pytest.raises(tsdp.UsageError, match="num_samples 2; expected one of the two"):
        forecaster.predict(6, series, num_samples=2, quantiles=[0.5])
    with pytest.raises(tsdp.UsageError, match=r"quantiles: found \[1.0\]"):
        forecaster.predict(6, series, quantiles=[1.0])
    numbers = np.arange(40.0)
    for given, said in (
        (numbers, "expected a TimeSeries of Darts"),
        (darts.TimeSeries.from_values(numbers), "steps without times"),
        (darts.TimeSeries.from_times_and_values(pd.date_range("2024-01-01", periods=40, freq="D"), numbers), "steps of D; expected 1h"),
        (series.with_values(np.full_like(series.all_values(), np.nan)), "series 'meter 0': found no value"),
        (forecaster.predict(6, series, num_samples=4), "4 samples"),
    ):
        with pytest.raises(tsdp.DataError, match=said):
            forecaster.predict(6, [given])


@pytest.mark.parametrize(
    ("text", "start", "offset"), [("10min", "2024-02-28", "10min"), ("1B", "2024-02-28", "B"), ("1W", "2024-02-28", "W-SUN"),
                                  ("1M", "2024-01-31", "ME"), ("1M", "2024-01-01", "MS"), ("1Q", "2024-03-31", "QE"), ("1Y", "2024-12-31", "YE")]
)
def test_calendars_of_darts_are_known(run: tsdp.Run, monkeypatch: pytest.MonkeyPatch, text: str, start: str, offset: str) -> None:
    darts = pytest.importorskip("darts")
    model = run.model
    monkeypatch.setattr(model, "frequency", tsdp.calendars.Frequency.parse(text))
    times = pd.date_range(start, periods=40, freq=offset)
    found = model.to_darts().predict(3, darts.TimeSeries.from_times_and_values(times[:37], np.arange(37.0)))
    assert list(found.time_index) == list(times[37:])


def test_a_missing_package_is_named(run: tsdp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ask in (("darts", run.model.to_darts), ("gluonts", run.model.to_gluonts)):
        monkeypatch.delitem(sys.modules, f"tsdp.{name}", raising=False)
        for module in [module for module in sys.modules if module.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"no package {name}.*; install it with: pip install {name}$"):
            ask()
