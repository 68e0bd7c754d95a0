"""What is known of every step beside the series: holidays, prices, temperatures. The same for all series, or of each series."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, Iterator, Sequence

import numpy as np
import pandas as pd

from .calendars import Frequency
from .errors import DataError, UsageError, no_package
from .frames import USUAL_NAMES, Series


@dataclass
class _Table:
    """Rows of shape (steps, covariates), float32, the first at `start`; one for every step where `start` is None. `places` are those of the rows in the frame."""

    start: pd.Timestamp | None
    values: np.ndarray
    places: np.ndarray
    month_day: int = 0


@dataclass
class Covariates:
    """The covariates `names` of all series (one table, under None), or of each series by its name. `columns` are those of the frame that they come from."""

    names: list[str]
    tables: dict[str | None, _Table]
    frequency: Frequency
    columns: pd.DataFrame
    has_zone: bool | None = None  # whether its times have one; None without times

    @staticmethod
    def of_frame(frame: pd.DataFrame, names: Sequence[str] | None, frequency: Frequency) -> "Covariates":
        """The covariates `names` of a frame, or all of them. Its index is of consecutive steps; or of series' names and steps; or of series' names, whose row
        then holds for every step. A column of text, which the last two may have, is a covariate `column=category` for each category.

        >>> days = pd.date_range("2024-12-24", periods=3)
        >>> known = Covariates.of_frame(pd.DataFrame({"holiday": [0, 1, 1]}, index=days), ["holiday"], Frequency.parse("1D"))
        >>> known.rows(Series("a", pd.Timestamp("2024-12-25"), np.array([7.0])), 2).tolist()
        [[1.0], [1.0]]
        >>> homes = pd.DataFrame({"kind": ["flat", "house"]}, index=["a", "b"])
        >>> known = Covariates.of_frame(homes, None, Frequency.parse("1D"))
        >>> known.names, known.rows(Series("b", pd.Timestamp("2024-12-25"), np.array([7.0])), 2).tolist()
        (['kind=flat', 'kind=house'], [[0.0, 1.0], [0.0, 1.0]])
        """
        index = frame.index if isinstance(frame, pd.DataFrame) and not frame.empty else None
        if index is None or isinstance(index, pd.RangeIndex) or index.nlevels > 2:
            raise DataError(
                "covariates: found no frame with an index that fits; expected a DatetimeIndex, with a row for every step, the same for all series; or "
                "frame.set_index([name, time]), of the series' names and a DatetimeIndex; or frame.set_index(name), of the series' names alone"
            )
        shared = isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex))
        wanted = _wanted(frame, names, with_text=not shared)
        values = np.column_stack([_values(column, name, category) for name, column, category in wanted])
        _warn_of_others(wanted)
        read = {str(column.name) for _, column, _ in wanted}
        times = index if shared else index.get_level_values(1) if index.nlevels == 2 else None
        has_zone = None if times is None else getattr(times, "tz", None) is not None
        out = Covariates([name for name, _, _ in wanted], {}, frequency, frame.loc[:, [str(name) in read for name in frame.columns]], has_zone)
        if shared:
            out.tables[None] = _in_time(index, values, np.arange(len(frame)), frequency)
            return out
        if index.hasnans if index.nlevels == 1 else any(level.hasnans for level in index.levels) or any((codes < 0).any() for codes in index.codes):
            raise DataError("covariates: found a row without a name or time; expected both in each")
        if times is not None and not isinstance(times, (pd.DatetimeIndex, pd.PeriodIndex)):
            raise DataError(f"covariates: found times of type {times.dtype}; expected a DatetimeIndex beside the series' names")
        of_series = np.asarray(index.get_level_values(0).map(str))
        for name, rows in pd.Series(np.arange(len(frame))).groupby(of_series, sort=False):
            places = rows.to_numpy()
            if times is not None:
                places = places[np.argsort(times[places], kind="stable")]
                out.tables[str(name)] = _in_time(times[places], values[places], places, frequency, f" of series '{name}'")
            elif len(places) > 1:
                raise DataError(f"covariates: found {len(places)} rows of series '{name}'; expected one, or frame.set_index([name, time])")
            else:
                out.tables[str(name)] = _Table(None, values[places], places)
        return out

    def check_clock(self, series: Sequence[Series]) -> None:
        """Raises DataError for times with a zone where series have none. Warns of times without one where series have one and a step is shorter than a day,
        since they may be of another clock than UTC."""
        zones = [one.zone for one in series if one.zone is not None]
        if self.has_zone and len(zones) < len(series):
            raise DataError("covariates: found times with a zone, and series without one; expected times without one, in the clock of the series")
        if self.has_zone is False and zones and not self.frequency.keeps_local_time:
            warnings.warn(
                f"covariates: found times without a zone, which count as UTC, as the series have the zone {zones[0]}; give them theirs (frame.tz_localize) where they are of another clock",
                stacklevel=4,
            )

    def rows(self, one: Series, count: int) -> np.ndarray:
        """Those of `count` steps from the start of a series. Raises DataError where some are not known."""
        table = self.tables.get(None if None in self.tables else str(one.item_id if one.whole is None else one.whole))
        if table is None:
            raise DataError(f"covariates: found no row of series '{one.item_id}'; expected rows of each series, by its name")
        if table.start is None:
            return np.repeat(table.values, count, 0)
        times = self.frequency.steps_from(table.start, len(table.values), table.month_day)
        own = one.times(self.frequency, count)
        first = int(times.get_indexer(own[:1])[0])
        if first < 0 or not times[first : first + count].equals(own):
            raise DataError(f"covariates: found steps from {times[0]} to {times[-1]}; expected every step from {own[0]} to {own[-1]}, for series '{one.item_id}'")
        return table.values[first : first + count]

    def files(self) -> Iterator[pd.DataFrame]:
        """Tables that `tsdp-train` reads as one file, one after the other."""
        columns = {str(name): self.columns.iloc[:, place] for place, name in enumerate(self.columns.columns)}
        for name in columns:
            if any(character in name for character in ";\t\r\n"):
                raise DataError(f"covariates: found the column {name!r}; expected a name without semicolons, tabs and line breaks")
            if None not in self.tables and name in {*USUAL_NAMES["item_id"], *USUAL_NAMES["timestamp"]}:
                raise DataError(f"covariates: found the column '{name}', which is what a column of series' names or times is called; expected another name")
        kept = pd.DataFrame({name: _as_written(column, name) for name, column in columns.items()})
        if all(table.start is None for table in self.tables.values()):
            kept.insert(0, "unique_id", [str(name) for name in self.columns.index], allow_duplicates=True)
            yield kept
            return
        for series, table in self.tables.items():
            own = kept.iloc[table.places]
            if table.start is not None:
                own.insert(0, "timestamp", self.frequency.steps_from(table.start, len(own), table.month_day), allow_duplicates=True)
            if series is not None:
                own.insert(0, "unique_id", series, allow_duplicates=True)
            yield own


def _in_time(index: pd.Index, values: np.ndarray, places: np.ndarray, frequency: Frequency, whose: str = "") -> _Table:
    """Raises DataError unless the times are consecutive steps."""
    times = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
    if times.hasnans:
        raise DataError("covariates: found a row without a time; expected one in each")
    times = frequency.without_zone(times)
    month_day = frequency.month_day_of(times)
    expected = frequency.steps_from(times[0], len(times), month_day)
    wrong = np.flatnonzero(times != expected)
    if len(wrong) > 0:
        raise DataError(f"covariates: found the time {times[wrong[0]]}{whose}; expected {expected[wrong[0]]}, the step of {frequency} after the row before")
    return _Table(times[0], values, places, month_day)


def _is_text(column: pd.Series) -> bool:
    """Text none of which is a number, as the program takes it."""
    return not pd.api.types.is_numeric_dtype(column) and all(isinstance(value, str) and _number(value) is None for value in column)


def _number(value: Any) -> float | None:
    try:
        return None if "_" in str(value) else float(value)
    except (TypeError, ValueError):
        return None


def _wanted(frame: pd.DataFrame, names: Sequence[str] | None, with_text: bool) -> list[tuple[str, pd.Series, str | None]]:
    """Of each covariate: its name, its column, and the category that it is about, or None for numbers."""
    columns = [str(name) for name in frame.columns]
    out: list[tuple[str, pd.Series, str | None]] = []

    def column_of(name: str) -> pd.Series:
        if columns.count(name) != 1:
            raise DataError(f"covariates: found {columns.count(name) or 'no'} column{'s' if name in columns else ''} '{name}'; expected each of {', '.join(names or columns)} once")
        return frame.iloc[:, columns.index(name)]

    for name in columns if names is None else names:
        cuts = [at for at, character in enumerate(name) if character == "=" and name not in columns and name[:at] in columns] if with_text else []
        if cuts:
            out.append((name, column_of(name[: cuts[0]]), name[cuts[0] + 1 :]))
            continue
        column = column_of(name)
        if with_text and _is_text(column):
            out += [(f"{name}={category}", column, category) for category in sorted({_category(value) for value in column.unique()})]
        else:
            out.append((name, column, None))
    for name, times in Counter(name for name, _, _ in out).items():
        if times > 1:
            raise DataError(f"covariates: found the covariate '{name}' twice, as a column or as a category of one; expected different names")
    return out


def _values(column: pd.Series, name: str, category: str | None) -> np.ndarray:
    if category is None:
        return _numbers(column, name)
    if column.isna().any():
        raise DataError(f"covariates: column '{column.name}': found a value that is missing; expected one in every row")
    number = _number(category)
    same = [value for value in column.unique() if _category(value) == category or (number is not None and _number(value) == number)]
    return column.isin(same).to_numpy(dtype="float32")


def _category(value: Any) -> str:
    text = str(value).strip()
    if text.lower() in _says_nothing:
        raise DataError(f"covariates: found the category '{text}', which says that a value is missing; expected a value in every row")
    return text


# As the program reads them.
_says_nothing = {"", "?", "na", "n/a", "nan", "null", "none", "<na>", "nat"}


def _warn_of_others(wanted: Sequence[tuple[str, pd.Series, str | None]]) -> None:
    """Of categories that a model is not told of."""
    asked: dict[str, set[str]] = {}
    for _, column, category in wanted:
        if category is not None:
            asked.setdefault(str(column.name), set()).add(category)
    for name, categories in asked.items():
        column = next(column for _, column, category in wanted if category is not None and str(column.name) == name)
        numbers = {_number(category) for category in categories} - {None}
        others = sorted(_category(value) for value in column.unique() if _category(value) not in categories and _number(value) not in numbers)
        if others:
            warnings.warn(f"covariates: column '{name}': found '{others[0]}'{' and others' if others[1:] else ''}, which the model is not told of: its covariates of this column are 0 there", stacklevel=4)


def _as_written(column: pd.Series, name: str) -> np.ndarray:
    if _is_text(column):
        return np.array([_category(value) for value in column], dtype=object)
    values = _numbers(column, name)
    return column.to_numpy() if pd.api.types.is_integer_dtype(column) else values  # a number of a category may need more digits


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    if any(isinstance(value, str) for value in column):
        numbers = column.map(_number, na_action="ignore").astype("float64")
        if len(others := column[numbers.isna() & ~column.isna()]) > 0:
            why = " among numbers; expected numbers, or text alone"
            if len(others) == len(column):
                why = "; expected numbers; text is categories only in a frame with the series' names in its index"
            raise DataError(f"covariates: column '{name}': found '{others.iloc[0]}'{why}")
        column = numbers
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):  # (booleans are numeric)
        raise DataError(f"covariates: column '{name}': found values of type {column.dtype}; expected numbers")
    values = column.to_numpy(dtype="float64", na_value=np.nan)
    if (wrong := np.flatnonzero(~(np.abs(values) < 3e38))).size > 0:
        raise DataError(f"covariates: column '{name}': found a value that is missing or too large, at {column.index[wrong[0]]}; expected a number below 3e38 in every row")
    return values.astype("float32")


def holidays(country: str, start: Any, end: Any, frequency: str, subdivision: str | None = None) -> pd.DataFrame:
    """A covariate `holiday`, 1 on public holidays of a country ("US", "DE", subdivision "BY"), else 0, for every step from `start` to `end` (a moment: "2025-12-31 23:00" has
    the whole of that day). Days are those of the country's clock; shift the frame's index where the series are in UTC.

    From the package `holidays`. Raises ImportError without it, UsageError for a country that it does not know.
    """
    try:
        import holidays as calendar
    except ImportError as error:
        raise no_package("holidays", "holidays of a country need") from error
    try:
        first, last = pd.Timestamp(start), pd.Timestamp(end)
    except ValueError as error:
        raise UsageError(f"start, end: found {start}, {end} ({error}); expected moments such as 2024-01-31") from None
    if first.tz is not None or last.tz is not None or not first <= last:
        raise UsageError(f"start, end: found {start}, {end}; expected moments without a zone, the end not before the start")
    steps = Frequency.parse(frequency)
    if steps.unit in "WMQY":
        raise UsageError(f"frequency: found {frequency}; expected steps of a day or less, as a holiday is one day")
    count = 1
    while (times := steps.steps_from(first, count))[-1] < last:
        count *= 2
    times = times[times <= last]
    try:
        known = calendar.country_holidays(country, subdiv=subdivision, years=range(first.year, last.year + 1))
    except NotImplementedError:
        raise UsageError(f"country: found '{country}'{f', subdivision {subdivision}' if subdivision else ''}; expected what the package holidays knows, such as US or DE") from None
    return pd.DataFrame({"holiday": np.isin(times.date, np.array(list(known), dtype=object)).astype("float32")}, index=pd.DatetimeIndex(times, name="timestamp"))
