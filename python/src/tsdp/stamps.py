"""Time stamps: texts mean what tsdp's programs read in them, times are times, and numbers are neither."""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .calendars import Frequency
from .errors import DataError

_PERIOD = r"(?P<y1>[0-9]{4})(?:Q(?P<quarter>[1-4])|-(?P<m1>[0-9]{2}))?"
_DATE = r"(?:(?P<d2>[0-9]{2})\.(?P<m2>[0-9]{2})\.(?P<y2>[0-9]{4})|(?P<y3>[0-9]{4})(?P<s3>[-/])(?P<m3>[0-9]{2})(?P=s3)(?P<d3>[0-9]{2}))"
_END = r"/(?:[0-9]{2}\.[0-9]{2}\.[0-9]{4}|[0-9]{4}(?:Q[1-4]|-[0-9]{2}|([-/])[0-9]{2}\1[0-9]{2})?)"  # of a period: what it starts with is meant
_TIME = r"(?P<hour>[0-9]{1,2})(?P<colon>[:-])(?P<minute>[0-9]{2})(?:(?P=colon)(?P<second>[0-9]{2})(?:[.,]0+)?)?"
_ZONE = r"(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<zh>[0-9]{2})(?::?(?P<zm>[0-9]{2}))?)(?:\[(?P<place>.+)\])?"
_WHOLE = re.compile(_PERIOD)
_STAMP = re.compile(rf"{_DATE}(?P<rest>.*)", re.DOTALL)
_REST_END = re.compile(_END)
_REST_TIME = re.compile(rf"[ T]{_TIME}(?:{_ZONE})?", re.DOTALL)
_SLASHED = re.compile(r"[0-9]{1,2}[/.-][0-9]{1,2}[/.-][0-9]{2,4}.*", re.DOTALL)


class Stamp(NamedTuple):
    """The time on a clock, and by how much that clock is ahead of UTC, if it says so. `elsewhere`: the clock is UTC's, and the place another."""

    clock: datetime.datetime
    ahead: datetime.timedelta | None = None
    elsewhere: bool = False


def read_stamp(text: str) -> Stamp | None:
    """What `parse_time_stamp` of the programs reads.

    >>> [read_stamp(text).clock.isoformat() for text in ("2015Q2", "2014-12-29/2015-01-04", "31.01.2015 9:00", "2015-01-31 13-00-00")]
    ['2015-04-01T00:00:00', '2014-12-29T00:00:00', '2015-01-31T09:00:00', '2015-01-31T13:00:00']
    >>> read_stamp("1/31/2015") is None
    True
    """
    try:
        if whole := _WHOLE.fullmatch(text):
            return Stamp(datetime.datetime(int(whole["y1"]), 3 * int(whole["quarter"]) - 2 if whole["quarter"] else int(whole["m1"] or 1), 1))
        if (found := _STAMP.fullmatch(text)) is None:
            return None
        kind = "2" if found["y2"] else "3"
        date = datetime.datetime(int(found["y" + kind]), int(found["m" + kind]), int(found["d" + kind]))
        if not found["rest"] or _REST_END.fullmatch(found["rest"]):
            return Stamp(date)
        if (behind := _REST_TIME.fullmatch(found["rest"])) is None:
            return None
        clock = date.replace(hour=int(behind["hour"]), minute=int(behind["minute"]), second=int(behind["second"] or 0))
        if not behind["utc"] and not behind["sign"]:
            return Stamp(clock)
        ahead = datetime.timedelta(hours=int(behind["zh"] or 0), minutes=int(behind["zm"] or 0))
        if int(behind["zh"] or 0) > 23 or int(behind["zm"] or 0) > 59:
            return None
        elsewhere = bool(behind["utc"]) and behind["place"] not in (None, "UTC", "Etc/UTC")
        return Stamp(clock, -ahead if behind["sign"] == "-" else ahead, elsewhere)
    except ValueError:  # no such date or time
        return None


def are_texts(column: pd.Series) -> bool:
    """Whether all that is not missing is text."""
    return pd.api.types.is_string_dtype(column.dropna()) and not isinstance(column.dtype, pd.CategoricalDtype)


