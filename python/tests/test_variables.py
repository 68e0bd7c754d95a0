"""Series of several variables: protected together, and forecast together by itransformer, as the programs do it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import tsdp
from conftest import assert_close, needed
from test_model import LEVELS
from tsdp import formats
from tsdp.archive import read_archive
from tsdp.frames import series_of
from tsdp.programs import run_program
from tsdp.rebuilt import forecaster_of

BOTH = ["pulse", "pressure"]
SETTINGS = {"training.max_epochs": 20, "model.context_length": 24, "model.start": "fresh", "optimizer.learning_rate": 0.01}
SETTINGS |= {"dataset.test_windows": 1, "dataset.validation_length": 6, "training.trainable": "all"}
FIXED = SETTINGS | {"training.reproducible": True}  # weights whose last digits are compared are the same every time


def vitals() -> pd.DataFrame:
    """Patients whose pressure follows their pulse, with missing values."""
    random = np.random.default_rng(5)
    parts = []
    for number in range(4):
        count = 260 - 20 * number
        pulse = 60 + 5 * number + 3 * np.sin(np.arange(count + 6) / 24 * 2 * np.pi) + random.standard_normal(count + 6)
        part = pd.DataFrame({"item_id": f"patient {number}", "timestamp": pd.date_range("2024-01-30 05:00", periods=count, freq="h")})
        part = part.assign(pulse=pulse[6:].round(3), pressure=(40 + pulse[:count] + 0.1 * random.standard_normal(count)).round(3))
        part.loc[7 + number : 11, "pressure"] = np.nan
        part.loc[30:31, BOTH] = np.nan
        parts.append(part.drop(part.index[[50, 51]]))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def mixed(programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    settings = FIXED | {"model.prior": "seasonal_naive", "model.candidates": ["start", "seasonal_quantiles", "last_value_bands"]}
    return tsdp.train(vitals(), tmp_path_factory.mktemp("runs") / "mixed", frequency="1h", prediction_length=6, model="itransformer", epsilon=None, target=BOTH, settings=settings)


@pytest.fixture(scope="module")
def alone(programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    settings = FIXED | {"model.prior": "none", "model.candidates": [], "privacy.composition": "symmetrised"}
    return tsdp.train(vitals(), tmp_path_factory.mktemp("runs") / "alone", frequency="1h", prediction_length=6, model="itransformer", epsilon=1.0, target=BOTH, settings=settings)


def by_program(run: tsdp.Run, frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    source, result = folder / "input.csv", folder / "output.csv"
    frame.to_csv(source, index=False)
    columns = ",".join(f"value={name}" for name in BOTH)
    run_program("tsdp-forecast", [f"--model={run.folder / 'model.pt'}", f"--input={source}", f"--output={result}", "--quantiles=0.05,0.5,0.9", f"--columns={columns}"])
    return pd.read_csv(result, parse_dates=["timestamp"])


@pytest.mark.parametrize("which", ["mixed", "alone"])
def test_forecasts_are_those_of_the_program(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: tsdp.Run = request.getfixturevalue(which)
    frame = vitals()
    assert run.model.variables == BOTH
    found = run.model.predict(frame, quantiles=LEVELS)
    assert list(found["item_id"][::6])[:3] == ["patient 0/pulse", "patient 0/pressure", "patient 1/pulse"]
    assert_close(found, by_program(run, frame, tmp_path))
    # A patient's forecast depends on all of its variables, and on no other patient.
    one = run.model.predict(frame[frame["item_id"] == "patient 1"], quantiles=LEVELS, target=BOTH)
    assert_close(one, found[12:24])
    # Of one series alone, whose times are the index.
    indexed = frame[frame["item_id"] == "patient 1"].set_index("timestamp")[BOTH]
    named = run.model.predict(indexed, quantiles=LEVELS, target=BOTH)
    assert list(named["item_id"].unique()) == BOTH
    np.testing.assert_array_equal(named["mean"], one["mean"])
    other = frame.copy()
    other.loc[(other["item_id"] == "patient 1") & (other["timestamp"] >= "2024-02-08 20:00"), "pulse"] += 5.0
    changed = run.model.predict(other, quantiles=LEVELS)
    assert (changed["mean"][18:24].to_numpy() != found["mean"][18:24].to_numpy()).all()
    assert_close(changed[24:], found[24:])


def test_attention_is_that_of_pytorchs_encoder(alone: tsdp.Run) -> None:
    file = str(alone.folder / "model.pt")
    archive = read_archive(file)
    network = forecaster_of(archive, file).network
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 128, 0.0, batch_first=True), 2, torch.nn.LayerNorm(32))
    encoder.load_state_dict({name.removeprefix("encoder."): weight for name, weight in archive.weights.items() if name.startswith("encoder.")})
    past = torch.rand(3 * 2, 24, generator=torch.Generator().manual_seed(1)) + 1.0
    scale = past.abs().mean(1, keepdim=True)
    token = torch.nn.functional.linear(torch.cat([past / scale, torch.zeros(6, 1), scale.log()], 1), archive.weights["emebdding.weight"], archive.weights["emebdding.bias"])
    with torch.inference_mode():
        hidden = encoder.eval()(token.reshape(3, 2, 32)).reshape(6, 32)
        steps = torch.nn.functional.linear(hidden, archive.weights["projection.weight"], archive.weights["projection.bias"])
        expected = network.head_of(steps, past.new_zeros(6, 30, 0))
        found = network.distribution(past, torch.ones_like(past), past.new_zeros(6, 30, 0))
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_another_format_forecasts_the_same(alone: tsdp.Run, tmp_path: Path) -> None:
    onnxruntime = needed("onnxruntime")
    file = tmp_path / "model.onnx"
    formats.export(alone.folder / "model.pt", file, "onnx")
    series = series_of(vitals(), alone.model.frequency, target=BOTH)
    past = np.stack([one.values[-24:] for one in series]).astype("float32")
    given = {"past_target": np.nan_to_num(past), "past_observed": (~np.isnan(past)).astype("float32"), "levels": np.array(LEVELS)}
    quantiles, means = onnxruntime.InferenceSession(str(file)).run(None, given)
    found = alone.model.predict(vitals(), quantiles=LEVELS)
    for name, values in (("mean", means), ("0.5", quantiles[:, 1])):  # as test_formats.py compares them
        assert_close(values.ravel(), found[name])


def test_what_a_step_holds_is_protected_together(alone: tsdp.Run) -> None:
    assert alone.privacy.document["relation"]["variables"] == 2
    assert "the values of all 2 variables at one step" in alone.privacy.statement
    alone.verify()
    plan = tsdp.plan(vitals(), frequency="1h", prediction_length=6, target=BOTH, settings=SETTINGS)
    assert (plan["sequences"], plan["variables"]) == (4, 2)
    pulse = tsdp.plan(vitals().drop(columns="pressure"), frequency="1h", prediction_length=6, target="pulse", settings=SETTINGS)
    assert plan["epsilon"] == pulse["epsilon"]


def test_covariates_of_a_series_are_told_to_all_of_its_variables(programs: None, tmp_path: Path) -> None:
    health = pd.DataFrame({"health": [0.1, 0.4, 0.7, 0.9]}, index=pd.Index([f"patient {i}" for i in range(4)], name="item_id"))
    run = tsdp.train(vitals(), tmp_path / "told", frequency="1h", prediction_length=6, target=BOTH, covariates=health, epsilon=None, settings=SETTINGS | {"model.candidates": ["covariate_quantiles"]})
    found = run.model.with_covariates(health).predict(vitals(), target=BOTH)
    assert len(found) == 8 * 6
    other = run.model.with_covariates(1.0 - health).predict(vitals(), target=BOTH)
    assert (found["mean"] != other["mean"]).all()


def test_what_does_not_fit_is_refused(mixed: tsdp.Run, alone: tsdp.Run, tmp_path: Path) -> None:
    frame = vitals()
    with pytest.raises(tsdp.UsageError, match="forecasts pulse, pressure of each series together"), pytest.warns(UserWarning, match="ignored"):
        mixed.model.predict(frame, target="pulse")
    with pytest.raises(tsdp.UsageError, match="forecasts pulse, pressure of each series together"):
        mixed.model.predict(frame, target=BOTH[::-1])
    with pytest.raises(tsdp.DataError, match="no column 'pressure'"):
        mixed.model.predict(frame.drop(columns="pressure"))
    with pytest.raises(tsdp.DataError, match="found no value in the column 'pressure'"):
        series_of(frame.assign(pressure=np.nan), mixed.model.frequency, target=BOTH)
    for target in (["pulse", "pulse"], []):
        with pytest.raises(tsdp.DataError, match="expected different columns"):
            series_of(frame, mixed.model.frequency, target=target)
    for other in (mixed.model.to_gluonts, mixed.model.to_darts):
        with pytest.raises((tsdp.UsageError, ImportError), match="forecasts pulse, pressure of each series together|darts|gluonts"):
            other()
    with pytest.raises(tsdp.UsageError, match="beside several targets"):
        tsdp.train(frame, tmp_path / "no", frequency="1h", prediction_length=6, target=BOTH, settings={"dataset.columns.value": "pulse"})
    with pytest.raises(tsdp.UsageError, match="private: found several variables"):
        alone.forecast(frame, private={"epsilon": 1.0, "delta": 1e-5, "v": 2.0})
    with pytest.raises(tsdp.UsageError, match="owner: given with several targets"):
        tsdp.train(frame, tmp_path / "no", frequency="1h", prediction_length=6, target=BOTH, owner={"patient 0": "a"})
    with pytest.raises(tsdp.UsageError, match="found a variable 'ds'"):
        tsdp.train(frame.rename(columns={"pulse": "ds"}), tmp_path / "no", frequency="1h", prediction_length=6, target=["ds", "pressure"], timestamp="timestamp")
