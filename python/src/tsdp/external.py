"""Forecasts that other programs or models made, for a model that is mixed with them."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Sequence

import numpy as np
import pandas as pd
import torch

from .calendars import Frequency
from .errors import DataError, UsageError
from .frames import Series
from .stamps import moments

_LEVELS = tuple(i / 10 for i in range(1, 10))
_Entry = tuple[str, Any, np.ndarray]  # file and line, place or moment, (10, H)


class External:
    """The forecasts in JSON Lines files NAME.jsonl, one for each external candidate of the model: an object for each forecast, with item_id, the moment
    `start` of its first value or its place `forecast_start` in the series, and, a number for each step, `quantiles` by level and `mean`. An exported
    model NAME.pt is in `models`; `add` gives what it forecasts."""

    def __init__(self, files: Sequence[str | os.PathLike[str]], names: Sequence[str], horizon: int) -> None:
        self.names, self.horizon = list(names), horizon
        self.models: dict[str, Path] = {}
        self._found: dict[str, dict[str, list[_Entry]]] = {}
        self._made: dict[str, dict[tuple[str, int], np.ndarray]] = {}
        seen: list[str] = []
        if isinstance(files, (str, os.PathLike)):
            raise UsageError(f"candidates: found {files!r}; expected a list of files")
        for file in map(Path, files):
            if file.stem not in self.names or file.stem in seen:
                raise UsageError(
                    f"candidates: found {file}; expected one file each of {', '.join(f'{name}.jsonl or {name}.pt' for name in self.names)}"
                    if self.names
                    else f"candidates: found {file}; the model is mixed with no forecasts of other programs"
                )
            seen.append(file.stem)
        for file in map(Path, files):
            if file.suffix == ".pt":
                self.models[file.stem] = file
            else:
                self._found[file.stem] = self._read(file)

    def add(self, name: str, made: dict[tuple[str, int], np.ndarray]) -> None:
        """Forecasts (10, H) by name of the series and number of steps between the place they begin at and its end."""
        self._made[name] = made

    def _read(self, file: Path) -> dict[str, list[_Entry]]:
        out: dict[str, list[_Entry]] = {}
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{file}: cannot be read ({error})") from None
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            where = f"{file}:{number}"
            try:
                entry = json.loads(line)
                by_level = {round(float(level), 9): values for level, values in entry["quantiles"].items()}
                values = np.array([by_level[level] for level in _LEVELS] + [entry["mean"]], dtype="float32")
                place = entry["forecast_start"] if "forecast_start" in entry else str(entry["start"])
                item_id = entry["item_id"]
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                values, place, item_id = np.zeros(0), None, None
            if values.shape != (10, self.horizon) or not np.isfinite(values).all() or not isinstance(item_id, str) or isinstance(place, (bool, float)):
                raise DataError(
                    f"{where}: expected an object with item_id, start or forecast_start, quantiles of 0.1, 0.2, … 0.9, and mean, {self.horizon} numbers each"
                )
            values[:9] = np.sort(values[:9], 0)
            out.setdefault(item_id, []).append((where, place, values))
        return out

    def of(self, series: Sequence[Series], frequency: Frequency, windows: int, stride: int) -> torch.Tensor:
        """(B, J + 1, E, 10, H) of forecasts from the ends of `series`, NaN where there is none."""
        out = np.full((len(series), windows + 1, len(self.names), 10, self.horizon), math.nan, dtype="float32")
        for row, one in enumerate(series):
            for column, name in enumerate(self.names):
                entries = self._found.get(name, {}).get(str(one.item_id), [])
                places = self._places(entries, one, frequency, f"forecasts of {name}, series '{one.item_id}'")
                for window in range(windows + 1):
                    made = self._made.get(name, {}).get((str(one.item_id), window * stride))
                    if made is not None:
                        out[row, window, column] = made
                for i, (where, _, values) in enumerate(entries):
                    if places[i] in places[:i]:
                        raise DataError(f"{where}: found a second forecast of series '{one.item_id}' from place {places[i]}; expected one")
                    back = len(one.values) - places[i]
                    if back % stride == 0 and 0 <= back // stride <= windows:
                        out[row, back // stride, column] = values
        return torch.from_numpy(out)

    @staticmethod
    def _places(entries: list[_Entry], one: Series, frequency: Frequency, what: str) -> list[int]:
        """Of the first forecast value of each in the series; those before its start are negative, and no two alike."""
        out = [place if isinstance(place, int) else -1 - i for i, (_, place, _) in enumerate(entries)]
        texts = [i for i, (_, place, _) in enumerate(entries) if isinstance(place, str)]
        if texts:
            times, _ = moments(pd.Series([entries[i][1] for i in texts]), frequency, what)
            within = times >= one.start
            for i, place in zip(np.array(texts)[within], frequency.places_of(one.start, times[within], what, one.month_day)):
                out[i] = int(place)
        return out
