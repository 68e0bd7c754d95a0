"""Series from pandas frames, and frames from forecasts."""

from __future__ import annotations

import datetime
import decimal
import numbers
import warnings
from dataclasses import dataclass
from typing import Any, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from .calendars import Frequency, mostly_days_apart, step_of
from .errors import DataError
from .stamps import are_texts, moments, plain, read_stamp

# Of each role, as the programs know them.
USUAL_NAMES = {
    "item_id": ("unique_id", "item_id", "series_id"),
    "timestamp": ("ds", "timestamp", "date", "time", "datetime"),
    "target": ("y", "target", "value"),
}
_MISSING = ("", "NA", "?")
# Values from here on are neither trained on nor forecast from, as the programs have it: squares of them leave single precision.
_EXCESSIVE = 1e18


@dataclass
class Series:
    """Values on one calendar step; NaN where missing. The first value is observed. `start` is without a zone, in UTC or in local time as
    `Frequency.without_zone` has it; `zone` is what it was given in. `month_day`: the day of the month that steps of months lie on; 0: as the start
    tells."""

    item_id: Any
    start: pd.Timestamp
    values: np.ndarray
    zone: Any = None
    month_day: int = 0
    whole: Any = None  # where it is one of several variables: the name of the series that has them
    variable: str | None = None  # and which one it is

    def times(self, frequency: Frequency, count: int) -> pd.DatetimeIndex:
        """Of `count` steps from the start."""
        return frequency.steps_from(self.start, count, self.month_day)


@dataclass
class _Layout:
    """Where a frame holds the series: in rows, with a column of each role, or in columns (`columns` is None then). `times` are those of its rows."""

    frame: pd.DataFrame
    times: Any
    columns: dict[str, Any] | None = None


def series_of(
    frame: pd.DataFrame | pd.Series,
    frequency: Frequency,
    item_id: str | None = None,
    timestamp: str | None = None,
    target: str | Sequence[str] | None = None,
) -> list[Series]:
    """The series of a long or a wide frame, in the order in which they first appear. Several targets are the variables of each series: as many
    entries of this list in a row, of the same steps, called NAME/TARGET as the programs call them.

    >>> frame = pd.DataFrame({"item_id": ["a", "a"], "timestamp": ["2024-01-01", "2024-01-03"], "target": [1.0, 3.0]})
    >>> series_of(frame, Frequency.parse("1D"))[0].values
    array([ 1., nan,  3.])
    """
    layout = _layout_of(frame, item_id, timestamp, target)
    if layout.columns is None:
        return _from_wide(layout.frame, layout.times, frequency)
    return _from_long(layout.frame, frequency, layout.columns)


def frequency_of(
    frame: pd.DataFrame | pd.Series, item_id: str | None = None, timestamp: str | None = None, target: str | Sequence[str] | None = None
) -> Frequency:
    """The step of all series of a frame, by its times; rows may be missing. Raises DataError where there is no one step.

    >>> times = ["2024-01-31", "2024-02-29", "2024-03-31", "2024-05-31"]
    >>> str(frequency_of(pd.DataFrame({"item_id": "a", "timestamp": times, "target": 1.0})))
    '1M'
    """
    layout = _layout_of(frame, item_id, timestamp, target)
    times = plain(layout.times)
    if isinstance(times.dtype, pd.PeriodDtype):
        return Frequency.parse(pd.PeriodIndex(times).freqstr)
    in_utc = _times_by_series(layout, Frequency(1, "s"))
    return step_of(_times_by_series(layout, Frequency(1, "D")) if mostly_days_apart(in_utc.values()) else in_utc)


def _times_by_series(layout: _Layout, frequency: Frequency) -> dict[str, pd.DatetimeIndex]:
    """The times of each series, by what it is called, as series of `frequency` have them: in local time from days on."""
    if layout.columns is None:
        return {"the index": moments(layout.times, frequency, "index")[0]}
    times, _ = moments(layout.times, frequency, str(layout.columns["timestamp"]))
    return {f"series '{name}'": times[own] for name, own in _rows_by_series(layout.frame, layout.columns)}


