"""The parts of a `model.pt` that are data: weights, sizes and the privacy statement. None of the code in the archive is read."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import torch

from .errors import DataError, first_line

_WRITTEN = "expected a model that tsdp-train or tsdp-export wrote"
_FORMAT = "tsdp-model-2"
_TEXTS = ("model.json", "privacy.json")
_TYPES = {"F32": (torch.float32, 4), "F64": (torch.float64, 8)}
_CHECKSUM_BYTES = 32


@dataclass
class Archive:
    """Weights by name, what the model says of itself, its ledger, and the texts of these two."""

    weights: dict[str, torch.Tensor]
    about: dict[str, Any]
    privacy: dict[str, Any]
    texts: dict[str, str]


def read_archive(path: str) -> Archive:
    """Reads `path`. Checks the CRC of each member that it reads, the checksum of the data, every length, type and place, and that the TorchScript
    module beside them has the same weights. Raises DataError that names the file and what is wrong."""
    if os.path.isdir(path):
        raise DataError(f"{path}: is a folder; expected a model, as {os.path.join(path, 'model.pt')} of a run")
    if not os.path.isfile(path):
        raise DataError(f"{path}: no such file; {_WRITTEN}")
    try:
        with zipfile.ZipFile(path) as archive:
            members: dict[str, zipfile.ZipInfo] = {}
            for info in archive.infolist():
                name = info.filename.partition("/")[2]
                if name in members:
                    raise DataError(f"{path}: damaged (it has two members '{name}'); {_WRITTEN}")
                members[name] = info

            def member(name: str) -> bytes:
                if name not in members:
                    raise DataError(f"{path}: has no {name}; {_WRITTEN}")
                if members[name].compress_type != zipfile.ZIP_STORED:  # So what is read is never larger than the file.
                    raise DataError(f"{path}: damaged ('{name}' is compressed); {_WRITTEN}")
                return archive.read(members[name])

            texts, stored = _read_tensors(member("extra/tsdp.safetensors"), path)
            for name in _TEXTS:
                if member(f"extra/{name}") != texts.get(name, "").encode():
                    raise DataError(f"{path}: extra/{name} is not what its checksummed copy says; {_WRITTEN}")
            beside = {hashlib.sha256(member(name)).digest() for name in members if name.startswith("data/")}
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, struct.error) as error:
        raise DataError(f"{path}: cannot be read as a model ({first_line(error)}); {_WRITTEN}") from None
    if texts.get("format") != _FORMAT:
        raise DataError(f"{path}: found format '{texts.get('format')}', of another version of tsdp; expected {_FORMAT}")
    weights = {}
    for name, (kind, shape, raw) in stored.items():
        if hashlib.sha256(raw).digest() not in beside:
            raise DataError(f"{path}: the TorchScript module has other weights '{name}' than extra/tsdp.safetensors, which the statement is about; {_WRITTEN}")
        weights[name] = torch.frombuffer(bytearray(raw), dtype=_TYPES[kind][0]).reshape(shape)
    about, privacy = (_object(texts, name, path) for name in _TEXTS)
    return Archive(weights, about, privacy, {name: texts[name] for name in _TEXTS})


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: damaged ({first_line(error)}); {_WRITTEN}") from None


def _object(texts: dict[str, str], name: str, path: str) -> dict[str, Any]:
    found = _parsed(texts[name], f"{path}: {name}")
    if not isinstance(found, dict):
        raise DataError(f"{path}: {name}: expected a JSON object; {_WRITTEN}")
    return found


def _read_tensors(data: bytes, path: str) -> tuple[dict[str, str], dict[str, tuple[str, list[int], bytes]]]:
    """Texts and tensors of a safetensors file, whose last tensor is the SHA-256 of all bytes before it."""

    def damaged(what: str) -> DataError:
        return DataError(f"{path}: damaged ({what}); {_WRITTEN}")

    if len(data) < 8 + _CHECKSUM_BYTES:
        raise damaged(f"found {len(data)} bytes")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8 - _CHECKSUM_BYTES:
        raise damaged("or another kind of file: no header")
    if hashlib.sha256(data[:-_CHECKSUM_BYTES]).digest() != data[-_CHECKSUM_BYTES:]:
        raise damaged("its checksum does not fit")
    try:
        header = _parsed(data[8 : 8 + length].decode(), path)
    except UnicodeDecodeError:
        raise damaged("its header is no text") from None
    if not isinstance(header, dict):
        raise damaged("no header")
    values = data[8 + length : -_CHECKSUM_BYTES]
    texts = header.pop("__metadata__", {})
    header.pop("sha256", None)
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise damaged("no texts")
    tensors, place = {}, 0
    for name, about in header.items():
        kind, shape, ends = (about.get(key, []) if isinstance(about, dict) else [] for key in ("dtype", "shape", "data_offsets"))
        if not isinstance(kind, str) or kind not in _TYPES or not _are_counts(shape) or not _are_counts(ends) or len(ends) != 2 or len(shape) > 8:
            raise damaged(f"tensor '{name}' has no type, shape or place")
        size = _TYPES[kind][1]
        for extent in shape:
            size *= extent
        if ends[0] != place or ends[1] != place + size or ends[1] > len(values):  # Without gaps, so that every byte has one meaning.
            raise damaged(f"tensor '{name}' does not lie where its shape says")
        tensors[name] = (kind, list(shape), values[place : ends[1]])
        place = ends[1]
    if place != len(values):
        raise damaged("bytes that belong to no tensor")
    return texts, tensors


def _are_counts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= 1 << 62 for item in found)
