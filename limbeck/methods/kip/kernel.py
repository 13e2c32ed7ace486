"""What a kernel is to kernel inducing points: a function of two rows, and gradients through it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError
from ...features import Support, centred, features_of, row_loss, with_ridge
from ...nets import filled_network
from ...privacy import FeatureGradients, PlainGradients, PulledGradients
from ...schema import Image, Schema
from ..network_file import NetworkFile
from ..part import AbstractPart

CHUNK_ROWS = 4
"""Rows whose gradients are made at once where autodiff makes them: each needs much memory."""


@dataclass(frozen=True, eq=False)
class View:
    """From slots in [0, 1] to the numbers a kernel sees, and back."""

    centre: np.ndarray
    """What is subtracted from each slot."""
    spread: np.ndarray
    """What each is then divided by."""

    def __call__(self, slots: Any) -> Any:
        return (slots - self.centre.astype(slots.dtype)) / self.spread.astype(slots.dtype)

    def back(self, seen: np.ndarray) -> np.ndarray:
        return (seen * self.spread + self.centre).astype(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class SupportRegression:
    """The regression of a row's label on the learned rows: its loss is what gradients are of."""

    support: Support
    """The learned rows and their targets."""
    class_weights: np.ndarray
    """Factor of the loss of each class's rows."""
    ridge: float
    """In units of the mean of the kernel's diagonal."""
    view: View
    """What the kernel sees of a row's slots."""


@dataclass(frozen=True, kw_only=True)
class AbstractKernel(AbstractPart):
    """A kernel with its settings."""

    for_tables: ClassVar[bool] = False
    """Whether it can serve tables; all kernels serve images."""
    has_features: ClassVar[bool] = False
    """Whether it is an inner product of finitely many features, and so has `features`."""

    @abc.abstractmethod
    def function(self, schema: Schema, seed: int) -> Any:
        """The kernel as a function of two sets of rows, as it sees them: (n, d), (m, d) -> (n, m).

        Raises:
            LimbeckError: It cannot serve images of this shape.
        """

    def features(self, schema: Schema, seed: int) -> Any:
        """The features whose inner product it is; random weights follow from the seed alone."""
        raise LimbeckError(f"The kernel {self.name} has no finite features.")

    def gradients(self, schema: Schema, seed: int, regression: SupportRegression) -> Any:
        """How single rows' gradients by the learned rows are clipped and added up: here one by one."""
        return PlainGradients(
            loss=plain_loss(self.function(schema, seed), regression), chunk=CHUNK_ROWS
        )

    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee takes for granted when this kernel is used."""
        return ()

    def public_files(self) -> list[dict[str, str]]:
        """Files that it uses beside the rows: `name`, `sha256` and `purpose` of each."""
        return []


@dataclass(frozen=True, kw_only=True)
class AbstractFeatureKernel(AbstractKernel):
    """A kernel that is the inner product of finitely many features of an image."""

    has_features: ClassVar[bool] = True

    @abc.abstractmethod
    def features(self, schema: Schema, seed: int) -> Any: ...

    def function(self, schema: Schema, seed: int) -> InnerProducts:
        return InnerProducts(self.features(schema, seed))

    def gradients(self, schema: Schema, seed: int, regression: SupportRegression) -> Any:
        features = self.features(schema, seed)
        # Features that can write their derivative down need not be differentiated row by row.
        kind = FeatureGradients if hasattr(features, "derivative") else PulledGradients
        return kind(features=features, **vars(regression))


@dataclass(frozen=True, kw_only=True)
class AbstractNetworkKernel(AbstractFeatureKernel):
    """A kernel whose features are those of a network, with random or with public weights."""

    network: str = ""
    """File (.npz) with the network's weights, which must be public; empty: random weights."""
    network_digest: str = ""
    """SHA-256 of that file; filled in where it is empty, checked where it is not."""

    def __post_init__(self) -> None:
        if self.network:
            object.__setattr__(self, "network_digest", self._file.sha256)

    @property
    def _file(self) -> NetworkFile:
        return NetworkFile(path=self.network, digest=self.network_digest)

    def _filled(self, kind: Any, schema: Schema, seed: int) -> Any:
        """A network of this kind with the weights of the file, or else drawn from the seed."""
        key = jax.random.fold_in(jax.random.key(seed), 2)
        network = kind(shape=image_of(schema).shape, classes=len(schema.classes), key=key)
        return filled_network(network, self._file.arrays()) if self.network else network

    def assumptions(self) -> tuple[str, ...]:
        return self._file.assumptions() if self.network else ()

    def public_files(self) -> list[dict[str, str]]:
        if not self.network:
            return []
        return self._file.public_files(f"weights of the network of the kernel {self.name}")


class InnerProducts:
    """The kernel of a feature map: features in float32, products in the caller's precision."""

    def __init__(self, features: Any) -> None:
        self.features = features

    def __call__(self, left: Array, right: Array) -> Array:
        ours, theirs = (self.features(x.astype(jnp.float32)).astype(x.dtype) for x in (left, right))
        return ours @ theirs.T


class SinglePrecision:
    """A kernel in float32, whatever the caller's precision: half the memory of a large one."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, left: Array, right: Array) -> Array:
        return self.kernel(left.astype(jnp.float32), right.astype(jnp.float32)).astype(left.dtype)


def plain_loss(
    kernel: Callable[[Array, Array], Array], regression: SupportRegression
) -> Callable[[Array, Array, Array], Array]:
    """One row's loss as a function of the learned rows' free numbers, the row and its label."""
    support = regression.support
    targets = jnp.asarray(support.targets, jnp.float32)
    factors = jnp.asarray(regression.class_weights, jnp.float32)

    def loss(free: Array, slots: Array, label: Array) -> Array:
        wanted = centred(label, targets.shape[1])
        placed = support.place_traced(free)
        row = regression.view(slots)
        return factors[label] * row_loss(kernel, placed, targets, row, wanted, regression.ridge)

    return loss


def image_of(schema: Schema) -> Image:
    """The images of a schema that is known to declare some."""
    if schema.image is None:
        raise LimbeckError("This kernel is for images, and the schema declares a table.")
    return schema.image


def condition_number(
    kernel: AbstractKernel, schema: Schema, regression: SupportRegression, seed: int
) -> float:
    """How much worse than its inputs the first regression may be: near-copies make it large."""
    rows = regression.support.start
    if kernel.has_features:
        phi = features_of(kernel.features(schema, seed), rows.astype(np.float32))
        gram = phi.astype(np.float64) @ phi.T
    else:
        with jax.enable_x64(True):
            seen = jnp.asarray(rows, jnp.float64)
            gram = np.asarray(kernel.function(schema, seed)(seen, seen))
    return float(np.linalg.cond(with_ridge(gram, regression.ridge)))
