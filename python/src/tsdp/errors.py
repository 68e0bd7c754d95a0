"""What this package raises; every message says what was found and what is expected."""

from __future__ import annotations


class Error(Exception):
    """Anything that this package refuses."""


class UsageError(Error, ValueError):
    """Wrong arguments or a wrong configuration (exit code 2 of the programs)."""


class DataError(Error, ValueError):
    """Data that cannot be read or do not fit (exit code 3)."""


class PrivacyError(Error):
    """No theorem covers the combination, or the budget is spent (exit code 4)."""


class ProgramError(Error):
    """A program that failed in another way, or was not found."""


def error_of_exit(code: int, message: str) -> Error:
    """The error for a program's exit code.

    >>> error_of_exit(4, "no theorem")
    PrivacyError('no theorem')
    """
    kinds: dict[int, type[Error]] = {2: UsageError, 3: DataError, 4: PrivacyError}
    return kinds.get(code, ProgramError)(message)


def first_line(error: BaseException) -> str:
    """What an error says, or its type where it says nothing.

    >>> first_line(ValueError("no number\\nat all")), first_line(EOFError())
    ('no number', 'EOFError')
    """
    return str(error).strip().split("\n")[0] or type(error).__name__


def no_package(name: str, what: str) -> ImportError:
    """The error for a package that is needed by one part of this one alone.

    >>> no_package("darts", "forecasts of its series need")
    ImportError('found no package darts, which forecasts of its series need; install it with: pip install darts')
    """
    return ImportError(f"found no package {name}, which {what}; install it with: pip install {name}")
