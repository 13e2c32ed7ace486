"""Where the pixels of a moved picture come from: the geometry of every random change of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np


def source_places(
    height: int, width: int, cosine: Any, sine: Any, factors: Any, shift: Any, mirror: int = 1
) -> tuple[Any, Any]:
    """For each pixel of a picture that was turned about its middle, scaled and shifted: how far down and
    right in the old one it comes from, (height, width) or more. NumPy and JAX arrays will do.

    Args:
        height, width: Of the picture.
        cosine, sine: Of the angle.
        factors: Of the scaling, down and right.
        shift: In pixels, down and right.
        mirror: -1: left and right change places.
    """
    y = np.arange(height)[:, None] - (height - 1) / 2
    x = np.arange(width)[None, :] - (width - 1) / 2
    down = (cosine * y - sine * x) / factors[0] - shift[0]
    right = mirror * ((sine * y + cosine * x) / factors[1] - shift[1])
    return down + (height - 1) / 2, right + (width - 1) / 2
