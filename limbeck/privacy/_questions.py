"""What `Private` can be asked about rows: functions of one row, by the forms of their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np


class FeatureMap(Protocol):
    """A function of one row: phi(x) with a bound on its norm, evaluated many rows at a time."""

    @property
    def size(self) -> int: ...

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any) -> Any:
        """Slots (rows, slots) in [0, 1] to features (rows, size)."""


class GroupedFeatures(Protocol):
    """Features that also say to which group's sum a row belongs; they may look at its label."""

    @property
    def groups(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any, labels: Any) -> tuple[Any, Any]:
        """Slots and label codes to features (rows, size) and groups (rows,)."""


class Factors(Protocol):
    """Features that are outer products, given by their two factors."""

    @property
    def left(self) -> int: ...

    @property
    def right(self) -> int: ...

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any) -> tuple[Any, Any]:
        """Slots (rows, slots) to factors (rows, left) and (rows, right)."""


class BlockFactors(Protocol):
    """Features that are several outer products side by side, given by their factors."""

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Sizes of the left and the right factor of each block."""

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any) -> tuple[tuple[Any, Any], ...]:
        """Slots (rows, slots) to factors (rows, left) and (rows, right) of each block."""


class LabelledFactors(Protocol):
    """As `BlockFactors`, of rows and their labels."""

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any, labels: Any) -> tuple[tuple[Any, Any], ...]:
        """Slots and label codes to factors (rows, left) and (rows, right) of each block."""


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
