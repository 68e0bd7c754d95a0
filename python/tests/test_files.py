"""One list of small files for the programs and this package: the same series, time stamps and step from each, or a refusal by both."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pandas as pd
import pytest

import tsdp
from tsdp.calendars import Frequency
from tsdp.frames import series_of
from tsdp.programs import program


@dataclass(frozen=True)
class File:
    """`read`: how pandas reads it; None of forms that are for the programs alone, whose own long table Python then reads. `step`: None where both refuse it."""

    name: str
    text: str
    step: str | None
    options: tuple[str, ...] = ()
    read: Callable[[Path], pd.DataFrame] | None = pd.read_csv
    columns: dict[str, str] = field(default_factory=dict)


def as_texts(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, dtype={"unique_id": str, "item_id": str}, keep_default_na=False)


def long(*rows: str, header: str = "unique_id,ds,y") -> str:
    return "\n".join((header, *rows)) + "\n"


def daily(form: str, count: int = 9, start: str = "2024-01-01") -> str:
    return long(*(f"A,{day:{form}},{number}" for number, day in enumerate(pd.date_range(start, periods=count))))


def monthly(*days: str) -> str:
    return long(*(f"A,{day},{number}" for number, day in enumerate(days)))


TSF = "@relation x\n@attribute series_name string\n@attribute start_timestamp date\n@frequency {}\n@missing true\n@equallength false\n@data\n"

FILES = {
    "hours, two series, a step without a row": File("f.csv", long(*(f"A,2020-01-01 {h:02}:00:00,{h}" for h in (0, 1, 3, 4, 5)), "B,2020-01-01 01:00:00,4", "B,2020-01-01 02:00:00,"), "1h"),
    "rows in any order": File("f.csv", long("A,2020-01-03,3", "A,2020-01-01,1", "B,2020-01-02,5", "A,2020-01-02,2"), "1D"),
    "GluonTS' names of columns": File("f.csv", daily("%Y-%m-%d").replace("unique_id,ds,y", "item_id,timestamp,target"), "1D"),
    "names of several programs": File("f.csv", daily("%Y-%m-%d").replace("unique_id,ds,y", "series_id,date,value"), "1D"),
    "names of one's own": File(
        "f.csv", daily("%Y-%m-%d").replace("unique_id,ds,y", "meter,when,kWh"), "1D", ("--columns=item=meter,time=when,value=kWh",),
        columns={"item_id": "meter", "timestamp": "when", "target": "kWh"},
    ),
    "one series among other columns": File(
        "f.csv", daily("%Y-%m-%d").replace("unique_id,ds,y", "weather,when,kWh"), "1D", ("--columns=time=when,value=kWh",), columns={"timestamp": "when", "target": "kWh"}
    ),
    "pandas' index": File("f.csv", ",item_id,timestamp,target\n0,A,2020-01-01,1\n1,A,2020-01-02,2\n2,A,2020-01-03,3\n", "1D"),
    "days first": File("f.csv", daily("%d.%m.%Y"), "1D"),
    "slashes, the year first": File("f.csv", daily("%Y/%m/%d"), "1D"),
    "one digit of the hour": File("f.csv", long("A,2020-01-01 8:00,1", "A,2020-01-01 9:00,2", "A,2020-01-01 10:00,3"), "1h"),
    "hyphens in times": File("f.csv", long("A,2020-01-01 08-00-00,1", "A,2020-01-01 09-00-00,2", "A,2020-01-01 10-00-00,3"), "1h"),
    "fractions that are 0": File("f.csv", long("A,2020-01-01 08:00:00.000,1", "A,2020-01-01 08:00:10.0,2", "A,2020-01-01 08:00:20,3"), "10s"),
    "a zone, hours": File("f.csv", long("A,2020-03-29 01:00:00+01:00,1", "A,2020-03-29 03:00:00+02:00,2", "A,2020-03-29 04:00:00+02:00,3"), "1h"),
    "a zone, days": File("f.csv", long("A,2020-03-28 00:00:00+01:00,1", "A,2020-03-29 00:00:00+01:00,2", "A,2020-03-30 00:00:00+02:00,3"), "1D"),
    "the name of a place": File("f.csv", long("A,2020-01-01T00:00+0100[Europe/Berlin],1", "A,2020-01-01T01:00+0100[Europe/Berlin],2", "A,2020-01-01T02:00+0100[Europe/Berlin],3"), "1h"),
    "weeks as pandas writes periods": File("f.csv", long(*(f"A,{week},{n}" for n, week in enumerate(pd.period_range("2020-01-06", periods=5, freq="W-SUN").astype(str)))), "1W"),
    "periods of months": File("f.csv", monthly("2020-01", "2020-02", "2020-03"), "1M"),
    "periods of quarters": File("f.csv", monthly("2020Q1", "2020Q2", "2020Q4", "2021Q1"), "1Q"),
    "years": File("f.csv", monthly("2018", "2019", "2020"), "1Y"),
    "years in a wide table": File("f.csv", "year,A\n2018-01-01,1\n2019-01-01,2\n2020-01-01,3\n", "1Y"),
    "business days": File("f.csv", long(*(f"A,{day:%Y-%m-%d},{n}" for n, day in enumerate(pd.bdate_range("2020-01-02", periods=9)))), "1B"),
    "last days of months": File("f.csv", monthly("2023-01-31", "2023-02-28", "2023-03-31", "2023-04-30"), "1M"),
    "the 15th": File("f.csv", monthly("2023-01-15", "2023-02-15", "2023-04-15"), "1M"),
    "the 28th, from February on": File("f.csv", monthly("2023-02-28", "2023-03-28", "2023-04-28", "2023-05-28"), "1M", ("--frequency=MS",)),
    "the 30th, from February on": File("f.csv", monthly("2023-02-28", "2023-03-30", "2023-04-30", "2023-05-30", "2023-06-30"), "1M", ("--frequency=1M",)),
    "the 29th of quarters": File("f.csv", monthly("2023-02-28", "2023-05-29", "2023-08-29", "2023-11-29", "2024-02-29"), "1Q", ("--frequency=QS-OCT",)),
    "a column a series": File("f.csv", "t,A,B\n2020-01-01,1,\n2020-01-02,,5\n2020-01-03,3,\n", "1D"),
    "a column a series, the 28th": File("f.csv", "t,A,B\n2023-02-28,1,\n2023-03-28,2,5\n2023-04-28,3,6\n", "1M", ("--frequency=ME",)),
    "a column a series, numbered": File("f.csv", "Unnamed: 0,date,A\n0,2020-01-06,1\n1,2020-01-13,2\n2,2020-01-20,3\n", "1W"),
    "semicolons and decimal commas": File("f.csv", "Datum;A;B\n31.12.2019;1,5;2,25\n01.01.2020;2,5;\n02.01.2020;3,25;4\n", "1D", read=lambda file: pd.read_csv(file, sep=";", decimal=",")),
    "names with other letters": File("f.csv", daily("%Y-%m-%d").replace("A,", "北京 Zähler,"), "1D", read=as_texts),
    "a series called NA": File("f.csv", daily("%Y-%m-%d").replace("A,", "NA,"), "1D", read=as_texts),
    "names of digits": File("f.csv", daily("%Y-%m-%d").replace("A,", "007,"), "1D", read=as_texts),
    "missing values": File("f.csv", long("A,2020-01-01,1", "A,2020-01-02,NA", "A,2020-01-03,", "A,2020-01-04,nan", "A,2020-01-05,?", "A,2020-01-06,6"), "1D", read=as_texts),
    "60 minutes are an hour": File("f.csv", long("A,2020-01-01 00:00,1", "A,2020-01-01 02:00,2"), "1h", ("--frequency=60min",)),
    "seven days are a week": File("f.csv", long("A,2020-01-01,1", "A,2020-01-15,2"), "1W", ("--frequency=7D",)),
    "24 H are a day": File("f.csv", long("A,2020-01-01,1", "A,2020-01-03,2"), "1D", ("--frequency=24H",)),
    "JSON Lines": File("f.jsonl", '{"start": "2020-01-06", "target": [1, NaN, 3], "item_id": "A"}\n{"start": "2020-01-13", "target": [4], "item_id": "B"}\n', "1W", ("--frequency=W-MON",), None),
    "Monash's tsf": File("f.tsf", TSF.format("half_hourly") + "A:2020-01-01 00-30-00:1,?,3\nB:2020-01-01 02-00-00:5,6\n", "30min", (), None),
    "tsf of months": File("f.tsf", TSF.format("monthly") + "A:2020-01-31 00-00-00:1,?,3\n", "1M", (), None),
    "numbers alone": File("f.txt", "1,2\n3,4\n", "1D", ("--frequency=24h", "--start=2020-01-01"), None),
    # Refused by both.
    "the month first": File("f.csv", daily("%m/%d/%Y"), None, ("--frequency=1D",)),
    "a month in words": File("f.csv", daily("%d %b %Y"), None, ("--frequency=1D",)),
    "no separators in dates": File("f.csv", daily("%Y%m%d").replace(",2024", ",x2024"), None, ("--frequency=1D",)),
    "seconds since 1970": File("f.csv", long("A,1577836800,1", "A,1577840400,2"), None, ("--frequency=1h",)),
    "fractions that are not 0": File("f.csv", long("A,2020-01-01 00:00:00.5,1", "A,2020-01-01 01:00:00.5,1"), None, ("--frequency=1h",)),
    "a zone in some rows": File("f.csv", long("A,2020-01-01 00:00,1", "A,2020-01-01 01:00Z,2"), None, ("--frequency=1h",)),
    "days of another place in UTC": File("f.csv", long("A,2020-01-01T15:00Z[Asia/Tokyo],1", "A,2020-01-02T15:00Z[Asia/Tokyo],2"), None, ("--frequency=1D",)),
    "one time twice": File("f.csv", long("A,2020-01-01,1", "A,2020-01-01,", "A,2020-01-02,2"), None, ("--frequency=1D",)),
    "off the grid, though without a value": File("f.csv", long("A,2020-01-01 00:00,1", "A,2020-01-01 00:30,", "A,2020-01-01 01:00,2"), None, ("--frequency=1h",)),
    "rows of days for hours": File("f.csv", daily("%Y-%m-%d"), None, ("--frequency=1h",)),
    "times in place of values": File("f.csv", long("A,2020-01-01,2020-02-01", "A,2020-01-02,2020-02-02"), None, ("--frequency=1D",)),
    "two columns of times": File("f.csv", "unique_id,ds,date,y\nA,2020-01-01,2020-01-01,1\n", None, ("--frequency=1D",)),
    "one column twice": File("f.csv", "t,A,A\n2020-01-01,1,2\n2020-01-02,1,2\n", None, ("--frequency=1D",), lambda file: pd.read_csv(file).rename(columns={"A.1": "A"})),
    "no such step": File("f.csv", daily("%Y-%m-%d"), None, ("--frequency=fortnight",)),
    "months of differing days": File("f.csv", monthly("2023-02-28", "2023-03-29", "2023-04-30"), None, ("--frequency=1M",)),
}


def by_program(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(name), *map(str, arguments)], capture_output=True, encoding="utf-8", check=False)


def values_of(frame: pd.DataFrame, frequency: Frequency, **columns: Any) -> list[tuple[str, str, float]]:
    """Of all that is not missing: the series' name, the time and the value."""
    out = []
    for one in series_of(frame, frequency, **columns):
        for time, value in zip(one.times(frequency, len(one.values)), one.values):
            if not np.isnan(value):
                out.append((str(one.item_id), str(time), float(value)))
    return out


