"""What can be known of many rows' gradients: all of them, some at a time; or their norms and sums alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np


class RowSums(NamedTuple):
    """What is known of the gradients of a batch's rows without making them."""

    norms: np.ndarray
    """Upper bounds of the gradients' norms, (rows,); infinite for one that is not finite."""
    sizes: np.ndarray
    """Norms of what the gradients are added up from, every sign positive, (rows,). Infinite for a
    row whose numbers are so large that a sum of many such could overflow."""
    roundings: int
    """Of float64 numbers on the longest way from a row's numbers to the weighted sum."""
    weighted_sum: Callable[[np.ndarray], np.ndarray]
    """Factors (rows,) to the sum of factor times gradient, flat, in float64. A factor 0 leaves no
    trace of its row."""


class RowGradients(Protocol):
    """Gradients of many rows at once, known by their norms and their weighted sums alone.

    For losses whose per-row gradients are too large to be made one by one. A row's gradient, norm
    and size must depend on that row and the parameters only. Part of what the guarantee rests on: a
    norm or size that is too small would be believed.
    """

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums: ...


class RowBlocks(Protocol):
    """Gradients made one by one, some rows at a time. They are clipped as they come: none is believed."""

    def blocks(
        self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The first row of a block, and the gradients (rows, size) of the block's rows. Blocks may
        leave out rows of negative label."""
