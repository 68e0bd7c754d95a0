"""What is known of every step beside the series: the program and the package tell a model the same."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tsdp
from conftest import assert_close, hourly_frame
from test_model import LEVELS, by_program

HOURS = 300


@pytest.fixture(scope="module")
def known() -> pd.DataFrame:
    index = pd.date_range("2024-01-30 05:00", periods=HOURS, freq="h", name="timestamp")
    return pd.DataFrame({"holiday": (index.dayofweek > 4).astype(float), "price": np.linspace(-1, 1, HOURS).round(3)}, index=index)


@pytest.fixture(scope="module")
def told(programs: None, known: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    settings = {"training.max_epochs": 3, "model.context_length": 24, "model.start": "fresh", "model.prior": "none", "model.lags": [1, 24], "optimizer.learning_rate": 0.001, "model.candidates": ["covariate_quantiles"]}
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
    assert_close(found, by_program(told, frame, tmp_path, "--seed=11", f"--covariates={file}"))
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
    with pytest.raises(tsdp.DataError, match="times with a zone, and series without one"):
        model.with_covariates(known.tz_localize("Europe/Berlin")).predict(hourly_frame())
    with pytest.raises(tsdp.DataError, match="too large, at 2024-01-30 08:00:00"):
        model.with_covariates(known.assign(price=known["price"].where(known.index != "2024-01-30 08:00")))
    with pytest.raises(tsdp.DataError, match="found 'x'; expected numbers; text is categories only in a frame with the series' names"):
        model.with_covariates(known.assign(price="x"))


def test_times_with_a_zone_are_the_moments_of_the_series(told: tsdp.Run, known: pd.DataFrame) -> None:
    model, frame = told.model, hourly_frame()
    there = frame.assign(timestamp=frame["timestamp"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    expected = model.with_covariates(known).predict(frame, quantiles=LEVELS, seed=11)
    for covariates in (known.tz_localize("UTC"), known.tz_localize("UTC").tz_convert("America/Lima")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = model.with_covariates(covariates).predict(there, quantiles=LEVELS, seed=11)
        assert (found["mean"].to_numpy() == expected["mean"].to_numpy()).all()
    with pytest.warns(UserWarning, match="times without a zone, which count as UTC"):
        model.with_covariates(known).predict(there, quantiles=LEVELS, seed=11)


def test_private_forecasts_are_told_of_them(told: tsdp.Run, known: pd.DataFrame) -> None:
    frame = hourly_frame()
    nearly = told.forecast(frame, quantiles=LEVELS, private={"epsilon": 20, "delta": 1e-5, "v": 1e-4}, covariates=known.assign(note="text", later=np.nan))
    other = told.forecast(frame, quantiles=LEVELS, private={"epsilon": 20, "delta": 1e-5, "v": 1e-4}, covariates=1.0 - known)
    assert np.abs(nearly["mean"] - other["mean"]).max() > 0.0 and len(nearly) == len(told.forecast(frame, covariates=known))
    with pytest.raises(tsdp.UsageError, match="expected the argument covariates"):
        told.forecast(frame, private={"epsilon": 1, "delta": 1e-5, "v": 1.0})


@pytest.fixture(scope="module")
def of_series(known: pd.DataFrame) -> pd.DataFrame:
    """A price of each series, which differs, and a region, in an order of their own."""
    names = sorted(hourly_frame()["item_id"].unique())
    parts = [pd.DataFrame({"region": ["north", "south"][place % 2], "price": (known["price"] * (place + 1) / 9).round(4)}).assign(item_id=name) for place, name in enumerate(names)]
    return pd.concat(parts[::-1]).reset_index().set_index(["item_id", "timestamp"]).iloc[::-1]


def deepar_told(folder: Path, covariates: pd.DataFrame, **more: object) -> tsdp.Run:
    settings = {"training.max_epochs": 2, "model.context_length": 24, "model.start": "fresh", "model.prior": "none", "model.lags": [1, 24], "optimizer.learning_rate": 0.01}
    settings |= {"dataset.test_windows": 1, "dataset.validation_length": 6, "privacy.clip_norm": 0.1, **more}
    return tsdp.train(hourly_frame(), folder, frequency="1h", prediction_length=6, model="deepar", covariates=covariates, settings=settings)


def test_each_series_may_have_its_own(programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    run = deepar_told(tmp_path / "run", of_series)
    model = run.model
    assert model.covariates == ["region=north", "region=south", "price"]
    frame = hourly_frame()
    file = tmp_path / "known.csv"
    of_series.reset_index().to_csv(file, index=False, date_format="%Y-%m-%d %H:%M:%S")
    found = model.with_covariates(of_series).predict(frame, quantiles=LEVELS, seed=11)
    assert_close(found, by_program(run, frame, tmp_path, "--seed=11", f"--covariates={file}"))
    one = frame["item_id"].iloc[0]
    changed = of_series.copy()
    changed.loc[[one], "price"] += 1.0
    other = model.with_covariates(changed).predict(frame, quantiles=LEVELS, seed=11)
    differ = (other["mean"] != found["mean"]).groupby(found["item_id"]).any()
    assert differ[one] and differ.sum() == 1
    assert "region=north" in " ".join(run.privacy.not_covered)


def test_they_are_protected_where_that_is_asked_for(programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    run = deepar_told(tmp_path / "run", of_series[["price"]], **{"dataset.covariates.private": True})
    assert "whoever they are about" not in " ".join(run.privacy.not_covered)
    assert "(price) of a step belong to its value" in run.privacy.statement
    assert run.verify()["agrees"]
    with pytest.raises(tsdp.UsageError, match="which categories there are would be told by the model"):
        deepar_told(tmp_path / "text", of_series, **{"dataset.covariates.private": True})
    with pytest.raises(tsdp.UsageError, match="is the same for all series"):
        deepar_told(tmp_path / "shared", of_series.groupby("timestamp")[["price"]].mean(), **{"dataset.covariates.private": True})
    named = deepar_told(tmp_path / "named", of_series, **{"dataset.covariates.private": True, "dataset.covariates.columns": ["region=south"]})
    assert named.model.covariates == ["region=south"]


def test_facts_of_a_series_hold_for_all_of_its_steps(programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    facts = of_series.groupby("item_id").first()
    run = deepar_told(tmp_path / "run", facts)
    frame = hourly_frame()
    facts.reset_index().to_csv(tmp_path / "facts.csv", index=False)
    found = run.model.with_covariates(facts).predict(frame, quantiles=LEVELS, seed=3)
    assert_close(found, by_program(run, frame, tmp_path, "--seed=3", f"--covariates={tmp_path / 'facts.csv'}"))
    with pytest.warns(UserWarning, match="found 'west', which the model is not told of"):
        run.model.with_covariates(facts.assign(region="west"))
    with pytest.raises(tsdp.DataError, match="found no row of series"):
        run.model.with_covariates(facts.iloc[1:]).predict(frame)
    for wrong, why in (
        (facts.reset_index(drop=True), "an index that fits"),
        (pd.concat([facts, facts.iloc[:1]]), "found 2 rows of series"),
        (facts.drop(columns="region"), "found no column 'region=north'"),
        (facts.assign(price=np.nan), "missing"),
        (of_series.drop(of_series.index[7]), "the step of 1h after the row before"),
        (of_series.set_index(np.arange(len(of_series)), append=True), "an index that fits"),
    ):
        with pytest.raises(tsdp.DataError, match=why):
            run.model.with_covariates(wrong)


def test_only_what_changes_can_move_a_value(programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    settings = {"model.context_length": 24, "model.start": "fresh", "dataset.test_windows": 1, "dataset.validation_length": 6}
    for covariates, moved in ((of_series.groupby("item_id").first(), False), (of_series, True)):
        run = tsdp.train(hourly_frame(), tmp_path / str(moved), frequency="1h", prediction_length=6, model="dlinear", covariates=covariates, epsilon=0, settings=settings)
        methods = [member["method"] for member in run.model.about["sizes"]["mixture"]["members"]]
        assert ("covariate_quantiles" in methods) == moved


def test_numbers_and_categories_are_what_the_program_takes_them_for(programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    names = list(of_series.index.get_level_values(0).unique())
    facts = pd.DataFrame({"code": np.arange(len(names)) % 2, "floor": [str(i % 3) for i in range(len(names))], "kind": ["flat"] * len(names)}, index=names)
    run = deepar_told(tmp_path / "run", facts, **{"dataset.covariates.columns": ["code=1", "floor", "kind"]})
    assert run.model.covariates == ["code=1", "floor", "kind=flat"]  # digits in text are numbers
    frame = hourly_frame()
    facts.to_csv(tmp_path / "facts.csv", index_label="item_id")
    asked = run.model.with_covariates(facts)
    assert [float(asked._known.tables[name].values[0, 0]) for name in names] == [float(i % 2) for i in range(len(names))]
    assert_close(asked.predict(frame, quantiles=LEVELS, seed=3), by_program(run, frame, tmp_path, "--seed=3", f"--covariates={tmp_path / 'facts.csv'}"))
    for same in (facts.assign(code=facts["code"].astype(float)), facts.astype({"kind": "category"}), facts.assign(floor=facts["floor"].astype(int))):
        assert_close(run.model.with_covariates(same).predict(frame, quantiles=LEVELS, seed=3), asked.predict(frame, quantiles=LEVELS, seed=3))
    for wrong, why in ((facts.assign(kind="NA"), "says that a value is missing"), (facts.assign(floor=["1"] + ["x"] * (len(names) - 1)), "found 'x' among numbers")):
        with pytest.raises(tsdp.DataError, match=why):
            run.model.with_covariates(wrong)
    for name, why in (("time", "what a column of series' names or times is called"), ("a;b", "without semicolons")):
        with pytest.raises(tsdp.DataError, match=why):
            deepar_told(tmp_path / "wrong", facts.rename(columns={"code": name}))
    with pytest.raises(tsdp.DataError, match="'kind=flat' twice"):
        deepar_told(tmp_path / "twice", facts.rename(columns={"code": "kind=flat"}))


@pytest.mark.parametrize("name", ["simple_ff", "dlinear", "itransformer"])
def test_every_model_is_told_of_them(name: str, programs: None, of_series: pd.DataFrame, tmp_path: Path) -> None:
    settings = {"training.max_epochs": 2, "model.context_length": 24, "model.start": "fresh", "optimizer.learning_rate": 0.05, "dataset.test_windows": 1, "dataset.validation_length": 6}
    frame = hourly_frame()
    run = tsdp.train(frame, tmp_path / "run", frequency="1h", prediction_length=6, model=name, covariates=of_series, settings=settings)
    model = run.model
    assert model.covariates == ["region=north", "region=south", "price"]
    mixture = model.about["sizes"]["mixture"]
    assert mixture["covariates"] == 3 and "covariate_quantiles" in [member["method"] for member in mixture["members"]]  # auto
    of_series.reset_index().to_csv(tmp_path / "known.csv", index=False, date_format="%Y-%m-%d %H:%M:%S")
    found = model.with_covariates(of_series).predict(frame, quantiles=LEVELS)
    assert_close(found, by_program(run, frame, tmp_path, f"--covariates={tmp_path / 'known.csv'}"))
    changed = of_series.copy()
    one = frame["item_id"].iloc[0]
    changed.loc[[one], "price"] += 1.0
    other = model.with_covariates(changed).predict(frame, quantiles=LEVELS)
    differ = (other["mean"] != found["mean"]).groupby(found["item_id"]).any()
    assert differ[one] and differ.sum() == 1


def test_many_series_take_linear_time() -> None:
    names = [f"s{i}" for i in range(20_000)]
    frame = pd.DataFrame({"kind": ["a", "b"] * 10_000}, index=names)
    known = tsdp.covariates.Covariates.of_frame(frame, None, tsdp.calendars.Frequency.parse("1h"))
    assert sum(len(rows) for rows in known.files()) == len(names)


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


def test_a_model_that_was_told_of_none_takes_none(run: tsdp.Run, known: pd.DataFrame) -> None:
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