@pytest.mark.filterwarnings("ignore:ignored the column")
@pytest.mark.parametrize("what", FILES)
def test_programs_and_package_read_the_same(what: str, programs: None, tmp_path: Path) -> None:
    file = FILES[what]
    source, table, lines = tmp_path / file.name, tmp_path / "table.csv", tmp_path / "lines.jsonl"
    source.write_text(file.text, encoding="utf-8")
    said = by_program("tsdp-data", "convert", source, table, "--to=csv_long", *file.options)
    if file.step is None:
        assert said.returncode in (2, 3), said.stderr
        step = next(option.removeprefix("--frequency=") for option in file.options if option.startswith("--frequency="))
        assert file.read is not None
        with pytest.raises(tsdp.Error):
            series_of(file.read(source), Frequency.parse(step), **file.columns)
        return
    assert said.returncode == 0, said.stderr
    frequency = Frequency.parse(file.step)
    assert str(frequency) == file.step
    # The program's own table, read by nothing of ours.
    expected = pd.read_csv(table, dtype={"unique_id": str}, keep_default_na=False, na_values={"y": [""]}, parse_dates=["ds"]).dropna(subset="y")
    rows = [(str(name), str(time), float(value)) for name, time, value in expected.itertuples(index=False)]
    frame, columns = (as_texts(table), {}) if file.read is None else (file.read(source), file.columns)
    assert sorted(values_of(frame, frequency, **columns)) == sorted(rows)
    # The step, as it is inferred or stated, and its season.
    about = json.loads(by_program("tsdp-data", "describe", source, "--json", *file.options).stdout)
    assert (about["frequency"], about["season_length"]) == (file.step, frequency.usual_season)
    # Where each series starts, and how long it is.
    assert by_program("tsdp-data", "convert", source, lines, *file.options).returncode == 0
    starts = [(entry["item_id"], entry["start"], entry["target"]) for entry in map(json.loads, lines.read_text(encoding="utf-8").splitlines())]
    found = [(str(one.item_id), str(one.start), [None if np.isnan(value) else float(value) for value in one.values]) for one in series_of(frame, frequency, **columns)]
    for one, other in zip(found, starts, strict=True):
        if other[2][0] is None:  # (a month before the first, so that the start tells the day of the month)
            other = (other[0], one[1], other[2][1:])
        while one[2][-1] is None:  # (a table's series all end with its last row in Python)
            one[2].pop()
        assert one == other