def variables_of(target: str | Sequence[str] | None) -> list[str]:
    """The variables that targets name; empty: there is one. Raises DataError for the same one twice."""
    names = [] if target is None or isinstance(target, str) else list(target)
    if len(set(names)) < len(names) or (target is not None and not isinstance(target, str) and not names):
        raise DataError(f"target: found {_listed(names) or 'an empty list'}; expected different columns")
    return names if len(names) > 1 else []


def _layout_of(frame: pd.DataFrame | pd.Series, item_id: str | None, timestamp: str | None, target: str | Sequence[str] | None) -> _Layout:
    if isinstance(frame, pd.Series):
        usual = "target" if isinstance(frame.index, pd.MultiIndex) else "series"
        frame = frame.to_frame(frame.name if frame.name is not None else usual)
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"found a {type(frame).__name__}; expected a pandas DataFrame")
    if frame.empty:
        raise DataError("found a frame without rows; expected values of at least one series")
    if isinstance(frame.index, pd.MultiIndex):
        frame = frame.reset_index()  # levels become columns, by their names
    stated = {"item_id": item_id, "timestamp": timestamp, "target": target}
    named = any(name is not None for name in stated.values())
    if target is not None and timestamp is None and not any(name in frame.columns for name in USUAL_NAMES["timestamp"]) and _may_be_times(pd.Series(frame.index)):
        frame = frame.rename_axis(index="timestamp").reset_index()  # the index has the times
    if named or all(any(name in frame.columns for name in names) for names in USUAL_NAMES.values()):
        targets = [target] if target is None or isinstance(target, str) else variables_of(target) or list(target)
        columns = {role: _column_of(frame, role, name, stated) for role, name in stated.items() if role != "target"}
        columns["target"] = [_column_of(frame, "target", name, stated) for name in targets]
        return _Layout(frame, frame[columns["timestamp"]], columns)
    if _may_be_times(pd.Series(frame.index)):
        return _Layout(frame, frame.index)
    if not any(name in frame.columns for name in USUAL_NAMES["item_id"]):
        # A table as it was read from a file: times in the first column, behind a numbered index that was written with it.
        for place in range(min(2, frame.shape[1] - 1)):
            if _may_be_times(frame.iloc[:, place]):
                return _Layout(frame.iloc[:, place + 1 :], frame.iloc[:, place])
            if str(frame.columns[place]) != "Unnamed: 0":
                break
    raise DataError(
        f"found the columns {_listed(frame.columns)}; expected item_id, timestamp and target (or arguments that name them), "
        "or a DatetimeIndex and a column a series"
    )


def without_owners(frame: pd.DataFrame | pd.Series, owner: str | Mapping[Any, Any] | None) -> pd.DataFrame | pd.Series:
    """The frame without its column of owners, which is not one of its series'."""
    return frame.drop(columns=owner, errors="ignore") if isinstance(owner, str) and isinstance(frame, pd.DataFrame) else frame


