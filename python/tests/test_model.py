"""Forecasts from Python are those of tsdp-forecast."""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tsdp
from conftest import assert_close, hourly_frame, needed
from tsdp import formats
from tsdp.programs import run_program

LEVELS = [0.05, 0.5, 0.9]


def by_program(run: tsdp.Run, frame: pd.DataFrame, folder: Path, *options: str, wide: bool = False) -> pd.DataFrame:
    source, result = folder / "input.csv", folder / "output.csv"
    if wide:
        frame.to_csv(source, index_label="time", date_format="%Y-%m-%d %H:%M:%S")
    else:
        frame.rename(columns={"item_id": "unique_id", "timestamp": "ds", "target": "y"}).to_csv(source, index=False)
    run_program(
        "tsdp-forecast",
        [f"--model={run.folder / 'model.pt'}", f"--input={source}", f"--output={result}", "--quantiles=0.05,0.5,0.9", *options],
    )
    return pd.read_csv(result, parse_dates=["timestamp"])


def test_long_frames_are_forecast_as_by_the_program(run: tsdp.Run, tmp_path: Path) -> None:
    frame = hourly_frame()
    found = run.model.predict(frame, quantiles=LEVELS, seed=11)
    assert_close(found, by_program(run, frame, tmp_path, "--seed=11"))
    assert len(found) == 5 * 6


def test_times_with_a_zone_are_read_as_by_the_program(run: tsdp.Run, tmp_path: Path) -> None:
    frame = hourly_frame()
    frame["timestamp"] = frame["timestamp"].dt.tz_localize("America/New_York")
    found = run.model.predict(frame, quantiles=LEVELS, seed=11)
    assert str(found["timestamp"].dt.tz) == "America/New_York"
    found["timestamp"] = found["timestamp"].dt.tz_convert("UTC").dt.tz_localize(None)
    assert_close(found, by_program(run, frame, tmp_path, "--seed=11"))


def test_wide_frames_too(run: tsdp.Run, tmp_path: Path) -> None:
    frame = hourly_frame().pivot(index="timestamp", columns="item_id", values="target")
    frame = frame.reindex(pd.date_range(frame.index[0], frame.index[-1], freq="h"))
    assert_close(run.model.predict(frame, quantiles=LEVELS, seed=3), by_program(run, frame, tmp_path, "--seed=3", wide=True))


def test_many_series_take_the_draws_of_their_own_batch(run: tsdp.Run, tmp_path: Path) -> None:
    one = hourly_frame(1, 60)
    frame = pd.concat([one.assign(item_id=f"s{i}", target=one["target"] + i) for i in range(300)], ignore_index=True)
    assert_close(run.model.predict(frame, quantiles=LEVELS, seed=4), by_program(run, frame, tmp_path, "--seed=4"))


def test_sample_paths_are_those_of_the_program(run: tsdp.Run, tmp_path: Path) -> None:
    frame = hourly_frame()
    found = run.model.predict(frame, samples=7, seed=5)
    source, result = tmp_path / "input.csv", tmp_path / "output.jsonl"
    frame.rename(columns={"item_id": "unique_id", "timestamp": "ds", "target": "y"}).to_csv(source, index=False)
    run_program("tsdp-forecast", [f"--model={run.folder / 'model.pt'}", f"--input={source}", f"--output={result}", "--samples=7", "--seed=5"])
    for line in result.read_text().splitlines():
        entry = json.loads(line)
        mine = found[found["item_id"] == entry["item_id"]]
        assert_close(np.stack([mine[f"sample_{i}"] for i in range(7)]), entry["samples"])


def test_fewer_steps_are_the_first_ones(run: tsdp.Run) -> None:
    frame = hourly_frame()
    whole, part = run.model.predict(frame, seed=1), run.model.predict(frame, 2, seed=1)
    pd.testing.assert_frame_equal(part, whole.groupby("item_id", sort=False).head(2).reset_index(drop=True))
    for n in (0, 7):
        with pytest.raises(tsdp.UsageError, match="1 to 6"):
            run.model.predict(frame, n)


def test_the_statement_is_that_of_the_run(run: tsdp.Run) -> None:
    ledger = run.model.privacy
    assert ledger.document == run.privacy.document
    assert ledger.is_private and ledger.is_finished
    assert ledger.epsilon is not None and 0.0 < ledger.epsilon.lower <= ledger.epsilon.upper <= 1.0
    assert ledger.delta == 1e-7
    assert "differential privacy" in str(ledger) and str(ledger) in repr(run.model)
    assert tsdp.account("verify", str(run.folder))["agrees"] is True


