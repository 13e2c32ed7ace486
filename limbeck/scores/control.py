"""The control every small distilled set has to beat: as many real rows, drawn at random."""

from __future__ import annotations

import numpy as np

from ..errors import LimbeckError


def matching_subset(released_codes: np.ndarray, real_codes: np.ndarray, *, seed: int) -> np.ndarray:
    """Places of random real rows, as many of each class as the release has.

    Args:
        released_codes: Class codes of the released rows.
        real_codes: Class codes of the real training rows.
        seed: Another one gives another draw.

    >>> real = np.array([0, 0, 0, 1, 1, 1])
    >>> real[matching_subset(np.array([1, 0, 1]), real, seed=0)]
    array([0, 1, 1])
    """
    rng = np.random.default_rng(seed)
    chosen = []
    for code, count in zip(*np.unique(released_codes, return_counts=True), strict=True):
        places = np.flatnonzero(real_codes == code)
        if len(places) < count:
            raise LimbeckError(
                f"Expected at least {count} real rows of class number {code} to draw from, "
                f"got {len(places)}."
            )
        chosen.append(rng.choice(places, count, replace=False))
    return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
