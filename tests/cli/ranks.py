#!/usr/bin/env python3
"""Several ranks as a user starts them: each in a folder with its own files alone, by torchrun, killed and started again.

    ranks.py --bin build/release/bin [--kills 100]
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import run
from kill_and_resume import tensors

FILES = 4
SERIES = (3, 1, 4, 2)
LINE = "tsdp-train: "


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def write_files(folder):
    """A table of series, and the same in four files of as many columns each."""
    rows = run.write_series(folder / "all.txt", columns=sum(SERIES))
    first = 0
    for number, count in enumerate(SERIES):
        (folder / f"site{number}.txt").write_text("".join(",".join(row[first:first + count]) + "\n" for row in rows))
        first += count


def key_file(path, digit):
    path.write_text(digit * 64 + "\n")
    path.chmod(0o600)
    return path


class Ranks:
    def __init__(self, binaries, folder):
        self.program = (binaries / "tsdp-train").resolve()
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir()
        write_files(self.files)
        self.config = run.write_config(folder / "config.yaml", '"site{rank}.txt"', dataset__files=FILES, training__reproducible="true", sampling__batch_size=4)

    def start(self, count, output, *arguments, of_rank=None, folders=None, environment=None, config=None):
        """One process a rank. `of_rank(r)`: further arguments; `folders[r]`: where it runs."""
        port = str(free_port())
        out = []
        for rank in range(count):
            more = of_rank(rank) if of_rank else []
            variables = {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **(environment or {})}
            words = ["--config", config or self.config, *(["--output", output] if output else []), "--quiet", "--threads", "1", *arguments, *more]
            out.append(subprocess.Popen([self.program, *map(str, words)], cwd=folders[rank] if folders else self.files, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **{name: value for name, value in variables.items() if value is not None}}))
        return out

    @staticmethod
    def end(processes):
        """Exit code and last line of stderr of each; what it prints is its `answer`."""
        out = []
        for process in processes:
            process.answer, errors = process.communicate(timeout=300)
            lines = [line for line in errors.splitlines() if "warning: " not in line]
            out.append((process.returncode, "\n".join(lines)))
        return out

    def expect(self, name, processes, code, text):
        """Every rank ends with this code and one line, which holds `text`, or that another rank has refused what is its own."""
        ends = self.end(processes)
        for rank, (found, said) in enumerate(ends):
            not_begun = "rank 0 has not begun the run" in said
            fits = text in said or "has refused its own files or settings" in said or not_begun
            if found != (1 if not_begun else code) or not fits or said.count("\n") or not said.startswith(LINE):
                sys.exit(f"{name}: rank {rank} ended with {found} and said {said!r}; expected {code} and one line with {text!r}")
        if not any(text in said for _, said in ends):
            sys.exit(f"{name}: no rank said {text!r}: {ends}")

    def succeed(self, name, processes):
        for rank, (code, said) in enumerate(self.end(processes)):
            if code != 0 or said:
                sys.exit(f"{name}: rank {rank} ended with {code} and said {said!r}")

    def result(self, output):
        found = tensors(output / "private/checkpoints/last.pt")
        ledger = json.loads((output / "privacy.json").read_text())
        counts = {ledger[key] for key in ("steps_taken", "steps_charged", "steps_planned")}
        if len(counts) != 1 or not found:
            sys.exit(f"{output}: the ledger does not add up: {counts}")
        return found


def numbers_of(answer, path=""):
    """All numbers of a JSON value, by their places."""
    if isinstance(answer, dict):
        return {place: number for key, value in answer.items() for place, number in numbers_of(value, f"{path}/{key}").items()}
    return {path: answer} if isinstance(answer, float | int) else {}


def scores(process):
    answer = json.loads(process.answer)
    return numbers_of({key: answer[key] for key in ("metrics", "baselines")})


def validation_losses(output):
    lines = [json.loads(line) for line in (output / "private/metrics.jsonl").read_text().splitlines()]
    return {str(line["step"]): line["validation_loss"] for line in lines if "validation_loss" in line}


def require_close(name, found, expected, tolerance):
    far = [place for place in expected if place not in found or not math.isclose(found[place], expected[place], rel_tol=tolerance, abs_tol=1e-12)]
    if far or not expected or found.keys() != expected.keys():
        sys.exit(f"{name}: {[(place, found.get(place), expected[place]) for place in far]}; expected {len(expected)} numbers, found {len(found)}")


def same_with_own_files(ranks):
    """Ranks that have their own files alone end as one process that has all of them, and score the model alike. With a file fewer than ranks, rank 0 has
    none."""
    alone = ranks.folder / "alone"
    by_one = ranks.start(1, alone, "--json")
    ranks.succeed("alone", by_one)
    expected = ranks.result(alone)
    for count in (2, 3, 4, 5):
        folders = [ranks.folder / f"{count} ranks, {rank}" for rank in range(count)]
        for rank, folder in enumerate(folders):
            folder.mkdir()
            for file in range(FILES * rank // count, FILES * (rank + 1) // count):
                shutil.copy(ranks.files / f"site{file}.txt", folder)
        output = ranks.folder / f"{count} ranks"
        processes = ranks.start(count, output, "--json", folders=folders)
        ranks.succeed(f"{count} ranks", processes)
        if ranks.result(output) != expected:
            sys.exit(f"{count} ranks end with other weights than one process")
        require_close(f"scores of {count} ranks", scores(processes[0]), scores(by_one[0]), 1e-6)
        plan, ledger = (json.loads(processes[0].answer)[key] for key in ("plan", "privacy"))
        if (plan["ranks"]["epsilon"], ledger["ranks"]["epsilon"]) != (None, None):  # all know the seed
            sys.exit(f"{count} ranks: the plan states {plan['ranks']} against operators, the ledger {ledger['ranks']['epsilon']}")
        of_one = json.loads(processes[-1].answer)
        report = (output / "private/report.html").read_text()
        own = sum(SERIES[: FILES // count])
        says = f"; of {sum(SERIES)} of {sum(SERIES)} series, of which rank 0&#39;s own, with {3 * own} windows"
        if of_one["scored_series"] != sum(SERIES[FILES * (count - 1) // count :]) or says not in report.replace("'", "&#39;"):
            sys.exit(f"{count} ranks: the last scored {of_one['scored_series']} series; the report says {report[report.find('Windows scored'):][:200]!r}")
        require_close(f"validation losses of {count} ranks", validation_losses(output), validation_losses(alone), 1e-5)
    return expected


def masked(ranks, expected):
    """With masks, a rank keeps its scores to itself: those of rank 0 are of its own series."""
    key, of_masks = key_file(ranks.folder / "sampling key", "a"), key_file(ranks.folder / "mask key", "b")
    output = ranks.folder / "masked"
    processes = ranks.start(3, output, "--json", "--set", "training.mask_sums=true", "--sampling-key", str(key),
                            of_rank=lambda rank: ["--mask-key", str(of_masks)] if rank else [])  # fmt: skip
    ranks.succeed("masked", processes)
    if ranks.result(output) != expected:
        sys.exit("masked ranks end with other weights than one process")
    evaluated = subprocess.run([ranks.program.with_name("tsdp-evaluate"), "--model", output / "model.pt", "--config", ranks.config, "--set", "dataset.path=site0.txt",
                                "--set", "dataset.files=auto", "--json", "--threads", "1"], cwd=ranks.files, capture_output=True, text=True)  # fmt: skip
    if evaluated.returncode:
        sys.exit(evaluated.stderr)
    own = numbers_of({"metrics": json.loads(evaluated.stdout)["metrics"]})
    require_close("masked scores", {place: number for place, number in scores(processes[0]).items() if place in own}, own, 1e-6)


def bad_starts(ranks):
    key, other = key_file(ranks.folder / "key", "a"), key_file(ranks.folder / "other key", "b")
    readable = key_file(ranks.folder / "readable key", "a")
    readable.chmod(0o644)
    short = key_file(ranks.folder / "short key", "a")
    short.write_text("abc\n")
    output = ranks.folder / "never"
    secret = ("--set", "training.reproducible=false")
    second = lambda *words: lambda rank: list(words) if rank == 1 else []  # noqa: E731
    both = ("--rank-timeout", "20")
    one_file = run.write_config(ranks.folder / "one.yaml", "all.txt")
    for name, code, text, options in (
        ("another epsilon", 2, "the configuration: found 'target_epsilon: 3' on rank 1 and 'target_epsilon: 4' on rank 0",
         {"of_rank": second("--set", "privacy.target_epsilon=3")}),
        ("a rank without its file", 3, "dataset.path: no file 'site2.txt'", {"folders": [ranks.files, ranks.folder]}),
        ("one file for all", 2, "dataset.path: found all.txt with 2 ranks", {"config": one_file}),
        ("fewer files than ranks", 2, "dataset.files: found 1 with 3 ranks", {"arguments": ("--set", "dataset.files=1"), "count": 3}),
        ("no step where no file is read", 2, "dataset.frequency: found auto, with a rank 0 that reads no file",
         {"of_rank": lambda rank: [] if rank else ["--set", "dataset.frequency=auto"], "count": 5}),
        ("no format where no file is read", 2, "dataset.format: found auto, with a rank 0 that reads no file",
         {"of_rank": lambda rank: [] if rank else ["--set", "dataset.format=auto"], "count": 5}),
        ("no key", 2, "--sampling-key: not given, with 2 ranks", {"arguments": secret}),
        ("two keys", 2, "--sampling-key: found", {"arguments": secret, "of_rank": lambda rank: ["--sampling-key", str(other if rank else key)]}),
        ("a key for all to read", 2, "others may read it", {"arguments": (*secret, "--sampling-key", str(readable))}),
        ("half a key", 3, "found 3 characters; expected 64 hexadecimal digits", {"arguments": (*secret, "--sampling-key", str(short))}),
        ("no mask key", 2, "--mask-key: not given", {"arguments": ("--set", "training.mask_sums=true"), "count": 3}),
        ("one key for both", 2, "--mask-key: found the key of --sampling-key",
         {"arguments": ("--set", "training.mask_sums=true", "--sampling-key", str(key)), "count": 3, "of_rank": lambda rank: ["--mask-key", str(key)] if rank else []}),
        ("masks of two", 2, "training.mask_sums: found true with 2 ranks", {"arguments": ("--set", "training.mask_sums=true")}),
        ("not private", 2, "privacy.enabled: found false with 2 ranks", {"arguments": ("--set", "privacy.enabled=false")}),
        ("a public address", 2, "a public address", {"environment": {"MASTER_ADDR": "8.8.8.8"}}),
        ("no number of ranks", 2, "WORLD_SIZE: not set, with RANK", {"environment": {"WORLD_SIZE": ""}}),
        ("no folder for the run", 2, "--output: not given, with 2 ranks", {"output": None}),
        ("a plan on one of them", 2, "found 'what is asked for: a plan' on rank 1", {"of_rank": second("--dry-run")}),
        ("no folder that is new", 2, "holds a run already", {"output": ranks.folder / "alone"}),
        ("no address", 2, "MASTER_ADDR: not set, with WORLD_SIZE 2", {"environment": {"MASTER_ADDR": ""}}),
        ("a rank beyond the last", 2, "RANK: found 7; expected a whole number from 0 to 1", {"environment": {"RANK": "7"}}),
        ("noise on the data", 2, "augmentation: found noise on the data", {"arguments": ("--set", "augmentation.context_noise=1", "--set", "privacy.v=1")}),
        ("owners", 2, "dataset.owner: found a file or column", {"arguments": ("--set", "dataset.owner.file=a.csv", "--set", "privacy.relation=series")}),
    ):
        arguments = options.pop("arguments", ())
        ranks.expect(name, ranks.start(options.pop("count", 2), options.pop("output", output), *both, *arguments, **options), code, text)
        if (output / "private").exists():
            sys.exit(f"{name}: left a run behind")
    # A port that somebody else listens on, and a rank that never comes.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        processes = ranks.start(2, output, "--rank-timeout", "3", environment={"MASTER_PORT": str(taken.getsockname()[1])})
        ranks.expect("a port that is taken", processes, 1, "has not met the others at 127.0.0.1:")
    ranks.expect("a rank that is missing", ranks.start(1, output, "--rank-timeout", "3", environment={"WORLD_SIZE": "2"}), 1, "has not met the others")


def silent_and_ended(ranks):
    """A rank that is stopped, or killed, ends all others in time, with one line."""
    for sign, text in ((signal.SIGSTOP, "has not answered within 6 s"), (signal.SIGKILL, "has ended (")):
        for victim in (0, 1):
            output = ranks.folder / f"{sign.name} {victim}"
            processes = ranks.start(2, output, "--rank-timeout", "6", "--set", "training.max_epochs=20000", "--set", "privacy.target_epsilon=50",
                                    "--set", "privacy.noise_multiplier=20")
            while not (output / "private/metrics.jsonl").exists():
                time.sleep(0.05)
                if any(process.poll() is not None for process in processes):
                    sys.exit(f"{sign.name}: ended early: {ranks.end(processes)}")
            began = time.monotonic()
            processes[victim].send_signal(sign)
            ranks.expect(sign.name, [processes[1 - victim]], 1, text)
            if time.monotonic() - began > 15:
                sys.exit(f"{sign.name}: noticed after {time.monotonic() - began:.0f} s")
            processes[victim].kill()
            processes[victim].communicate()


def resumed_with_other_facts(ranks):
    """An interrupted run goes on with the data and the key that it began with, and with any number of ranks."""
    key = key_file(ranks.folder / "own key", "c")
    output = ranks.folder / "interrupted"
    settings = ("--set", "training.reproducible=false", "--set", "training.max_epochs=4000", "--set", "privacy.target_epsilon=50", "--set", "privacy.noise_multiplier=8")
    processes = ranks.start(5, output, *settings, "--sampling-key", key)
    while not (output / "private/metrics.jsonl").exists():
        time.sleep(0.02)
    for process in processes[::-1]:  # as torchrun does
        process.send_signal(signal.SIGINT)
    codes = [code for code, _ in ranks.end(processes)]
    if codes != [130] * 5:
        sys.exit(f"interrupted ranks ended with {codes}")

    def again(count, of_key, folders=None):
        port = str(free_port())
        out = []
        for rank in range(count):
            words = ["--resume", output] if rank == 0 else ["--config", ranks.config, *settings]
            out.append(subprocess.Popen([ranks.program, *map(str, words), "--quiet", "--sampling-key", of_key, "--threads", "1"], cwd=folders[rank] if folders else ranks.files,
                                        stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}))
        return out

    first, *_ = ranks.end(again(2, key_file(ranks.folder / "another key", "d")))
    if first[0] != 2 or "--sampling-key: found another key than the run began with" not in first[1]:
        sys.exit(f"another key: ended with {first}")
    # The second rank's own file changes by a digit.
    changed = ranks.folder / "changed"
    shutil.copytree(ranks.files, changed)
    text = (changed / "site3.txt").read_text()
    (changed / "site3.txt").write_text(str((int(text[0]) + 1) % 10) + text[1:])
    first, *_ = ranks.end(again(2, key, [ranks.files, changed]))
    if first[0] != 2 or "with other training values than the run began with" not in first[1]:
        sys.exit(f"another value on rank 1: ended with {first}")
    ranks.succeed("resumed with three ranks", again(3, key))
    ranks.result(output)
    asked = [ranks.program, "--config", ranks.config, *settings, "--dry-run", "--json", "--quiet"]
    plan = json.loads(subprocess.run(asked, cwd=ranks.files, capture_output=True, text=True, check=True).stdout)
    ledger = json.loads((output / "privacy.json").read_text())
    if not plan["ranks"]["epsilon"] == ledger["ranks"]["epsilon"] > ledger["epsilon"]["upper"]:
        sys.exit(f"the plan states {plan['ranks']} against operators, the ledger {ledger['ranks']['epsilon']}")


def killed(ranks, kills, expected):
    """Ranks that torchrun starts again after kills end as undisturbed ones."""
    draw = random.Random(5)
    total = number = 0
    while total < kills:
        output = ranks.folder / f"killed {number}"
        number += 1
        words = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2", "--max-restarts", "1000", "--monitor-interval", "0.1",
                 "--master-addr", "127.0.0.1", "--master-port", str(free_port()), ranks.program, "--config", ranks.config, "--output", output, "--quiet", "--threads", "1",
                 "--rank-timeout", "60", "--set", "training.checkpoint_seconds=0.1"]
        agent = subprocess.Popen(list(map(str, words)), cwd=ranks.files, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def children():
            found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(agent.pid)], capture_output=True, text=True).stdout
            return [int(line.split()[0]) for line in found.splitlines() if "tsdp-train" in line]

        while total < kills and agent.poll() is None:
            time.sleep(draw.uniform(0.1, 1.2))
            there = children()
            if there:
                try:
                    os.kill(draw.choice(there), signal.SIGKILL)
                    total += 1
                except ProcessLookupError:
                    pass
        said, _ = agent.communicate(timeout=300)
        if agent.returncode != 0:
            sys.exit(f"torchrun ended with {agent.returncode}: {said}")
        found = ranks.result(output)
        if found != expected:
            sys.exit(f"killed ranks end with other weights, after {total} kills")
    print(f"{total} kills of a rank in {number} runs: same weights, optimizer state and ledger")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ranks = Ranks(options.bin, pathlib.Path(name))
        expected = same_with_own_files(ranks)
        masked(ranks, expected)
        bad_starts(ranks)
        silent_and_ended(ranks)
        resumed_with_other_facts(ranks)
        if importlib.util.find_spec("torch") is None:
            print("torchrun: left out, as this Python has no torch")
        else:
            killed(ranks, options.kills, expected)


if __name__ == "__main__":
    main()
