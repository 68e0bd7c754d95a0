"""What `Run.to_mlflow` logs: to an MLflow that only remembers, and to MLflow where it is installed."""

from __future__ import annotations

import contextlib
import json
import sys
import types
from pathlib import Path
from typing import Any, Iterator

import pytest

import tsdp
from conftest import hourly_frame

SETTINGS = {"training.max_epochs": 1, "model.start": "fresh", "model.context_length": 24, "dataset.test_windows": 1, "dataset.validation_length": 6}
ARTIFACTS = {"model.pt", "privacy.json", "model_card.md", "config.yaml"}


class Remembered:
    """What was logged."""

    def __init__(self) -> None:
        self.params: dict[str, str] = {}
        self.metrics: dict[str, float] = {}
        self.tags: dict[str, str] = {}
        self.artifacts: list[str] = []
        self.names: list[str] = []

    def module(self) -> types.ModuleType:
        """An `mlflow` with the functions that are used."""
        out: Any = types.ModuleType("mlflow")
        out.active_run = lambda: None
        out.start_run = self.start_run
        out.log_params = self.params.update
        out.log_metrics = self.metrics.update
        out.set_tags = self.tags.update
        out.set_tag = self.tags.__setitem__
        out.log_artifact = lambda file: self.artifacts.append(Path(file).name)
        out.log_dict = lambda logged, place: self.artifacts.append(place)
        return out

    @contextlib.contextmanager
    def start_run(self, run_name: str) -> Iterator[Any]:
        self.names.append(run_name)
        yield types.SimpleNamespace(info=types.SimpleNamespace(run_id="an id"))


@pytest.fixture(scope="module")
def finished(programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    return tsdp.train(hourly_frame(3), tmp_path_factory.mktemp("runs") / "mine", prediction_length=6, settings=SETTINGS)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remembered]:
    out = Remembered()
    monkeypatch.setitem(sys.modules, "mlflow", out.module())
    sys.modules.pop("tsdp.mlflow", None)
    yield out
    sys.modules.pop("tsdp.mlflow", None)


def assert_logged(run: tsdp.Run, params: dict[str, str], metrics: dict[str, float], tags: dict[str, str]) -> None:
    assert (params["model.name"], params["privacy.target_epsilon"], params["privacy.enabled"]) == ("dlinear", "1", "true")
    assert metrics["epsilon_upper"] == run.privacy.epsilon.upper and metrics["delta"] == 1e-7
    assert tags["tsdp.statement"] == run.privacy.statement and all(sentence in tags["tsdp.not_covered"] for sentence in run.privacy.not_covered)
    assert run.privacy.not_covered
    assert metrics["private/scores/model/ND"] == run.scores["metrics"]["ND"]
    assert metrics["private/scores/seasonal_naive/ND"] == run.scores["baselines"]["seasonal_naive"]["ND"]
    assert "no epsilon covers them" in tags["private/scores"]
    assert {name for name in metrics if not name.startswith("private/")} == {"epsilon_upper", "delta"}


def test_scores_are_private_and_the_rest_is_what_may_be_released(finished: tsdp.Run, remembered: Remembered) -> None:
    assert finished.to_mlflow() == "an id" and remembered.names == ["mine"]
    assert_logged(finished, remembered.params, remembered.metrics, remembered.tags)
    assert set(remembered.artifacts) == {*ARTIFACTS, "private/scores.json"}
    assert not any("loss" in name for name in remembered.metrics if "/scores/" not in name)


def test_scores_may_be_left_out(finished: tsdp.Run, remembered: Remembered) -> None:
    finished.to_mlflow("mine", scores=False)
    assert set(remembered.metrics) == {"epsilon_upper", "delta"} and set(remembered.artifacts) == ARTIFACTS
    assert not any("private" in name for name in remembered.tags)


def test_a_run_without_a_model_is_refused(finished: tsdp.Run, remembered: Remembered, tmp_path: Path) -> None:
    with pytest.raises(tsdp.DataError, match="holds no model.pt; expected a finished run"):
        tsdp.Run(tmp_path).to_mlflow()
    assert remembered.names == []


def test_mlflow_keeps_what_is_logged(finished: tsdp.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    try:
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("forecasts", artifact_location=(tmp_path / "artifacts").as_uri()))
        with mlflow.start_run() as active:
            assert finished.to_mlflow() == active.info.run_id  # in the active run, which stays so
            assert mlflow.active_run().info.run_id == active.info.run_id
        own = finished.to_mlflow("a name")
        for found in map(mlflow.get_run, (active.info.run_id, own)):
            assert_logged(finished, found.data.params, found.data.metrics, found.data.tags)
            kept = tmp_path / "artifacts" / found.info.run_id / "artifacts"
            assert {file.name for file in kept.iterdir()} == {*ARTIFACTS, "private"}
            assert json.loads((kept / "private" / "scores.json").read_text()) == dict(finished.scores)
            assert (kept / "model_card.md").read_bytes() == finished.card.read_bytes()
        assert found.info.run_name == "a name" and found.info.status == "FINISHED"
    finally:
        mlflow.set_tracking_uri(before)


def test_a_missing_package_is_named(finished: tsdp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sys.modules.pop("tsdp.mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match="no package mlflow.*; install it with: pip install mlflow$"):
        finished.to_mlflow()
