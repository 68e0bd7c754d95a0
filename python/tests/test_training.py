"""What `tsdp.train` writes, refuses, prints and scores. One run serves most of these tests."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Callable

import numpy as np
import pandas as pd
import pytest

import tsdp
from conftest import hourly_frame, needed
from tsdp.programs import program, run_program

SETTINGS = {"training.max_epochs": 1, "model.start": "fresh", "model.context_length": 24, "dataset.test_windows": 1, "dataset.validation_length": 6, "optimizer.learning_rate": 0.001}


def bills(names: tuple[str, ...], months: int = 40) -> pd.DataFrame:
    """Monthly, on the 30th, from a February on."""
    times = [pd.Timestamp("2015-02-28") + pd.DateOffset(months=month) for month in range(months)]
    times = [time.replace(day=min(30, time.days_in_month)) for time in times]
    parts = [pd.DataFrame({"item_id": name, "timestamp": times, "target": 10.0 * (place + 1) + np.arange(months) % 12}) for place, name in enumerate(names)]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def kept(programs: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[tsdp.Run, Path, str, list[str]]:
    """A run whose data stay, the file, what was printed and warned of."""
    folder = tmp_path_factory.mktemp("Läufe")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        run = tsdp.train(
            bills(("北京", " 北京", "NA", 'a "b", c')), folder / "Lauf", frequency="ME", prediction_length=6, data=folder / "Zähler.csv", epsilon=None,
            settings=SETTINGS | {"model.name": "simple_ff"},
        )
    return run, folder / "Zähler.csv", printed.getvalue(), [str(one.message) for one in warned]


def test_training_data_may_stay(kept: tuple[tsdp.Run, Path, str, list[str]]) -> None:
    run, file, _, _ = kept
    assert file.stat().st_mode & 0o077 == 0
    assert not run.privacy.is_private and run.privacy.epsilon is None
    assert run.report.is_file()


def test_the_file_of_the_data_keeps_names_and_days(kept: tuple[tsdp.Run, Path, str, list[str]], tmp_path: Path) -> None:
    _, file, _, warned = kept
    run_program("tsdp-data", ["convert", str(file), str(tmp_path / "b.csv"), "--to=csv_long", "--frequency=1M"])
    back = pd.read_csv(tmp_path / "b.csv", keep_default_na=False, parse_dates=["ds"])
    assert list(back["unique_id"].unique()) == ["北京", " 北京", "NA", 'a "b", c']
    assert set(back["ds"].dt.day) == {28, 29, 30}
    assert any("'北京' and ' 北京' differ by case or outer spaces alone" in one for one in warned)


def test_forecasts_stay_on_their_day(kept: tuple[tsdp.Run, Path, str, list[str]], tmp_path: Path) -> None:
    run, _, _, _ = kept
    frame = bills(("a", "b"), 37)
    found = run.model.predict(frame)
    assert " ".join(found["timestamp"].head(6).dt.strftime("%Y-%m-%d")) == "2018-03-30 2018-04-30 2018-05-30 2018-06-30 2018-07-30 2018-08-30"
    source, result = tmp_path / "f.csv", tmp_path / "out.csv"
    frame.to_csv(source, index=False)
    run_program("tsdp-forecast", [f"--model={run.folder / 'model.pt'}", f"--input={source}", f"--output={result}"])
    pd.testing.assert_series_equal(found["timestamp"], pd.read_csv(result, parse_dates=["timestamp"])["timestamp"], check_dtype=False)


def test_training_prints_its_closing_line(kept: tuple[tsdp.Run, Path, str, list[str]]) -> None:
    _, _, printed, _ = kept
    assert printed.count("\n") == 1
    assert printed.startswith("on the test windows: CRPS ") and "epsilon does not cover scores" in printed


def test_scores_are_those_of_tsdp_evaluate(kept: tuple[tsdp.Run, Path, str, list[str]]) -> None:
    run, _, printed, _ = kept
    expected = json.loads(run_program("tsdp-evaluate", [f"--run={run.folder}", "--json", "--quiet"]).result)
    for scores in (run.scores, tsdp.Run(run.folder).scores):
        assert dict(scores) == expected
        assert scores["epsilon_does_not_cover"] == ["metrics", "baselines", "best_free"]
        assert "no epsilon covers them" in scores.not_covered and scores.not_covered in str(scores) and scores.not_covered in repr(scores)
    assert f"{run.scores['metrics']['mean_weighted_quantile_loss']:.4g}" in printed


def test_scores_outlive_the_data(programs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tsdp.train(hourly_frame(3), tmp_path / "run", frequency="H", prediction_length=6, settings=SETTINGS | {"privacy.noise_multiplier": 4, "privacy.composition": "symmetrised"})
    assert "on the test windows: " in capsys.readouterr().out
    assert run.scores["windows"] == 3 and run.scores["epsilon_covers"] == ["model"]
    with pytest.raises(tsdp.Error):
        tsdp.Run(tmp_path / "run").scores
    with pytest.raises(tsdp.DataError, match="no longer there; expected a run of train with the argument data"):
        run.evaluate(split="validation")
    again = tsdp.Run(str(tmp_path / "run"))  # type: ignore[arg-type]
    assert again == run and again.model.name == run.model.name and again.privacy.statement == run.privacy.statement


def test_a_run_that_is_interrupted_keeps_its_series(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    output, settings = tmp_path / "run", SETTINGS | {"privacy.noise_multiplier": 1000, "privacy.composition": "symmetrised", "training.max_epochs": 1_000_000}

    class Interrupts:
        def __enter__(self) -> Callable[[], None]:
            return self.look

        def __exit__(self, *_: object) -> None:
            pass

        def look(self) -> None:
            if (output / "private" / "checkpoints" / "last.pt").is_file():
                raise KeyboardInterrupt

    monkeypatch.setattr("tsdp.training.watching", lambda *_, **__: Interrupts())
    with pytest.raises(KeyboardInterrupt):
        tsdp.train(hourly_frame(3), output, frequency="1h", prediction_length=6, settings=settings)
    assert f"Go on with: tsdp-train --resume {output}" in capsys.readouterr().err
    said = subprocess.Popen([program("tsdp-train"), f"--resume={output}", "--quiet"], stderr=subprocess.PIPE, encoding="utf-8")
    time.sleep(2.0)
    said.send_signal(signal.SIGINT)
    assert "interrupted after step" in said.communicate()[1]


def test_no_file_is_written_over(programs: None, tmp_path: Path) -> None:
    mine, known = tmp_path / "mine.csv", pd.DataFrame({"x": 0.0}, index=pd.date_range("2024-01-30", periods=400, freq="h"))
    mine.write_text("precious")
    (tmp_path / "new.covariates.csv").write_text("precious")
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere.csv")
    for name, said in (
        ("mine.csv", "there already"),
        ("link.csv", "there already"),
        ("new.csv", "new.covariates.csv"),
        ("none/new.csv", "no folder"),
        ("run", "which is the output, too"),
        ("x/../run", "no folder|the output"),
    ):
        with pytest.raises(tsdp.UsageError, match=said):
            tsdp.train(hourly_frame(), tmp_path / "run", frequency="1h", prediction_length=6, data=tmp_path / name, covariates=known, model="deepar")
    with pytest.raises(tsdp.UsageError, match="output: .*there already"):
        tsdp.train(hourly_frame(), mine, frequency="1h", prediction_length=6)
    assert mine.read_text() == (tmp_path / "new.covariates.csv").read_text() == "precious"
    assert not (tmp_path / "nowhere.csv").exists() and sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "mine.csv", "new.covariates.csv"]


def test_a_file_that_comes_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    from tsdp.training import _write_new

    (tmp_path / "mine.csv").write_text("precious")
    with pytest.raises(tsdp.UsageError, match="there already"):
        _write_new(tmp_path / "mine.csv", [hourly_frame()], [])
    assert (tmp_path / "mine.csv").read_text() == "precious"


def test_what_is_refused_leaves_nothing(programs: None, tmp_path: Path) -> None:
    known = pd.DataFrame({"x": 0.0}, index=pd.date_range("2024-01-30", periods=600, freq="h"))
    with pytest.raises(tsdp.DataError, match="found 260 values"):
        tsdp.train(hourly_frame(1), tmp_path / "run", frequency="1h", prediction_length=300, data=tmp_path / "new.csv", covariates=known, model="deepar")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"timestamp": range(260)}, "times that cannot be read"),
        ({"target": pd.Timestamp("2024-01-01")}, "no numbers"),
        ({"item_id": "a\nb"}, "line breaks"),
        ({"item_id": "\ud800"}, "line breaks"),
        ({"timestamp": pd.date_range("2024-01-01", periods=260)}, "steps of 1D, for a frequency of 1h"),
        ({"timestamp": pd.date_range("2024-01-01", periods=130, freq="h").repeat(2)}, r"twice; expected each once: frame.groupby"),
    ],
)
def test_frames_are_refused_before_anything_is_written(change: dict[str, object], said: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2024-01-01", periods=260, freq="h"), "target": 1.0}).assign(**change)
    with pytest.raises(tsdp.DataError, match=said):
        tsdp.train(frame, tmp_path / "run", frequency="1h", prediction_length=6, data=tmp_path / "new.csv")
    assert list(tmp_path.iterdir()) == []


def test_settings_about_files_are_refused_for_frames(tmp_path: Path) -> None:
    for name in ("dataset.duplicates", "dataset.gaps"):
        for call in (lambda **given: tsdp.train(hourly_frame(1), tmp_path / "run", **given), lambda **given: tsdp.plan(hourly_frame(1), **given)):
            with pytest.raises(tsdp.UsageError, match=f"settings: found {name}, which is about files"):
                call(prediction_length=6, settings={name: "mean"})


def test_warnings_of_a_program_are_python_s(programs: None, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("unique_id,ds,y,price\nA,2024-01-01,1,2\nA,2024-01-02,1,2\nA,2024-01-03,1,2\n")
    with pytest.warns(UserWarning, match="ignored the column 'price'"):
        run_program("tsdp-data", ["describe", str(tmp_path / "f.csv")])


def test_tensorboard_shows_what_was_logged(run: tsdp.Run) -> None:
    accumulators = needed("tensorboard.backend.event_processing.event_accumulator")
    logged: dict[str, list[tuple[int, float]]] = {}
    for line in (run.folder / "private" / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for name in entry.keys() - {"step", "epoch"}:
            logged.setdefault(name, []).append((entry["step"], pytest.approx(entry[name], rel=1e-6)))
    assert len(logged["loss"]) > 1 and logged["epsilon_upper"]
    for _ in range(2):  # a second time in place of the first
        with (run.folder / "private" / "metrics.jsonl").open("a") as log:
            log.write('{"step": 7, "lo')  # as a crash leaves it
        folder = run.to_tensorboard()
        assert folder.stat().st_mode & 0o077 == 0
        shown = accumulators.EventAccumulator(str(folder), size_guidance={"scalars": 0})
        shown.Reload()
        assert {name: [(event.step, event.value) for event in shown.Scalars(name)] for name in shown.Tags()["scalars"]} == logged


def test_a_run_evaluates_forecasts_and_verifies(programs: None, tmp_path: Path) -> None:
    frame = hourly_frame(3)
    run = tsdp.train(frame, tmp_path / "run", frequency="1h", prediction_length=6, data=tmp_path / "d.csv", settings=SETTINGS)
    assert run.evaluate() == run.scores
    of_each = run.evaluate(split="validation", per_series=True)
    assert of_each["windows"] == 3 and [one["series"] for one in of_each["by_series"]] == list(frame["item_id"].unique())
    found = run.verify()
    assert found["agrees"] and found["statement"] == run.privacy.statement
    pd.testing.assert_frame_equal(run.forecast(frame, quantiles=[0.5]), run.model.predict(frame, quantiles=[0.5]))
    # Next to no noise: the forecasts of the true values, to its size.
    nearly = run.forecast(frame, quantiles=[0.1, 0.9], private={"epsilon": 20, "delta": 1e-5, "v": 1e-3})
    open_ = run.forecast(frame, quantiles=[0.1, 0.9])
    assert list(nearly.columns) == list(open_.columns) and list(nearly["item_id"]) == list(open_["item_id"])
    assert list(nearly["timestamp"]) == list(open_["timestamp"])
    np.testing.assert_allclose(nearly["mean"], open_["mean"], rtol=0.05)
    assert nearly.attrs["inference_privacy"]["v"] == 1e-3
    noisy = run.forecast(frame, quantiles=[0.1, 0.9], private={"epsilon": 0.1, "delta": 1e-5, "v": 50.0})
    assert np.abs(noisy["mean"] - open_["mean"]).mean() > 1.0
    with pytest.raises(tsdp.UsageError, match="--v"):
        run.forecast(frame, private={"epsilon": 1, "delta": 1e-5})
    # What travels with a private forecast says that the training counts, too; its times have the zone of the series.
    assert nearly.attrs["inference_privacy"]["with_training"]["epsilon"] > 20
    zoned = frame.assign(timestamp=frame["timestamp"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    there = run.forecast(zoned, quantiles=[0.1], private={"epsilon": 20, "delta": 1e-5, "v": 1e-3})
    assert list(there["timestamp"]) == list(run.forecast(zoned, quantiles=[0.1])["timestamp"])
    statement = json.loads((run.folder / "privacy.json").read_text())
    statement["noise_multiplier"] = 100.0
    (run.folder / "privacy.json").write_text(json.dumps(statement))
    with pytest.raises(tsdp.PrivacyError, match="noise_multiplier|does not agree|epsilon"):
        run.verify()


def test_runs_and_models_can_be_pickled(run: tsdp.Run) -> None:
    again = pickle.loads(pickle.dumps(run))
    assert again == run
    model = pickle.loads(pickle.dumps(run.model))
    frame = hourly_frame(2)
    pd.testing.assert_frame_equal(model.predict(frame, seed=1), run.model.predict(frame, seed=1))


def test_levels_of_an_index_are_columns(run: tsdp.Run) -> None:
    frame = hourly_frame(2)
    expected = run.model.predict(frame, seed=1)
    indexed = frame.set_index(["item_id", "timestamp"])
    pd.testing.assert_frame_equal(run.model.predict(indexed, seed=1), expected)
    pd.testing.assert_frame_equal(run.model.predict(indexed["target"].rename(None), seed=1), expected)


def test_a_plan_trains_nothing(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"frequency": "1h", "prediction_length": 6, "epsilon": 2.0, "settings": SETTINGS}
    plan = tsdp.plan(hourly_frame(3), **options)
    assert plan["epsilon"]["upper"] <= 2.0 and plan["expectation"]["pays"] in (True, False, None)
    assert list(tmp_path.iterdir()) == []
    run = tsdp.train(hourly_frame(3), tmp_path / "run", **options)
    assert run.privacy.document["steps_planned"] == plan["steps"]
    assert run.privacy.epsilon.upper == plan["epsilon"]["upper"]
    with pytest.raises(tsdp.UsageError, match="output"):
        tsdp.train(hourly_frame(3), tmp_path / "run", **options)


def test_the_frequency_is_that_of_the_frame(programs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = hourly_frame(3).assign(home="one")
    expected = tsdp.plan(frame, frequency="1h", prediction_length=6, settings=SETTINGS, owner="home")
    assert capsys.readouterr().out == ""
    assert tsdp.plan(frame, prediction_length=6, settings=SETTINGS, owner="home") == expected
    assert capsys.readouterr().out == "frequency: 1h, by the times of the frame\n"
    run = tsdp.train(frame.drop(columns="home"), tmp_path / "run", prediction_length=6, settings=SETTINGS)
    assert capsys.readouterr().out.startswith("frequency: 1h, by the times of the frame\non the test windows: ")
    assert (str(run.model.frequency), run.model.prediction_length) == ("1h", 6)
    with pytest.raises(tsdp.DataError, match="the argument frequency"):
        tsdp.train(frame.head(2), tmp_path / "none", prediction_length=6)


def test_all_series_of_an_owner_are_one_record(programs: None, tmp_path: Path) -> None:
    frame = hourly_frame(4)
    names = list(dict.fromkeys(frame["item_id"]))
    homes = dict(zip(names, ["north", "south", "north", "east"]))
    options = {"frequency": "1h", "prediction_length": 6, "epsilon": 8.0, "delta": 1e-2, "settings": {"training.max_epochs": 20}}
    run = tsdp.train(frame.assign(home=frame["item_id"].map(homes)), tmp_path / "run", owner="home", **options)
    assert run.privacy.document["relation"]["kind"] == "owner"
    assert run.privacy.document["mechanism"]["num_sequences"] == 3
    assert run.verify()["agrees"]
    assert tsdp.plan(frame, owner=homes, **options)["owned_series"] == 4
    for owner, said in ({names[0]: "north"}, "found none of series"), ("street", "no column"), (homes | {names[1]: float("nan")}, "found none"):
        with pytest.raises(tsdp.DataError, match=said):
            tsdp.plan(frame, owner=owner, **options)
    # One owner, as Python and pandas have it.
    assert tsdp.plan(frame, owner=dict(zip(names, [1, 2.0, 1.0, 2])), **options)["sequences"] == 2
    for mixed, said in ([7, "7", 8, 9], "two owners that are both written '7'"), ([[1], 2, 3, 4], "expected a name or a number"):
        with pytest.raises(tsdp.DataError, match=said):
            tsdp.plan(frame, owner=dict(zip(names, mixed)), **options)
    moved = frame.assign(home=["a", *["b"] * (len(frame) - 1)])
    with pytest.raises(tsdp.DataError, match="several owners"):
        tsdp.plan(moved, owner="home", **options)
