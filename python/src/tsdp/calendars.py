"""Calendar steps and calendar features, to the same numbers as tsdp's programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from .errors import DataError, UsageError

_SECONDS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
_MONTHS = {"M": 1, "Q": 3, "Y": 12}
_SEASONS = {"s": 3600, "min": 1440, "h": 24, "D": 7, "B": 5, "W": 52, "M": 12, "Q": 4, "Y": 1}
# What a unit is called, by tsdp and by all releases of pandas.
_NAMES = {
    "s": "s S sec second seconds",
    "min": "min T minute minutes",
    "h": "h H hour hours",
    "D": "D d day days",
    "B": "B",
    "W": "W",
    "M": "M ME MS",
    "Q": "Q QE QS",
    "Y": "Y YE A YS AS",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
# So many of a unit are one of a longer one. (Five business days are a week only if they start on a Monday.)
_LONGER = (("s", 60, "min"), ("min", 60, "h"), ("h", 24, "D"), ("D", 7, "W"), ("M", 3, "Q"), ("Q", 4, "Y"))
_DAY = 86400
_ANCHOR = "-(?:MON|TUE|WED|THU|FRI|SAT|SUN)"
_MONTH_ANCHOR = "-(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
_FREQUENCY = re.compile(rf"([0-9]{{0,6}})\s*(?:(W){_ANCHOR}|([QYA][ES]?){_MONTH_ANCHOR}|([A-Za-z]+))")


@dataclass(frozen=True)
class Frequency:
    """A whole number of one unit: `10min`, `1h`, `1D`, `1B` (business days), `1W`, `1M`, `1Q`, `1Y`. One step has one form: 60min is 1h."""

    multiple: int
    unit: str

    @staticmethod
    def parse(text: Any) -> "Frequency":
        """Reads what `str` writes and what pandas calls a step (`frame.index.freqstr`): "H", "15T", "MS", "W-SUN", "QS-OCT". The days that pandas
        puts behind it are those on which a series starts.

        >>> [str(Frequency.parse(name)) for name in ("10min", "H", "24h", "7D", "W-SUN", "ME", "QS-OCT", "A-DEC")]
        ['10min', '1h', '1D', '1W', '1W', '1M', '1Q', '1Y']
        >>> Frequency.parse("fortnight")
        Traceback (most recent call last):
        tsdp.errors.UsageError: found the frequency 'fortnight'; expected a whole number and a unit, such as 10min, 1h, 1D, 1B, 1W, 1M, 1Q or 1Y
        """
        name = getattr(text, "freqstr", text)  # of pandas' offsets
        match = _FREQUENCY.fullmatch(name.strip()) if isinstance(name, str) else None
        unit = _UNITS.get(match[2] or match[3] or match[4]) if match else None
        multiple = int(match[1] or 1) if match else 0
        if unit is None or multiple < 1:
            raise UsageError(
                f"found the frequency '{name}'; expected a whole number and a unit, such as 10min, 1h, 1D, 1B, 1W, 1M, 1Q or 1Y"
            )
        return Frequency._normal(multiple, unit)

    @staticmethod
    def _normal(multiple: int, unit: str) -> "Frequency":
        for shorter, count, longer in _LONGER:
            if unit == shorter and multiple % count == 0:
                multiple, unit = multiple // count, longer
        return Frequency(multiple, unit)

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
        return self._shortest_step >= _DAY

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

    @property
    def _shortest_step(self) -> int:
        """Seconds; of February among months."""
        return self.multiple * (_SECONDS.get(self.unit) or _DAY * 28 * _MONTHS.get(self.unit, 0) or _DAY)

    def month_day_of(self, times: pd.DatetimeIndex) -> int:
        """The day of the month that steps with these times lie on: 28 of 28 February and 28 March; 31, which stands for last days, of last days alone.
        0 for steps that are not of months, and where there is no such day.

        >>> days = [pd.DatetimeIndex(pair) for pair in (["2023-02-28", "2023-03-28"], ["2023-02-28", "2023-03-30"], ["2023-02-28", "2023-03-31"])]
        >>> [Frequency.parse("1M").month_day_of(pair) for pair in days]
        [28, 30, 31]
        """
        return _common_month_day(_seconds(times)) if self.unit in _MONTHS else 0

    def steps_from(self, start: pd.Timestamp, count: int, month_day: int = 0) -> pd.DatetimeIndex:
        """`count` moments, `start` the first. Months and longer lie on `month_day` where it exists, else on the last day of a month; without it (0)
        on the day of `start`, and on last days where that is one.

        >>> list(Frequency.parse("1M").steps_from(pd.Timestamp("2024-01-31"), 3).strftime("%m-%d"))
        ['01-31', '02-29', '03-31']
        >>> list(Frequency.parse("1M").steps_from(pd.Timestamp("2023-02-28"), 3, 30).strftime("%m-%d"))
        ['02-28', '03-30', '04-30']
        """
        return pd.DatetimeIndex(self._advance(start, np.arange(count, dtype="int64"), month_day).astype("datetime64[s]"))

    def _advance(self, start: pd.Timestamp, steps: np.ndarray, month_day: int) -> np.ndarray:
        """Seconds since 1970 of so many steps after `start`; none of them negative."""
        first = int(_seconds(pd.DatetimeIndex([start]))[0])
        if self.unit in _SECONDS:
            return first + steps * (self.multiple * _SECONDS[self.unit])
        day, time_of_day = divmod(first, _DAY)
        if self.unit == "B":
            weekday = (day - 4) % 7  # (day 4 of 1970 was a Monday)
            from_friday = weekday > 4  # From a weekend, one step leads to Monday.
            friday = day - (weekday - 4) if from_friday else day
            places = min(weekday, 4) + steps * self.multiple
            days = friday - min(weekday, 4) + 7 * (places // 5) + places % 5
            return _DAY * np.where(steps == 0, day, days) + time_of_day
        months = _month_numbers(np.array([day]))[0] + steps * (self.multiple * _MONTHS[self.unit])
        firsts, lengths = _days_of_months(months)
        wanted = month_day or _common_month_day(np.array([first]))
        return _DAY * (firsts + np.minimum(wanted, lengths) - 1) + time_of_day

    def places_of(self, start: pd.Timestamp, times: pd.DatetimeIndex, what: str, month_day: int = 0) -> np.ndarray:
        """How many steps after `start` each moment is. Raises DataError for one that is no whole number of them.

        >>> Frequency.parse("1h").places_of(pd.Timestamp("2024-01-01"), pd.DatetimeIndex(["2024-01-01 05:00"]), "a series")
        array([5])
        """
        found, first = _seconds(times), int(_seconds(pd.DatetimeIndex([start]))[0])
        if self.unit in _SECONDS:
            units, step = found - first, self.multiple * _SECONDS[self.unit]
        elif self.unit == "B":
            units, step = _last_business_days(found // _DAY) - _last_business_days(np.array([first // _DAY])), self.multiple
        else:
            units, step = _month_numbers(found // _DAY) - _month_numbers(np.array([first // _DAY])), self.multiple * _MONTHS[self.unit]
        places = units // step
        wrong = np.flatnonzero((units % step != 0) | (places < 0) | (self._advance(start, np.maximum(places, 0), month_day) != found))
        if len(wrong) > 0:
            raise DataError(f"{what}: found the time {times[wrong[0]]}; expected whole steps of {self} after {start}")
        return places

    def coarser_than_this(self, series: Sequence[pd.DatetimeIndex]) -> "Frequency | None":
        """A longer step on which the times of all series lie, if by chance, as rows of this step, they would with a probability below one in a
        thousand. The times of each series increase.

        >>> days = pd.date_range("2024-01-01", periods=9)
        >>> str(Frequency.parse("1h").coarser_than_this([days])), Frequency.parse("1D").coarser_than_this([days])
        ('1D', None)
        """
        found = _coarsest([_seconds(times) for times in series])
        if found is None or found._shortest_step < 2 * self._shortest_step:
            return None
        steps = sum(len(times) - 1 for times in series if len(times) > 0) - 1
        return found if steps * np.log10(found._shortest_step / self._shortest_step) >= 3 else None

    def features(self, names: list[str], start: pd.Timestamp, count: int, month_day: int = 0) -> np.ndarray:
        """Features of `count` steps from the start of a series, as float32 of shape (count, len(names)).

        >>> Frequency.parse("1h").features(["hour_of_day", "age"], pd.Timestamp("2024-01-01 23:00"), 1)
        array([[0.5    , 0.30103]], dtype=float32)
        """
        times = self.steps_from(start, count, month_day)
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


def _seconds(times: pd.DatetimeIndex) -> np.ndarray:
    """Since 1970."""
    return np.asarray(times.to_numpy().astype("datetime64[s]").astype("int64"))


def _month_numbers(days: np.ndarray) -> np.ndarray:
    return np.asarray(days.astype("datetime64[D]").astype("datetime64[M]").astype("int64"))


def _days_of_months(months: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First days, and how many days they have."""
    firsts, nexts = (number.astype("datetime64[M]").astype("datetime64[D]").astype("int64") for number in (months, months + 1))
    return firsts, nexts - firsts


