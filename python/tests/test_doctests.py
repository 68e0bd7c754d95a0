"""The examples in the docstrings of the installed package print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tsdp


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(tsdp.__path__)])
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(f"tsdp.{name}")
    except ImportError as error:  # of GluonTS or Darts
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


def test_there_are_examples() -> None:
    assert doctest.testmod(tsdp.calendars).attempted > 3
