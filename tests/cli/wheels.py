#!/usr/bin/env python3
"""The wheels of scripts/wheels.sh, installed into empty environments: the accountant alone, and, with --all, all of tsdp with the torch of the tests. Nothing
of the checkout is on the path of what they run."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
SETTING = {
    "num_sequences": 50, "sequence_length": 500, "context_length": 24, "forecast_length": 12, "batch_size": 5, "noise_multiplier": 3, "steps": 200, "delta": 1e-6,
}  # fmt: skip


class Environment:
    """A virtual environment at `folder` that sees the packages of `beside`, too."""

    def __init__(self, folder, beside=None):
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        self.folder = folder
        self.site = next(folder.glob("lib/python3*/site-packages"))
        if beside is not None:
            (self.site / "beside.pth").write_text(str(beside) + "\n")

    def run(self, program, *arguments, code=0):
        # Not found by PATH: programs of an environment that is not active find each other, too.
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        done = subprocess.run([str(self.folder / "bin" / program), *map(str, arguments)], capture_output=True, text=True, check=False, cwd=self.folder, env=environment)
        assert done.returncode == code, f"{program} {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def install(self, *wheels):
        self.run("python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps", *wheels)


def test(programs, folder, everything):
    dist = folder / "dist"
    which = [] if everything else ["--account"]
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}  # of which nproc would take it for all cores
    made = subprocess.run([str(ROOT / "scripts" / "wheels.sh"), *which, str(dist)], capture_output=True, text=True, check=False, env={**environment, "TSDP_PACKAGES": "skip"})
    assert made.returncode == 0, made.stdout + made.stderr
    (account,) = dist.glob("tsdp_account-*-py3-none-manylinux_*_x86_64.whl")
    size = account.stat().st_size / 1e6
    assert size <= 10, size

    # The accountant alone, without torch: the numbers of the program that was built.
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTING.items()]
    expected = json.loads(subprocess.run([str(programs / "tsdp-account"), "epsilon", "--json", *options], capture_output=True, text=True, check=True).stdout)
    alone = Environment(folder / "alone")
    alone.install(account)
    assert json.loads(alone.run("tsdp-account", "epsilon", "--json", *options)) == expected
    code = f"import json, sys, tsdp.accounting as a; print(json.dumps(a.epsilon(**{SETTING}))); assert not {{'torch', 'numpy', 'pandas'}} & set(sys.modules)"
    assert json.loads(alone.run("python", "-c", code)) == expected
    assert "expected" in alone.run("tsdp-account", "epsilon", code=2)
    print(f"{account.name} of {size:.1f} MB works where it is installed")
    if not everything:
        return
    (whole,) = dist.glob("tsdp-*-py3-none-manylinux_*_x86_64.whl")
    size += whole.stat().st_size / 1e6
    assert size <= 40, size
    # All programs need torch, and say so before anything else.
    alone.install(whole)
    assert alone.run("tsdp-train", "--version", code=2).startswith("tsdp: found no torch; expected torch ")

    # Everything, with torch: from a configuration by its bare name to forecasts.
    full = Environment(folder / "full", sysconfig.get_path("purelib"))
    full.install(account, whole)
    shared = full.folder / "share" / "tsdp" / "data"
    assert {path.name for path in shared.iterdir()} == {"README.md", "sf_traffic_one_sensor.txt.gz"}
    command = re.search(r"made series in its place: tsdp-data (.*); or ", full.run("tsdp-train", "--config", "gefcom2012_load.yaml", "--dry-run", code=3))[1].split()
    full.run("tsdp-data", *command)
    full.run("tsdp-train", "--config", "gefcom2012_load.yaml", "--output", "run", "--quiet", "--threads", "1",
             "--set", "training.max_epochs=50", "--set", "privacy.noise_multiplier=30", "--set", "dataset.test_windows=1")  # fmt: skip
    assert json.loads((full.folder / "run" / "privacy.json").read_text())["start"]["origin"] == "synthetic"
    assert json.loads(full.run("tsdp-account", "verify", "run", "--json"))["agrees"]
    assert "epsilon" in json.loads(full.run("tsdp-account", "epsilon", "--config", "gefcom2012_load.yaml", "--noise-multiplier", "9", "--steps", "10", "--json"))
    assert "20 series" in full.run("tsdp-data", "describe", "--config", "gefcom2012_load.yaml")
    code = """
import pandas as pd, tsdp, tsdp.accounting
assert tsdp.__file__.startswith(SITE), tsdp.__file__
model = tsdp.load("run/model.pt")
frame = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2024-01-01", periods=200, freq="h"), "target": [float(t % 24) for t in range(200)]})
assert model.predict(frame)["0.5"].notna().all()
assert tsdp.accounting.verify("run")["agrees"]
run = tsdp.train(frame, "mine", frequency="1h", prediction_length=6, settings={"training.max_epochs": 1})
assert run.model.privacy.is_finished
""".replace("SITE", repr(str(full.folder)))
    full.run("python", "-c", code)
    # Another torch than they are linked with.
    built_for = full.site / "tsdp_programs" / "torch.txt"
    text = built_for.read_text()
    built_for.write_text(text.replace(text.split()[0], "1.2.3"))
    said = full.run("tsdp-train", "--version", code=2)
    assert "expected torch 1.2.3" in said and len(said.splitlines()) == 1, said
    built_for.write_text(text + "libtorch_other.so\n")
    full.run("tsdp-train", "--version", code=2)
    print(f"{whole.name} works where it is installed; both have {size:.1f} MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        print("skipped: wheels are made for Linux on x86-64")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        test(options.bin.resolve(), pathlib.Path(name).resolve(), options.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
