"""Training on a pandas frame, by tsdp-train."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

import pandas as pd

from .calendars import Frequency
from .covariates import Covariates
from .errors import DataError, Error, UsageError, first_line
from .frames import Series, frequency_of, owners_of, series_of, variables_of, without_owners
from .ledger import Ledger
from .model import DEFAULT_QUANTILES, Model, load
from .programs import account, arguments_of, run_program
from .progress import watching

_CLOSING = ("on the test windows: ", "remark: ")  # what a run ends with
_TIMES = "%Y-%m-%d %H:%M:%S"


class Scores(dict[str, Any]):
    """Scores of a model on the test windows, as `tsdp-evaluate --json` has them. They compare with true values, so no epsilon covers them.

    >>> scores = Scores({"windows": 12, "metrics": {"mean_weighted_quantile_loss": 0.1, "ND": 0.125},
    ...                  "baselines": {"seasonal_naive": {"mean_weighted_quantile_loss": 0.2, "ND": 0.2}},
    ...                  "epsilon_covers": ["model"], "epsilon_does_not_cover": ["metrics", "baselines"]})
    >>> scores["metrics"]["ND"], scores.not_covered
    (0.125, 'The scores compare with true values: no epsilon covers them.')
    >>> print(scores)
                                       model  seasonal_naive
    mean_weighted_quantile_loss          0.1             0.2
    ND                                 0.125             0.2
    12 windows. The scores compare with true values: no epsilon covers them.
    """

    not_covered = "The scores compare with true values: no epsilon covers them."

    def __str__(self) -> str:
        of = {"model": self["metrics"], **self["baselines"]}
        shown = ("mean_weighted_quantile_loss", "ND", "NRMSE", "MASE", "sMAPE", "MSIS", "MAE_coverage")
        rows = ["".ljust(28) + "".join(name.rjust(max(12, len(name) + 2)) for name in of)]
        for metric in (name for name in shown if name in self["metrics"]):
            values = [scores.get(metric) for scores in of.values()]
            texts = ["-" if value is None else f"{value:.5g}" for value in values]
            rows.append(metric.ljust(28) + "".join(text.rjust(max(12, len(name) + 2)) for text, name in zip(texts, of)))
        remarks = [f"{remark}." for remark in self.get("remarks", [])]
        return "\n".join([*rows, *remarks, f"{self['windows']} windows. {self.not_covered}"])

    def __repr__(self) -> str:
        return str(self)  # (what a notebook shows)


@dataclass(frozen=True)
class Run:
    """A finished run. Of its folder, what is under `private/` is not for release."""

    folder: Path  # or its name
    _scores: list[Scores] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @property
    def model(self) -> Model:
        """The trained model."""
        return load(self.folder / "model.pt")

    @property
    def privacy(self) -> Ledger:
        """What the run states of its privacy."""
        file = self.folder / "privacy.json"
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: cannot be read ({first_line(error)}); expected the folder of a run") from None
        return Ledger(document)

    @property
    def card(self) -> Path:
        """The model's card in Markdown, without scores: it may be released with the model."""
        return self.folder / "model_card.md"

    @property
    def report(self) -> Path:
        """One page to look at; it shows data."""
        return self.folder / "private" / "report.html"

    @property
    def scores(self) -> Scores:
        """Scores on the test windows, by `tsdp-evaluate`: `run.scores["metrics"]["ND"]`. They compare with true values, so **no epsilon covers them**; `print`
        says so. Of a run whose data are no longer there, as those of `train` without `data`, they are those after training."""
        if not self._scores:
            said = run_program("tsdp-evaluate", [f"--run={os.fspath(self.folder)}", "--json", "--quiet"])
            self._scores.append(Scores(json.loads(said.result)))
        return self._scores[0]

    def evaluate(self, *, split: str = "test", baselines: Mapping[str, str | os.PathLike[str]] | None = None, per_series: bool = False) -> Scores:
        """Scores as `scores`, of the `"test"` or the `"validation"` windows, beside the forecasts of other programs in `baselines` (files of
        `tsdp-evaluate --baseline`, by name), and of each series, too (`by_series`). Reads the run's data. **No epsilon covers them.**"""
        others = [f"--baseline={name}={os.fspath(file)}" for name, file in (baselines or {}).items()]
        each = ["--per-series"] if per_series else []
        try:
            said = run_program("tsdp-evaluate", [f"--run={os.fspath(self.folder)}", f"--split={split}", *others, *each, "--json", "--quiet"])
        except DataError as error:
            if "dataset.path: no file" not in str(error):
                raise
            raise DataError(f"{self.folder}: its series are no longer there; expected a run of train with the argument data, which keeps them in a file") from None
        return Scores(json.loads(said.result))

    def forecast(
        self,
        frame: pd.DataFrame | pd.Series,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        private: Mapping[str, Any] | None = None,
        covariates: pd.DataFrame | None = None,
        item_id: str | None = None,
        timestamp: str | None = None,
        target: str | Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Forecasts of the steps after the end of each series of `frame`, as `Model.predict` has them.

        `private`: protects the series that are forecast, by noise on the values that a forecast reads (`tsdp-forecast --private`):
        `{"epsilon": 1, "delta": 1e-5, "v": 2.0}`, where `v` is the most by which a value changes between neighbours; `w` and
        `keep_probability` as there. What the forecasts then promise is `attrs["inference_privacy"]` of the frame. `covariates`: as
        `Model.with_covariates` takes them, for a model that reads some; a private forecast reads them as they are.
        """
        if private is None:
            model = self.model if covariates is None else self.model.with_covariates(covariates)
            return model.predict(frame, quantiles=quantiles, item_id=item_id, timestamp=timestamp, target=target)
        if variables_of(target) or self.model.variables:
            raise UsageError("private: found several variables of each series, for which it is not implemented; expected None")
        model = self.model
        series = series_of(frame, model.frequency, item_id, timestamp, target)
        _require_names_of_a_file(series)
        if model.covariates and covariates is None:
            raise UsageError(f"covariates: not given; this model reads {', '.join(model.covariates)}: expected the argument covariates")
        known = None if covariates is None else Covariates.of_frame(covariates, model.covariates, model.frequency)
        with tempfile.TemporaryDirectory(prefix="tsdp_") as scratch:
            file, made, beside = (Path(scratch) / name for name in ("series.csv", "forecasts.csv", "covariates.csv"))
            _write_new(file, _rows(series, model.frequency, []), [])
            options = {"private": True, **private, "quantiles": list(quantiles), "json": True, "quiet": True}
            places = [f"--model={self.folder / 'model.pt'}", f"--input={file}", f"--output={made}", "--format=csv_long"]
            if known is not None:
                known.check_clock(series)
                _write_new(beside, known.files(), [])
                places.append(f"--covariates={beside}")
            said = run_program("tsdp-forecast", [*places, *arguments_of(options)])
            out = pd.read_csv(made, parse_dates=["timestamp"], dtype={"item_id": str}, keep_default_na=False)
        names = {str(one.item_id): one.item_id for one in series}
        out["item_id"] = out["item_id"].map(names)
        out["timestamp"] = model.frequency.with_zone(pd.DatetimeIndex(out["timestamp"]), series[0].zone)  # (all series of a frame have one)
        out.attrs["inference_privacy"] = json.loads(said.result)["inference_privacy"]
        return out

    def verify(self) -> dict[str, Any]:
        """What `tsdp-account verify` derives anew from the terms that the run states, and that it agrees. Raises PrivacyError if it does not."""
        return account("verify", os.fspath(self.folder))

    def to_tensorboard(self) -> Path:
        """Writes the losses, gradient norms and epsilon of `private/metrics.jsonl` for TensorBoard, to `private/tensorboard` in place of what is there; returns
        that folder. Needs the package tensorboard. **No epsilon covers what it shows.**"""
        from torch.utils.tensorboard import SummaryWriter

        log = self.folder / "private" / "metrics.jsonl"
        if not log.is_file():
            raise DataError(f"{log}: not there; expected the folder of a run, with what is private in it")
        lines = log.read_text(encoding="utf-8").splitlines()
        folder = self.folder / "private" / "tensorboard"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        writer = SummaryWriter(str(folder))
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off by a crash
            for name in entry.keys() - {"step", "epoch"}:
                if entry[name] is not None:
                    writer.add_scalar(name, entry[name], entry["step"])
        writer.close()
        return folder

    def to_mlflow(self, name: str | None = None, *, scores: bool = True) -> str:
        """Logs the run to MLflow and returns its id there: in MLflow's active run, or else in a new one, of this `name` or that of the folder.

        Logged are the settings as parameters, `epsilon_upper` and `delta` as metrics, the statement and what it does not cover as tags, and `model.pt`,
        `privacy.json`, `model_card.md` and `config.yaml` as artifacts. Beside them stand the scores of the test windows, under `private/`: **no epsilon
        covers them**. With `scores` False they are left out, for a server that others read. Losses are never logged.

        Raises ImportError without the package mlflow, DataError for a run that is not finished, and what `scores` raises.
        """
        from .mlflow import log_run

        return log_run(self, name, scores)


def train(
    frame: pd.DataFrame,
    output: str | os.PathLike[str],
    *,
    prediction_length: int,
    frequency: str | None = None,
    season_length: int | None = None,
    model: str = "dlinear",
    epsilon: float | None = 1.0,
    delta: float = 1e-7,
    settings: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None,
    covariates: pd.DataFrame | None = None,
    owner: str | Mapping[Any, Any] | None = None,
    quiet: bool = True,
    progress: bool = True,
    item_id: str | None = None,
    timestamp: str | None = None,
    target: str | Sequence[str] | None = None,
) -> Run:
    """Trains on the series of `frame` and leaves the run in the folder `output`, which must not be there.

    `frame` is long or wide, as `Model.predict` reads it. `frequency` is one step ("1h", "10min", "1D", "1M", or as pandas calls it:
    `frame.index.freqstr`); without it, it is that of the frame's times, and printed. `prediction_length` and `season_length` count steps,
    and the season is the frequency's usual one unless given (24 of hours, 7 of days, 52 of weeks). The model is private with (`epsilon`, `delta`); without
    privacy with `epsilon` None. What the guarantee does not cover stands in `Run.privacy.not_covered`.

    Settings that are not given are `auto`: tsdp chooses them from public facts (`tsdp-train --advise`). `settings` changes any
    option of docs/options.md: `{"privacy.w": 24, "sampling.batch_size": 64}`. `data`: a new CSV file that the series are written to
    and stay in, as `tsdp-evaluate --run` and `tsdp-train --resume` read them; without it they are deleted after training.
    `covariates`: what is known of every step and public (`tsdp.holidays`), as columns of a frame with a DatetimeIndex; or of each series, of a frame
    indexed by the series' names and times, or by names alone, where columns of text are categories. The model then forecasts as
    `run.model.with_covariates(frame)`. They are protected like the values with `{"dataset.covariates.private": True}` in `settings`. With `data` they are kept beside it, in `NAME.covariates.csv`.
    `target`: the column of values; or several, the variables of each series: all that a series has at one step is then protected together, and
    `itransformer` forecasts them together.
    `owner`: whose each series is, as a column of a long frame or a mapping from the series' names: all series of one owner are then one record
    (`privacy.relation: series`, with the batches and the noise of least total error), as a household or a patient is.
    No file that is there already is written over. Prints the line that training closes with: scores, which epsilon does not cover, beside those of
    the start and of seasonal naive. While it trains, a line in a notebook or on a terminal shows the steps taken, the time and epsilon so far, and no loss,
    which no epsilon covers; `progress` False: none does. With `quiet` False all that the program says goes to stderr instead, losses and closing line too.

    Raises UsageError for arguments, DataError for frames and PrivacyError for settings that no theorem covers, with the line of
    the program; ProgramError where the program is not found.
    """
    if os.path.lexists(output):
        raise UsageError(f"output: found '{os.fspath(output)}', which is there already; expected a new folder")
    _refuse_settings_of_files(settings)
    places = _places(data, output, covariates is not None) if data is not None else None
    read = without_owners(frame, owner)
    steps = _step_of(frequency, read, item_id, timestamp, target)
    series = series_of(read, steps, item_id, timestamp, target)
    _require_names_of_a_file(series)
    owners = _owners(frame, series, owner, item_id, target)
    asked = _Asked(series, steps, prediction_length, season_length, model, epsilon, delta, settings, covariates, owners, variables_of(target))
    with _scratch_while_unfinished(Path(output)) as scratch:
        file, beside = places or (Path(scratch) / "series.csv", Path(scratch) / "series.covariates.csv")
        written: list[Path] = []
        try:
            arguments = asked.written(Path(scratch), file, beside, written)
            with watching(Path(output), wanted=progress and quiet) as watch:
                said = run_program("tsdp-train", [*arguments, f"--output={os.fspath(output)}"], quiet=quiet, watch=watch)
        except BaseException:
            if not os.path.lexists(output):
                for one in written:
                    one.unlink()  # so that the same call, set right, finds its place free
            raise
        run = Run(Path(output))
        if not (run.folder / "model.pt").is_file():
            raise DataError(f"{run.folder}: holds no model.pt after training; expected one")
        if places is None:
            try:
                run.scores  # while there are data to score with
            except Error as error:
                warnings.warn(f"no scores: {error}", stacklevel=2)
    for line in said.lines:
        if line.startswith(_CLOSING):
            print(line)
    return run


@contextlib.contextmanager
def _scratch_while_unfinished(output: Path) -> Iterator[str]:
    """A new temporary folder. It is kept where an error leaves a run that `tsdp-train --resume` can go on with, which reads its series from there."""
    scratch = tempfile.mkdtemp(prefix="tsdp_")
    is_needed = False
    try:
        yield scratch
    except BaseException:
        if (output / "private" / "checkpoints").is_dir() and not (output / "model.pt").is_file():
            print(f"The run has not ended. Go on with: tsdp-train --resume {shlex.quote(str(output))}", file=sys.stderr)
            is_needed = os.path.lexists(Path(scratch) / "series.csv")
            if is_needed:
                print(f"It reads its series from {scratch}, which you may delete afterwards.", file=sys.stderr)
        raise
    finally:
        if not is_needed:
            shutil.rmtree(scratch)


def plan(
    frame: pd.DataFrame,
    *,
    prediction_length: int,
    frequency: str | None = None,
    season_length: int | None = None,
    model: str = "dlinear",
    epsilon: float | None = 1.0,
    delta: float = 1e-7,
    settings: Mapping[str, Any] | None = None,
    covariates: pd.DataFrame | None = None,
    owner: str | Mapping[Any, Any] | None = None,
    item_id: str | None = None,
    timestamp: str | None = None,
    target: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """What `train` would do with the same arguments, as `tsdp-train --dry-run --json` has it: the steps, the noise, the epsilon at the end, and in
    `expectation` whether training is expected to pay. Trains nothing; follows from public facts alone. Raises as `train` does."""
    _refuse_settings_of_files(settings)
    read = without_owners(frame, owner)
    steps = _step_of(frequency, read, item_id, timestamp, target)
    series = series_of(read, steps, item_id, timestamp, target)
    _require_names_of_a_file(series)
    owners = _owners(frame, series, owner, item_id, target)
    asked = _Asked(series, steps, prediction_length, season_length, model, epsilon, delta, settings, covariates, owners, variables_of(target))
    with tempfile.TemporaryDirectory(prefix="tsdp_") as scratch:
        here = Path(scratch)
        arguments = asked.written(here, here / "series.csv", here / "series.covariates.csv", [])
        said = run_program("tsdp-train", [*arguments, f"--output={here / 'run'}", "--dry-run", "--json"])
    found: dict[str, Any] = json.loads(said.result)
    return found


def _refuse_settings_of_files(settings: Mapping[str, Any] | None) -> None:
    for name, instead in (("dataset.duplicates", "one row of each series and time: frame.groupby([name, time]).mean()"), ("dataset.gaps", "NaN where a value is missing")):
        if name in (settings or {}):
            raise UsageError(f"settings: found {name}, which is about files and has no effect on a frame; expected {instead}")


def _step_of(frequency: str | None, frame: pd.DataFrame | pd.Series, item_id: str | None, timestamp: str | None, target: str | Sequence[str] | None) -> Frequency:
    """The step that `frequency` names; without it that of the times of a frame, and says which."""
    if frequency is not None:
        return Frequency.parse(frequency)
    found = frequency_of(frame, item_id, timestamp, target)
    print(f"frequency: {found}, by the times of the frame")
    return found


def _owners(
    frame: pd.DataFrame, series: Sequence[Series], owner: str | Mapping[Any, Any] | None, item_id: str | None, target: str | Sequence[str] | None
) -> list[str] | None:
    if owner is None:
        return None
    if variables_of(target):
        raise UsageError("owner: given with several targets, for which it is not implemented; expected None: all variables of a series are one record anyway")
    return owners_of(frame, series, owner, item_id)


class _Asked:
    """The arguments of `train`, as the programs read them."""

    def __init__(
        self,
        series: Sequence[Series],
        steps: Frequency,
        prediction_length: int,
        season_length: int | None,
        model: str,
        epsilon: float | None,
        delta: float,
        settings: Mapping[str, Any] | None,
        covariates: pd.DataFrame | None,
        owners: Sequence[str] | None,
        variables: Sequence[str],
    ) -> None:
        self.series, self.steps, self.variables = series, steps, variables
        self.options: dict[str, Any] = {
            "dataset.format": "csv_long",
            "dataset.frequency": str(steps),
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
            self.options["privacy.enabled"] = "false"
        else:
            self.options |= {"privacy.target_epsilon": epsilon, "privacy.delta": delta, "privacy.noise_multiplier": "auto"}
        if variables:
            if "dataset.columns.value" in (settings or {}):
                raise UsageError("settings: found dataset.columns.value beside several targets; expected one of the two")
            if taken := {"unique_id", "ds", "owner"} & set(map(str, variables)):
                raise UsageError(f"target: found a variable '{taken.pop()}', the name of another column of the file that is trained on; expected another name")
            self.options["dataset.columns.value"] = json.dumps([str(name) for name in variables], ensure_ascii=False)
            self.options |= {"dataset.columns.item": "unique_id", "dataset.columns.time": "ds"}
        self.owners = owners
        if owners is not None:
            # The batches and the noise that whole records need.
            self.options |= {"dataset.owner.column": "owner", "privacy.relation": "series"}
            self.options |= {"sampling.top_level": "auto", "privacy.noise.mechanism": "auto"} if epsilon is not None else {}
        self.options |= dict(settings or {})
        self.known = None if covariates is None else Covariates.of_frame(covariates, None, steps)
        if self.known is not None:
            self.known.check_clock(series)

    def written(self, scratch: Path, file: Path, beside: Path, written: list[Path]) -> list[str]:
        """Writes the series to `file`, the covariates to `beside` and a configuration into `scratch`; `written` gets the first two as they are made.
        Returns the arguments of `tsdp-train`."""
        _write_new(file, _rows(self.series, self.steps, self.variables, self.owners), written)
        about: dict[str, Any] = {"path": str(file)}
        if self.known is not None:
            _write_new(beside, self.known.files(), written)
            about["covariates"] = {"file": str(beside)}
        config = scratch / "config.yaml"
        config.write_text(json.dumps({"dataset": about}, ensure_ascii=False), encoding="utf-8")
        return [f"--config={config}", *(f"--set={name}={_text(value)}" for name, value in self.options.items())]


def _places(data: str | os.PathLike[str], output: str | os.PathLike[str], with_covariates: bool) -> tuple[Path, Path]:
    """The file of the series and that of the covariates beside it, neither of which is there."""
    file = Path(os.path.abspath(data))
    beside = file.with_suffix(".covariates.csv")
    if not file.parent.is_dir():
        raise UsageError(f"data: found '{os.fspath(data)}', but there is no folder {file.parent}; expected a new file in a folder that exists")
    if file == Path(os.path.abspath(output)):
        raise UsageError(f"data: found '{os.fspath(data)}', which is the output, too; expected another name")
    if os.path.lexists(file):
        raise UsageError(f"data: found '{os.fspath(data)}', which is there already; expected a new file")
    if with_covariates and os.path.lexists(beside):
        raise UsageError(f"data: found '{beside}', where the covariates are written to; expected a name beside which it is not there")
    return file, beside


def _write_new(file: Path, parts: Sequence[pd.DataFrame] | Iterator[pd.DataFrame], written: list[Path]) -> None:
    """A CSV file of mode 0600, which must not be there; `written` tells that it then is."""
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"data: found '{file}', which is there already; expected a new file") from None
    except OSError as error:
        raise UsageError(f"data: found '{file}', which cannot be written ({error.strerror}); expected a new file") from None
    written.append(file)
    with open(number, "w", encoding="utf-8", newline="") as text:
        for place, part in enumerate(parts):
            name = str(part.iloc[0, 0])
            kept = csv.QUOTE_MINIMAL if name == name.strip() else csv.QUOTE_NONNUMERIC  # In quotes a name keeps its outer spaces.
            part.to_csv(text, index=False, header=place == 0, date_format=_TIMES, quoting=kept)


def _rows(series: Sequence[Series], steps: Frequency, variables: Sequence[str], owners: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    count = max(1, len(variables))
    for place in range(0, len(series), count):
        one = series[place]
        name = one.item_id if one.whole is None else one.whole
        rows = pd.DataFrame({"unique_id": str(name), "ds": one.times(steps, len(one.values))})
        for variable, of in zip(variables or ["y"], series[place : place + count]):
            rows[variable] = of.values
        yield rows if owners is None else rows.assign(owner=owners[place])


def _require_names_of_a_file(series: Sequence[Series]) -> None:
    """Raises DataError for names that a line of a file does not hold; warns of those that are hardly different."""
    alike: dict[str, Any] = {}
    for one in series:
        name = str(one.item_id)
        if any(character in name for character in "\n\r\0") or any("\ud800" <= character <= "\udfff" for character in name):
            raise DataError(f"found the name {name!r} of a series; expected one without line breaks, in characters of Unicode")
        other = alike.setdefault(name.strip().casefold(), name)
        if other != name:
            warnings.warn(
                f"series '{other}' and '{name}' differ by case or outer spaces alone, and are trained on as two: where they are one, a value of it may be in both, "
                "and the guarantee is about one value of one series",
                stacklevel=3,
            )


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return str(value)
