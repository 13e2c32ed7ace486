"""Noisy answers that were given already: a resumed run gives them again instead of drawing new noise."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..accounting import Charge
from .measurement import Measurement
from .question import Planned


class Answers(Protocol):
    """Where noisy answers are kept, so that a killed run resumes without paying twice."""

    def load(self, name: str, *, digest: str) -> np.ndarray | None: ...

    def save(self, name: str, answer: np.ndarray, *, digest: str) -> None: ...


class KeptAnswers:
    """The answers of a run, step by step, each with the digest of what was asked.

    Args:
        store: Where they are; None: nowhere, and none is ever found.
    """

    def __init__(self, store: Answers | None) -> None:
        self._store = store

    def load(self, planned: Planned, step: int, digest: str) -> tuple[Measurement, ...] | None:
        """The answer that was already given in this job to this very question."""
        answers = []
        for charge in planned.charges:
            if self._store is None or not planned.question.kept:
                return None
            values = self._store.load(_name(planned, charge, step), digest=digest)
            if values is None:
                return None
            answers.append(Measurement.under(charge, values))
        return tuple(answers)

    def save(
        self, planned: Planned, step: int, digest: str, answers: tuple[Measurement, ...]
    ) -> None:
        """Keep the answer to a question at a step."""
        if self._store is not None and planned.question.kept:
            for charge, answer in zip(planned.charges, answers, strict=True):
                self._store.save(_name(planned, charge, step), answer.values, digest=digest)


def _name(planned: Planned, charge: Charge, step: int) -> str:
    return f"{charge.name}-{step}" if planned.question.stepwise else charge.name
