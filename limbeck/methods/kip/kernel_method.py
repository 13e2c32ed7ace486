"""Kernels by name, and what KIP and DP-KIP have in common: a support, a kernel, a ridge."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, positive
from ...features import ConvolutionalNTK, EmpiricalNTK, FullyConnectedNTK, Perceptual, Scattering
from ...nets import LeNet, ResNet18, filled_network
from ...schema import Image, Schema
from ..base import AbstractMethod

KERNELS = ("fc-ntk", "conv-ntk", "e-ntk", "scattering", "perceptual")
NETWORK_KERNELS = ("e-ntk", "perceptual")


@dataclass(frozen=True, eq=False)
class View:
    """From slots in [0, 1] to the numbers a kernel sees, and back."""

    centre: np.ndarray
    spread: np.ndarray

    def __call__(self, slots: Any) -> Any:
        return (slots - self.centre.astype(slots.dtype)) / self.spread.astype(slots.dtype)

    def back(self, seen: np.ndarray) -> np.ndarray:
        return (seen * self.spread + self.centre).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class AbstractKernelMethod(AbstractMethod):
    """Settings of kernel inducing points, private or not."""

    fixed_size: ClassVar[bool] = True

    kernel: str = "fc-ntk"
    """Which kernel: fc-ntk, conv-ntk, e-ntk, scattering, perceptual."""
    per_class: int = 10
    """Rows to learn for each class."""
    ridge: float = 1e-6
    """Of the kernel regression, in units of the mean of the kernel's diagonal."""
    depth: int = 1
    """Hidden layers of fc-ntk."""
    blocks: int = 3
    """Halvings of the image in conv-ntk."""
    normalisation: str = "none"
    """Of scattering features: none, position (the published one), group."""
    unit_norm: bool = False
    """Whether scattering features are divided by their norm."""
    grid: int = 2
    """Places per side at which perceptual features are averaged."""
    network: str = ""
    """File with public weights for e-ntk or perceptual; empty: random weights."""
    network_digest: str = ""
    """SHA-256 of that file; filled in where it is empty, checked where it is not."""
    centre: tuple[float, ...] = ()
    """What is taken from slots in [0, 1] before the kernel sees them: one number, or one per
    channel. Empty: 0 for images, 0.5 for tables."""
    spread: tuple[float, ...] = ()
    """What they are then divided by. Empty: 1 for images, 0.5 for tables."""

    def __post_init__(self) -> None:
        positive(
            per_class=self.per_class,
            ridge=self.ridge,
            depth=self.depth,
            blocks=self.blocks,
            grid=self.grid,
        )
        positive(**{f"spread[{i}]": s for i, s in enumerate(self.spread)})
        choice(kernel=(self.kernel, KERNELS))
        choice(normalisation=(self.normalisation, ("none", "position", "group")))
        if self.network:
            if self.kernel not in NETWORK_KERNELS:
                raise LimbeckError(f"The kernel {self.kernel} uses no network.")
            found = _digest(self.network)
            if self.network_digest not in ("", found):
                raise LimbeckError(f"{self.network} is not the network that the settings name.")
            object.__setattr__(self, "network_digest", found)

    def assumptions(self) -> tuple[str, ...]:
        if not self.network:
            return ()
        return (
            f"The network {Path(self.network).name} (SHA-256 {self.network_digest}) is public: it was "
            "made without looking at these rows.",
        )

    def public_files(self) -> list[dict[str, str]]:
        if not self.network:
            return []
        purpose = f"weights of the network of the kernel {self.kernel}"
        name = Path(self.network).name
        return [{"name": name, "sha256": self.network_digest, "purpose": purpose}]

    # ---- what follows from the settings and the schema ----------------------------------------

    def support_size(self, schema: Schema) -> int:
        """Rows of the support; refuses a schema that the kernel cannot serve."""
        classes = len(schema.classes)
        if classes < 2:
            raise LimbeckError(f"{self.name} learns rows of classes; the schema declares no label.")
        if self.kernel != "fc-ntk" and not schema.image:
            raise LimbeckError(f"The kernel {self.kernel} is for images; for tables use fc-ntk.")
        size = self.per_class * classes
        if schema.rows is not None and size > schema.rows:
            raise LimbeckError(
                f"{size} rows to learn ({self.per_class} per class) are more than the "
                f"{schema.rows} that the schema declares; choose a smaller per_class."
            )
        return size

    def labels_of(self, schema: Schema) -> np.ndarray:
        """The same number of each class."""
        return np.arange(self.support_size(schema)) % len(schema.classes)

    def view(self, schema: Schema) -> View:
        image = schema.image
        centre = self.centre or ((0.0,) if image else (0.5,))
        spread = self.spread or ((1.0,) if image else (0.5,))
        return View(_per_slot("centre", centre, schema), _per_slot("spread", spread, schema))

    def tangent(self) -> FullyConnectedNTK:
        return FullyConnectedNTK(depth=self.depth)

    def pairs(self, image: Image) -> ConvolutionalNTK:
        height, width, channels = image.shape
        return ConvolutionalNTK(
            height=height, width=width, channels=channels, blocks=self.blocks, memory=1 << 26
        )

    def features(self, schema: Schema, seed: int) -> Any:
        """The feature map of a kernel that has one; its weights depend on the seed alone."""
        image = schema.image
        assert image is not None
        height, width, channels = image.shape
        if self.kernel == "scattering":
            return Scattering(
                height=height,
                width=width,
                channels=channels,
                normalisation=self.normalisation,  # type: ignore[arg-type]
                unit_norm=self.unit_norm,
            )
        key = jax.random.fold_in(jax.random.key(seed), 2)
        classes = len(schema.classes)
        grey = self.kernel == "e-ntk" and channels == 1
        kind: Any = LeNet if grey else ResNet18
        network = kind(shape=image.shape, classes=classes, key=key)
        if self.network:
            network = filled_network(network, _read(self.network))
        if self.kernel == "e-ntk":
            return EmpiricalNTK(network, image.shape)
        return Perceptual(network, grid=self.grid)

    def function(self, schema: Schema, seed: int) -> Any:
        """The kernel as a function of two sets of rows, with the view already taken."""
        if self.kernel == "fc-ntk":
            return self.tangent()
        if self.kernel == "conv-ntk":
            assert schema.image is not None
            return Single(self.pairs(schema.image))
        return InnerProducts(self.features(schema, seed))


