"""Logging of a run to MLflow. Needs the package mlflow."""

from __future__ import annotations

import contextlib

from .errors import DataError, no_package
from .training import Run, Scores

try:
    import mlflow
except ImportError as error:  # pragma: no cover
    raise no_package("mlflow", "logging to it needs") from error

_RELEASED = ("model.pt", "privacy.json", "model_card.md", "config.yaml")
_LONGEST_SETTING = 500  # characters; servers refuse longer ones


def log_run(run: Run, name: str | None, with_scores: bool) -> str:
    """Logs as `Run.to_mlflow` says; returns MLflow's id."""
    for file in _RELEASED:
        if not (run.folder / file).is_file():
            raise DataError(f"{run.folder}: holds no {file}; expected a finished run")
    scores = run.scores if with_scores else None  # Before anything is logged, as they may be refused.
    settings = _settings((run.folder / "config.yaml").read_text(encoding="utf-8"))
    active = mlflow.active_run()
    with contextlib.nullcontext(active) if active is not None else mlflow.start_run(run_name=name or run.folder.name) as logged:
        mlflow.log_params(settings)
        mlflow.set_tags({"tsdp.statement": run.privacy.statement, "tsdp.not_covered": "; ".join(run.privacy.not_covered)})
        if run.privacy.epsilon is not None and run.privacy.delta is not None:
            mlflow.log_metrics({"epsilon_upper": run.privacy.epsilon.upper, "delta": run.privacy.delta})
        for file in _RELEASED:
            mlflow.log_artifact(str(run.folder / file))
        if scores is not None:
            _log_scores(scores)
        return str(logged.info.run_id)


def _log_scores(scores: Scores) -> None:
    mlflow.set_tag("private/scores", scores.not_covered)
    mlflow.log_dict(dict(scores), "private/scores.json")
    for whose, of_one in {"model": scores["metrics"], **scores["baselines"]}.items():
        mlflow.log_metrics({f"private/scores/{whose}/{name}": value for name, value in of_one.items() if isinstance(value, (int, float))})


def _settings(config: str) -> dict[str, str]:
    """The settings of a run's configuration, as `tsdp-train` writes it: sections, and a line for each name.

    >>> _settings('dataset:\\n  frequency: "1h"\\nprivacy:\\n  w: 24\\n  noise.mechanism: identity\\n')
    {'dataset.frequency': '1h', 'privacy.w': '24', 'privacy.noise.mechanism': 'identity'}
    """
    out: dict[str, str] = {}
    section = ""
    for line in config.splitlines():
        name, _, value = line.strip().partition(":")
        if not line.startswith(" "):
            section = name
        else:
            text = value.strip().strip('"')
            out[f"{section}.{name}"] = text if len(text) <= _LONGEST_SETTING else text[: _LONGEST_SETTING - 1] + "…"
    return out
