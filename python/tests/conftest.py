"""Models of all four kinds, trained for a moment; without tsdp's programs these tests are skipped, and fail where CI is set."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tsdp
from tsdp.programs import program

MODELS = ("simple_ff", "dlinear", "itransformer", "deepar")


def needed(module: str) -> Any:
    """The module; without it a test is skipped, and fails where CI is set, which installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no module {module} here")


def assert_close(found: Any, expected: Any) -> None:
    """Equal to single precision, whose error is of the size of the largest number in a row: a mean near 0 is a sum of large numbers."""
    if isinstance(found, pd.DataFrame):
        names = ["item_id", "timestamp"]
        assert list(found.columns) == list(expected.columns)
        assert found[names].to_numpy().tolist() == expected[names].to_numpy().tolist()
        found, expected = found.drop(columns=names), expected.drop(columns=names)
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    allowed = 1e-6 * (1.0 + np.abs(expected).max(axis=-1, keepdims=True))
    worst = np.abs(found - expected) / allowed
    assert (worst <= 1.0).all(), f"{np.nanmax(worst)} times the rounding: {found[~(worst <= 1.0)]}, expected {expected[~(worst <= 1.0)]}"


def hourly_frame(series: int = 5, length: int = 260) -> pd.DataFrame:
    """Waves of differing size, start and length, with missing values and missing rows; the model's past is longer than one of them."""
    random = np.random.default_rng(7)
    parts = []
    for number in range(series):
        count = length - 31 * number
        times = pd.date_range("2024-01-30 05:00", periods=count, freq="h") + pd.Timedelta(hours=3 * number)
        values = 10.0 * (number + 1) + np.sin(np.arange(count) / 24 * 2 * np.pi) + 0.1 * random.standard_normal(count)
        values[5 + number : 9 + number] = np.nan
        part = pd.DataFrame({"item_id": f"meter {number}", "timestamp": times, "target": values.round(4)})
        parts.append(part.drop(part.index[[20, 21, 40 + number]]))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="session")
def programs() -> None:
    try:
        program("tsdp-train")
    except tsdp.ProgramError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=MODELS)
def run(request: pytest.FixtureRequest, programs: None, tmp_path_factory: pytest.TempPathFactory) -> tsdp.Run:
    folder: Path = tmp_path_factory.mktemp("runs") / request.param
    settings = {
        "training.max_epochs": 3,
        "model.context_length": 24,
        "model.start": "fresh",
        "model.prior": "none",
        "optimizer.learning_rate": 0.001,
        "dataset.test_windows": 1,
        "dataset.validation_length": 6,
    }
    if request.param == "deepar":
        settings["model.lags"] = [1, 2, 24]
    return tsdp.train(hourly_frame(), folder, frequency="1h", prediction_length=6, model=request.param, settings=settings)
