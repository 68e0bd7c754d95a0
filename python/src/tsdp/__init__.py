"""Forecasts from models that tsdp trained under differential privacy.

>>> import tsdp
>>> tsdp.Interval(0.5, 0.75)
Interval(lower=0.5, upper=0.75)
"""

import importlib
from typing import Any

from .covariates import holidays
from .errors import DataError, Error, PrivacyError, ProgramError, UsageError
from .ledger import Interval, Ledger
from .model import Model, load
from .programs import account
from .training import Run, plan, train

__version__ = "0.5.0"
__all__ = [
    "DataError",
    "Error",
    "Interval",
    "Ledger",
    "Model",
    "PrivacyError",
    "ProgramError",
    "Run",
    "UsageError",
    "account",
    "holidays",
    "load",
    "plan",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in ("accounting", "federated", "formats"):  # loaded where they are used
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
