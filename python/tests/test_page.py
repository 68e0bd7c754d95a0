"""docs/python.md, followed to the letter: its commands and its blocks of Python, in order, in an empty folder.

A block of text after one of Python is what that one prints. After a change of what is printed, `python test_page.py --write` runs
the page and writes these blocks and the figure anew (with darts, gluonts, matplotlib and safetensors, so that no block is left out).
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pandas as pd
import pytest

from tsdp.programs import program

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
FIGURE = "python_forecast.svg"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def missing_package(code: str) -> str | None:
    """The first package that the block imports and that is not installed."""
    names = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    return next((name for name in names if importlib.util.find_spec(name) is None), None)


def follow(page: str) -> Iterator[tuple[re.Match[str], str | None]]:
    """Runs the page in the working folder: each block and what it prints; None of one that is passed over."""
    environment = {**os.environ, "PATH": f"{Path(program('tsdp-data')).parent}{os.pathsep}{os.environ['PATH']}"}
    names: dict[str, Any] = {}
    if importlib.util.find_spec("matplotlib") is not None:
        import matplotlib

        # A figure without a window, the same every time.
        matplotlib.use("Agg")
        matplotlib.rcParams.update({"svg.hashsalt": "tsdp", "svg.fonttype": "none"})
    for match in BLOCK.finditer(page):
        kind, code, _ = match.groups()
        if kind == "sh":
            if not code.startswith("pip "):
                subprocess.run(["bash", "-euo", "pipefail", "-c", code], env=environment, check=True, stdout=subprocess.DEVNULL)
            yield match, ""
        elif missing_package(code) is not None:
            yield match, None
        else:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, f"{PAGE.name}, the block {code[:40]!r}", "exec"), names)
            yield match, printed.getvalue()


def words_of(text: str) -> list[str]:
    return re.findall(r"\d+\.\d+(?:e-?\d+)?|[^\s\d]+|\d+", text)


def are_alike(one: str, other: str) -> bool:
    """Fractions may differ a little, as training rounds differently on other processors; words and whole numbers may not."""
    if one[0].isdigit() and other[0].isdigit() and "." in one and "." in other:
        return float(one) == pytest.approx(float(other), rel=0.01, abs=10.0 ** -len(other.partition(".")[2]))
    return one == other


def assert_shown(printed: str, shown: str) -> None:
    found, expected = words_of(printed), words_of(shown)
    alike = len(found) == len(expected) and all(map(are_alike, found, expected))
    assert alike, f"printed:\n{printed}\nshown:\n{shown}\nIf this change is meant, write the page anew: {Path(__file__).name} --write"


def test_the_page_works_and_prints_what_it_shows(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    assert len(list(BLOCK.finditer(page))) == page.count("```") // 2 - page.count("```text") >= 12
    left_out = []
    with pd.option_context("display.precision", 6):  # The page changes it.
        for match, printed in follow(page):
            if printed is None:
                left_out.append(missing_package(match[2]))
            else:
                assert_shown(printed, match[3] or "")
    # Blocks that further packages are shown in; all others were run.
    assert set(left_out) <= {"darts", "gluonts", "matplotlib", "safetensors"}
    assert (PAGE.parent / FIGURE).stat().st_size < 100_000
    if "matplotlib" not in left_out:
        assert (tmp_path / FIGURE).stat().st_size > 1000


def write() -> None:
    text, out, end = PAGE.read_text(), "", 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SOURCE_DATE_EPOCH"] = "0"  # Matplotlib writes it into the figure as its date.
        for match, printed in follow(text):
            if printed is None:
                sys.exit(f"found no package {missing_package(match[2])}; expected all that the page imports")
            out += text[end : match.start()] + f"```{match[1]}\n{match[2]}```\n" + (f"\n```text\n{printed}```\n" if printed else "")
            end = match.end()
        figure = Path(FIGURE).read_bytes()
        os.chdir(PAGE.parent)
    PAGE.write_text(out + text[end:])
    (PAGE.parent / FIGURE).write_bytes(figure)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
