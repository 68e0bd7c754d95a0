"""Models rebuilt in plain PyTorch, and in other formats, forecast as the programs do; and nothing in a file can run, or end the process."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import torch

import tsdp
from conftest import assert_close, hourly_frame, MODELS, needed
from test_model import by_program, with_texts
from tsdp import formats
from tsdp.archive import read_archive
from tsdp.mixture import Forecaster
from tsdp.networks import Levels, student_t_quantiles
from tsdp.programs import program, run_program
from tsdp.rebuilt import forecaster_of

STARTS = Path(__file__).parents[2] / "starts"
KINDS: dict[str, dict[str, Any]] = {
    "mixed": {"model.prior": "auto", "model.candidates": "auto"},
    "walks": {"model.prior": "last_value", "model.candidates": []},
    "bounded": {"model.prior": "seasonal_naive", "model.candidates": ["seasonal_regression", str(STARTS / "hourly_itransformer.safetensors"), "chronos.jsonl"], "dataset.lower_bound": 10.5, "dataset.upper_bound": 50},
    "zeros": {"model.prior": "none", "model.missing_values": "zero"},
    "told": {"model.prior": "seasonal_naive", "model.candidates": ["covariate_quantiles"]},  # of covariates
    "finer": {"model.prior": "seasonal_naive", "model.candidates": ["seasonal_quantiles", str(STARTS / "hourly_simple_ff.safetensors")]},  # half hours
}


def others(frame: pd.DataFrame, folder: Path) -> Path:
    """What another program might have forecast of every window of 6 hours: the values of the day before."""
    lines = []
    for item_id, part in frame.groupby("item_id", sort=False):
        values = part.set_index("timestamp")["target"].asfreq("h").ffill()
        for place in range(24, len(values) + 1):
            before = values.iloc[place - 24 : place - 18].tolist()
            quantiles = {f"0.{i}": [value + 0.03 * (i - 5) for value in before] for i in range(1, 10)}
            start = values.index[0] + pd.Timedelta(hours=place)
            lines.append(json.dumps({"item_id": item_id, "start": str(start), "quantiles": quantiles, "mean": before}))
    file = folder / "chronos.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def weather() -> pd.DataFrame:
    """Of each series, with the day ahead: a kind that it keeps, and a temperature."""
    parts = []
    for place, (item_id, part) in enumerate(hourly_frame().groupby("item_id")):
        times = pd.date_range(part["timestamp"].min(), periods=len(part) + 24, freq="h", name="timestamp")
        heat = np.sin(np.arange(len(times)) / 31 + place)
        parts.append(pd.DataFrame({"item_id": item_id, "kind": f"k{place % 2}", "heat": heat}, index=times))
    return pd.concat(parts).set_index("item_id", append=True).swaplevel()


def half_hours(frame: pd.DataFrame) -> pd.DataFrame:
    first = frame["timestamp"].min()
    return frame.assign(timestamp=first + (frame["timestamp"] - first) / 2)


def trained(folder: Path, model: str, kind: str) -> tsdp.Run:
    settings = {"training.max_epochs": 2, "model.context_length": 24, "model.start": "fresh", "optimizer.learning_rate": 0.001}
    settings |= {"dataset.test_windows": 1, "dataset.validation_length": 6, **KINDS[kind]}
    if model == "deepar":
        settings |= {"model.lags": [1, 2, 24], "model.context_length": 12}
    elif kind == "mixed":
        settings |= {"training.trainable": "mixture", "optimizer.learning_rate": 0.2}
    if "chronos.jsonl" in settings.get("model.candidates", []):
        file = others(hourly_frame(), folder.parent)
        settings["model.candidates"] = [*settings["model.candidates"][:-1], str(file)]
    if kind == "finer":
        return tsdp.train(half_hours(hourly_frame()), folder, frequency="30min", prediction_length=7, model=model, settings=settings | {"dataset.season_length": 12})
    return tsdp.train(hourly_frame(), folder, frequency="1h", prediction_length=6, model=model, settings=settings, covariates=weather() if kind == "told" else None)


@pytest.fixture(scope="session", params=[*(f"{model} mixed" for model in MODELS), "itransformer walks", "deepar walks", "dlinear bounded", "dlinear zeros", "deepar zeros"])
def some(request: pytest.FixtureRequest, programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    return trained(tmp_path_factory.mktemp("some") / "run", *request.param.split())


@pytest.fixture(scope="session")
def mixed(programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    return trained(tmp_path_factory.mktemp("mixed") / "run", "simple_ff", "bounded")


def frames() -> pd.DataFrame:
    """Series with gaps, and one shorter than a season."""
    known = hourly_frame()
    known.loc[[150, 160], "target"] = [1e6, -300.0]  # far from all others of their series
    return pd.concat([known, hourly_frame(1, 60).iloc[-15:].assign(item_id="short")], ignore_index=True)


def test_every_model_prior_and_mixture_is_forecast_as_by_the_program(some: tsdp.Run, tmp_path: Path) -> None:
    found = some.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11)
    assert_close(found, by_program(some, frames(), tmp_path, "--seed=11"))
    code = tsdp.load(some.folder / "model.pt", trust=True).predict(frames(), quantiles=[0.05, 0.5, 0.9], samples=5, seed=11)
    assert_close(some.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], samples=5, seed=11), code)


def test_networks_of_longer_steps_are_mixed_as_by_the_program(programs: None, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "dlinear", "finer")
    frame = half_hours(frames())
    found = run.model.predict(frame, quantiles=[0.05, 0.5, 0.9], seed=11)
    assert_close(found, by_program(run, frame, tmp_path, "--seed=11"))
    code = tsdp.load(run.folder / "model.pt", trust=True).predict(frame, quantiles=[0.05, 0.5, 0.9], seed=11)
    assert_close(found, code)
    archive = read_archive(str(run.folder / "model.pt"))
    (network,) = archive.about["sizes"]["mixture"]["networks"]
    assert network["every"] == 2 and "prediction_length" not in network  # which programs that know no such networks miss
    for every, said in ((3, "another type or shape"), (0, "expected an integer"), (10**9, "expected an integer")):
        archive.about["sizes"]["mixture"]["networks"][0]["every"] = every
        with pytest.raises(tsdp.DataError, match=said):
            forecaster_of(archive, "model.pt")


def test_forecasts_of_other_programs_are_mixed_as_by_the_program(mixed: tsdp.Run, tmp_path: Path) -> None:
    assert mixed.model.external_candidates == ["chronos"]
    file = others(frames(), tmp_path)
    found = mixed.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11, candidates=[file])
    assert_close(found, by_program(mixed, frames(), tmp_path, "--seed=11", f"--candidates={file}"))
    code = tsdp.load(mixed.folder / "model.pt", trust=True).predict(frames(), quantiles=[0.05, 0.5, 0.9], candidates=[file])
    assert_close(found, code)
    alone = mixed.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11)
    assert not np.allclose(found["0.5"], alone["0.5"], rtol=1e-3)
    # As places.
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    starts = frames().groupby("item_id")["timestamp"].min()
    for entry in entries:
        entry["forecast_start"] = int((pd.Timestamp(entry.pop("start")) - starts[entry["item_id"]]) / pd.Timedelta(hours=1))
    file.write_text("\n".join(map(json.dumps, entries)))
    pd.testing.assert_frame_equal(mixed.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11, candidates=[file]), found)
    file.write_text("\n".join(map(json.dumps, [*entries, entries[-1]])))
    with pytest.raises(tsdp.DataError, match="a second forecast"):
        mixed.model.predict(frames(), candidates=[file])
    file.write_text('{"item_id": "meter 0", "forecast_start": 3}')
    with pytest.raises(tsdp.DataError, match=r"chronos\.jsonl:1: expected an object"):
        mixed.model.predict(frames(), candidates=[file])
    with pytest.raises(tsdp.UsageError, match="one file each of chronos.jsonl"):
        mixed.model.predict(frames(), candidates=[file, file])


def test_another_model_is_mixed_as_by_the_program(some: tsdp.Run, mixed: tsdp.Run, tmp_path: Path) -> None:
    file = tmp_path / "chronos.pt"
    shutil.copy(some.folder / "model.pt", file)
    if some.model.external_candidates:
        with pytest.raises(tsdp.UsageError, match="mixed with 1 candidates of other programs; expected"):
            mixed.model.predict(frames(), candidates=[file])
        return
    found = mixed.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11, candidates=[file])
    assert_close(found, by_program(mixed, frames(), tmp_path, "--seed=11", f"--candidates={file}"))
    alone = mixed.model.predict(frames(), quantiles=[0.05, 0.5, 0.9], seed=11)
    assert some.model.name != "simple_ff" or not found.equals(alone)


def test_quantiles_of_students_t() -> None:
    levels = [1e-6, 1e-4, 0.01, 0.3, 0.5, 0.77, 0.999]
    for df in (2.001, 2.5, 5.0, 7.3, 49.0, 400.0, 1e5):
        found = student_t_quantiles(torch.tensor([[df]], dtype=torch.float64), Levels(torch.tensor(levels, dtype=torch.float64)))[0, :, 0]
        for level, t in zip(levels, found.tolist()):
            below = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
            density = mpmath.gamma((df + 1) / 2) / mpmath.gamma(df / 2) / mpmath.sqrt(df * mpmath.pi) * (1 + t * t / df) ** (-(df + 1) / 2)
            assert abs(below - min(level, 1 - level)) / density <= 2e-8 * max(1.0, abs(t)), (df, level)


def test_the_code_in_an_archive_is_not_read(mixed: tsdp.Run, tmp_path: Path) -> None:
    file = mixed.folder / "model.pt"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "other.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name, b"raise SystemExit" if "/code/" in name or name.endswith(".pkl") else old.read(name))
    pd.testing.assert_frame_equal(tsdp.load(tmp_path / "other.pt").predict(frames()), tsdp.load(file).predict(frames()))
    with pytest.raises(tsdp.DataError, match="cannot be loaded"):
        tsdp.load(tmp_path / "other.pt", trust=True)


def test_changed_bytes_are_refused_or_change_nothing(mixed: tsdp.Run, tmp_path: Path) -> None:
    whole = (mixed.folder / "model.pt").read_bytes()
    expected = tsdp.load(mixed.folder / "model.pt").predict(frames())
    draw = random.Random(5)
    refused = 0
    for _ in range(150):
        data = bytearray(whole)
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        for _ in range(draw.choice([1, 1, 4])):
            if data:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        (tmp_path / "hostile.pt").write_bytes(data)
        try:
            pd.testing.assert_frame_equal(tsdp.load(tmp_path / "hostile.pt").predict(frames()), expected)
        except tsdp.DataError:
            refused += 1
    assert refused > 20


def test_a_name_that_is_no_text_is_refused(mixed: tsdp.Run, tmp_path: Path) -> None:
    whole = (mixed.folder / "model.pt").read_bytes()
    at = whole.index(b"extra/model.json")
    (tmp_path / "hostile.pt").write_bytes(whole[:at] + b"\xb1" + whole[at + 1 :])
    with pytest.raises(tsdp.DataError, match="cannot be read as a model"):
        tsdp.load(tmp_path / "hostile.pt")


@pytest.mark.parametrize(
    "change, named",
    [
        ({"name": "other"}, "trust=True"),
        ({"name": 3}, "name"),
        ({"past_length": 1}, "past_length"),
        ({"time_features": 5}, "time_features"),
        ({"covariates": [1]}, "covariates"),
        ({"unfinished": "no"}, "unfinished"),
        ({"sizes": None}, "sizes"),
        ({"sizes": {"context_length": 10**12}}, "context_length"),
        ({"sizes": {"context_length": 23}}, "weights"),
        ({"sizes": {"prediction_length": 1e300}}, "prediction_length"),
        ({"sizes": {"lags": "x"}}, "lags"),
        ({"sizes": {"prior": "__class__"}}, "prior"),
        ({"sizes": {"season": 25}}, "season"),
        ({"sizes": {"default_scale": float("nan")}}, "default_scale"),
        ({"sizes": {"lower_bound": 60}}, "lower_bound"),
        ({"sizes": {"upper_bound": 10**400}}, "upper_bound"),
        ({"sizes": {"lower_bound": float("-inf")}}, "lower_bound"),
        ({"sizes": {"mixture": {"windows": 10**9, "stride": 6, "members": []}}}, "windows"),
        ({"sizes": {"mixture": {"windows": 2, "stride": 6, "members": [{"method": "__init__", "season": 1, "seasons": 1}]}}}, "method"),
        ({"sizes": {"mixture": {"windows": 2, "stride": 6, "covariates": 1, "members": [{"method": "covariate_quantiles", "season": 1, "seasons": 1}]}}}, "mixture.covariates"),
        ({"sizes": {"mixture": {"windows": 2, "stride": 6, "members": [{"method": "seasonal_quantiles", "season": 10**6, "seasons": 10**6}]}}}, "holds weights"),
    ],
)
def test_sizes_that_do_not_fit_are_named(change: dict[str, Any], named: str, mixed: tsdp.Run, tmp_path: Path) -> None:
    about = dict(mixed.model.about)
    sizes = change.get("sizes")
    about |= {"sizes": {**about["sizes"], **sizes}} if isinstance(sizes, dict) else change
    file = with_texts(mixed.folder / "model.pt", tmp_path / "changed.pt", model=about)
    with pytest.raises(tsdp.DataError, match=named):
        tsdp.load(file)


def given(forecaster: Forecaster, features: int) -> dict[str, np.ndarray]:
    """Inputs of an exported model: gaps, a short past, one of nothing."""
    draw = np.random.default_rng(3)
    past, horizon = forecaster.past_length, forecaster.network.prediction_length
    observed = (draw.random((5, past)) > 0.1).astype("float32")
    observed[3, :-20], observed[4] = 0.0, 0.0
    values = (20.0 + np.sin(np.arange(past) / 24 * 2 * np.pi) + 0.2 * draw.standard_normal((5, past))).astype("float32") * observed
    out = {"past_target": values, "past_observed": observed, "levels": np.array([0.01, 0.2, 0.5, 0.77])}
    if forecaster.network.reads_time_features:
        out["time_features"] = draw.random((5, past + horizon, features)).astype("float32")
    if forecaster.from_samples:
        out["draws"] = 1.0 - draw.random((5, 7, horizon, 2), dtype="float32")
    if forecaster.external:
        out["external"] = (20.0 + draw.random((5, forecaster.windows + 1, 1, 10, horizon))).astype("float32")
        out["external"][2, 1] = np.nan
    return out


def verified(model: Path) -> tuple[bool, bool]:
    found = tsdp.account("verify", model)
    return found["agrees"], found["ties_weights"]


def archive_of(file: Path, root: str, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w") as out:
        for name, content in members.items():
            out.writestr(f"{root}/{name}", content)
    return file


def test_what_is_no_archive_of_torch_export_is_read_as_a_model_or_refused(mixed: tsdp.Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(mixed.folder / "model.pt") as model:
        genuine = {name.partition("/")[2]: model.read(name) for name in model.namelist()}
    stripped = {name: content for name, content in genuine.items() if name != "extra/tsdp.safetensors"}
    extras = {name: content for name, content in genuine.items() if name.startswith("extra/")}
    mark = {"archive_format": b"pt2"}
    assert verified(archive_of(tmp_path / "a.pt2", "a", {**mark, "extra/privacy.json": genuine["extra/privacy.json"]})) == (True, False)
    # Weights of torch.export beside all of a model.pt's data: these are not the weights that the program runs.
    assert verified(archive_of(tmp_path / "b.pt2", "b", {**mark, **extras, "data/weights/weight_0": b"others"})) == (True, False)
    # torch.jit.load runs these; without the checksummed copy their weights may be any.
    for number, members in enumerate((stripped, {**mark, **stripped}, mark)):
        with pytest.raises(tsdp.DataError, match="has no extra/"):
            tsdp.account("verify", archive_of(tmp_path / f"{number}.pt", "model", members))
    # Programs that look for a zip archive's end find one behind other bytes, too.
    (tmp_path / "c.pt").write_bytes(b"\x08\x0a" + (mixed.folder / "model.pt").read_bytes())
    with pytest.raises(tsdp.DataError, match="neither a zip archive nor an ONNX model"):
        tsdp.account("verify", tmp_path / "c.pt")


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest, as a part of the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


# An export takes half a minute: all of them where TSDP_FORMATS=all asks for it (scripts/long.sh formats, which prints the differences).
ALL = os.environ.get("TSDP_FORMATS") == "all"


@pytest.mark.parametrize("model, kind", [(model, kind) for model in MODELS for kind in KINDS] if ALL else [("simple_ff", "bounded"), ("deepar", "zeros"), ("itransformer", "told")])
def test_other_formats_forecast_the_same(model: str, kind: str, mixed: tsdp.Run, programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = needed("onnx")
    runtime = needed("onnxruntime")
    needed("onnxscript")
    run = mixed if (model, kind) == ("simple_ff", "bounded") else trained(tmp_path / "run", model, kind)
    monkeypatch.setenv("TSDP_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(Path(formats.__file__).parents[1]))
    archive = read_archive(str(run.folder / "model.pt"))
    forecaster = forecaster_of(archive, "model.pt")
    inputs = given(forecaster, archive.about["sizes"]["time_features"])
    told = {name: torch.from_numpy(value) for name, value in inputs.items()}
    with torch.inference_mode():
        expected = forecaster(told["past_target"], told["past_observed"], told["levels"], told.get("time_features"), told.get("draws"), told.get("external"))
    expected = [part.numpy() for part in expected if part is not None]

    run_program("tsdp-export", [f"--run={run.folder}", f"--output={tmp_path / 'model.onnx'}"])
    assert verified(run.folder / "model.pt") == (True, True)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    assert [one.name for one in session.get_inputs()] == list(inputs)
    carried = {one.key: one.value for one in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert json.loads(carried["privacy.json"]) == archive.privacy
    assert verified(tmp_path / "model.onnx") == (True, False)
    by_onnx = session.run(None, inputs)
    for found, wanted in zip(by_onnx, expected, strict=True):
        assert_close(found.ravel(), wanted.ravel())

    run_program("tsdp-export", [f"--run={run.folder}", f"--output={tmp_path / 'model.anything'}", "--format=torch_export"])
    extra = {"privacy.json": ""}
    exported = torch.export.load(tmp_path / "model.anything", extra_files=extra).module()
    assert json.loads(extra["privacy.json"]) == archive.privacy
    assert verified(tmp_path / "model.anything") == (True, False)
    by_torch = [found.numpy() for found in exported(*told.values())]
    for found, wanted in zip(by_torch, expected, strict=True):
        assert_close(found.ravel(), wanted.ravel())
    print(f"| {model} | {kind} |", *(f"{max(map(difference, of, expected)):.0e} |" for of in (by_onnx, by_torch)))


def test_other_words_are_no_format(mixed: tsdp.Run, tmp_path: Path) -> None:
    with pytest.raises(tsdp.UsageError, match="expected one of onnx, torch_export"):
        formats.export(mixed.folder / "model.pt", tmp_path / "model.onnx", "ONNX")


def test_formats_need_a_python_that_has_the_package(mixed: tsdp.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSDP_PYTHON", str(tmp_path / "none"))
    done = subprocess.run(
        [program("tsdp-export"), f"--run={mixed.folder}", f"--output={tmp_path / 'model.onnx'}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "TSDP_PYTHON" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "model.onnx").exists()
