"""Series from pandas frames, and frames from forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
import pandas as pd

from .calendars import Frequency
from .errors import DataError

_LONG_NAMES = (("item_id", "timestamp", "target"), ("unique_id", "ds", "y"))


@dataclass
class Series:
    """Values on one calendar step; NaN where missing. The first value is observed. `start` is without a zone, in UTC or in local time as
    `Frequency.without_zone` has it; `zone` is what it was given in."""

    item_id: Any
    start: pd.Timestamp
    values: np.ndarray
    zone: Any = None


def series_of(
    frame: pd.DataFrame | pd.Series,
    frequency: Frequency,
    item_id: str | None = None,
    timestamp: str | None = None,
    target: str | None = None,
) -> list[Series]:
    """The series of a long or a wide frame, in the order in which they first appear.

    >>> frame = pd.DataFrame({"item_id": ["a", "a"], "timestamp": ["2024-01-01", "2024-01-03"], "target": [1.0, 3.0]})
    >>> series_of(frame, Frequency.parse("1D"))[0].values
    array([ 1., nan,  3.])
    """
    if isinstance(frame, pd.Series):
        frame = frame.to_frame(frame.name if frame.name is not None else "series")
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"found a {type(frame).__name__}; expected a pandas DataFrame")
    if frame.empty:
        raise DataError("found a frame without rows; expected values of at least one series")
    named = [item_id, timestamp, target]
    if any(name is not None for name in named):
        names = tuple(given or usual for given, usual in zip(named, _LONG_NAMES[0]))
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise DataError(f"found no column '{missing[0]}' among {_listed(frame.columns)}; expected {_listed(names)}")
        return _from_long(frame, frequency, names)
    for names in _LONG_NAMES:
        if set(names) <= set(frame.columns):
            return _from_long(frame, frequency, names)
    index = frame.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return _from_wide(frame, index, frequency)
    raise DataError(
        f"found the columns {_listed(frame.columns)}; expected item_id, timestamp and target (or arguments that name them), "
        "or a DatetimeIndex and a column a series"
    )


def _listed(names: Any) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")


_DAY_FIRST = r"(\d{2})\.(\d{2})\.(\d{4})(?!\d)"
_MONTH_OR_DAY = r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}"
_OFFSET = r".*\d:\d.*?([Zz]|[+-]\d{2}(?::?\d{2})?)"


def _read_times(values: Any, frequency: Frequency) -> pd.DatetimeIndex:
    """Texts mean what tsdp's programs read in them; other values are times already."""
    column = pd.Series(values)
    if pd.api.types.is_numeric_dtype(column):
        raise ValueError("numbers")
    if not pd.api.types.is_object_dtype(column) and not isinstance(column.dtype, pd.StringDtype):
        return pd.DatetimeIndex(pd.to_datetime(column))
    texts = column.map(lambda value: isinstance(value, str))
    if not texts.any():
        return pd.DatetimeIndex(pd.to_datetime(column))
    if not (texts | column.isna()).all():
        raise ValueError("texts and other values in one column")
    column = column.str.strip().str.replace(rf"^{_DAY_FIRST}", r"\3-\2-\1", regex=True)
    unclear = column[column.str.match(_MONTH_OR_DAY, na=False)]
    if len(unclear) > 0:
        raise ValueError(f"which number of '{unclear.iloc[0]}' is the month cannot be told")
    offsets = column.str.extract(f"^{_OFFSET}$", expand=False)
    known = column.notna()
    if offsets[known].nunique(dropna=False) <= 1:
        try:
            return pd.DatetimeIndex(pd.to_datetime(column, format="ISO8601"))
        except ValueError:
            return pd.DatetimeIndex(pd.to_datetime(column))
    if offsets[known].isna().any():
        raise ValueError("a zone in some rows and none in others")
    # More than one offset, as on both sides of a change to summer time.
    each = [pd.Timestamp(value) if isinstance(value, str) else pd.NaT for value in column]
    return pd.DatetimeIndex([time.tz_localize(None) if frequency.keeps_local_time else time.tz_convert("UTC") for time in each])


