#!/usr/bin/env python3
"""Parquet files as pandas writes them are read like the same tables as CSV; a build without Arrow's library says how to convert them."""

import subprocess
import sys

import run

try:
    import numpy as np
    import pandas as pd
    import pyarrow
    import pyarrow.parquet  # noqa: F401
except ImportError as error:
    run.skip(error)


def output_of(command, folder):
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def tables():
    hours = pd.date_range("2024-01-01", periods=50, freq="h")
    draw = np.random.default_rng(1)
    long = pd.DataFrame({"item_id": ["a"] * 50 + ["b, c"] * 50, "timestamp": list(hours) * 2, "target": draw.normal(size=100)})
    long.loc[[3, 70], "target"] = np.nan
    wide = pd.DataFrame({"x": draw.normal(size=50), "y": np.arange(50)}, index=hours.rename("time"))
    return {
        "long": long,
        "categories and single precision": long.assign(item_id=long["item_id"].astype("category"), target=long["target"].astype("float32")),
        "another order, with more columns": long.assign(note="n", value2=1)[["target", "note", "item_id", "timestamp"]],
        "wide": wide,
        "wide, the index unnamed": wide.rename_axis(None),
        "wide, an index of texts": wide.set_axis(wide.index.astype(str)).rename_axis(None),
        "dates alone": pd.DataFrame({"day": pd.date_range("2024-01-01", periods=9).date, "z": range(9)}),
        "texts as times": long.assign(timestamp=long["timestamp"].astype(str)),
        "nanoseconds and milliseconds": long.assign(timestamp=long["timestamp"].astype("datetime64[ms]")),
        "columns that nobody reads": long.assign(flag=True, none=None, span=pd.Timedelta(hours=1), list=[[1, 2]] * 100),
        "a zone": long.assign(timestamp=long["timestamp"].dt.tz_localize("Europe/Berlin")),
    }


def test(binaries, folder):
    data = binaries.resolve() / "tsdp-data"
    for what, table in tables().items():
        indexed = not isinstance(table.index, pd.RangeIndex)
        table.to_parquet(folder / "t.parquet", row_group_size=7)
        table.to_csv(folder / "t.csv", index=indexed, index_label="time" if indexed else None)
        code, _, said = output_of([data, "convert", "t.parquet", "of_parquet.jsonl"], folder)
        if code != 0 and "found a Parquet file" in said:
            assert 'pandas.read_parquet("t.parquet").to_csv' in said, said
            print("this build reads no Parquet, and says so")
            return
        assert code == 0, f"{what}: {said}"
        code, _, said = output_of([data, "convert", "t.csv", "of_csv.jsonl"], folder)
        assert code == 0, f"{what}: {said}"
        assert (folder / "of_parquet.jsonl").read_text() == (folder / "of_csv.jsonl").read_text(), what
    # What cannot be read is one line.
    whole = (folder / "t.parquet").read_bytes()
    refused = {
        "cut off": whole[: len(whole) // 2],
        "damaged": whole[:4] + bytes(len(whole) - 8) + whole[-4:],
    }
    pd.DataFrame({"t": pd.date_range("2024-01-01", periods=3), "lists": [[1, 2]] * 3}).to_parquet(folder / "lists.parquet")
    table = pyarrow.table({"t": pyarrow.array([2068181000000 * 1000 + 3600000 * i for i in range(5)], pyarrow.timestamp("ms")), "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    pyarrow.parquet.write_table(table, folder / "far.parquet")
    refused["a year beyond the calendar"] = (folder / "far.parquet").read_bytes()
    table = pyarrow.table({"t": pd.date_range("2024-01-01", periods=400), "x": np.arange(400.0)})
    pyarrow.parquet.write_table(table, folder / "sums.parquet", write_page_checksum=True, compression="NONE", use_dictionary=False)
    bits = bytearray((folder / "sums.parquet").read_bytes())
    bits[bits.find(np.float64(300.0).tobytes())] ^= 1
    refused["one bit of a checked page"] = bytes(bits)
    refused["lists"] = (folder / "lists.parquet").read_bytes()
    long = tables()["long"]
    long.assign(timestamp=long["timestamp"] + pd.Timedelta(milliseconds=5)).to_parquet(folder / "fractions.parquet")
    refused["fractions"] = (folder / "fractions.parquet").read_bytes()
    days = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=9, tz="Asia/Tokyo"), "x": np.arange(9.0)})
    days.to_parquet(folder / "tokyo.parquet")
    refused["days of another place"] = (folder / "tokyo.parquet").read_bytes()
    for what, content in refused.items():
        (folder / "bad.parquet").write_bytes(content)
        code, out, said = output_of([data, "describe", "bad.parquet"], folder)
        assert code == 3 and out == "" and said.count("\n") == 1 and "bad.parquet" in said, f"{what}: {code} {said}"
        print(f"{what}: {said.strip()}")


run.in_empty_folder(test)