def plain(values: Any) -> pd.Series:
    """A column in the type of its values: not of categories, and of one type where it was read as objects of one."""
    column = pd.Series(values)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = pd.Series(np.asarray(column), index=column.index)
    return column.infer_objects() if column.dtype == object else column


def moments(values: Any, frequency: Frequency, what: str) -> tuple[pd.DatetimeIndex, Any]:
    """Times without a zone, and their zone."""
    try:
        times = _times(plain(values), frequency)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{what}: found times that cannot be read ({error}); expected moments such as 2024-01-31 13:00") from None
    if times.hasnans:
        raise DataError(f"{what}: found a row without a time; expected one in each")
    without = frequency.without_zone(times)
    fractions = without.floor("s") != without
    if fractions.any():
        raise DataError(f"{what}: found the time {times[fractions.argmax()]}; expected whole seconds")
    return without, times.tz


def _times(column: pd.Series, frequency: Frequency) -> pd.DatetimeIndex:
    if isinstance(column.dtype, pd.PeriodDtype):
        return _of_periods(pd.PeriodIndex(column), frequency)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return pd.DatetimeIndex(column)
    if pd.api.types.is_integer_dtype(column.dtype) and frequency.unit == "Y" and column.dropna().between(1000, 9999).all():
        column = column.map(str, na_action="ignore")  # years, as the programs read them in a file
    elif pd.api.types.is_numeric_dtype(column.dtype):
        years = "; if they are years: frequency='1Y'" if column.dropna().between(1000, 9999).all() else ""
        raise ValueError(f"numbers, such as {column.iloc[0]}{years}; if they count seconds from 1970: pandas.to_datetime(…, unit='s')")
    if are_texts(column):
        return _of_texts(column, frequency)
    known = column.dropna()
    if known.map(lambda value: isinstance(value, str)).any():
        raise ValueError("texts and other values in one column")
    wrong = known[[not isinstance(value, (datetime.date, np.datetime64)) for value in known]]
    if len(wrong) > 0:
        raise ValueError(f"values of type {type(wrong.iloc[0]).__name__}, such as {wrong.iloc[0]}")
    return pd.DatetimeIndex(pd.to_datetime(column))


def _of_periods(periods: pd.PeriodIndex, frequency: Frequency) -> pd.DatetimeIndex:
    times = periods.to_timestamp()
    known = periods[~periods.isna()]
    if len(known) > 0 and frequency.unit != "B":
        end = (known[:1] + 1).to_timestamp()[0]
        if end > frequency.steps_from(known[:1].to_timestamp()[0], 2)[1]:
            raise ValueError(f"periods of {known.freqstr}, for steps of {frequency}")
    return times


def _of_texts(column: pd.Series, frequency: Frequency) -> pd.DatetimeIndex:
    places, texts = pd.factorize(column.str.strip())
    stamps = [read_stamp(text) for text in texts]
    for text, stamp in zip(texts, stamps):
        if stamp is None:
            raise ValueError(f"which number of '{text}' is the month cannot be told" if _SLASHED.fullmatch(text) else f"'{text}'")
        if (stamp.ahead is None) != (stamps[0].ahead is None):  # type: ignore[union-attr]
            raise ValueError("a zone in some rows and none in others")
        if stamp.elsewhere and frequency.keeps_local_time:
            raise ValueError(f"'{text}', in UTC though it is of another place, with steps of {frequency}, which are in local time; such times are read without a zone")
    known = [stamp for stamp in stamps if stamp is not None]
    offsets = {stamp.ahead for stamp in known}
    zone = datetime.timezone(known[0].ahead) if len(offsets) == 1 and known[0].ahead is not None else None
    # In UTC where there are several offsets, as on both sides of a change to summer time, and steps are shorter than a day.
    in_utc = zone is not None or (len(offsets) > 1 and not frequency.keeps_local_time)
    clocks = np.array([stamp.clock - stamp.ahead if in_utc and stamp.ahead is not None else stamp.clock for stamp in known], dtype="datetime64[s]")
    times = pd.DatetimeIndex(np.append(clocks, np.datetime64("NaT", "s"))[places])  # (-1 stands for what is missing)
    if not in_utc:
        return times
    return times.tz_localize("UTC").tz_convert(zone if zone is not None else "UTC")
