"""Training on a pandas frame, by tsdp-train."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

import pandas as pd

from .calendars import Frequency
from .covariates import Covariates
from .errors import DataError, UsageError
from .frames import series_of
from .ledger import Ledger
from .model import Model, load
from .programs import run_program


@dataclass(frozen=True)
class Run:
    """A finished run. Of its folder, what is under `private/` is not for release."""

    folder: Path

    @property
    def model(self) -> Model:
        """The trained model."""
        return load(self.folder / "model.pt")

    @property
    def privacy(self) -> Ledger:
        """What the run states of its privacy."""
        return Ledger(json.loads((self.folder / "privacy.json").read_text()))

    @property
    def report(self) -> Path:
        """One page to look at; it shows data."""
        return self.folder / "private" / "report.html"


def train(
    frame: pd.DataFrame,
    output: str | os.PathLike[str],
    *,
    frequency: str,
    prediction_length: int,
    season_length: int | None = None,
    model: str = "dlinear",
    epsilon: float | None = 1.0,
    delta: float = 1e-7,
    settings: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None,
    covariates: pd.DataFrame | None = None,
    quiet: bool = True,
    item_id: str | None = None,
    timestamp: str | None = None,
    target: str | None = None,
) -> Run:
    """Trains on the series of `frame` and leaves the run in the folder `output`, which must not be there.

    `frame` is long or wide, as `Model.predict` reads it. `frequency` is one step ("1h", "10min", "1D", "1M"); `prediction_length`
    and `season_length` count steps, and the season is the frequency's usual one unless given (24 of hours, 7 of days). The model
    is private with (`epsilon`, `delta`); without privacy with `epsilon` None. What the guarantee does not cover stands in
    `Run.privacy.not_covered`.

    Settings that are not given are `auto`: tsdp chooses them from public facts (`tsdp-train --advise`). `settings` changes any
    option of docs/options.md: `{"privacy.w": 24, "sampling.batch_size": 64}`. `data`: a CSV file that the series are written to
    and stay in, as `tsdp-evaluate --run` and `tsdp-train --resume` read them; without it they are deleted after training.
    `covariates`: what is known of every step and public (`tsdp.holidays`), as columns of a frame with a DatetimeIndex; for
    `model="deepar"`, which then forecasts as `run.model.with_covariates(frame)`. With `data` they are kept beside it, in `NAME.covariates.csv`.
    Progress goes to stderr unless `quiet`.

    Raises UsageError for arguments, DataError for frames and PrivacyError for settings that no theorem covers, with the line of
    the program; ProgramError where the program is not found.
    """
    if os.path.lexists(output):
        raise UsageError(f"output: found '{os.fspath(output)}', which is there already; expected a new folder")
    steps = Frequency.parse(frequency)
    options: dict[str, Any] = {
        "dataset.format": "csv_long",
        "dataset.frequency": frequency,
        "dataset.prediction_length": prediction_length,
        "dataset.season_length": steps.usual_season if season_length is None else season_length,
        "dataset.split": "last",
        "model.name": model,
        "model.prior": "auto",
        "model.start": "auto",
        "model.context_length": "auto",
        "model.lags": "auto",
        "sampling.batch_size": "auto",
        "training.max_epochs": "auto",
        "optimizer.learning_rate": "auto",
    }
    if epsilon is None:
        options["privacy.enabled"] = "false"
    else:
        options |= {"privacy.target_epsilon": epsilon, "privacy.delta": delta, "privacy.noise_multiplier": "auto"}
    options |= dict(settings or {})
    parts = []
    for one in series_of(frame, steps, item_id, timestamp, target):
        parts.append(pd.DataFrame({"unique_id": one.item_id, "ds": steps.steps_from(one.start, len(one.values)), "y": one.values}))
    with tempfile.TemporaryDirectory(prefix="tsdp_") as scratch:
        file = Path(data).resolve() if data is not None else Path(scratch) / "series.csv"
        file.touch(mode=0o600)
        pd.concat(parts, ignore_index=True).to_csv(file, index=False, date_format="%Y-%m-%d %H:%M:%S")
        about: dict[str, Any] = {"path": str(file)}
        if covariates is not None:
            beside = file.with_suffix(".covariates.csv")
            if os.path.lexists(beside):
                raise UsageError(f"data: found '{beside}', where the covariates are written to; expected a name beside which it is not there")
            names = [str(name) for name in covariates.columns] if isinstance(covariates, pd.DataFrame) else []
            known = Covariates.of_frame(covariates, names, steps)
            table = pd.DataFrame(known.values, columns=names, index=steps.steps_from(known.start, len(known.values)))
            table.to_csv(beside, index_label="timestamp", date_format="%Y-%m-%d %H:%M:%S")
            about["covariates"] = {"file": str(beside)}
        config = Path(scratch) / "config.yaml"
        config.write_text(json.dumps({"dataset": about}))
        sets = [f"--set={name}={_text(value)}" for name, value in options.items()]
        try:
            run_program("tsdp-train", [f"--config={config}", f"--output={os.fspath(output)}", *sets], quiet=quiet)
        except BaseException:
            if covariates is not None and not os.path.lexists(output):
                beside.unlink()  # so that the same call, set right, finds its place free
            raise
    folder = Path(output)
    if not (folder / "model.pt").is_file():
        raise DataError(f"{folder}: holds no model.pt after training; expected one")
    return Run(folder)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return str(value)