PANDAS_NAMES = "s S 30s min T 15min 15T 60min 90min h H 2h 24h 48h D 1D 7D 14D B W W-SUN W-MON 2W M ME MS 3M 3MS 6M 12ME Q QE QS QS-OCT QE-DEC Q-MAR 4Q Y YE YS A AS A-DEC YE-DEC AS-JUL".split()


@pytest.mark.parametrize("name", PANDAS_NAMES)
def test_a_step_has_one_form_and_season(name: str, programs: None, tmp_path: Path) -> None:
    source = tmp_path / "f.csv"
    source.write_text(long("A,2024-01-01 00:00:00,1"))
    about = json.loads(by_program("tsdp-data", "describe", source, "--json", f"--frequency={name}").stdout)
    frequency = Frequency.parse(name)
    assert (about["frequency"], about["season_length"]) == (str(frequency), frequency.usual_season)


@pytest.mark.parametrize("name", ["", "m", "0D", "-1D", "1.5h", "W-XXX", "B-FRI", "M-JAN", "QE-Oct", "fortnight", "1000000000s"])
def test_what_is_no_step_is_none_for_both(name: str, programs: None, tmp_path: Path) -> None:
    source = tmp_path / "f.csv"
    source.write_text(long("A,2024-01-01 00:00:00,1"))
    assert by_program("tsdp-data", "describe", source, f"--frequency={name}").returncode == 2
    with pytest.raises(tsdp.UsageError, match="expected a whole number and a unit"):
        Frequency.parse(name)


