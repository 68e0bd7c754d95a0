"""tsdp's programs as functions: answers, and errors of their exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

import tsdp
from conftest import hourly_frame


def test_answers_are_dictionaries(programs: None) -> None:
    found = tsdp.account("epsilon", relation="series", top_level="poisson", batches=100, epochs=10, noise_multiplier=2, delta=1e-6)
    assert 0.0 < found["epsilon"]["lower"] <= found["epsilon"]["upper"]
    profile = tsdp.account("profile", relation="series", top_level="poisson", batches=100, epochs=10, noise_multiplier=2, epsilons=[0.5, 1])
    assert [one["epsilon"] for one in profile["profile"]] == [0.5, 1.0]


def test_refusals_have_their_kind_and_line(programs: None, tmp_path: Path) -> None:
    with pytest.raises(tsdp.UsageError, match="delta"):
        tsdp.account("epsilon", relation="series", top_level="poisson", batches=100, epochs=10, noise_multiplier=2)
    with pytest.raises(tsdp.UsageError, match="none"):
        tsdp.account("verify", str(tmp_path / "none"))
    (tmp_path / "privacy.json").write_text("{")
    with pytest.raises(tsdp.DataError, match="privacy.json"):
        tsdp.account("verify", str(tmp_path / "privacy.json"))
    with pytest.raises(tsdp.PrivacyError, match="deterministic"):
        tsdp.train(hourly_frame(), tmp_path / "run", frequency="1h", prediction_length=6,
                   settings={"privacy.noise.mechanism": "bsr", "privacy.relation": "series", "sampling.top_level": "poisson"})
    with pytest.raises(tsdp.UsageError, match="there already"):
        tsdp.train(hourly_frame(), tmp_path, frequency="1h", prediction_length=6)


def test_programs_are_looked_for_where_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TSDP_BIN", str(tmp_path))
    with pytest.raises(tsdp.ProgramError, match="TSDP_BIN"):
        tsdp.account("epsilon")


def test_deepar_needs_no_lags(programs: None, tmp_path: Path) -> None:
    settings = {"training.max_epochs": 1, "model.start": "fresh", "model.context_length": 24, "dataset.test_windows": 1, "dataset.validation_length": 6}
    run = tsdp.train(hourly_frame(3, 500), tmp_path / "run", frequency="1h", prediction_length=6, model="deepar", settings=settings)
    assert "lags: [1, 2, 3, 4, 5, 6, 7, 23, 24, 25, 47," in (run.folder / "config.yaml").read_text()
