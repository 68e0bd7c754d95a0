"""Training on the data of several sites, where another program carries what they tell each other: an engine of federated learning.

Every site runs one rank of `tsdp-train --relay SOCKET` on its own files; rank 0 belongs to the coordinator, whom all trust. An engine takes messages from
the socket at the coordinator's to those of all other ranks, and their answers back:

    exchange(socket, number, messages)    at a site: gives its rank what came, returns what it sends: its clipped sum of a step
    coordinate(socket, ask)               at the coordinator's, until the run ends; ask(request) has all sites answer
    carry(sockets)                        both, where all ranks run on this machine

What the messages hold, and who must trust whom: docs/distributed.md. Messages are opaque bytes, which a rank takes only as they were sent, once and in
their order. Whoever reads those of a rank learns its sums without noise (unless `training.mask_sums` hides them), so they need an engine that encrypts.
"""

from __future__ import annotations

import contextlib
import enum
import os
import socket as sockets
import struct
import threading
import time
from dataclasses import dataclass
from typing import Callable, Mapping, Sequence

from .errors import ProgramError, UsageError

_Path = str | os.PathLike[str]
_LONGEST = 1 << 36
_OTHER_HAS_ENDED = -1


class State(enum.IntEnum):
    """Of a rank after an exchange."""

    NEEDS_MORE = 0
    ENDED = 1
    FAILED = 2


@dataclass(frozen=True)
class Request:
    """What the coordinator asks of every other rank: exchange `number` with the messages of rank 0, or to `stop`."""

    number: int
    messages: bytes = b""
    stop: bool = False


@dataclass(frozen=True)
class Answer:
    """What a rank sends, and whether it needs more."""

    rank: int
    messages: bytes = b""
    state: State = State.NEEDS_MORE


def _integers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _parts(messages: bytes) -> list[bytes]:
    """Of the bytes that hold several messages, each after its length.

    >>> _parts(_integers(2) + b"hi" + _integers(0))
    [b'hi', b'']
    """
    out, place = [], 0
    while place < len(messages):
        (size,) = struct.unpack_from("<q", messages, place) if place + 8 <= len(messages) else (-1,)
        place += 8
        if size < 0 or place + size > len(messages):
            raise ProgramError("messages: found bytes that are no messages of a rank; expected what exchange returned")
        out.append(messages[place : place + size])
        place += size
    return out


class _Connection:
    def __init__(self, path: str, timeout: float, wait: float = 0.0) -> None:
        """Waits so many seconds for a rank to listen on `path`."""
        began = time.monotonic()
        while True:
            self.socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
            self.socket.settimeout(timeout)
            try:
                self.socket.connect(path)
                return
            except (FileNotFoundError, ConnectionRefusedError, BlockingIOError, TimeoutError) as error:
                self.socket.close()
                busy = isinstance(error, BlockingIOError)  # others have connected, and the rank has not come to them yet
                if time.monotonic() - began > (timeout if busy else wait):
                    raise ProgramError(f"{path}: no rank listens there; expected tsdp-train --relay {path} (if there was one, its last line says why it has ended)") from error
                time.sleep(0.05)
            except OSError as error:
                self.socket.close()
                raise UsageError(f"{path}: {error.strerror or error}; expected the socket of tsdp-train --relay") from None

    def read(self, size: int) -> bytes:
        parts = []
        while size > 0:
            part = self.socket.recv(min(size, 1 << 24))
            if not part:
                raise ConnectionResetError("closed before its end")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def integer(self, least: int, most: int) -> int:
        (found,) = struct.unpack("<q", self.read(8))
        if not least <= found <= most:
            raise ProgramError(f"found the number {found}; expected {least} to {most}, as tsdp-train --relay sends it")
        return int(found)


