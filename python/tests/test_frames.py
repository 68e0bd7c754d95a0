"""What frames are read, and what is refused; calendar steps against pandas."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tsdp
from tsdp.calendars import Frequency
from tsdp.covariates import Covariates
from tsdp.frames import frequency_of, series_of

HOURLY = Frequency.parse("1h")


def long_frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"item_id": ["a", "a", "b"], "timestamp": ["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 05:00"], "target": [1.0, 2.0, 3.0], **columns})


def test_names_of_columns() -> None:
    expected = series_of(long_frame(), HOURLY)
    nixtla = long_frame().rename(columns={"item_id": "unique_id", "timestamp": "ds", "target": "y"})
    mine = long_frame().rename(columns={"item_id": "meter", "timestamp": "when", "target": "kWh"})
    for found in (series_of(nixtla, HOURLY), series_of(mine, HOURLY, "meter", "when", "kWh")):
        assert [one.item_id for one in found] == ["a", "b"]
        for one, other in zip(found, expected):
            assert one.start == other.start
            np.testing.assert_array_equal(one.values, other.values)


def test_rows_may_stand_in_any_order_and_ends_without_values_are_cut() -> None:
    frame = pd.DataFrame(
        {
            "item_id": "a",
            "timestamp": pd.to_datetime(["2024-01-01 03:00", "2024-01-01 01:00", "2024-01-01 00:00", "2024-01-01 04:00"]),
            "target": [3.0, 1.0, np.nan, np.nan],
        }
    )
    (one,) = series_of(frame, HOURLY)
    assert one.start == pd.Timestamp("2024-01-01 01:00")
    np.testing.assert_array_equal(one.values, [1.0, np.nan, 3.0])


def test_wide_frames_end_together() -> None:
    index = pd.date_range("2024-01-01", periods=4, freq="h")
    frame = pd.DataFrame({"a": [np.nan, 1.0, 2.0, np.nan], "b": [5.0, 6.0, 7.0, 8.0]}, index=index)
    a, b = series_of(frame, HOURLY)
    assert (a.start, b.start) == (index[1], index[0])
    np.testing.assert_array_equal(a.values, [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(b.values, [5.0, 6.0, 7.0, 8.0])
    np.testing.assert_array_equal(series_of(frame.set_axis(index.to_period("h")), HOURLY)[1].values, b.values)
    (only,) = series_of(frame["b"], HOURLY)
    assert only.item_id == "b"


def test_hours_with_a_zone_are_in_utc() -> None:
    # Summer time begins: 01:00, 03:00, 04:00 are three hours in a row.
    index = pd.date_range("2024-03-31 01:00", periods=3, freq="h", tz="Europe/Berlin")
    assert index[1].hour == 3
    (one,) = series_of(pd.Series([1.0, 2.0, 3.0], index=index, name="a"), HOURLY)
    assert one.start == pd.Timestamp("2024-03-31 00:00")
    np.testing.assert_array_equal(one.values, [1.0, 2.0, 3.0])
    texts = pd.DataFrame({"item_id": "a", "timestamp": [str(time) for time in index], "target": [1.0, 2.0, 3.0]})
    (same,) = series_of(texts, HOURLY)
    assert same.start == one.start
    np.testing.assert_array_equal(same.values, one.values)


def test_texts_mean_what_the_programs_read_in_them() -> None:
    days = pd.date_range("2024-01-01", periods=100)
    for form in ("%d.%m.%Y", "%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%d 00:00", "%d.%m.%Y 00:00:00"):
        for count in (12, 100):  # twelve days could be twelve months
            frame = pd.DataFrame({"item_id": "a", "timestamp": days.strftime(form), "target": 1.0}).head(count)
            (one,) = series_of(frame, Frequency.parse("1D"))
            assert one.start == days[0] and len(one.values) == count, form
    for form in ("%d/%m/%Y", "%m/%d/%Y", "%m-%d-%Y"):
        with pytest.raises(tsdp.DataError, match="is the month cannot be told"):
            series_of(pd.DataFrame({"item_id": "a", "timestamp": days.strftime(form), "target": 1.0}), Frequency.parse("1D"))
    with pytest.raises(tsdp.DataError, match="numbers"):
        series_of(pd.DataFrame({"item_id": "a", "timestamp": [1577836800, 1577840400], "target": 1.0}), HOURLY)


def test_all_series_of_a_frame_have_one_zone() -> None:
    # One lies in winter, the other in both.
    frame = pd.DataFrame(
        {
            "item_id": ["b", "a", "b", "a"],
            "timestamp": ["2024-03-30 00:00+01:00", "2024-01-01 00:00+01:00", "2024-04-01 00:00+02:00", "2024-01-02 00:00+01:00"],
            "target": [1.0, 2.0, 3.0, 4.0],
        }
    )
    b, a = series_of(frame, Frequency.parse("1D"))
    assert (b.item_id, a.item_id) == ("b", "a") and b.zone is a.zone
    np.testing.assert_array_equal(b.values, [1.0, np.nan, 3.0])
    with pytest.raises(tsdp.DataError, match="a zone in some rows and none in others"):
        series_of(frame.assign(timestamp=["2024-01-01 00:00Z", "2024-01-01 00:00", "2024-01-01 01:00Z", "2024-01-01 01:00"]), HOURLY)


def test_no_series_is_lost_for_its_name() -> None:
    with pytest.raises(tsdp.DataError, match="without the name of a series.*keep_default_na"):
        series_of(long_frame(item_id=["a", None, "b"]), HOURLY)


def test_days_with_a_zone_are_local() -> None:
    index = pd.date_range("2024-03-30", periods=3, freq="D", tz="Europe/Berlin")
    (one,) = series_of(pd.Series([1.0, 2.0, 3.0], index=index, name="a"), Frequency.parse("1D"))
    assert one.start == pd.Timestamp("2024-03-30") and len(one.values) == 3
    texts = pd.DataFrame({"item_id": "a", "timestamp": [str(time) for time in index], "target": [1.0, 2.0, 3.0]})
    assert series_of(texts, Frequency.parse("1D"))[0].start == one.start
    mixed = texts.assign(timestamp=["2024-03-30 00:00+01:00", "2024-03-31 00:00", "2024-04-01 00:00+02:00"])
    with pytest.raises(tsdp.DataError, match="times that cannot be read"):
        series_of(mixed, Frequency.parse("1D"))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (long_frame(timestamp=["2024-01-01 00:00", "2024-01-01 00:00", "2024-01-01"]), "twice"),
        (long_frame(timestamp=["2024-01-01 00:00", "2024-01-01 00:30", "2024-01-01"]), "whole steps of 1h"),
        (long_frame(timestamp=["2024-01-01 00:00", "yesterday", "2024-01-01"]), "times that cannot be read"),
        (long_frame(timestamp=["2024-01-01 00:00", None, "2024-01-01"]), "without a time"),
        (long_frame(target=[1.0, np.inf, 2.0]), "infinite"),
        (long_frame(target=["1", "two", "3"]), "no numbers"),
        (long_frame(target=[1.0, 2.0, np.nan]), "series 'b': found no value"),
        (long_frame().drop(columns="target"), "expected item_id, timestamp and target"),
        (long_frame().head(0), "without rows"),
    ],
)
def test_what_does_not_fit_is_named(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(tsdp.DataError, match=said):
        series_of(frame, HOURLY)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(tsdp.DataError, match="no column 'meter'"):
        series_of(long_frame(), HOURLY, item_id="meter")


@pytest.mark.parametrize(
    ("text", "start", "of_pandas"),
    [
        ("30s", "2024-02-28 23:59:00", "30s"),
        ("10min", "2024-02-28 23:50:00", "10min"),
        ("1h", "2024-02-28 22:00:00", "1h"),
        ("1D", "2024-02-27", "1D"),
        ("1B", "2024-02-29", "1B"),
        ("2W", "2024-02-27", pd.DateOffset(weeks=2)),
        ("1M", "2023-11-30", pd.offsets.MonthEnd(1)),
        ("1M", "2023-11-15", pd.DateOffset(months=1)),
        ("1Q", "2023-11-15", pd.DateOffset(months=3)),
        ("1Y", "2024-02-29", pd.offsets.YearEnd(1, month=2)),
    ],
)
def test_steps_are_those_of_pandas(text: str, start: str, of_pandas: Any) -> None:
    first = pd.Timestamp(start)
    frequency = Frequency.parse(text)
    found = frequency.steps_from(first, 9)
    assert list(found) == list(pd.date_range(first, periods=9, freq=of_pandas))
    np.testing.assert_array_equal(frequency.places_of(first, found[[2, 7]], "index"), [2, 7])


def frame_of(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"item_id": ["a", "a"], "timestamp": ["2024-01-01 00:00", "2024-01-01 01:00"], "target": [1.0, 2.0], **columns})


NUMBERS = [1577836800, 1577840400]


@pytest.mark.parametrize(
    "times",
    [
        NUMBERS,
        [float(number) for number in NUMBERS],
        pd.Series(NUMBERS, dtype=object),
        pd.Categorical(NUMBERS),
        pd.array(NUMBERS, dtype="Int64"),
        [decimal.Decimal(number) for number in NUMBERS],
        [True, False],
        pd.to_timedelta([1, 2], unit="h"),
        [2019, 2020],
        ["2024-01-01", pd.Timestamp("2024-01-01 01:00")],
    ],
)
def test_numbers_are_no_times(times: object) -> None:
    with pytest.raises(tsdp.DataError, match="timestamp: found times that cannot be read"):
        series_of(frame_of(timestamp=times), HOURLY)


MOMENTS = pd.to_datetime(["2024-01-01", "2024-01-02"])


@pytest.mark.parametrize(
    "values",
    [
        MOMENTS,
        MOMENTS.tz_localize("UTC"),
        MOMENTS.to_period("D"),
        MOMENTS - MOMENTS[0],
        pd.Categorical(MOMENTS),
        pd.Series(list(MOMENTS), dtype=object),
        [moment.date() for moment in MOMENTS],
        pd.Series([1.0, MOMENTS[0]], dtype=object),
        ["2024-01-01", "2024-01-02"],
        [1j, 2],
    ],
)
def test_times_are_no_numbers(values: object) -> None:
    with pytest.raises(tsdp.DataError, match="series 'a': found values that are no numbers"):
        series_of(frame_of(target=values), HOURLY)
    with pytest.raises(tsdp.DataError, match="found values that are no numbers"):
        series_of(pd.DataFrame({"a": values}).set_axis(pd.date_range("2024-01-01", periods=2, freq="h")), HOURLY)


@pytest.mark.parametrize("values", [[1, None], ["1", "NA"], pd.array([1, None], dtype="Int64"), [decimal.Decimal(1), None], pd.Categorical([1, None]), [True, None]])
def test_numbers_of_every_type_are_read(values: object) -> None:
    (one,) = series_of(frame_of(target=values), HOURLY)
    np.testing.assert_array_equal(one.values, [1.0])


def test_years_may_be_numbers() -> None:
    for times in ([2019, 2020], ["2019", "2020"], pd.PeriodIndex(["2019", "2020"], freq="Y")):
        assert series_of(frame_of(timestamp=times), Frequency.parse("YE-DEC"))[0].start == pd.Timestamp("2019-01-01")


def pair(*names: object) -> pd.DataFrame:
    return frame_of(item_id=pd.Series(names, dtype=object))


@pytest.mark.parametrize(
    ("names", "said"),
    [((1, "1"), "1 and '1', which are one text"), ((1, 1.0), "1 and 1.0, which are equal"), ((True, 1), "True and 1, which are equal"), (("", "a"), "not empty"), ((" ", "a"), "not empty")],
)
def test_names_that_would_be_merged_are_refused(names: tuple[object, object], said: str) -> None:
    with pytest.raises(tsdp.DataError, match=said):
        series_of(pair(*names), HOURLY)


def test_names_stay_apart() -> None:
    for names in (("a", "A"), ("a", " a"), (1, 2), ("1", "1.0"), ("北京", "Zähler"), ("NA", "nan")):
        assert [one.item_id for one in series_of(pair(*names), HOURLY)] == list(names)
    index = pd.date_range("2024-01-01", periods=2, freq="h")
    for columns in (["a", "a"], [1, "1"]):
        with pytest.raises(tsdp.DataError, match="which are one text"):
            series_of(pd.DataFrame([[1, 2], [3, 4]], columns=columns, index=index), HOURLY)


@pytest.mark.parametrize("name", ["1h", "60min", "H"])
def test_rows_of_a_longer_step_are_refused(name: str) -> None:
    days = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2024-01-01", periods=40), "target": 1.0})
    wide = days.set_index("timestamp")[["target"]]
    weeks = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2024-01-01", periods=9, freq="W"), "target": 1.0})
    for frame in (days, wide, wide.set_axis(wide.index.to_period("D")), wide["target"], weeks):
        with pytest.raises(tsdp.DataError, match="found (times that all lie on steps of 1[DW], for a frequency of|.*periods of D, for steps of) 1h"):
            series_of(frame, Frequency.parse(name))
    # Gaps that are no longer step are missing values, and so are rows that say so.
    hours = pd.date_range("2024-01-01", periods=200, freq="h")
    kept = hours[np.random.default_rng(1).random(200) < 0.2]
    assert len(series_of(pd.DataFrame({"a": 1.0}, index=kept), Frequency.parse(name))) == 1
    assert len(series_of(wide.reindex(hours), Frequency.parse(name))) == 1
    assert len(series_of(days, Frequency.parse("24h"))) == 1


def test_series_keep_their_day_of_the_month() -> None:
    months = Frequency.parse("MS")
    for days, expected in (
        (["2015-02-28", "2015-03-28", "2015-05-28"], "2015-06-28 2015-07-28"),
        (["2015-02-28", "2015-03-30", "2015-05-30"], "2015-06-30 2015-07-30"),
        (["2015-02-28", "2015-03-31", "2015-05-31"], "2015-06-30 2015-07-31"),
        (["2016-02-29", "2016-03-29", "2016-04-29"], "2016-05-29 2016-06-29"),
        (["2015-12-31", "2016-01-31"], "2016-02-29 2016-03-31"),
    ):
        long = pd.DataFrame({"item_id": "a", "timestamp": days, "target": 1.0})
        for frame in (long, long.set_index("timestamp")[["target"]], long.iloc[::-1]):
            (one,) = series_of(frame, months)
            assert " ".join(one.times(months, len(one.values) + 2)[len(one.values) :].strftime("%Y-%m-%d")) == expected
    with pytest.raises(tsdp.DataError, match="whole steps of 1M"):
        series_of(pd.DataFrame({"a": 1.0}, index=pd.DatetimeIndex(["2015-02-28", "2015-03-29", "2015-04-30"])), months)


def test_covariates_keep_theirs() -> None:
    index = Frequency.parse("1M").steps_from(pd.Timestamp("2015-02-28"), 6, 30)
    known = Covariates.of_frame(pd.DataFrame({"x": np.arange(6.0)}, index=index), ["x"], Frequency.parse("ME"))
    (one,) = series_of(pd.DataFrame({"a": [1.0, 2.0]}, index=index[1:3]), Frequency.parse("1M"))
    np.testing.assert_array_equal(known.rows(one, 4)[:, 0], [1.0, 2.0, 3.0, 4.0])


def test_values_that_stand_for_missing_ones_are_named() -> None:
    with pytest.raises(tsdp.DataError, match="series 'a': found the value -3.40282e.38; expected a magnitude below 1e.18, or NaN"):
        series_of(frame_of(target=[1.0, -3.4028234663852886e38]), HOURLY)


def test_other_columns_are_told() -> None:
    with pytest.warns(UserWarning, match="ignored the column 'price'; item_id, timestamp, target are read"):
        series_of(frame_of(price=1.0), HOURLY)
    with pytest.raises(tsdp.DataError, match="'ds' and 'timestamp'; expected the argument timestamp"):
        series_of(frame_of(ds="2024-01-01"), HOURLY)


def test_messages_show_names_as_they_are_written() -> None:
    for name in ("北京", "Zähler", "Ο μετρητής"):
        with pytest.raises(tsdp.DataError, match=f"series '{name}'"):
            series_of(frame_of(item_id=name, target=np.nan), HOURLY)


@pytest.mark.parametrize(
    ("expected", "start", "offset"),
    [
        ("30s", "2024-02-28 23:59:00", "30s"),
        ("15min", "2024-02-28 23:45:00", "15min"),
        ("1h", "2024-02-28 22:00:00", "h"),
        ("3h", "2024-02-28 22:00:00", "3h"),
        ("1D", "2024-02-27 06:00:00", "D"),
        ("1B", "2024-02-29", "B"),
        ("1W", "2024-02-28", "W-WED"),
        ("1M", "2024-01-31", "ME"),
        ("1M", "2024-01-01", "MS"),
        ("1Q", "2024-03-31", "QE"),
        ("1Y", "2020-12-31", "YE"),
    ],
)
def test_the_frequency_of_a_frame_is_found_although_rows_are_missing(expected: str, start: str, offset: str) -> None:
    random = np.random.default_rng(3)
    parts = []
    for name, count in (("a", 200), ("b", 60), ("c", 2)):
        times = pd.date_range(start, periods=count, freq=offset)
        kept = np.sort(random.choice(count, max(2, count // 2), replace=False))
        parts.append(pd.DataFrame({"item_id": name, "timestamp": times[kept], "target": 1.0}))
    frame = pd.concat(parts).sample(frac=1.0, random_state=1)
    assert str(frequency_of(frame)) == expected
    assert str(frequency_of(frame.assign(timestamp=frame["timestamp"].astype(str)))) == expected
    assert str(frequency_of(frame.rename(columns={"item_id": "meter", "timestamp": "when", "target": "kWh"}), "meter", "when", "kWh")) == expected
    wide = pd.DataFrame({"a": 1.0, "b": 2.0}, index=pd.date_range(start, periods=50, freq=offset).delete([3, 4, 17]))
    assert str(frequency_of(wide)) == str(frequency_of(wide["a"])) == expected


def test_times_at_less_than_half_of_their_steps_tell_no_frequency() -> None:
    kept = np.sort(np.random.default_rng(1).choice(400, 60, replace=False))
    with pytest.raises(tsdp.DataError, match="less than half of the steps of 1h"):
        frequency_of(pd.DataFrame({"a": 1.0}, index=pd.date_range("2024-01-01", periods=400, freq="h")[kept]))


def test_the_frequency_of_times_with_a_zone_is_that_of_local_days_and_of_hours_of_utc() -> None:
    for offset, expected in (("D", "1D"), ("W", "1W"), ("MS", "1M"), ("h", "1h"), ("3h", "3h")):
        index = pd.date_range("2024-02-01", periods=600, freq=offset, tz="Europe/Berlin")  # with changes to summer time
        assert str(frequency_of(pd.DataFrame({"a": 1.0}, index=index))) == expected
        assert str(frequency_of(pd.DataFrame({"a": 1.0}, index=index.map(str)))) == expected
    for period in ("h", "D", "W", "M", "Q", "Y"):
        index = pd.period_range("2024-02-01", periods=2, freq=period)
        assert str(frequency_of(pd.DataFrame({"a": 1.0}, index=index))) == f"1{period}"


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (long_frame(), "fewer than three times in each series.*the argument frequency"),
        # One row that is not on the hour.
        (
            pd.DataFrame({"a": 1.0}, index=pd.date_range("2024-01-01", periods=40, freq="h").append(pd.DatetimeIndex(["2024-01-01 05:30"]))),
            "the index: found the times 2024-01-01 05:00:00 and 2024-01-01 05:30:00 among times that are mostly",
        ),
        (pd.DataFrame({"a": 1.0}, index=pd.date_range("2024-01-01", periods=40, freq="h") + pd.to_timedelta(np.arange(40) % 3, unit="min")), "mostly .* apart"),
        (
            pd.concat([pd.DataFrame({"item_id": step, "timestamp": pd.date_range("2024-01-01", periods=40, freq=step), "target": 1.0}) for step in ("h", "D")]),
            "series 'D': found steps of 1D beside steps of 1h of other series",
        ),
        (
            pd.concat([pd.DataFrame({"item_id": step, "timestamp": pd.date_range("2024-01-01", periods=40, freq=step), "target": 1.0}) for step in ("10min", "15min")]),
            "series '1.min': found .*one step, or the argument frequency",
        ),
        (pd.DataFrame({"item_id": "a", "timestamp": range(40), "target": 1.0}), "times that cannot be read"),
        # Days of local time on both sides of a change to summer time: that change is not what is wrong.
        (
            pd.DataFrame({"a": 1.0}, index=pd.date_range("2024-03-01", periods=60, tz="Europe/Berlin").append(pd.DatetimeIndex(["2024-04-20 00:07"], tz="Europe/Berlin"))),
            "found the times 2024-04-20 00:00:00 and 2024-04-20 00:07:00 among times that are mostly 1D apart",
        ),
    ],
)
def test_times_without_one_step_are_refused(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(tsdp.DataError, match=said) as refused:
        frequency_of(frame)
    assert "\n" not in str(refused.value)
