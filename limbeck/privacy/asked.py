"""`Asked`: what a method says of a question."""

from __future__ import annotations

from dataclasses import dataclass

from .question import Question


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a method, and its share of the budget."""

    question: Question
    share: float
