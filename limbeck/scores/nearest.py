"""How near released rows lie to real ones: a diagnostic, never evidence of privacy.

A mechanism without any privacy can keep all its rows far from the real ones, and a private one can
come near them by chance. What protects is the certificate.
"""

from __future__ import annotations

import numpy as np

from ..errors import LimbeckError
from .ridge import flat_rows

CHUNK = 1000
"""Number of real rows compared at once."""


def nearest_distances(released: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Of each released row, the Euclidean distance to the nearest real one.

    Args:
        released: Slots (rows, slots), or images.
        real: Rows of the same form.

    >>> nearest_distances(np.array([[0.0, 0.0], [5.0, 0.0]]), np.array([[3.0, 4.0], [5.0, 1.0]]))
    array([5., 1.])
    """
    a, b = flat_rows(released), flat_rows(real)
    if not len(b) or a.shape[1] != b.shape[1]:
        raise LimbeckError("Expected real rows, as wide as the released ones.")
    best = np.full(len(a), np.inf)
    own = (a.astype(np.float64) ** 2).sum(axis=1)
    for at in range(0, len(b), CHUNK):
        part = b[at : at + CHUNK]
        squares = own[:, None] - 2 * (a @ part.T) + (part.astype(np.float64) ** 2).sum(axis=1)
        best = np.minimum(best, squares.min(axis=1))
    return np.sqrt(np.maximum(best, 0))
