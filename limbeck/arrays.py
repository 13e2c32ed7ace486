"""What annotations of arrays say where those of either library will do."""

from __future__ import annotations

import numpy as np
from jaxtyping import Array

AnyArray = Array | np.ndarray
"""An array of JAX, which may be one that is traced, or of NumPy."""
