"""The accountant: what `tsdp-account` answers, in Python. Needs no PyTorch.

Each function is a command of the program; options are keywords (`noise_multiplier=4` is `--noise-multiplier 4`), and a certified number is a dictionary with
`lower` and `upper`. Errors are those of `account`.
"""

from __future__ import annotations

from typing import Any

from .errors import DataError, Error, PrivacyError, ProgramError, UsageError
from .programs import account

__all__ = [
    "DataError", "Error", "PrivacyError", "ProgramError", "UsageError",
    "account", "budget", "delta", "epsilon", "sigma", "steps", "strategy", "total", "verify",
]  # fmt: skip


def epsilon(**options: Any) -> dict[str, Any]:
    """Of how many steps (`steps` or `epochs`) with a noise multiplier, at `delta`."""
    return account("epsilon", **options)


def delta(**options: Any) -> dict[str, Any]:
    """Of the same at `epsilon`."""
    return account("delta", **options)


def steps(**options: Any) -> dict[str, Any]:
    """How many steps a target epsilon and delta allow."""
    return account("steps", **options)


def sigma(**options: Any) -> dict[str, Any]:
    """The least noise multiplier for a target."""
    return account("sigma", **options)


def strategy(**options: Any) -> dict[str, Any]:
    """Samplers and noise mechanisms for a target, the least total error first."""
    return account("strategy", **options)


def verify(*runs: str, **options: Any) -> dict[str, Any]:
    """Derives the statement of a run's folder, ledger or exported model anew."""
    return account("verify", *runs, **options)


def total(*runs: str, **options: Any) -> dict[str, Any]:
    """What several runs on the same data cost together."""
    return account("total", *runs, **options)


def budget(file: str, **options: Any) -> dict[str, Any]:
    """What a budget file has spent and has left."""
    return account("budget", file, **options)
