"""Noisy gradients over Poisson batches, as methods plan them: the rate follows from what the schema declares."""

from __future__ import annotations

from ..errors import LimbeckError
from ..privacy import Gradients
from ..schema import Schema


def batch_gradients(
    method: str, schema: Schema, *, name: str, batch: int, clip: float, size: int, count: int
) -> Gradients:
    """The question of so many steps' gradients, each over a batch of so many rows (or persons) on average.

    Args:
        method: Name of the method, for messages.
        schema: Declares how many rows, or persons, there are about: the rate must be public.
        name: Of the question.
        batch: Rows that a step draws, on average; persons, where they are protected.
        clip: Most by which a row moves a sum.
        size: Entries of a gradient.
        count: Number of steps.
    """
    units, noun = schema.units, "persons" if schema.person else "rows"
    if units is None:
        place = "'s [person]" if schema.person else ""
        raise LimbeckError(
            f"{method} draws batches by a public rate: declare an approximate number of "
            f"{noun} in the schema{place} ({noun} = ...)."
        )
    if batch > units:
        raise LimbeckError(
            f"A batch of {batch} is more than the {units} {noun} that the schema declares; choose "
            "a smaller batch."
        )
    return Gradients(
        name=name, clip=clip, size=size, rate=batch / units, rows=schema.rows or units, count=count
    )
