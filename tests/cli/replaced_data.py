#!/usr/bin/env python3
"""scripts/replace_data.sh: made series in place of those of unknown terms, of the same names, number, times and longest length, on which the configurations run."""

import json
import os
import pathlib
import subprocess

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETS = {"exchange_rate.yaml": "exchange_rate.txt.gz", "gefcom2012_load.yaml": "gefcom2012_load.txt.gz",
        "m4_hourly.yaml": "m4_hourly.tsf.gz", "metr_la_week_10min.yaml": "metr_la_week_10min.txt.gz"}


def output_of(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test(binaries, folder):
    binaries = binaries.resolve()
    for name in SETS.values():
        (folder / name).write_bytes((ROOT / "data" / name).read_bytes())
    output_of("bash", ROOT / "scripts/replace_data.sh", folder, env=dict(os.environ, TSDP_BIN=str(binaries)))
    output_of("sha256sum", "--check", "SHA256SUMS", cwd=folder)
    for config, name in SETS.items():
        assert (folder / name).read_bytes() != (ROOT / "data" / name).read_bytes(), name
        shapes = []
        for path in (ROOT / "data" / name, folder / name):
            plan = json.loads(output_of(binaries / "tsdp-train", "--config", config, "--set", f"dataset.path={path}", "--dry-run", "--json", "--quiet",
                                        "--set", "privacy.composition=symmetrised", cwd=folder))
            shapes.append({key: plan[key] for key in ("sequences", "steps", "windows_per_step", "parameters")})
            described = json.loads(output_of(binaries / "tsdp-data", "describe", "--config", config, "--set", f"dataset.path={path}", "--json", "--quiet", cwd=folder))
            shapes[-1] |= {key: described[key] for key in ("series", "frequency", "first", "last")}
            shapes[-1]["longest"] = described["length"]["max"]  # a few of M4's are shorter, and none that is made
        assert shapes[0] == shapes[1], f"{name}: {shapes}"
    assert not list(folder.glob(".made*"))


run.in_empty_folder(test)