def test_gluonts_predictors_forecast_the_same(run: tsdp.Run) -> None:
    needed("gluonts")
    model = run.model
    frame = hourly_frame()
    expected = model.predict(frame, seed=1)
    entries = []
    for name, rows in frame.groupby("item_id", sort=False):
        values = rows.dropna().set_index("timestamp")["target"].asfreq("h")
        entries.append({"item_id": name, "start": pd.Period(values.index[0], freq="h"), "target": values.to_numpy()})
    for entry, forecast in zip(entries, model.to_gluonts().predict(entries)):
        mine = expected[expected["item_id"] == entry["item_id"]]
        assert forecast.start_date.to_timestamp() == mine["timestamp"].iloc[0]
        if model.forecasts_by_sampling:
            assert forecast.samples.shape == (100, 6)
        else:
            # (Alone and in a batch single precision rounds differently.)
            assert_close(forecast.quantile(0.9), mine["0.9"])
            assert_close(forecast.mean, mine["mean"])


def test_gluonts_entries_of_another_frequency_are_refused(run: tsdp.Run) -> None:
    needed("gluonts")
    values = np.arange(60.0)
    for start, said in ((pd.Period("2024-01-01", freq="D"), "steps of D; expected 1h"), (pd.Timestamp("2024-01-01"), "expected a pandas.Period")):
        with pytest.raises(tsdp.DataError, match=said):
            list(run.model.to_gluonts().predict([{"item_id": "a", "start": start, "target": values}]))


def with_texts(source: Path, to: Path, /, **texts: dict[str, Any]) -> Path:
    """A copy with other texts ("model" or "privacy"), under a checksum that fits."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("extra/tsdp.safetensors"):
                length = int.from_bytes(data[:8], "little")
                header = json.loads(data[8 : 8 + length])
                header["__metadata__"] |= {f"{key}.json": json.dumps(text) for key, text in texts.items()}
                head = json.dumps(header).encode()
                data = len(head).to_bytes(8, "little") + head + data[8 + length : -32]
                data += hashlib.sha256(data).digest()
            for key, text in texts.items():
                if name.endswith(f"extra/{key}.json"):
                    data = json.dumps(text).encode()
            new.writestr(name, data)
    return to


def test_a_model_of_an_unfinished_run_says_so(run: tsdp.Run, tmp_path: Path) -> None:
    model = Path(run.folder) / "model.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tsdp.load(with_texts(model, tmp_path / "whole.pt", privacy={**run.privacy.document, "state": "finished"}))
    with pytest.warns(UserWarning, match="its run is not finished"):
        tsdp.load(with_texts(model, tmp_path / "part.pt", privacy={**run.privacy.document, "state": "interrupted"}))


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tsdp.DataError, match="no such file"):
        tsdp.load(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("no archive")
    with pytest.raises(tsdp.DataError, match="cannot be read as a model"):
        tsdp.load(tmp_path / "text.pt")


@pytest.mark.parametrize("level", [(), (0.0,), (1.0,), (0.5, 0.5), (1e-9,), ("a",), 0.5])
def test_quantiles_lie_between_0_and_1(level: Any, run: tsdp.Run) -> None:
    with pytest.raises(tsdp.UsageError, match="quantiles"):
        run.model.predict(hourly_frame(1, 60), quantiles=level)


@pytest.mark.parametrize(
    "name, value", [("n", 2.5), ("n", "2"), ("samples", 1.5), ("samples", "many"), ("seed", -1), ("seed", "x"), ("candidates", "file.pt")]
)
def test_arguments_of_other_types_are_refused(name: str, value: Any, run: tsdp.Run) -> None:
    with pytest.raises(tsdp.UsageError, match=f"{name}: found {value!r}; expected"):
        run.model.predict(hourly_frame(1, 60), **{name: value})


def test_devices_and_folders_that_are_not_there_are_refused(run: tsdp.Run, tmp_path: Path) -> None:
    with pytest.raises(tsdp.UsageError, match="device: found 'zzz'"):
        tsdp.load(run.folder / "model.pt", "zzz")
    with pytest.raises(tsdp.UsageError, match="in a folder that is not there"):
        formats.export(run.folder / "model.pt", tmp_path / "none" / "model.onnx", "onnx")
    for read in lambda: tsdp.Run(tmp_path).privacy, lambda: tsdp.Run(tmp_path).to_tensorboard():
        with pytest.raises(tsdp.DataError, match="expected the folder of a run"):
            read()