def _moments(values: Any, frequency: Frequency, what: str) -> tuple[pd.DatetimeIndex, Any]:
    """Times without a zone, and their zone."""
    if isinstance(getattr(values, "dtype", None), pd.PeriodDtype):
        values = pd.PeriodIndex(values).to_timestamp()
    try:
        times = _read_times(values, frequency)
    except (ValueError, TypeError) as error:
        raise DataError(f"{what}: found times that cannot be read ({error}); expected moments such as 2024-01-31 13:00") from None
    if times.hasnans:
        raise DataError(f"{what}: found a row without a time; expected one in each")
    return frequency.without_zone(times), times.tz


def _numbers(values: Any, what: str) -> np.ndarray:
    try:
        out = np.asarray(pd.to_numeric(values), dtype="float64")
    except (ValueError, TypeError) as error:
        raise DataError(f"{what}: found values that are no numbers ({error}); expected numbers, NaN where missing") from None
    if np.isinf(out).any():
        raise DataError(f"{what}: found an infinite value; expected finite ones, NaN where missing")
    return out


def _from_long(frame: pd.DataFrame, frequency: Frequency, names: tuple[str, ...]) -> list[Series]:
    item_id, timestamp, target = names
    if frame[item_id].isna().any():
        raise DataError(f"{item_id}: found a row without the name of a series; expected one in each (pandas.read_csv takes texts such as NA for missing: keep_default_na=False)")
    # Of the whole column, so that all series have one zone.
    moments, zone = _moments(frame[timestamp], frequency, timestamp)
    targets = frame[target]
    numbers, names_of_series = pd.factorize(frame[item_id])
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(1, len(names_of_series)))
    out = []
    for name, own in zip(names_of_series, np.split(order, ends)):
        what = f"series '{name}'"
        times, values = moments[own], _numbers(targets.iloc[own], what)
        observed = ~np.isnan(values)
        if not observed.any():
            raise DataError(f"{what}: found no value; expected at least one")
        times, values = times[observed], values[observed]
        start = times.min()
        places = frequency.places_of(start, times, what)
        all_places, counts = np.unique(places, return_counts=True)
        if counts.max() > 1:
            twice = times[np.flatnonzero(places == all_places[counts.argmax()])[0]]
            raise DataError(f"{what}: found the time {twice} twice; expected each once")
        whole = np.full(int(places.max()) + 1, np.nan)
        whole[places] = values
        out.append(Series(name, start, whole, zone))
    return out


def _from_wide(frame: pd.DataFrame, index: pd.DatetimeIndex, frequency: Frequency) -> list[Series]:
    times, zone = _moments(index, frequency, "index")
    start = times.min()
    places = frequency.places_of(start, times, "index")
    if len(np.unique(places)) < len(places):
        raise DataError("index: found a time twice; expected each once")
    table = np.full((int(places.max()) + 1, frame.shape[1]), np.nan)
    for column in range(frame.shape[1]):
        table[places, column] = _numbers(frame.iloc[:, column], f"series '{frame.columns[column]}'")
    # All are forecast after the last row in which any of them has a value.
    end = int(np.flatnonzero(~np.isnan(table).all(axis=1)).max(initial=-1)) + 1
    return series_of_table(frame.columns, start, table[:end], frequency, zone)


def series_of_table(
    names: Sequence[Any] | pd.Index, start: pd.Timestamp, table: np.ndarray, frequency: Frequency, zone: Any = None
) -> list[Series]:
    """The series of a table's columns. `table` has shape (steps, series), its first row is the step `start`; all end with its last row.

    >>> one, = series_of_table(["a"], pd.Timestamp("2024-01-01"), np.array([[np.nan], [2.0], [np.nan]]), Frequency.parse("1D"))
    >>> str(one.start), one.values
    ('2024-01-02 00:00:00', array([ 2., nan]))
    """
    observed = ~np.isnan(table)
    for column in np.flatnonzero(~observed.any(axis=0)):
        raise DataError(f"series '{names[int(column)]}': found no value; expected at least one")
    steps = frequency.steps_from(start, len(table))
    firsts = observed.argmax(axis=0)
    return [Series(names[column], steps[first], table[first:, column], zone) for column, first in enumerate(firsts)]
