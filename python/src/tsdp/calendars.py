"""Calendar steps and calendar features, to the same numbers as tsdp's programs."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import pandas as pd

from .errors import DataError, UsageError

_SECONDS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
_MONTHS = {"M": 1, "Q": 3, "Y": 12}
_SEASONS = {"s": 3600, "min": 1440, "h": 24, "D": 7, "B": 5, "W": 1, "M": 12, "Q": 4, "Y": 1}


@dataclass(frozen=True)
class Frequency:
    """A whole number of one unit: `10min`, `1h`, `1D`, `1B` (business days), `1W`, `1M`, `1Q`, `1Y`."""

    multiple: int
    unit: str

    @staticmethod
    def parse(text: str) -> "Frequency":
        """Reads what `str` writes.

        >>> str(Frequency.parse("10min"))
        '10min'
        >>> Frequency.parse("fortnight")
        Traceback (most recent call last):
        tsdp.errors.UsageError: found the frequency 'fortnight'; expected a whole number and a unit, such as 10min, 1h, 1D, 1B, 1W, 1M, 1Q or 1Y
        """
        match = re.fullmatch(r"([1-9][0-9]{0,8})?(s|min|h|D|B|W|M|Q|Y)", text)
        if match is None:
            raise UsageError(
                f"found the frequency '{text}'; expected a whole number and a unit, such as 10min, 1h, 1D, 1B, 1W, 1M, 1Q or 1Y"
            )
        return Frequency(int(match.group(1) or 1), match.group(2))

    def __str__(self) -> str:
        return f"{self.multiple}{self.unit}"

    @property
    def usual_season(self) -> int:
        """Steps of the season that a forecaster would look at first.

        >>> Frequency.parse("30min").usual_season
        48
        """
        season = _SEASONS[self.unit]
        return season // self.multiple if season % self.multiple == 0 else 1

    @property
    def keeps_local_time(self) -> bool:
        """Whether times with a zone count in local time: where a step is a day or longer, since midnight is the same day in winter and in
        summer. Shorter steps are regular in UTC."""
        return self.unit not in _SECONDS or self.multiple * _SECONDS[self.unit] >= 86400

    def without_zone(self, times: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """The moments that series of this frequency have.

        >>> times = pd.DatetimeIndex(["2024-07-01 12:00"], tz="Europe/Berlin")
        >>> [str(Frequency.parse(step).without_zone(times)[0]) for step in ("1h", "1D")]
        ['2024-07-01 10:00:00', '2024-07-01 12:00:00']
        """
        if times.tz is None:
            return times
        return (times if self.keeps_local_time else times.tz_convert("UTC")).tz_localize(None)

    def with_zone(self, times: pd.DatetimeIndex, zone: Any) -> pd.DatetimeIndex:
        """What `without_zone` took off, put back; `zone` None: none."""
        if zone is None:
            return times
        if self.keeps_local_time:
            return times.tz_localize(zone, ambiguous=np.ones(len(times), dtype=bool), nonexistent="shift_forward")
        return times.tz_localize("UTC").tz_convert(zone)

    def steps_from(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        """`count` moments, `start` the first.

        >>> list(Frequency.parse("1M").steps_from(pd.Timestamp("2024-01-31"), 3).strftime("%m-%d"))
        ['01-31', '02-29', '03-31']
        """
        if self.unit in _SECONDS:
            seconds = np.arange(count, dtype="int64") * (self.multiple * _SECONDS[self.unit])
            return pd.DatetimeIndex(start.to_datetime64().astype("datetime64[s]") + seconds.astype("timedelta64[s]"))
        if self.unit == "B":
            day = start.normalize().to_datetime64().astype("datetime64[D]")
            days = np.busday_offset(day, np.arange(count) * self.multiple, roll="forward")
            return pd.DatetimeIndex(days.astype("datetime64[s]") + (start - start.normalize()).to_numpy().astype("timedelta64[s]"))
        # The day of the month is kept where it exists; a series that begins on a last day has last days.
        is_last = start.day == calendar.monthrange(start.year, start.month)[1]
        out = []
        for step in range(count):
            month = start.month - 1 + step * self.multiple * _MONTHS[self.unit]
            year, month = start.year + month // 12, month % 12 + 1
            last = calendar.monthrange(year, month)[1]
            out.append(start.replace(year=year, month=month, day=last if is_last else min(start.day, last)))
        return pd.DatetimeIndex(out)

    def places_of(self, start: pd.Timestamp, times: pd.DatetimeIndex, what: str) -> np.ndarray:
        """How many steps after `start` each moment is. Raises DataError for one that is no whole number of them.

        >>> Frequency.parse("1h").places_of(pd.Timestamp("2024-01-01"), pd.DatetimeIndex(["2024-01-01 05:00"]), "a series")
        array([5])
        """
        if self.unit in _SECONDS:
            step = self.multiple * _SECONDS[self.unit]
            nanoseconds = (times - start).to_numpy().astype("timedelta64[ns]").astype("int64")
            places, rest = np.divmod(nanoseconds, step * 1_000_000_000)
            wrong = np.flatnonzero(rest != 0)
        else:
            span = (times.max() - start).days + 2
            count = span // (self.multiple * {"B": 1, "M": 28, "Q": 89, "Y": 365}[self.unit]) + 2
            known = {moment: place for place, moment in enumerate(self.steps_from(start, count))}
            places = np.array([known.get(moment, -1) for moment in times], dtype="int64")
            wrong = np.flatnonzero(places < 0)
        if len(wrong) > 0:
            raise DataError(f"{what}: found the time {times[wrong[0]]}; expected whole steps of {self} after {start}")
        return places

    def features(self, names: list[str], start: pd.Timestamp, count: int) -> np.ndarray:
        """Features of `count` steps from the start of a series, as float32 of shape (count, len(names)).

        >>> Frequency.parse("1h").features(["hour_of_day", "age"], pd.Timestamp("2024-01-01 23:00"), 1)
        array([[0.5    , 0.30103]], dtype=float32)
        """
        times = self.steps_from(start, count)
        if self.unit == "W":  # pandas counts a week by its Sunday
            times = times.normalize() + pd.to_timedelta(6 - times.day_of_week, unit="D")
        columns: dict[str, Callable[[], Any]] = {
            "second_of_minute": lambda: times.second / 59 - 0.5,
            "minute_of_hour": lambda: times.minute / 59 - 0.5,
            "hour_of_day": lambda: times.hour / 23 - 0.5,
            "day_of_week": lambda: times.day_of_week / 6 - 0.5,
            "day_of_month": lambda: (times.day - 1) / 30 - 0.5,
            "day_of_year": lambda: (times.day_of_year - 1) / 365 - 0.5,
            "week_of_year": lambda: (times.isocalendar().week.to_numpy().astype("float64") - 1) / 52 - 0.5,
            "month_of_year": lambda: (self._month(times) - 1) / 11 - 0.5,
            "age": lambda: np.log10(2.0 + np.arange(count)),
        }
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise DataError(f"found a model that reads '{unknown[0]}'; expected features among {', '.join(columns)}")
        out = np.empty((count, len(names)), dtype="float32")
        for column, name in enumerate(names):
            out[:, column] = np.asarray(columns[name](), dtype="float64")
        return out

    def _month(self, times: pd.DatetimeIndex) -> np.ndarray:
        months = np.asarray(times.month, dtype="float64")
        return months if self.unit != "Q" else 3 * np.floor((months - 1) / 3) + 3
