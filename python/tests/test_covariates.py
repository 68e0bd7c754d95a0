"""What is known of every step beside the series: the program and the package tell a model the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tsdp
from conftest import hourly_frame
from test_model import LEVELS, assert_same, by_program

HOURS = 300


@pytest.fixture(scope="module")
def known() -> pd.DataFrame:
    index = pd.date_range("2024-01-30 05:00", periods=HOURS, freq="h", name="timestamp")
    return pd.DataFrame({"holiday": (index.dayofweek > 4).astype(float), "price": np.linspace(-1, 1, HOURS).round(3)}, index=index)


@pytest.fixture(scope="module")
def told(programs: None, known: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    settings = {"training.max_epochs": 3, "model.context_length": 24, "model.start": "fresh", "model.prior": "none", "model.lags": [1, 24], "optimizer.learning_rate": 0.001}
    return tsdp.train(
        hourly_frame(), tmp_path_factory.mktemp("runs") / "told", frequency="1h", prediction_length=6, model="deepar", covariates=known,
        settings=settings | {"dataset.test_windows": 1, "dataset.validation_length": 6},
    )


def test_forecasts_are_those_of_the_program(told: tsdp.Run, known: pd.DataFrame, tmp_path: Path) -> None:
    model = told.model
    assert model.covariates == ["holiday", "price"]
    frame = hourly_frame()
    file = tmp_path / "known.csv"
    known.to_csv(file, date_format="%Y-%m-%d %H:%M:%S")
    found = model.with_covariates(known[["price", "holiday"]]).predict(frame, quantiles=LEVELS, seed=11)
    assert_same(found, by_program(told, frame, tmp_path, "--seed=11", f"--covariates={file}"))
    other = model.with_covariates(1.0 - known).predict(frame, quantiles=LEVELS, seed=11)
    assert (other["mean"] != found["mean"]).any()
    assert "holiday" in " ".join(told.privacy.not_covered)


def test_what_does_not_fit_is_refused(told: tsdp.Run, known: pd.DataFrame) -> None:
    model = told.model
    with pytest.raises(tsdp.UsageError, match="covariates: not given; this model reads holiday, price"):
        model.predict(hourly_frame())
    with pytest.raises(tsdp.DataError, match="no column 'price'"):
        model.with_covariates(known[["holiday"]])
    with pytest.raises(tsdp.DataError, match="the step of 1h after the row before"):
        model.with_covariates(known.drop(known.index[5]))
    for wrong, why in (
        (known.tz_localize("Europe/Berlin"), "zone"),
        (known.assign(price="x"), "expected numbers"),
        (known.assign(price=known.index), "expected numbers"),
        (pd.concat([known, known["price"]], axis=1), "2 columns 'price'"),
        (known.assign(price=np.nan), "missing"),
        (known.reset_index(), "DatetimeIndex"),
    ):
        with pytest.raises(tsdp.DataError, match=why):
            model.with_covariates(wrong)
    with pytest.raises(tsdp.DataError, match="expected every step from"):
        model.with_covariates(known.iloc[:200]).predict(hourly_frame())


def test_booleans_are_numbers(told: tsdp.Run, known: pd.DataFrame) -> None:
    as_flags = known.assign(holiday=known["holiday"].astype(bool))
    frame = hourly_frame()
    found, expected = (told.model.with_covariates(one).predict(frame, seed=1) for one in (as_flags, known))
    pd.testing.assert_frame_equal(found, expected)


def test_a_file_of_the_users_is_not_written_over(programs: None, known: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "mine.covariates.csv").write_text("precious")
    with pytest.raises(tsdp.UsageError, match="mine.covariates.csv"):
        tsdp.train(hourly_frame(), tmp_path / "run", frequency="1h", prediction_length=6, model="deepar", covariates=known, data=tmp_path / "mine.csv")
    assert (tmp_path / "mine.covariates.csv").read_text() == "precious"


def test_a_model_that_reads_none_takes_none(run: tsdp.Run, known: pd.DataFrame) -> None:
    with pytest.raises(tsdp.UsageError, match="reads none"):
        run.model.with_covariates(known)


def test_holidays_of_a_country() -> None:
    if not os.environ.get("CI"):
        pytest.importorskip("holidays")
    found = tsdp.holidays("US", "2024-12-24", "2024-12-25 23:00", "1h")
    assert list(found["holiday"]) == [0.0] * 24 + [1.0] * 24
    assert found.index[-1] == pd.Timestamp("2024-12-25 23:00")
    with pytest.raises(tsdp.UsageError, match="moments"):
        tsdp.holidays("US", "soon", "2024-01-02", "1D")
    with pytest.raises(tsdp.UsageError, match="a day or less"):
        tsdp.holidays("US", "2024-01-01", "2024-02-02", "1M")
    with pytest.raises(tsdp.UsageError, match="country"):
        tsdp.holidays("nowhere", "2024-01-01", "2024-01-02", "1D")
