"""How many teachers each class gets, where classes have teachers of their own."""

from __future__ import annotations

import numpy as np


def shared_teachers(teachers: int, counts: np.ndarray, rows_each: int) -> tuple[int, ...]:
    """Numbers of teachers by class: as equal as can be, one at least, and no more than a class has rows
    for. What a small class leaves goes to the others.

    Args:
        teachers: How many there are in all, no fewer than classes.
        counts: Noisy, and so public, numbers of the classes' rows; infinite where they are not known.
        rows_each: Rows of its class that a teacher should see at least.

    >>> shared_teachers(100, np.array([1000.0, 24.0, -3.0]), 2)
    (87, 12, 1)
    """
    most = np.maximum(1, np.floor(counts / rows_each))
    given = np.zeros(len(counts), int)
    left = teachers
    for place, code in enumerate(np.argsort(most, kind="stable")):
        others = len(counts) - place
        given[code] = min(most[code], left // others)
        left -= given[code]
    return tuple(int(n) for n in given)
