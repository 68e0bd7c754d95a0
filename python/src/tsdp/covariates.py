"""What is known of every step beside the series: holidays, prices, planned outages. Public, and the same for all series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
import pandas as pd

from .calendars import Frequency
from .errors import DataError, UsageError, no_package
from .frames import Series


@dataclass
class Covariates:
    """Values of shape (steps, names), float32, the first row at `start`."""

    start: pd.Timestamp
    values: np.ndarray
    frequency: Frequency
    month_day: int = 0

    @staticmethod
    def of_frame(frame: pd.DataFrame, names: Sequence[str], frequency: Frequency) -> "Covariates":
        """The columns `names` of a frame with a DatetimeIndex of consecutive steps.

        >>> days = pd.date_range("2024-12-24", periods=3)
        >>> known = Covariates.of_frame(pd.DataFrame({"holiday": [0, 1, 1]}, index=days), ["holiday"], Frequency.parse("1D"))
        >>> known.rows(Series("a", pd.Timestamp("2024-12-25"), np.array([7.0])), 2).tolist()
        [[1.0], [1.0]]
        """
        if not isinstance(frame, pd.DataFrame) or not isinstance(frame.index, (pd.DatetimeIndex, pd.PeriodIndex)) or frame.empty:
            raise DataError("covariates: found no frame with a DatetimeIndex; expected one, with a row for every step")
        columns = [str(name) for name in frame.columns]
        for name in names:
            if columns.count(name) != 1:
                raise DataError(f"covariates: found {columns.count(name) or 'no'} column{'s' if name in columns else ''} '{name}'; expected each of {', '.join(names)} once")
        times = frame.index.to_timestamp() if isinstance(frame.index, pd.PeriodIndex) else frame.index
        if times.tz is not None:
            raise DataError(f"covariates: found times with the zone {times.tz}; expected times without one, in the clock of the series (where theirs have a zone: UTC, and local time for steps of a day or longer)")
        if times.hasnans:
            raise DataError("covariates: found a row without a time; expected one in each")
        month_day = frequency.month_day_of(times)
        expected = frequency.steps_from(times[0], len(times), month_day)
        wrong = np.flatnonzero(times != expected)
        if len(wrong) > 0:
            raise DataError(f"covariates: found the time {times[wrong[0]]}; expected {expected[wrong[0]]}, the step of {frequency} after the row before")
        values = np.column_stack([_numbers(frame.iloc[:, columns.index(name)], name) for name in names])
        return Covariates(times[0], values, frequency, month_day)

    def rows(self, one: Series, count: int) -> np.ndarray:
        """Those of `count` steps from the start of a series. Raises DataError where some are not known."""
        times = self.frequency.steps_from(self.start, len(self.values), self.month_day)
        own = one.times(self.frequency, count)
        first = int(times.get_indexer(own[:1])[0])
        if first < 0 or not times[first : first + count].equals(own):
            raise DataError(f"covariates: found steps from {times[0]} to {times[-1]}; expected every step from {own[0]} to {own[-1]}, for series '{one.item_id}'")
        return self.values[first : first + count]


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):  # (booleans are numeric)
        raise DataError(f"covariates: column '{name}': found values of type {column.dtype}; expected numbers")
    values = column.to_numpy(dtype="float64", na_value=np.nan)
    if not (np.abs(values) < 3e38).all():
        raise DataError(f"covariates: column '{name}': found a value that is missing or too large; expected a number below 3e38 in every row")
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