def owners_of(
    frame: pd.DataFrame | pd.Series, series: Sequence[Series], owner: str | Mapping[Any, Any], item_id: str | None = None
) -> list[str]:
    """The owner of each series, by the column `owner` of a long frame or by a mapping from the series' names. Raises DataError for a series without an
    owner, or with two.

    >>> frame = pd.DataFrame({"item_id": ["a", "b"], "timestamp": ["2024-01-01"] * 2, "target": [1.0, 3.0], "home": [7, 7]})
    >>> owners_of(frame, series_of(frame, Frequency.parse("1D")), "home")
    ['7', '7']
    """
    if isinstance(owner, str):
        if isinstance(frame, pd.Series):
            raise DataError(f"owner: found '{owner}' with a pandas Series, which has no such column; expected a long frame, or a mapping from names")
        table = frame.reset_index() if isinstance(frame.index, pd.MultiIndex) else frame
        names = _column_of(table, "item_id", item_id, {"target": None})
        pairs = table[[names, _column_of(table, "owner", owner, {})]].drop_duplicates()
        twice = pairs.loc[pairs[names].duplicated(), names]
        if len(twice) > 0:
            raise DataError(f"owner: found several owners of series {twice.iloc[0]!r}; expected one for each series")
        owner = dict(zip(pairs[names], pairs[owner]))
    found = [owner.get(one.item_id) for one in series]
    for one, whose in zip(series, found):
        if whose is None or (np.isscalar(whose) and bool(pd.isna(whose))) or not str(whose).strip():
            raise DataError(f"owner: found none of series {one.item_id!r}; expected one for each series")
    for one, whose in zip(series, found):
        if not isinstance(whose, Hashable):
            raise DataError(f"owner: found {whose!r} as that of series {one.item_id!r}; expected a name or a number")
    # By equality, as Python and pandas have it: 7 and 7.0 are one owner. Objects that look alike and are not equal would be written as one.
    texts = {whose: str(whose) for whose in reversed(found)}
    if len(set(texts.values())) < len(texts):
        alike = next(text for text in texts.values() if list(texts.values()).count(text) > 1)
        raise DataError(f"owner: found two owners that are both written {alike!r}, of different types; expected one type")
    return [texts[whose] for whose in found]


def _listed(names: Any) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")


def _column_of(frame: pd.DataFrame, role: str, stated: Any, all_stated: dict[str, Any]) -> Any:
    """The name of the column of a role: the one that is stated, or the one with a usual name. None: of one series, which `target` names."""
    names = [name for name in USUAL_NAMES[role] if name in frame.columns] if stated is None else [stated]
    if len(names) > 1:
        raise DataError(f"found the columns '{names[0]}' and '{names[1]}'; expected the argument {role} to say which one is read")
    if not names and role == "item_id" and all_stated["target"] is not None:
        return None
    name = names[0] if names else role
    count = list(frame.columns).count(name)
    if count == 0:
        raise DataError(f"found no column '{name}' among {_listed(frame.columns)}; expected one, or its name as the argument {role}")
    if count > 1:
        raise DataError(f"found {count} columns '{name}'; expected one")
    return name


def _may_be_times(values: pd.Series) -> bool:
    """Whether these are times, or texts of which the first is one."""
    column = plain(values)
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or isinstance(column.dtype, pd.PeriodDtype):
        return True
    known = column.dropna()
    if len(known) == 0 or not (are_texts(known) or known.dtype == object):
        return False
    first = known.iloc[0]
    return read_stamp(first.strip()) is not None if isinstance(first, str) else isinstance(first, datetime.date)


def _numbers(values: Any, what: str) -> np.ndarray:
    column = plain(values)
    try:
        if not pd.api.types.is_numeric_dtype(column.dtype):
            if not are_texts(column) and column.dtype != object:
                raise ValueError(f"values of type {column.dtype}")
            column = pd.to_numeric(column.map(_number, na_action="ignore"))
        if pd.api.types.is_complex_dtype(column.dtype):
            raise ValueError("complex ones")
        out = np.asarray(column.to_numpy(dtype="float64", na_value=np.nan))
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{what}: found values that are no numbers ({error}); expected numbers, NaN where missing") from None
    if np.isinf(out).any():
        raise DataError(f"{what}: found an infinite value; expected finite ones, NaN where missing")
    if (np.abs(out) >= _EXCESSIVE).any():
        wrong = out[np.nanargmax(np.abs(out))]
        raise DataError(f"{what}: found the value {wrong:g}; expected a magnitude below {_EXCESSIVE:g}, or NaN where that stands for a missing value")
    return out


