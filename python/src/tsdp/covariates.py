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

    @staticmethod
    def of_frame(frame: pd.DataFrame, names: Sequence[str], frequency: Frequency) -> "Covariates":
        """The columns `names` of a frame with a DatetimeIndex of consecutive steps.

        >>> days = pd.date_range("2024-12-24", periods=3)
        >>> known = Covariates.of_frame(pd.DataFrame({"holiday": [0, 1, 1]}, index=days), ["holiday"], Frequency.parse("1D"))
        >>> known.rows(Series("a", pd.Timestamp("2024-12-25"), np.array([7.0])), 2).tolist()
        [[1.0], [1.0]]
        """
        if not isinstance(frame, pd.DataFrame) or not isinstance(frame.index, pd.DatetimeIndex) or frame.empty:
            raise DataError("covariates: found no frame with a DatetimeIndex; expected one, with a row for every step")
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise DataError(f"covariates: found no column '{missing[0]}'; expected {', '.join(names)}")
        times = frame.index.tz_localize(None) if frame.index.tz is not None else frame.index
        if (times != frequency.steps_from(times[0], len(times))).any():
            raise DataError(f"covariates: found an index that leaves out steps; expected every step of {frequency} from {times[0]}")
        values = frame[list(names)].to_numpy(dtype="float32")
        if not np.isfinite(values).all():
            raise DataError("covariates: found a missing value; expected a number in every row")
        return Covariates(times[0], values, frequency)

    def rows(self, one: Series, count: int) -> np.ndarray:
        """Those of `count` steps from the start of a series. Raises DataError where some are not known."""
        times = self.frequency.steps_from(self.start, len(self.values))
        first = times.get_indexer([one.start])[0]
        if first < 0 or first + count > len(self.values):
            last = self.frequency.steps_from(one.start, count)[-1]
            raise DataError(f"covariates: found steps from {times[0]} to {times[-1]}; expected every step from {one.start} to {last}, for series '{one.item_id}'")
        return self.values[first : first + count]


def holidays(country: str, start: Any, end: Any, frequency: str, subdivision: str | None = None) -> pd.DataFrame:
    """A covariate `holiday`, 1 on public holidays of a country ("US", "DE", subdivision "BY"), else 0, for every step from `start` to `end`.

    From the package `holidays`. Raises ImportError without it, UsageError for a country that it does not know.
    """
    try:
        import holidays as calendar
    except ImportError as error:
        raise no_package("holidays", "holidays of a country need") from error
    first, last = pd.Timestamp(start), pd.Timestamp(end)
    steps = Frequency.parse(frequency)
    count = 1
    while (times := steps.steps_from(first, count))[-1] < last:
        count *= 2
    times = times[times <= last]
    try:
        known = calendar.country_holidays(country, subdiv=subdivision, years=range(first.year, last.year + 1))
    except NotImplementedError:
        raise UsageError(f"country: found '{country}'; expected one that the package holidays knows, such as US or DE") from None
    return pd.DataFrame({"holiday": np.isin(times.date, list(known)).astype("float32")}, index=pd.DatetimeIndex(times, name="timestamp"))