STEPS = ["10min", "1h", "1D", "1B", "1W", "1M", "1Q", "1Y", "7h", "2D"]


@pytest.mark.parametrize("seed", range(10))
def test_the_program_writes_back_what_python_wrote(seed: int, programs: None, tmp_path: Path) -> None:
    """Random series on random steps and days of the month: Python's table, through the program, is the same to the second."""
    random = np.random.default_rng(seed)
    frequency = Frequency.parse(STEPS[seed % len(STEPS)])
    rows = []
    for name in range(3):
        start = pd.Timestamp("2019-01-28") + pd.Timedelta(days=int(random.integers(0, 40)))
        month_day = frequency.month_day_of(pd.DatetimeIndex([start]))
        times = frequency.steps_from(start, 30, month_day)
        kept = np.flatnonzero((random.random(30) < 0.8) | (np.arange(30) < 2))
        rows += [(f"s{name}", times[place], float(place)) for place in kept]
    frame = pd.DataFrame(rows, columns=["unique_id", "ds", "y"])
    source, table = tmp_path / "f.csv", tmp_path / "table.csv"
    frame.to_csv(source, index=False, date_format="%Y-%m-%d %H:%M:%S")
    said = by_program("tsdp-data", "convert", source, table, "--to=csv_long", f"--frequency={frequency}")
    assert said.returncode == 0, said.stderr
    back = pd.read_csv(table, parse_dates=["ds"]).dropna()
    assert [tuple(map(str, row)) for row in back.itertuples(index=False)] == [tuple(map(str, row)) for row in frame.itertuples(index=False)]
    assert values_of(frame, frequency) == [(name, str(time), value) for name, time, value in rows]
