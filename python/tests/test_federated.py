"""Ranks whose messages another program carries end as one process does, and end with a line where that goes wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

import tsdp
from conftest import hourly_frame
from tsdp.archive import read_archive
from tsdp.federated import Answer, Request, State, _Connection, answer, carry, coordinate, exchange
from tsdp.programs import program

SITES = 3
STEPS = 8
EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"


@pytest.fixture(scope="session")
def folder(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Series of three sites, and a configuration for them: whole series are protected, coins are tossed for each."""
    out: Path = tmp_path_factory.mktemp("sites")
    frame = hourly_frame(series=7)
    names = sorted(frame["item_id"].unique())
    for site in range(SITES):
        frame[frame["item_id"].isin(names[site::SITES])].to_csv(out / f"site{site}.csv", index=False)
    (out / "sites.yaml").write_text(
        'dataset: {path: "site{rank}.csv", files: 3, frequency: 1h, prediction_length: 6, season_length: 24, split: last, test_windows: 1, validation_length: 6}\n'
        "model: {name: dlinear, context_length: 24, start: fresh, candidates: []}\n"
        "optimizer: {learning_rate: 0.001}\n"
        "sampling: {top_level: poisson, batch_size: 4}\n"
        "privacy: {relation: series, noise_multiplier: 20, target_epsilon: 8, delta: 1.0e-5}\n"
        f"training: {{max_epochs: {STEPS}, reproducible: true}}\n"  # epochs of one step
    )
    return out


class Ranks:
    """tsdp-train, once for each rank, with sockets in `at`; `others`: further arguments of all but rank 0."""

    def __init__(self, folder: Path, at: Path, *more: str, others: tuple[str, ...] = ()) -> None:
        self.sockets = [at / f"rank{rank}.sock" for rank in range(SITES)]
        self.output = at / "run"
        command = [program("tsdp-train"), "--config", "sites.yaml", f"--output={self.output}", "--threads=1", "--quiet", "--rank-timeout=30", *more]
        self.processes = [
            subprocess.Popen(
                [*command, f"--relay={own}", *(others if rank > 0 else ())],
                cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(SITES)},
            )  # fmt: skip
            for rank, own in enumerate(self.sockets)
        ]

    def ends(self) -> list[tuple[int, str]]:
        """Exit code of each rank, and what it said but for warnings."""
        said = [process.communicate(timeout=120)[1].splitlines() for process in self.processes]
        return [(process.returncode, "\n".join(line for line in lines if "warning: " not in line)) for process, lines in zip(self.processes, said, strict=True)]


