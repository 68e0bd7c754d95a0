#!/usr/bin/env python3
"""Of a run's folder, nothing outside private/ holds values of the data, losses, or the key of the randomness.

The same search must find all of them inside private/: a search that finds nothing anywhere would show nothing.
"""

import io
import itertools
import json
import re
import shutil
import struct
import subprocess
import time
import zipfile

import run

# Far from any weight, count or setting of a model, so that whatever is found comes from the data.
BASE, SCALE = 48203715.0, 100000.0


def contents(path):
    """The bytes of a file, and of every member if it is an archive (members may be archives again)."""
    yield from unpacked(str(path), path.read_bytes())


def unpacked(name, data):
    yield name, data
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from unpacked(f"{name}!{member}", archive.read(member))


NUMBER = re.compile(rb"\d+\.?\d*(?:[eE][-+]?\d+)?")
LEAST_DIGITS = 6  # fewer may stand anywhere by chance
LEAST_SINGLES = 3


class Search:
    """For numbers, as text rounded to six digits or more and in single and double precision, and for strings of bytes."""

    def __init__(self, numbers, texts=()):
        self.texts = list(texts)
        self.singles, self.doubles, self.rounded = set(), set(), set()
        for number in numbers:
            single = struct.unpack("<f", struct.pack("<f", number))[0]
            self.singles.add(struct.pack("<f", number))
            for value in (number, single):
                self.doubles |= {struct.pack("<d", value), struct.pack(">d", value)}
                self.rounded |= {(digits, float(f"{abs(value):.{digits}g}")) for digits in range(LEAST_DIGITS, 18)}

    def hits(self, path):
        for name, data in contents(path):
            yield from ((name, text) for text in self.texts if text in data)
            if not self.singles:
                continue
            for found in NUMBER.finditer(data):
                digits = len(re.sub(rb"[eE].*|\.", b"", found[0]).lstrip(b"0"))
                if LEAST_DIGITS <= digits <= 17 and (digits, float(found[0])) in self.rounded:
                    yield name, found[0]
                    break
            eights = (data[at:at + 8] for at in range(len(data) - 7))
            yield from ((name, eight) for eight in itertools.islice(filter(self.doubles.__contains__, eights), 1))
            # Tensors lie at multiples of four, in the machine's order. Four bytes may be there by chance (0.004 of a run's
            # files hold one), several different ones hardly (below 1e-7).
            fours = {data[at:at + 4] for at in range(0, len(data) - 3, 4)} & self.singles
            if len(fours) >= LEAST_SINGLES:
                yield name, min(fours)


def files_of(folder, private):
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()
             and ((folder / "private") in path.parents) == private]
    assert found, folder
    return found


def check_modes(folder):
    for path in [folder / "private", *(folder / "private").rglob("*")]:
        mode = path.stat().st_mode & 0o777
        if path.is_dir():
            assert mode == 0o700, (path, oct(mode))
        else:
            assert mode == 0o600, (path, oct(mode))


def key_of(checkpoint):
    """The key of the randomness in a checkpoint (a safetensors file); empty once the run is finished."""
    content = checkpoint.read_bytes()
    return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]["key"].encode()


def search_run(folder, values, key=None):
    lines = [json.loads(line) for line in (folder / "private/metrics.jsonl").read_text().splitlines()]
    losses = [value for line in lines for name, value in line.items()
              if name in ("loss", "validation_loss", "gradient_norm_median") and value is not None]
    assert any("validation_loss" in line for line in lines)
    digest = re.search(rb"SHA-256: ([0-9a-f]{64})", (folder / "private/checkpoints/config.yaml").read_bytes())[1]
    digests = [digest, bytes.fromhex(digest.decode())]
    searches = {"values of the data": Search(values), "losses": Search(losses), "digests of the data": Search([], digests)}
    if key:
        # Nothing is left to replay when a run is finished, so the key is nowhere any more.
        search = Search([], [key, key.upper(), bytes.fromhex(key.decode())])
        for path in files_of(folder, True) + files_of(folder, False):
            assert not list(search.hits(path)), f"{path} holds the key of a finished run"
    for what, search in searches.items():
        inside = {name for path in files_of(folder, True) for name, _ in search.hits(path)}
        print(f"{what}: found in {len(inside)} files and members under private/")
        assert inside, f"the search for {what} finds nothing where they are"
        for path in files_of(folder, False):
            for name, found in search.hits(path):
                raise SystemExit(f"{name} holds {what}: {found!r}")
    assert any(searches["values of the data"].hits(folder / "private/report.html")), "the report shows no value"
    return searches


def main(binaries, folder):
    text = run.write_series(folder / "series.txt", rows=200, columns=4, scale=SCALE, base=BASE)
    values = {float(value) for row in text for value in row}
    config = run.write_config(folder / "config.yaml", folder / "series.txt")

    # The umask of whoever is careless must not matter.
    last = folder / "last"
    training = subprocess.Popen([binaries / "tsdp-train", "--json", "--threads", "1", "--config", config, "--output", last,
                                 "--set", "training.max_epochs=3000", "--set", "privacy.noise_multiplier=30"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, umask=0)
    while not (last / "privacy.json").exists():
        assert training.poll() is None, training.communicate()
        time.sleep(0.002)
    early = folder / "early.pt"
    shutil.copy(last / "private/checkpoints/last.pt", early)
    key = key_of(early)
    assert len(key) == 64, "the run ended before its key could be read"
    assert list(Search([], [key]).hits(early)), "the search finds no key where one is"
    output, errors = training.communicate()
    assert training.returncode == 0, errors
    ledger = json.loads((last / "privacy.json").read_text())
    assert json.loads(output)["privacy"] == ledger and ledger["private"] is True
    assert sorted(p.name for p in last.iterdir()) == ["config.yaml", "model.pt", "model_card.md", "privacy.json", "private"]
    check_modes(last)
    searches = search_run(last, values, key)
    run.program(binaries, "tsdp-evaluate", "--quiet", "--run", last, "--report", umask=0)
    check_modes(last)

    # Where the report cannot be written, one line says so.
    report = last / "private/report.html"
    report.unlink()
    report.mkdir()
    done = subprocess.run([binaries / "tsdp-evaluate", "--quiet", "--run", last, "--report"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and str(report) in done.stderr, done
    report.rmdir()

    # A released file that does hold a value is found out, as text, as a tensor, and inside an archive.
    value = sorted(values)[17]
    planted_contents = (f"x: {value:.3f}\n".encode(), f"{value:.7g}".encode(),
                        b"1234" + struct.pack("<3f", *sorted(values)[100:700:200]), struct.pack("<d", value))
    for number, content in enumerate(planted_contents):
        for packed in (False, True):
            planted = folder / f"planted{number}{packed}"
            if packed:
                with zipfile.ZipFile(planted, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr("member", content)
            else:
                planted.write_bytes(content)
            assert list(searches["values of the data"].hits(planted)), planted

    # Weights are never chosen by a loss in a private run.
    assert "checkpoint: last" in (last / "config.yaml").read_text()
    assert not (last / "private/checkpoints/best.pt").exists()
    done = subprocess.run([binaries / "tsdp-train", "--quiet", "--config", config, "--output", folder / "best",
                           "--set", "training.checkpoint=best"], capture_output=True, text=True)
    assert done.returncode == 4 and "training.checkpoint" in done.stderr and not (folder / "best").exists(), done
    print("nothing outside private/")


if __name__ == "__main__":
    run.in_empty_folder(main)
