"""How far a training is, as one line that is written anew: in a notebook and on a terminal."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Protocol

_EMPTY_LINE = "\r\x1b[2K"


@dataclass(frozen=True)
class Taken:
    """Steps of a run so far, of those planned, and the upper ends of epsilon so far and at the end; None where none is known."""

    step: int
    steps: int
    epsilon: float | None = None
    epsilon_at_end: float | None = None


def taken_of(folder: Path) -> Taken | None:
    """How far the run in `folder` is, by its own files; None before it begins. Losses stand there, too, and are not read: no epsilon covers them."""
    try:
        ledger = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
        steps = ledger["steps_planned"]
        logged = folder / "private" / "metrics.jsonl"
        whole, _, _ = logged.read_text(encoding="utf-8").rpartition("\n") if logged.is_file() else ("", "", "")  # The last line may be half of one.
        lines = [json.loads(line) for line in whole.splitlines()]
    except (OSError, ValueError, KeyError):  # not there yet, or another kind of file
        return None
    epsilons = [line["epsilon_upper"] for line in lines if "epsilon_upper" in line]
    return Taken(lines[-1]["step"] if lines else 0, steps, epsilons[-1] if epsilons else None, (ledger.get("epsilon") or {}).get("upper"))


def text_of(taken: Taken, passed: float, left: float | None) -> str:
    """The line, with the seconds that passed and those that are left, as far as that is known. Epsilons are rounded up.

    >>> text_of(Taken(3816, 10000, 0.64712, 0.99983), passed=12.3, left=20.0)
    '38 % · step 3816/10000 · 0:12 passed · 0:20 left · epsilon ≤ 0.6472 of 0.9999'
    >>> text_of(Taken(0, 0), passed=3700, left=None)
    'no steps to take · 1:01:40 passed'
    """
    parts = [f"{100 * taken.step // taken.steps} %", f"step {taken.step}/{taken.steps}"] if taken.steps > 0 else ["no steps to take"]
    parts.append(f"{_clock(passed)} passed")
    if left is not None:
        parts.append(f"{_clock(left)} left")
    if taken.epsilon is not None and taken.epsilon_at_end is not None:
        parts.append(f"epsilon ≤ {_rounded_up(taken.epsilon)} of {_rounded_up(taken.epsilon_at_end)}")
    return " · ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _rounded_up(number: float) -> str:
    return f"{math.ceil(number * 10**4) / 10**4:.4f}".rstrip("0").rstrip(".")


class Line(Protocol):
    """Where a line is shown."""

    def show(self, text: str) -> None:
        """Puts a text in place of the one before."""

    def end(self) -> None:
        """Shows no more."""


class _TerminalLine:
    """The last line of a terminal. It is gone at the end, as that of the programs is."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def show(self, text: str) -> None:
        columns = shutil.get_terminal_size().columns - 1
        self._stream.write(_EMPTY_LINE + text[:columns])
        self._stream.flush()

    def end(self) -> None:
        self._stream.write(_EMPTY_LINE)
        self._stream.flush()


class _NotebookLine:
    """The output of a notebook's cell, where it stays."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    def end(self) -> None:
        pass


def line_here() -> Line | None:
    """A line of the notebook that this runs in, or of the terminal that stderr is; None elsewhere."""
    python = sys.modules.get("IPython")
    if python is not None and hasattr(python.get_ipython(), "kernel"):
        from IPython.display import display

        return _NotebookLine(display)
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return _TerminalLine(sys.stderr) if is_terminal else None


class Progress:
    """Shows how far the run in `folder` is, each time that it is asked to look."""

    def __init__(self, folder: Path, line: Line) -> None:
        self._folder, self._line = folder, line
        self._begin = time.monotonic()
        self._first: tuple[float, int] | None = None  # when steps were first seen, and how many
        self._last: tuple[float, int] | None = None  # when their number last changed
        self._shown = ""

    def look(self) -> None:
        """Reads the run's files and shows the line."""
        now, taken = time.monotonic(), taken_of(self._folder)
        if taken is None:
            self._show(f"reads the data · {_clock(now - self._begin)} passed")
        elif taken.step < taken.steps:
            self._show(text_of(taken, now - self._begin, self._left(taken, now)))
        else:
            self._show(text_of(taken, now - self._begin, None) + " · scores the model")

    def end(self) -> None:
        """Shows the run as it is at its end."""
        taken = taken_of(self._folder)
        if taken is not None:
            self._show(text_of(taken, time.monotonic() - self._begin, None))
        with contextlib.suppress(OSError, ValueError):
            self._line.end()

    def _show(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            with contextlib.suppress(OSError, ValueError):  # A run goes on where its line cannot be written.
                self._line.show(text)

    def _left(self, taken: Taken, now: float) -> float | None:
        """Seconds, at the mean rate since steps were first seen. Their number is read from a file that is written in blocks."""
        if self._last is None or taken.step != self._last[1]:
            self._last = (now, taken.step)
        self._first = self._first or self._last
        steps, seconds = self._last[1] - self._first[1], self._last[0] - self._first[0]
        return max(0.0, (taken.steps - taken.step) * seconds / steps - (now - self._last[0])) if steps > 0 else None


@contextlib.contextmanager
def watching(folder: Path, wanted: bool) -> Iterator[Callable[[], None] | None]:
    """A function to call while the run in `folder` goes on, which shows how far it is; None where it is not wanted or has no place to be shown."""
    line = line_here() if wanted else None
    if line is None:
        yield None
        return
    progress = Progress(folder, line)
    progress.look()
    try:
        yield progress.look
    finally:
        progress.end()
