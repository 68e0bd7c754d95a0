"""What tests of whole runs share: a small data set, its configuration, and programs run as a user runs them."""

import argparse
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(reason):
    """Ends the test as skipped; on a build server, where everything is to be there, as failed."""
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("CI") else SKIPPED)


def in_empty_folder(test):
    """Calls test(binaries, folder): the folder of the programs, from --bin, and an empty one that goes away afterwards."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        test(options.bin, pathlib.Path(name))


def write_series(path, rows=400, columns=6, scale=1.0, base=10.0):
    """A table of daily waves with noise, one column a series; returns its values as written."""
    draw = random.Random(7)
    text = [[f"{base + scale * (3 + s + 2 * math.sin(0.2618 * t + s) + draw.gauss(0, 0.3)):.6f}" for s in range(columns)]
            for t in range(rows)]
    path.write_text("".join(",".join(row) + "\n" for row in text))
    return text


def write_config(path, data, **changes):
    """A configuration that trains in about a second; `changes` are written section__name=value."""
    sections = {
        "dataset": {"path": data, "format": "lstnet", "frequency": "1h", "start": '"2015-01-01"', "prediction_length": 8,
                    "season_length": 24, "split": "last", "test_windows": 3, "validation_length": 16},
        "model": {"name": "simple_ff", "context_length": 16},
        "sampling": {"batch_size": 3},
        "privacy": {"noise_multiplier": 4.0, "clip_norm": 0.01, "target_epsilon": 4.0, "delta": "1.0e-6", "composition": "symmetrised"},
        "training": {"max_epochs": 300, "validate_every": 20},
    }
    for key, value in changes.items():
        section, name = key.split("__")
        sections[section][name] = value
    path.write_text("".join(f"{section}: {{{', '.join(f'{k}: {v}' for k, v in values.items())}}}\n"
                            for section, values in sections.items()))
    return path


def program(binaries, name, *arguments, **options):
    """The finished process; fails loudly unless it ends with 0."""
    done = subprocess.run([pathlib.Path(binaries) / name, *map(str, arguments)], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{name} {' '.join(map(str, arguments))} ended with {done.returncode}: {done.stderr}")
    return done
