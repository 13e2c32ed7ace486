"""`Images`: released pictures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Images(NamedTuple):
    """Released images: pixels (rows, height, width, channels) in the declared range, label values."""

    images: np.ndarray
    labels: np.ndarray
