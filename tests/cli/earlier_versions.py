#!/usr/bin/env python3
"""What docs/versions.md says of files that earlier versions wrote: the programs of this build read those of tests/versions/, or refuse them in one line.

Every version that CHANGELOG.md names has a folder there, or a row in its README that says why not.
"""

import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "versions"
RESUMED: set[str] = set()  # versions whose runs this one goes on with
READ = {"tsdp-privacy-2", "tsdp-privacy-3"}  # formats of ledgers; models of the same versions are read, too


def asked(binaries, name, *arguments, code=0, **options):
    """What the program says: its stdout, or where it is to end with another code its one line on stderr."""
    done = subprocess.run([binaries / name, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, f"{name} {' '.join(map(str, arguments))}: {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    if code == 0:
        return done.stdout
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def require_files_of_every_version():
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    reasons = dict(re.findall(r"^\| (\d+\.\d+\.\d+) \| no files: (.+) \|$", (FILES / "README.md").read_text(), re.MULTILINE))
    lacking = [version for version in versions if not (FILES / version).is_dir() and version not in reasons]
    assert versions and not lacking, f"{lacking}: no files in tests/versions/, which tests/versions/make.sh makes"
    return [version for version in versions if version not in reasons]


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def require_same_forecasts(found, then, tolerance=1e-5):
    assert len(found) == len(then) > 0, (len(found), len(then))
    for now, before in zip(found, then):
        for key, text in before.items():
            try:
                value = float(text)
            except ValueError:
                assert now[key] == text, (now, before)
            else:
                assert abs(float(now[key]) - value) <= tolerance * max(1.0, abs(value)), (now, before)


def forecast(binaries, model, folder, **options):
    into = folder / "forecast-now.csv"
    said = asked(binaries, "tsdp-forecast", "--model", model, "--input", folder / "series.txt", "--format", "lstnet", "--frequency", "1h",
                 "--start", "2024-01-01 00:00", "--quantiles", "0.1,0.5,0.9", "--output", into, "--threads", "1", "--quiet", **options)  # fmt: skip
    return said if options.get("code") else rows_of(into)


def in_python(binaries, model, code):
    """tsdp.load of the Python package; none where its packages are not there."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python" / "src"), TSDP_BIN=str(binaries), PYTHONDONTWRITEBYTECODE="1")
    if subprocess.run([sys.executable, "-c", "import pandas, torch"], capture_output=True, check=False).returncode != 0:
        return None
    done = subprocess.run([sys.executable, "-c", code, str(model)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_configurations(binaries, folder):
    files = sorted((folder / "configs").glob("*.yaml"))
    assert files, folder
    for file in files:
        # How steps compose was no option then, and its default is a later, tighter one.
        plan = json.loads(asked(binaries, "tsdp-train", "--config", file, "--set", "privacy.composition=symmetrised", "--dry-run", "--json", "--quiet"))
        assert plan["steps"] > 0, (file, plan)


def understated(ledger, folder):
    """A copy of the ledger that states less than was spent."""
    text = ledger.read_text()
    upper = json.loads(text)["epsilon"]["upper"]
    edited = folder / "edited.json"
    edited.write_text(text.replace(json.dumps(upper), json.dumps(0.9 * upper)))
    assert edited.read_text() != text, ledger
    return edited


def test_ledgers(binaries, folder):
    for file in sorted((folder / "ledgers").glob("*.json")):
        assert json.loads(asked(binaries, "tsdp-account", "verify", file, "--json"))["agrees"], file
        asked(binaries, "tsdp-account", "verify", understated(file, folder), code=4)
        stated = json.loads(file.read_text())
        total = json.loads(asked(binaries, "tsdp-account", "total", file, "--delta", stated["delta"], "--json"))
        # Counted anew for one run: the same cost, but for the width of the bracket.
        assert abs(total["epsilon"]["upper"] / stated["epsilon"]["upper"] - 1.0) < 0.01, (total, stated)


def test_start(binaries, folder):
    """Weights to start from: a model as the version stored it, with its ledger."""
    start = folder / "start.safetensors"
    data = start.read_bytes()
    size = int.from_bytes(data[:8], "little")
    ledger = folder / "start.json"
    ledger.write_text(json.loads(data[8 : 8 + size])["__metadata__"]["privacy.json"])
    assert json.loads(ledger.read_text())["program"] == f"tsdp {folder.name}"
    assert json.loads(asked(binaries, "tsdp-account", "verify", ledger, "--json"))["agrees"]
    run.write_series(folder / "monthly.txt", rows=120)
    config = run.write_config(folder / "monthly.yaml", folder / "monthly.txt", dataset__frequency="1M", dataset__season_length=12, dataset__prediction_length=12,
                              dataset__validation_length=0, dataset__test_windows=1, model__name="dlinear", model__context_length=36, model__prior="seasonal_naive",
                              model__start=start, privacy__target_epsilon=0)  # fmt: skip
    asked(binaries, "tsdp-train", "--config", config, "--output", folder / "started", "--threads", "1", "--quiet")
    stated = json.loads((folder / "started" / "privacy.json").read_text())["start"]
    assert stated["origin"] == "synthetic" and stated["weights_sha256"] == hashlib.sha256(data).hexdigest(), stated


def test_budget(binaries, folder):
    file = folder / "budget.json"
    before = json.loads(asked(binaries, "tsdp-account", "budget", file, "--json"))
    assert len(before["charges"]) == 1, before
    run.write_series(folder / "charged.txt")
    config = run.write_config(folder / "charged.yaml", folder / "charged.txt", training__max_epochs=2)
    asked(binaries, "tsdp-train", "--config", config, "--output", folder / "charged", "--budget", file, "--threads", "1", "--quiet")
    after = json.loads(asked(binaries, "tsdp-account", "budget", file, "--json"))
    assert len(after["charges"]) == 2 and after["charges"][0] == before["charges"][0], after
    assert after["spent"] > before["spent"] > 0.0, after


def test_run(binaries, folder):
    """A run that ended: its ledger, its model, and its model as a start."""
    finished, model = folder / "finished", folder / "finished" / "model.pt"
    ledger = json.loads((finished / "privacy.json").read_text())
    assert ledger["program"] == f"tsdp {folder.name}", ledger["program"]
    asked(binaries, "tsdp-train", "--config", finished / "config.yaml", "--dry-run", "--quiet")
    if ledger["format"] not in READ:
        for what in (finished, finished / "privacy.json"):
            assert f"found '{ledger['format']}', a ledger of another version" in asked(binaries, "tsdp-account", "verify", what, code=3)
        asked(binaries, "tsdp-account", "total", finished, "--delta", "1e-6", code=3)
        for said in (asked(binaries, "tsdp-account", "verify", model, code=3), forecast(binaries, model, folder, code=3)):
            assert "version" in said, said
        return
    for what in (finished, finished / "privacy.json", model):
        assert json.loads(asked(binaries, "tsdp-account", "verify", what, "--json"))["agrees"], what
    asked(binaries, "tsdp-account", "verify", understated(finished / "privacy.json", folder), code=4)
    twice = json.loads(asked(binaries, "tsdp-account", "total", finished, folder / "stopped", "--delta", ledger["delta"], "--json"))
    assert twice["epsilon"]["upper"] > ledger["epsilon"]["upper"], twice
    require_same_forecasts(forecast(binaries, model, folder), rows_of(folder / "forecast.csv"))
    answer = in_python(binaries, model, """
import json, sys, pandas as pd, tsdp
model = tsdp.load(sys.argv[1])
frame = pd.DataFrame({"item_id": "a", "timestamp": pd.date_range("2024-01-01", periods=50, freq="h"), "target": [float(t % 24) for t in range(50)]})
print(json.dumps({"rows": int(model.predict(frame)["0.5"].notna().sum()), "statement": model.privacy.statement}))
""")  # fmt: skip
    assert answer is None or answer == {"rows": 6, "statement": ledger["statement"]}, answer
    asked(binaries, "tsdp-train", "--config", finished / "config.yaml", "--set", f"model.start={model}", "--dry-run", "--quiet")


def test_models(binaries, folder):
    """Models of other kinds."""
    models = sorted((folder / "models").glob("*.pt"))
    assert models, folder
    for model in models:
        assert json.loads(asked(binaries, "tsdp-account", "verify", model, "--json"))["agrees"], model
        # Sample paths are drawn from rounded numbers, which differ a little between machines.
        require_same_forecasts(forecast(binaries, model, folder), rows_of(model.with_suffix(".csv")), 1e-2 if model.stem == "deepar" else 1e-5)


def test_stopped(binaries, folder):
    """A run that was stopped: programs with its options and its format go on with it, and others leave it as it is."""
    before = {path: path.read_bytes() for path in (folder / "stopped").rglob("*") if path.is_file()}
    done = subprocess.run([binaries / "tsdp-train", "--resume", folder / "stopped", "--threads", "1", "--quiet"], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (folder.name in RESUMED), done
    if done.returncode == 0:
        return
    assert done.returncode == 3 and len(done.stderr.splitlines()) == 1, done
    assert "version that began" in done.stderr or "of another version" in done.stderr, done.stderr
    after = {path: path.read_bytes() for path in (folder / "stopped").rglob("*") if path.is_file()}
    assert before.items() <= after.items(), before.keys()


PARTS = {"configs": test_configurations, "ledgers": test_ledgers, "start.safetensors": test_start, "budget.json": test_budget, "finished": test_run,
         "models": test_models, "stopped": test_stopped}  # fmt: skip


def test(binaries, folder):
    binaries = binaries.resolve()
    for version in require_files_of_every_version():
        files = folder / version
        shutil.copytree(FILES / version, files)
        shutil.copy(FILES / "series.txt", files)
        parts = [name for name in PARTS if (files / name).exists()]
        for name in parts:
            PARTS[name](binaries, files)
        print(f"{version}: {', '.join(parts)}")


run.in_empty_folder(test)