@pytest.fixture()
def ranks(folder: Path, tmp_path: Path) -> Iterator[Ranks]:
    out = Ranks(folder, tmp_path)
    yield out
    for process in out.processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def pooled(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output: Path = tmp_path_factory.mktemp("pooled") / "run"
    subprocess.run([program("tsdp-train"), "--config", "sites.yaml", f"--output={output}", "--threads=1", "--quiet"], cwd=folder, check=True)
    return output


def assert_same_run(output: Path, pooled: Path) -> None:
    found, expected = (read_archive(str(folder / "model.pt")) for folder in (output, pooled))
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        assert weight.equal(found.weights[name]), name
    found.privacy["run"]["id"] = expected.privacy["run"]["id"]
    assert found.privacy == expected.privacy


def test_ranks_end_as_one_process(ranks: Ranks, pooled: Path) -> None:
    assert carry(ranks.sockets) > 10
    assert ranks.ends() == [(0, "")] * SITES
    assert_same_run(ranks.output, pooled)
    assert not any(own.exists() for own in ranks.sockets)


def connected(own: Path) -> socket.socket:
    """Connected once the rank listens, which is a moment after its socket has a name."""
    return _Connection(str(own), timeout=30, wait=30).socket


def test_an_exchange_whose_answer_was_lost_is_asked_for_again(ranks: Ranks, pooled: Path) -> None:
    first, *others = ranks.sockets
    for own in ranks.sockets:
        connected(own).close()
        assert stat.S_IMODE(own.stat().st_mode) == 0o600

    def ask(request: Request) -> list[Answer]:
        out = []
        for rank, own in enumerate(others, 1):
            if request.number % 5 == 2:
                for bytes_given in (b"", struct.pack("<qqq", request.number, 1, 0)):  # of a relay that ends before all is said
                    with connected(own) as broken:
                        broken.sendall(bytes_given)
            once = answer(own, rank, request)
            assert once.state != State.NEEDS_MORE or request.number % 3 or answer(own, rank, request) == once
            out.append(once)
        return out

    coordinate(first, ask)
    assert ranks.ends() == [(0, "")] * SITES
    assert_same_run(ranks.output, pooled)


@pytest.mark.parametrize("which", range(SITES))
def test_all_end_where_one_does(which: int, ranks: Ranks) -> None:
    first, *others = ranks.sockets

    def ask(request: Request) -> list[Answer]:
        if request.number == 6 and not request.stop:
            ranks.processes[which].kill()
            ranks.processes[which].wait()
        return [answer(own, rank, request) for rank, own in enumerate(others, 1)]

    began = time.monotonic()
    with pytest.raises(tsdp.ProgramError, match=f"rank{which}.sock: (no rank listens there|its rank has ended)"):
        coordinate(first, ask)
    for rank, (code, said) in enumerate(ranks.ends()):
        if rank != which:
            assert (code, said) == (1, "tsdp-train: ranks: another rank has ended; start all of them again")
    assert time.monotonic() - began < 15


CHANGES: dict[str, Any] = {
    "changed": lambda now, before: now[:-1] + bytes([now[-1] ^ 1]),
    "sent before": lambda now, before: before,
    "sent twice": lambda now, before: now + now,
    "of nobody": lambda now, before: struct.pack("<q", 3) + b"abc",
    "none": lambda now, before: b"",
}


@pytest.mark.parametrize("change", CHANGES)
def test_rank_0_takes_every_message_as_it_was_sent_once(change: str, ranks: Ranks) -> None:
    first, *others = ranks.sockets
    before = b""

    def ask(request: Request) -> list[Answer]:
        nonlocal before
        out = [answer(own, rank, request) for rank, own in enumerate(others, 1)]
        now = out[-1].messages
        if request.number == 5:
            out[-1] = Answer(2, CHANGES[change](now, before))
        before = now
        return out

    with pytest.raises(tsdp.ProgramError):
        coordinate(first, ask)
    (code, said), *rest = ranks.ends()
    expected = "found nothing from rank 2 in exchange 6" if change == "none" else "found a message that is not the next one of rank 2"
    assert code == 1 and expected in said and len(said.splitlines()) == 1
    assert [code for code, _ in rest] == [1, 1]


def test_another_rank_takes_every_message_as_it_was_sent(ranks: Ranks) -> None:
    """Weights that are no numbers, say, which would leave but the mask of its sum."""
    first, *others = ranks.sockets

    def ask(request: Request) -> list[Answer]:
        other = Request(request.number, request.messages[:-4] + struct.pack("<f", float("nan"))) if request.number == 5 else request
        return [answer(others[0], 1, request), answer(others[1], 2, other)]

    with pytest.raises(tsdp.ProgramError, match="rank 2 has ended without a result"):
        coordinate(first, ask)
    said = ranks.ends()[2][1]
    assert "found a message that is not the next one of rank 0" in said and len(said.splitlines()) == 1


def test_messages_of_an_earlier_start_are_none_of_this_one(folder: Path, ranks: Ranks, tmp_path: Path) -> None:
    said: list[bytes] = []

    def record(request: Request) -> list[Answer]:
        out = [answer(own, rank, request) for rank, own in enumerate(ranks.sockets[1:], 1)]
        said.append(out[0].messages)
        return out

    coordinate(ranks.sockets[0], record)
    (tmp_path / "again").mkdir()
    again = Ranks(folder, tmp_path / "again")

    def replay(request: Request) -> list[Answer]:
        out = [answer(own, rank, request) for rank, own in enumerate(again.sockets[1:], 1)]
        return [Answer(1, said[request.number]), out[1]] if request.number == 4 else out

    with pytest.raises(tsdp.ProgramError):
        coordinate(again.sockets[0], replay)
    assert "found a message that is not the next one of rank 1" in again.ends()[0][1]


@pytest.mark.parametrize("order, text", [((1, 0, 2), "found nothing from rank 1|where 'tsdp relay 1|of rank 0 for rank 0"), ((0, 2, 1), "not the next one of rank 1"), ((0, 1), "found nothing from rank 2")])
def test_ranks_that_are_carried_in_another_order_or_not_at_all_end_with_a_line(order: tuple[int, ...], text: str, ranks: Ranks) -> None:
    began = time.monotonic()
    with pytest.raises(tsdp.ProgramError):
        carry([ranks.sockets[rank] for rank in order], timeout=20)
    assert time.monotonic() - began < 20
    for rank in set(range(SITES)) - set(order):
        ranks.processes[rank].kill()
    ends = ranks.ends()
    assert all(code != 0 and len(said.splitlines()) <= 1 for code, said in ends)
    assert any(re.search(text, said) for _, said in ends), ends


def test_a_run_that_is_refused_or_interrupted_is_no_success(folder: Path, ranks: Ranks, tmp_path: Path) -> None:
    (tmp_path / "refused").mkdir()
    refused = Ranks(folder, tmp_path / "refused", others=("--set", "privacy.target_epsilon=3"))
    with pytest.raises(tsdp.ProgramError, match="rank 0 has ended without a result"):
        carry(refused.sockets)
    assert [code for code, _ in refused.ends()] == [2, 2, 2]
    first, *others = ranks.sockets

    def ask(request: Request) -> list[Answer]:
        if request.number == 6:
            ranks.processes[0].send_signal(signal.SIGINT)
        return [answer(own, rank, request) for rank, own in enumerate(others, 1)]

    with pytest.raises(tsdp.ProgramError, match="has ended without a result"):
        coordinate(first, ask)
    assert [code for code, _ in ranks.ends()] == [130, 130, 130]


def test_a_signal_ends_ranks_that_wait_for_nobody(ranks: Ranks) -> None:
    first, *others = ranks.sockets

    def ask(request: Request) -> list[Answer]:
        if request.number == 6:
            raise KeyboardInterrupt
        return [answer(own, rank, request) for rank, own in enumerate(others, 1)]

    given: dict[int, bytes] = {}
    for number in range(6):  # and then nobody comes any more
        messages, _ = exchange(first, number, given)
        given = {one.rank: one.messages for one in ask(Request(number, messages))}
    began = time.monotonic()
    for process in ranks.processes:
        process.send_signal(signal.SIGTERM)
    assert [code for code, _ in ranks.ends()] == [130, 130, 130]
    assert time.monotonic() - began < 12 and not any(own.exists() for own in ranks.sockets)


@pytest.mark.parametrize("bytes_given, text", [(struct.pack("<q", 7), "found exchange 7"), (struct.pack("<qq", 0, 1 << 40), "messages; expected"), (struct.pack("<qqqq", 0, 1, 9, 1), "as a rank's number; expected 0 to 2"), (struct.pack("<qqqq", 0, 1, 0, -4), "found -4 bytes"), (struct.pack("<qqqq", 0, 1, 2, 1), "only rank 0 talks to all others"), (struct.pack("<q", -1), "found exchange -1")])
def test_an_exchange_that_does_not_fit_ends_the_rank(bytes_given: bytes, text: str, ranks: Ranks) -> None:
    own = ranks.sockets[1]
    with connected(own) as wrong:
        wrong.sendall(bytes_given)
        _, said = ranks.processes[1].communicate(timeout=30)
    assert ranks.processes[1].returncode == 1 and text in said and len(said.splitlines()) == 1


def test_bytes_that_are_no_messages_are_not_sent(ranks: Ranks) -> None:
    for given in (b"1", struct.pack("<q", 9) + b"short", struct.pack("<q", -1)):
        with pytest.raises(tsdp.ProgramError, match="no messages of a rank"):
            exchange(ranks.sockets[1], 0, {0: given})


def run_alone(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run([program("tsdp-train"), "--config", "sites.yaml", *arguments], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_sockets_that_cannot_be_used_are_refused(folder: Path, tmp_path: Path) -> None:
    two = {"RANK": "1", "WORLD_SIZE": "2"}
    (tmp_path / "file").write_text("kept")
    assert run_alone(folder, f"--relay={tmp_path / 'file'}", **two)[0] == 2 and (tmp_path / "file").read_text() == "kept"
    code, said = run_alone(folder, f"--relay={tmp_path / 'none' / 'a.sock'}", **two)
    assert code == 2 and "--relay: " in said and len(said.splitlines()) == 1
    code, said = run_alone(folder, f"--relay={tmp_path / ('a' * 120)}", **two)
    assert code == 2 and "expected 1 to 107" in said
    code, said = run_alone(folder, f"--relay={tmp_path / 'a.sock'}")
    assert code == 2 and "--relay: given for one rank" in said
    assert run_alone(folder, f"--relay={tmp_path / 'a.sock'}", RANK="0", WORLD_SIZE="1")[0] == 2
    code, said = run_alone(folder, f"--relay={tmp_path / 'a.sock'}", "--public-network", **two)
    assert code == 2 and "--public-network: given with --relay" in said
    with pytest.raises(tsdp.UsageError, match="expected those of two ranks"):
        carry([tmp_path / "a.sock"])
    with socket.socket(socket.AF_UNIX) as other:  # somebody listens there; then nobody does any more
        other.bind(str(tmp_path / "b.sock"))
        other.listen()
        code, said = run_alone(folder, f"--relay={tmp_path / 'b.sock'}", **two)
        assert code == 2 and "Address already in use" in said
    code, said = run_alone(folder, f"--relay={tmp_path / 'b.sock'}", "--rank-timeout=1", **two)
    assert code == 1 and said == f"tsdp-train: ranks: nobody has come to {tmp_path / 'b.sock'} with what is expected within 1 s; start all of them again\n"


def test_masks_hide_from_the_carrier_what_a_site_adds(folder: Path, tmp_path: Path) -> None:
    """Sums of the ranks 1 and 2 in each step are small numbers; with masks they are uniform, and their total is the same."""
    sums: dict[bool, list[tuple[list[int], ...]]] = {False: [], True: []}
    for masked in (False, True):
        at = tmp_path / str(masked)
        at.mkdir()
        key = at / "mask.key"
        key.touch(mode=0o600)
        key.write_text("ab" * 32)
        ranks = Ranks(folder, at, f"--set=training.mask_sums={str(masked).lower()}", others=(f"--mask-key={key}",) if masked else ())

        def ask(request: Request) -> list[Answer]:
            out = [answer(own, rank, request) for rank, own in enumerate(ranks.sockets[1:], 1)]
            if 3 <= request.number < 3 + STEPS:  # after what they tell of themselves, one message each: its length, its tag, and the sum
                sums[masked].append(tuple(list(struct.unpack(f"<{len(one.messages) // 8 - 5}q", one.messages[8 + 32 :])) for one in out))
            return out

        coordinate(ranks.sockets[0], ask)
        assert ranks.ends() == [(0, "")] * SITES
    largest = {masked: [max(map(abs, one)) for pair in some for one in pair] for masked, some in sums.items()}
    assert len(largest[False]) == len(largest[True]) == 2 * STEPS
    assert all(value < 1 << 52 for value in largest[False])
    assert all(value > 1 << 61 for value in largest[True])
    totals = [[(a + b) % 2**64 for pair in some for a, b in zip(*pair, strict=True)] for some in sums.values()]
    assert totals[0] == totals[1] and any(totals[0])


def test_the_example_with_flower(folder: Path, tmp_path: Path, pooled: Path) -> None:
    pytest.importorskip("flwr")
    pytest.importorskip("ray")
    command: list[Any] = [sys.executable, EXAMPLE / "simulate.py", "--bin", Path(program("tsdp-train")).parent, "--config", folder / "sites.yaml", "--output", tmp_path / "run"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    assert_same_run(tmp_path / "run", pooled)
