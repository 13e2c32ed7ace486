"""What the questions expect of a map of rows. Descriptions only: what a map says is clipped."""

from __future__ import annotations

from typing import Any, Protocol

import equinox as eqx


class FeatureMap(Protocol):
    """A function of one row: phi(x) with a bound on its norm, evaluated many rows at a time."""

    @property
    def size(self) -> int: ...

    @property
    def norm_bound(self) -> float: ...

    def __call__(self, rows: Any) -> Any:
        """Slots (rows, slots) in [0, 1] to features (rows, size)."""


class OnesAndZeros(Protocol):
    """Features (or factors that are multiplied with themselves) of which at most one in each block is 1, and
    all others are 0: a map that says where its ones are is not asked for its features."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features of each block."""

    def ones(self, rows: Any) -> Any:
        """Slots (rows, slots) to the number of the feature in each block, (rows, blocks); -1 for none."""


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


class BlockFactors(Protocol):
    """Features that are outer products side by side, given by their factors."""

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


class OneBlock(eqx.Module):
    """Features that are one outer product, given by a function of rows to its two factors."""

    factors: Any

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return ((self.factors.left, self.factors.right),)

    @property
    def norm_bound(self) -> float:
        return float(self.factors.norm_bound)

    def __call__(self, rows: Any) -> tuple[tuple[Any, Any], ...]:
        return (self.factors(rows),)