def exchange(socket: _Path, number: int, messages: Mapping[int, bytes], timeout: float = 600.0) -> tuple[bytes, State]:
    """Gives the rank that listens on `socket` the messages of other ranks, by their numbers, and waits for what it sends until it needs more: its
    messages, and its state. `number` is that of the exchange, from 0; while the rank runs, the last one may be asked for again and has the same answer. Raises
    ProgramError if the rank is not there within `timeout` seconds of the first exchange, does not answer within as many, or has ended."""
    path = os.fspath(socket)
    parts = [(rank, part) for rank, some in messages.items() for part in _parts(some)]
    connection = _Connection(path, timeout, wait=timeout if number == 0 else 0.0)
    with connection.socket:
        try:
            connection.socket.sendall(_integers(number, len(parts)))
            for rank, part in parts:
                connection.socket.sendall(_integers(rank, len(part)))
                connection.socket.sendall(part)
            state, count = State(connection.integer(0, 2)), connection.integer(0, _LONGEST)
            out = []
            for _ in range(count):
                size = connection.integer(0, _LONGEST)
                out += [_integers(size), connection.read(size)]
        except TimeoutError:
            raise ProgramError(f"{path}: its rank has not answered within {timeout:g} s") from None
        except OSError:
            raise ProgramError(f"{path}: its rank has ended; its last line says why") from None
    return b"".join(out), state


def stop(socket: _Path, number: int, timeout: float = 10.0) -> None:
    """Tells the rank that listens on `socket`, if one does, that another has ended too early. It ends with exit code 1."""
    with contextlib.suppress(ProgramError, UsageError, OSError):  # it has ended, or will when nobody comes
        connection = _Connection(os.fspath(socket), timeout)
        with connection.socket:
            connection.socket.sendall(_integers(number, _OTHER_HAS_ENDED))


def answer(socket: _Path, rank: int, request: Request, timeout: float = 600.0) -> Answer:
    """What a site does when it is asked: the exchange of `request` with the rank of this number that listens on `socket`."""
    if request.stop:
        stop(socket, request.number)
        return Answer(rank, state=State.FAILED)
    return Answer(rank, *exchange(socket, request.number, {0: request.messages}, timeout))


def coordinate(socket: _Path, ask: Callable[[Request], Sequence[Answer]], timeout: float = 600.0) -> int:
    """Carries messages between rank 0, which listens on `socket`, and all others until they end. `ask` takes a request to every other rank and returns
    what each of them answered. Returns how often it was called. Raises ProgramError, and stops all ranks, unless all end well."""
    given: Mapping[int, bytes] = {}
    number = 0
    try:
        while True:
            messages, state = exchange(socket, number, given, timeout)
            answers = sorted(ask(Request(number, messages)), key=lambda one: one.rank)
            ranks = [one.rank for one in answers]
            if not ranks or ranks != list(range(1, len(ranks) + 1)):
                raise ProgramError(f"found answers of the ranks {ranks}; expected one of every rank from 1 on")
            number += 1
            states = [state, *(one.state for one in answers)]
            if State.FAILED in states:
                raise ProgramError(f"rank {states.index(State.FAILED)} has ended without a result; its last line says why")
            if all(one == State.ENDED for one in states):
                return number
            if State.ENDED in states:
                raise ProgramError(f"rank {states.index(State.ENDED)} has ended before the others; expected the same run on all ranks")
            given = {one.rank: one.messages for one in answers}
    except BaseException:
        stop(socket, number)
        with contextlib.suppress(Exception):
            ask(Request(number, stop=True))
        raise


def carry(ranks: Sequence[_Path], timeout: float = 600.0) -> int:
    """Carries messages between two or more ranks of this machine, by their sockets in the order of ranks, until all end. Returns the number of
    exchanges. Raises as coordinate does."""
    if len(ranks) < 2:
        raise UsageError(f"ranks: found {len(ranks)} sockets; expected those of two ranks or more")
    first, *others = ranks

    def ask(request: Request) -> list[Answer]:
        found: list[Answer | Exception] = []

        def answered(rank: int, own: _Path) -> None:
            try:
                found.append(answer(own, rank, request, timeout))
            except Exception as error:
                found.append(error)

        # Daemons, so that a rank that does not answer keeps nobody from ending.
        threads = [threading.Thread(target=answered, args=(rank, own), daemon=True) for rank, own in enumerate(others, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers = [one for one in found if isinstance(one, Answer)]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return answers

    return coordinate(first, ask, timeout)
