"""`JobPart`: where a run within a run keeps its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .job import Job


class JobPart:
    """Answers of one part of a job, under names of their own."""

    def __init__(self, job: Job, name: str) -> None:
        self._job, self._name = job, name

    def load(self, name: str, *, digest: str = "") -> np.ndarray | None:
        return self._job.load(f"{self._name}/{name}", digest=digest)

    def save(self, name: str, answer: np.ndarray, *, digest: str = "") -> None:
        self._job.save(f"{self._name}/{name}", answer, digest=digest)
