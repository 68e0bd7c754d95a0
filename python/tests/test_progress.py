"""The line that shows how far a training is: on terminals and in notebooks, without losses, and nowhere else."""

from __future__ import annotations

import io
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import tsdp
from conftest import hourly_frame
from tsdp.progress import Progress, Taken, line_here, taken_of

SETTINGS = {"training.max_epochs": 200, "model.start": "fresh", "model.context_length": 24, "dataset.test_windows": 1, "dataset.validation_length": 6}


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


class Lines:
    """What is shown, text by text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.ended = False

    def show(self, text: str) -> None:
        self.texts.append(text)

    def end(self) -> None:
        self.ended = True


def write_run(folder: Path, logged: str, steps: int = 100) -> None:
    (folder / "private").mkdir(parents=True, exist_ok=True)
    (folder / "privacy.json").write_text(json.dumps({"state": "running", "steps_planned": steps, "steps_taken": 90, "epsilon": {"lower": 0.9, "upper": 0.98765}}))
    (folder / "private" / "metrics.jsonl").write_text(logged)


def train(folder: Path, **options: Any) -> tsdp.Run:
    return tsdp.train(hourly_frame(3), folder, frequency="1h", prediction_length=6, settings=SETTINGS, **options)


def test_the_files_of_a_run_say_how_far_it_is(tmp_path: Path) -> None:
    assert taken_of(tmp_path / "none") is None
    write_run(tmp_path, "")
    assert taken_of(tmp_path) == Taken(0, 100, None, 0.98765)
    write_run(tmp_path, '{"step":10,"epoch":1,"loss":77.5,"epsilon_upper":0.25}\n{"step":20,"epoch":2,"loss":77.5}\n{"step":30,"ep')
    assert taken_of(tmp_path) == Taken(20, 100, 0.25, 0.98765)
    (tmp_path / "privacy.json").write_text("{")
    assert taken_of(tmp_path) is None


def test_the_time_left_is_that_of_the_steps_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("tsdp.progress.time.monotonic", lambda: now)
    lines = Lines()
    progress = Progress(tmp_path / "run", lines)
    progress.look()
    for now, step in ((5.0, 10), (10.0, 20), (12.0, 20)):  # five seconds for ten steps; the last look finds no new ones
        write_run(tmp_path / "run", json.dumps({"step": step, "loss": 77.5}) + "\n")
        progress.look()
    assert lines.texts == [
        "reads the data · 0:00 passed",
        "10 % · step 10/100 · 0:05 passed",
        "20 % · step 20/100 · 0:10 passed · 0:40 left",
        "20 % · step 20/100 · 0:12 passed · 0:38 left",
    ]
    progress.look()
    assert len(lines.texts) == 4  # the same line is not shown again
    write_run(tmp_path / "run", json.dumps({"step": 100, "loss": 77.5}) + "\n")
    progress.look()
    assert lines.texts[4:] == ["100 % · step 100/100 · 0:12 passed · scores the model"]


def test_a_terminal_shows_steps_and_epsilon_and_no_loss(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    run = train(tmp_path / "run")
    shown = terminal.getvalue().split("\r\x1b[2K")
    steps = run.privacy.document["steps_planned"]
    assert shown[1] == "reads the data · 0:00 passed" and shown[-1] == ""
    assert re.fullmatch(rf"100 % · step {steps}/{steps} · \d+:\d\d passed · epsilon ≤ (\S+) of \1", shown[-2])
    assert float(shown[-2].split()[-1]) >= run.privacy.epsilon.upper
    assert "loss" not in terminal.getvalue()
    assert "\x1b" not in capsys.readouterr().out


def test_a_notebook_shows_it_in_one_output(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[list[str]] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            outputs[0].append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        outputs.append([])
        return Handle()

    python = types.ModuleType("IPython")
    python.get_ipython = lambda: types.SimpleNamespace(kernel="a kernel")  # type: ignore[attr-defined]
    python.display = types.ModuleType("IPython.display")  # type: ignore[attr-defined]
    python.display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", python.display)
    train(tmp_path / "run")
    assert len(outputs) == 1 and outputs[0][-1].startswith("100 % · step ")
    python.get_ipython = lambda: object()  # type: ignore[attr-defined]
    assert line_here() is None  # IPython in a file or a pipe


def test_nothing_is_shown_elsewhere_or_where_it_is_not_wanted(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stderr", pipe)
    train(tmp_path / "one")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    train(tmp_path / "two", progress=False)
    assert pipe.getvalue() == terminal.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    assert line_here() is None


def test_a_run_goes_on_where_its_line_cannot_be_written(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Broken())
    assert train(tmp_path / "run").privacy.is_finished
