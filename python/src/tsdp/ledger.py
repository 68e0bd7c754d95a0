"""The privacy statement of a model, as tsdp's ledger states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping


@dataclass(frozen=True)
class Interval:
    """Certified ends of a number: `lower` is never above it, `upper` never below."""

    lower: float
    upper: float


class Ledger:
    """What a run states of its privacy; `document` is all of it, as `privacy.json` has it.

    >>> ledger = Ledger({"private": True, "state": "finished", "epsilon": {"lower": 0.9, "upper": 1.0}, "delta": 1e-7,
    ...                  "statement": "(1, 1e-07)-differential privacy."})
    >>> ledger.epsilon.upper, ledger.delta
    (1.0, 1e-07)
    >>> print(ledger)
    (1, 1e-07)-differential privacy.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document: dict[str, Any] = dict(document)

    @property
    def is_private(self) -> bool:
        """Whether the model was trained with privacy."""
        return bool(self.document.get("private", False))

    @property
    def is_finished(self) -> bool:
        """Whether the run took all its steps. The statement of another one is of all planned steps, the model is not."""
        return self.document.get("state") == "finished"

    @property
    def epsilon(self) -> Interval | None:
        """Certified ends of epsilon at `delta`; None without privacy. What is to be quoted is the upper end."""
        found = self.document.get("epsilon")
        return Interval(float(found["lower"] or 0.0), float(found["upper"])) if isinstance(found, Mapping) else None

    @property
    def delta(self) -> float | None:
        """The delta at which epsilon is stated; None without privacy."""
        found = self.document.get("delta")
        return None if found is None else float(found)

    @property
    def noise_multiplier(self) -> float | None:
        """Standard deviation of the noise, in multiples of the clip norm."""
        found = self.document.get("noise_multiplier")
        return None if found is None else float(found)

    @property
    def theorem(self) -> str | None:
        """The theorem that bounds one step or epoch."""
        return self.document.get("theorem")

    @property
    def neighbours(self) -> str | None:
        """In words: which data sets cannot be told apart."""
        return (self.document.get("relation") or {}).get("text")

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the statement says nothing about, a sentence each."""
        return tuple(self.document.get("not_covered", ()))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is unusual about the statement."""
        return tuple(self.document.get("warnings", ()))

    @property
    def statement(self) -> str:
        """The statement in one sentence."""
        return str(self.document.get("statement", "no privacy statement"))

    def __str__(self) -> str:
        return self.statement

    def __repr__(self) -> str:
        return f"Ledger({self.statement!r})"
