"""The uniform numbers that tsdp's programs draw sample paths from: ChaCha20 streams of a key."""

from __future__ import annotations

import hashlib
import hmac
import numbers
import os

import numpy as np

from .errors import UsageError


def key_of(seed: int | None) -> bytes:
    """The key that `--seed` means; one of the operating system's without a seed."""
    if seed is None:
        return os.urandom(32)
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise UsageError(f"seed: found {seed!r}; expected a whole number from 0")
    return hashlib.sha256(f"tsdp reproducible run, seed {seed}".encode()).digest()


def uniforms(key: bytes, purpose: str, step: int, count: int) -> np.ndarray:
    """The first `count` numbers in (0, 1] of the stream (key, purpose, step), as float32."""
    bits = _key_stream(hmac.new(key, purpose.encode(), hashlib.sha256).digest(), step, count)
    return (1.0 - (bits >> np.uint64(11)).astype("float64") * 2.0**-53).astype("float32")


def _key_stream(key: bytes, nonce: int, words: int) -> np.ndarray:
    """ChaCha20 (Bernstein 2008) from block 0 on, as 64-bit words.

    >>> hex(int(_key_stream(bytes(32), 0, 1)[0]))
    '0x903df1a0ade0b876'
    """
    blocks = (words + 7) // 8
    state = np.zeros((16, blocks), dtype="uint32")
    state[0:4] = np.frombuffer(b"expand 32-byte k", dtype="<u4")[:, None]
    state[4:12] = np.frombuffer(key, dtype="<u4")[:, None]
    counter = np.arange(blocks, dtype="uint64")
    state[12] = (counter & np.uint64(0xFFFFFFFF)).astype("uint32")
    state[13] = (counter >> np.uint64(32)).astype("uint32")
    state[14:16] = np.frombuffer(int(nonce).to_bytes(8, "little"), dtype="<u4")[:, None]
    x = state.copy()

    def turn(a: int, b: int, c: int, d: int) -> None:
        for target, source, other, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[target] += x[source]
            x[other] ^= x[target]
            x[other] = (x[other] << np.uint32(bits)) | (x[other] >> np.uint32(32 - bits))

    for _ in range(10):
        for column in range(4):
            turn(column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            turn(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
    x += state
    return np.ascontiguousarray(x.T).astype("<u4").view("<u8").reshape(-1)[:words]