def _last_business_days(days: np.ndarray) -> np.ndarray:
    """The number of the last business day up to each day."""
    weeks = (days - 4) // 7
    return np.asarray(5 * weeks + np.minimum(days - 4 - 7 * weeks, 4))


def _common_month_day(moments: np.ndarray) -> int:
    days = moments // _DAY
    firsts, lengths = _days_of_months(_month_numbers(days))
    numbers = days - firsts + 1
    if (numbers == lengths).all():
        return 31 if len(days) > 0 else 0
    latest = int(numbers.max())
    return latest if ((numbers == latest) | (numbers == lengths)).all() else 0


def _coarsest(series: Sequence[np.ndarray]) -> Frequency | None:
    """The longest step on which every one of these series of moments lies, as the programs infer it. None where none has three of them."""
    series = [moments for moments in series if len(moments) > 0]
    if not any(len(moments) >= 3 for moments in series):
        return None

    def common(of: Callable[[np.ndarray], np.ndarray]) -> int:
        return int(np.gcd.reduce([int(np.gcd.reduce(np.diff(of(moments)))) for moments in series if len(moments) > 1]))

    if any((moments % _DAY != moments[0] % _DAY).any() for moments in series):
        return Frequency._normal(common(lambda moments: moments), "s")
    if all(_common_month_day(moments) > 0 for moments in series):
        months = common(lambda moments: _month_numbers(moments // _DAY))
        if months > 0:
            return Frequency._normal(months, "M")
    days = common(lambda moments: moments // _DAY)
    # Five days in a row without a weekend may be of any week; more of them are business days.
    spans_a_week = any(moments[-1] // _DAY - moments[0] // _DAY >= 6 for moments in series)
    on_weekends = not spans_a_week or any(((moments // _DAY - 4) % 7 > 4).any() for moments in series)
    return Frequency(1, "B") if days == 1 and not on_weekends else Frequency._normal(days, "D")


def mostly_days_apart(series: Iterable[pd.DatetimeIndex]) -> bool:
    """Whether times with a zone, seen in UTC, are those of days or longer steps, of which some have 23 hours.

    >>> mostly_days_apart([pd.date_range("2024-03-01", periods=60, tz="Europe/Berlin").tz_convert(None)])
    True
    """
    apart = np.concatenate([np.empty(0), *(np.diff(np.unique(_seconds(times))) for times in series)])
    return len(apart) > 0 and bool(np.median(apart) >= 23 * 3600)


def step_of(series: Mapping[str, pd.DatetimeIndex]) -> Frequency:
    """The one step of the times of all series, which may stand in any order and leave out steps. Raises DataError where there is none.

    >>> hours = pd.date_range("2024-01-01", periods=30, freq="h")
    >>> str(step_of({"series 'a'": hours.delete([3, 4, 9]), "series 'b'": hours[5:]}))
    '1h'
    """
    times = {name: one.unique().sort_values() for name, one in series.items()}
    found = _coarsest([_seconds(one) for one in times.values()])
    if found is None:
        raise DataError("found fewer than three times in each series, which tell no step; expected the argument frequency, such as '1h'")
    apart = {name: np.diff(found.places_of(one[0], one, name, found.month_day_of(one))) for name, one in times.items()}
    counts = np.unique(np.concatenate(list(apart.values())), return_counts=True)
    usual = int(counts[0][counts[1].argmax()])
    for name, one in times.items():
        odd = np.flatnonzero(apart[name] % usual != 0)
        if len(odd) > 0:
            most = Frequency._normal(found.multiple * usual, found.unit)
            raise DataError(
                f"{name}: found the times {one[odd[0]]} and {one[odd[0] + 1]} among times that are mostly {most} apart; expected one step, or the argument frequency"
            )
        own = found.coarser_than_this([one])
        if own is not None:
            raise DataError(f"{name}: found steps of {own} beside steps of {found} of other series; expected one step, or the argument frequency")
    if not any(len(own) >= 2 and 2 * (len(own) + 1) >= own.sum() + 1 for own in apart.values()):
        raise DataError(f"found times at less than half of the steps of {found} in each series, which do not tell the step; expected the argument frequency, such as '{found}'")
    return found
