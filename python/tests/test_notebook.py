"""examples/notebook.ipynb, run cell by cell in an empty folder; what it prints is compared with what it shows.

After a change of what is printed, `python test_notebook.py --write` runs it and writes the outputs anew (with matplotlib and IPython, so that no cell is
passed over).
"""

from __future__ import annotations

import ast
import base64
import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from test_page import assert_shown, missing_package

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def _shown(value: Any) -> dict[str, Any]:
    """What Jupyter keeps of the value of a cell's last line."""
    data = {"text/plain": repr(value).splitlines(True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(True)
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _pictures() -> list[dict[str, Any]]:
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    out = []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=80)
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        out.append({"output_type": "display_data", "metadata": {}, "data": data})
    plt.close("all")
    return out


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]] | None]]:
    """Each cell of code and what it gives; None of one that is passed over."""
    if importlib.util.find_spec("matplotlib") is not None:
        import matplotlib

        matplotlib.use("Agg")
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        if missing_package(source) is not None:
            yield cell, None
            continue
        tree = ast.parse(source)
        shows = bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
        last = ast.Expression(tree.body.pop().value) if shows else None  # type: ignore[attr-defined]
        out: list[dict[str, Any]] = []
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, f"the cell {source[:40]!r}", "exec"), names)
            value = eval(compile(last, f"the cell {source[:40]!r}", "eval"), names) if last is not None else None
        if printed.getvalue():
            out.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
        if value is not None:
            out.append(_shown(value))
        yield cell, out + _pictures()


def _place(folder: Path) -> Path:
    """A folder beside `data`, as the notebook's own is."""
    (folder / "data").symlink_to(ROOT / "data")
    (folder / "examples").mkdir()
    return folder / "examples"


def test_the_notebook_works_and_shows_what_it_gives(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_place(tmp_path))
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    passed_over = 0
    for cell, found in outputs(notebook):
        if found is None:
            passed_over += 1
            continue
        assert [one["output_type"] for one in found] == [one["output_type"] for one in cell["outputs"]]
        for one, shown in zip(found, cell["outputs"]):
            if one["output_type"] == "stream":
                assert_shown("".join(one["text"]), "".join(shown["text"]))
            elif "text/plain" in one["data"]:
                assert_shown("".join(one["data"]["text/plain"]), "".join(shown["data"]["text/plain"]))
    assert passed_over <= 2  # matplotlib's and IPython's
    assert any("image/png" in one.get("data", {}) for cell in notebook["cells"] for one in cell.get("outputs", []))


def write() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(_place(Path(folder)))
        for place, (cell, found) in enumerate(outputs(notebook), 1):
            if found is None:
                sys.exit(f"found no package {missing_package(''.join(cell['source']))}; expected all that the notebook imports")
            cell["outputs"], cell["execution_count"] = found, place
            for one in found:
                if "execution_count" in one:
                    one["execution_count"] = place
        os.chdir(ROOT)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