class Single:
    """A kernel in float32, whatever the caller's precision: half the memory of a large one."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, left: Array, right: Array) -> Array:
        return self.kernel(left.astype(jnp.float32), right.astype(jnp.float32)).astype(left.dtype)


class InnerProducts:
    """The kernel of a feature map: features in float32, products in the caller's precision."""

    def __init__(self, features: Any) -> None:
        self.features = features

    def __call__(self, left: Array, right: Array) -> Array:
        ours, theirs = (self.features(x.astype(jnp.float32)).astype(x.dtype) for x in (left, right))
        return ours @ theirs.T


def choice(**values: tuple[str, tuple[str, ...]]) -> None:
    """Refuse a named setting that is none of its known values."""
    for name, (value, known) in values.items():
        if value not in known:
            raise LimbeckError(f"Expected {name} to be one of {', '.join(known)}, got {value!r}.")


def _per_slot(name: str, values: tuple[float, ...], schema: Schema) -> np.ndarray:
    channels = schema.image.channels if schema.image else 1
    if len(values) not in (1, channels):
        raise LimbeckError(
            f"Expected {name} to be one number or one per channel ({channels}), got {len(values)}."
        )
    return np.resize(np.asarray(values, np.float64), schema.slots)


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise LimbeckError(f"Cannot read the network {path}: {error.strerror}.") from None


def _read(path: str) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise LimbeckError(f"{path} is not a file of arrays (.npz): {error}.") from None