def _number(value: Any) -> float:
    """Of one value of a column of objects; texts are read as the programs read them."""
    if isinstance(value, str):
        text = value.strip()
        return np.nan if text in _MISSING or text.lower() == "nan" else float(text.replace("_", "no number"))
    if not isinstance(value, (numbers.Real, decimal.Decimal)):
        raise ValueError(f"{value} of type {type(value).__name__}")
    return float(value)


def _numbered(names: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Of each row the number of its series, and the series' names. Raises DataError for names that are one text and not one name, which a file would
    not keep apart, or equal and not one text (1 and 1.0)."""
    column = names.astype(names.cat.categories.dtype) if isinstance(names.dtype, pd.CategoricalDtype) else names
    found, different = pd.factorize(column)
    if column.dtype == object and pd.api.types.infer_dtype(column) not in ("string", "integer"):
        written: dict[str, Any] = {}
        for name in column.to_numpy():
            written.setdefault(str(name), name)
        if len(written) > len(different):
            name = next(name for name in different if sum(bool(name == other) for other in written.values()) > 1)
            equal = [other for other in written.values() if name == other]
            raise DataError(f"found the names {equal[0]!r} and {equal[1]!r}, which are equal; expected one way to write each name")
    _require_different_texts(different)
    return found, pd.Index(different)


def _require_different_texts(names: Any) -> None:
    by_text: dict[str, Any] = {}
    for name in names:
        text = str(name)
        if not text.strip():
            raise DataError(f"found the name {text!r} of a series; expected one that is not empty")
        if text in by_text:
            shown = f"{by_text[text]!r} and {name!r}" if repr(by_text[text]) != repr(name) else f"{name!r} twice"
            raise DataError(f"found the names {shown}, which are one text; expected names of series that differ as texts")
        by_text[text] = name


def _from_long(frame: pd.DataFrame, frequency: Frequency, columns: dict[str, Any]) -> list[Series]:
    timestamp, targets = columns["timestamp"], columns["target"]
    used = [name for name in (columns["item_id"], timestamp, *targets) if name is not None]
    others = [f"'{name}'" for place, name in enumerate(frame.columns) if name not in used and not (place == 0 and str(name) == "Unnamed: 0")]
    if others:
        read = ", ".join(str(name) for name in used)
        warnings.warn(f"ignored the column{'s' if len(others) > 1 else ''} {_listed(others)}; {read} are read", stacklevel=4)
    # Of the whole column, so that all series have one zone.
    all_times, zone = moments(frame[timestamp], frequency, str(timestamp))
    rows_of = []
    for name, own in _rows_by_series(frame, columns):
        times = all_times[own]
        if (again := times[times.duplicated()]).size > 0:
            raise DataError(f"series '{name}': found the time {again[0]} twice; expected each once: frame.groupby([name, time]).mean() makes one of several rows")
        in_time = times.argsort()
        rows_of.append((name, times[in_time], own[in_time]))
    _require_step(frequency, [times for _, times, _ in rows_of])
    out = []
    for name, times, own in rows_of:
        what = f"series '{name}'"
        month_day = frequency.month_day_of(times)
        places = frequency.places_of(times[0], times, what, month_day)
        _require_length(int(places[-1]) + 1, len(places), what)
        whole = np.full((len(targets), int(places[-1]) + 1), np.nan)
        for values, target in zip(whole, targets):
            values[places] = _numbers(frame[target].iloc[own], what)
        known = ~np.isnan(whole)
        if not known.any(1).all():
            of = "" if len(targets) == 1 else f" in the column '{targets[int(known.any(1).argmin())]}'"
            raise DataError(f"{what}: found no value{of}; expected at least one")
        observed = np.flatnonzero(known.any(0))
        first, last = int(observed[0]), int(observed[-1])
        start = frequency.steps_from(times[0], first + 1, month_day)[first]
        if len(targets) == 1:
            out.append(Series(name, start, whole[0, first : last + 1], zone, month_day))
            continue
        for values, target in zip(whole, targets):
            called = str(target) if columns["item_id"] is None else f"{name}/{target}"
            out.append(Series(called, start, values[first : last + 1], zone, month_day, name, str(target)))
    return out


def _rows_by_series(frame: pd.DataFrame, columns: dict[str, Any]) -> list[tuple[Any, np.ndarray]]:
    """The name of each series of a long frame and the places of its rows."""
    item_id = columns["item_id"]
    names = frame[item_id] if item_id is not None else pd.Series([columns["target"][0]] * len(frame))
    if names.isna().any():
        raise DataError(f"{item_id}: found a row without the name of a series; expected one in each (pandas.read_csv takes texts such as NA for missing: keep_default_na=False)")
    number_of, names_of_series = _numbered(names)
    order = np.argsort(number_of, kind="stable")
    ends = np.searchsorted(number_of[order], np.arange(1, len(names_of_series)))
    return list(zip(names_of_series, np.split(order, ends)))


def _require_step(frequency: Frequency, series: Sequence[pd.DatetimeIndex]) -> None:
    found = frequency.coarser_than_this(series)
    if found is not None:
        raise DataError(
            f"found times that all lie on steps of {found}, for a frequency of {frequency}, at which nearly all values would be missing; expected series of "
            f"{frequency}, or a row for every step, with NaN where a value is missing"
        )


def _require_length(steps: int, rows: int, what: str) -> None:
    """Further steps come from a wrong year or too fine a frequency; they must not ask for all memory."""
    most = 1_000_000 + 1000 * rows
    if steps > most:
        raise DataError(f"{what}: found {rows} rows over {steps} steps; expected at most {most} steps: no wrong dates, and a frequency that is not finer than the data's")


def _from_wide(frame: pd.DataFrame, index: Any, frequency: Frequency) -> list[Series]:
    _require_different_texts(frame.columns)
    times, zone = moments(index, frequency, "index")
    if times.has_duplicates:
        raise DataError("index: found a time twice; expected each once")
    in_time = times.argsort()
    times = times[in_time]
    _require_step(frequency, [times])
    month_day = frequency.month_day_of(times)
    places = frequency.places_of(times[0], times, "index", month_day)
    _require_length(int(places[-1]) + 1, len(places), "index")
    table = np.full((int(places[-1]) + 1, frame.shape[1]), np.nan)
    for column in range(frame.shape[1]):
        table[places, column] = _numbers(frame.iloc[:, column].iloc[in_time], f"series '{frame.columns[column]}'")
    # All are forecast after the last row in which any of them has a value.
    end = int(np.flatnonzero(~np.isnan(table).all(axis=1)).max(initial=-1)) + 1
    return series_of_table(frame.columns, times[0], table[:end], frequency, zone, month_day)


def series_of_table(
    names: Sequence[Any] | pd.Index, start: pd.Timestamp, table: np.ndarray, frequency: Frequency, zone: Any = None, month_day: int = 0
) -> list[Series]:
    """The series of a table's columns. `table` has shape (steps, series), its first row is the step `start`; all end with its last row.

    >>> one, = series_of_table(["a"], pd.Timestamp("2024-01-01"), np.array([[np.nan], [2.0], [np.nan]]), Frequency.parse("1D"))
    >>> str(one.start), one.values
    ('2024-01-02 00:00:00', array([ 2., nan]))
    """
    observed = ~np.isnan(table)
    for column in np.flatnonzero(~observed.any(axis=0)):
        raise DataError(f"series '{names[int(column)]}': found no value; expected at least one")
    steps = frequency.steps_from(start, len(table), month_day)
    firsts = observed.argmax(axis=0)
    return [Series(names[column], steps[first], table[first:, column], zone, month_day) for column, first in enumerate(firsts)]
