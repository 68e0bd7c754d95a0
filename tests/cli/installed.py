#!/usr/bin/env python3
"""`cmake --install` into an empty folder: programs that find LibTorch, configurations, data and weights to start from, and nothing of the
checkout or the build.

With root and mount namespaces the checkout is hidden while the installed programs run; without them what they open is looked at alone.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def output_of(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def can_hide():
    """Whether this process may hide the checkout from another one; not where a temporary folder lies in it."""
    if pathlib.Path(tempfile.gettempdir()).resolve().is_relative_to(ROOT):
        return False
    try:
        return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", str(ROOT)], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test(build, folder):
    prefix = folder / "prefix"
    output_of(["cmake", "--install", str(build), "--prefix", str(prefix)])
    programs = prefix / "bin"
    names = {path.name for path in programs.iterdir()}
    assert {"tsdp-train", "tsdp-evaluate", "tsdp-forecast", "tsdp-export", "tsdp-account", "tsdp-data", "tsdp-sweep", "tsdp-audit"} <= names, names

    # No library of the checkout, or of the build.
    for name in names:
        for line in output_of(["ldd", str(programs / name)], env={"PATH": os.environ["PATH"]}).splitlines():
            assert "not found" not in line and str(ROOT) not in line and str(build) not in line, f"{name}: {line}"

    hidden = can_hide()

    def run(name, *arguments):
        command = [str(programs / name), *arguments]
        if hidden:
            command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(ROOT), *command]
        return output_of(command, cwd=folder, env={"PATH": os.environ["PATH"], "HOME": str(folder)})

    # No data of unknown terms. The message says how to make series in their place.
    assert {path.name for path in (prefix / "share/tsdp/data").iterdir()} == {"README.md", "sf_traffic_one_sensor.txt.gz"}
    done = subprocess.run([programs / "tsdp-train", "--config", "gefcom2012_load.yaml", "--dry-run"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done
    command = re.search(r"its terms are unknown, .* made series in its place: (tsdp-data generate .*); or ", done.stderr)
    assert command and command[1].endswith(f"{prefix}/share/tsdp/data/gefcom2012_load.txt.gz"), done.stderr
    run(*command[1].split())

    run("tsdp-train", "--config", "gefcom2012_load.yaml", "--output", "run", "--quiet", "--threads", "1",
        "--set", "training.max_epochs=50", "--set", "privacy.noise_multiplier=30", "--set", "dataset.test_windows=1")
    ledger = json.loads((folder / "run/privacy.json").read_text())
    assert ledger["state"] == "finished" and ledger["start"]["origin"] == "synthetic", ledger
    assert json.loads(run("tsdp-evaluate", "--run", "run", "--json", "--threads", "1"))["epsilon"]["upper"] > 0.0
    assert json.loads(run("tsdp-account", "verify", "run", "--json"))["agrees"]
    assert "series" in run("tsdp-data", "describe", "--config", "gefcom2012_load.yaml")
    # The scripts are not installed: the message says where the file is published and where it goes.
    done = subprocess.run([programs / "tsdp-train", "--config", "traffic.yaml", "--dry-run"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "traffic/traffic.txt.gz of github.com/" in done.stderr, done
    assert f"into {prefix}/share/tsdp/data" in done.stderr and "fetch_data" not in done.stderr and "lookalike_traffic.yaml" in done.stderr, done
    print(f"installed, it works{' with the checkout hidden' if hidden else ''}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        test(options.build.resolve(), pathlib.Path(name).resolve())


if __name__ == "__main__":
    sys.exit(main())
