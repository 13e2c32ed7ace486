"""Inception features: what the Frechet distance of the literature (FID) is computed in.

The network is the one of 2015 whose weights all such distances are computed with. They are not part of limbeck:
they come from the user's file, as arrays named as PyTorch's copy names them. Widths and kernels are those of the
arrays; which layer follows which is written down here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import LimbeckError
from ..npz import NotArrays, read_arrays

SIDE = 299
"""Pixels that a picture is enlarged to, per side."""
VARIANCE_FLOOR = 1e-3
"""Added to the variances that layers are normalised by."""
PARTS = ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")
"""Arrays of a layer."""
STEM = ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1", "Conv2d_4a_3x3")
FIVES = ("branch1x1", "branch5x5_1", "branch5x5_2")
DOUBLES = ("branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")
SEVENS = ("branch7x7_1", "branch7x7_2", "branch7x7_3")
DOUBLE_SEVENS = tuple(f"branch7x7dbl_{n}" for n in range(1, 6))
LAYERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Mixed_5b", "Mixed_5c", "Mixed_5d"), (*FIVES, *DOUBLES, "branch_pool")),
    "Mixed_6a": ("branch3x3", *DOUBLES),
    **dict.fromkeys(
        ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"),
        ("branch1x1", *SEVENS, *DOUBLE_SEVENS, "branch_pool"),
    ),
    "Mixed_7a": ("branch3x3_1", "branch3x3_2", *(f"branch7x7x3_{n}" for n in range(1, 5))),
    **dict.fromkeys(
        ("Mixed_7b", "Mixed_7c"),
        ("branch1x1", "branch3x3_1", "branch3x3_2a", "branch3x3_2b", *DOUBLES[:2],
         "branch3x3dbl_3a", "branch3x3dbl_3b", "branch_pool"),
    ),
}  # fmt: skip
"""Layers of each block."""


class Inception(eqx.Module):
    """Features of pictures of any size, enlarged: the averages over all places after the last block."""

    weights: dict[str, Array]
    shape: tuple[int, int, int] = eqx.field(static=True)
    side: int = eqx.field(static=True, default=SIDE)

    def __call__(self, rows: Float[Array, "rows slots"]) -> Float[Array, "rows size"]:
        height, width, channels = self.shape
        images = rows.reshape(-1, height, width, channels)
        images = jnp.broadcast_to(images, (*images.shape[:3], 3)) if channels == 1 else images
        wide = (len(images), self.side, self.side, 3)
        x = 2 * jax.image.resize(images, wide, "linear", antialias=False) - 1
        x = self._stem(x)
        for block in ("Mixed_5b", "Mixed_5c", "Mixed_5d"):
            x = self._fives(block, x)
        x = self._halved(x, ("branch3x3",), "Mixed_6a", DOUBLES)
        for block in ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"):
            x = self._sevens(block, x)
        last = tuple(f"branch7x7x3_{n}" for n in range(1, 5))
        x = self._halved(x, ("branch3x3_1", "branch3x3_2"), "Mixed_7a", last)
        x = self._ends("Mixed_7b", x, _means)
        x = self._ends("Mixed_7c", x, _largest)  # as the original: its last block takes the largest
        return x.mean(axis=(1, 2))

    def _stem(self, x: Array) -> Array:
        first, second, third, fourth, fifth = STEM
        x = self._layer(second, self._layer(first, x, stride=2, margins="VALID"), margins="VALID")
        x = _largest(self._layer(third, x), stride=2)
        x = self._layer(fifth, self._layer(fourth, x, margins="VALID"), margins="VALID")
        return _largest(x, stride=2)

    def _fives(self, block: str, x: Array) -> Array:
        roads = (FIVES[:1], FIVES[1:], DOUBLES)
        return self._beside(block, x, roads, _means)

    def _sevens(self, block: str, x: Array) -> Array:
        return self._beside(block, x, (("branch1x1",), SEVENS, DOUBLE_SEVENS), _means)

    def _ends(self, block: str, x: Array, pool: Callable[[Array], Array]) -> Array:
        """The last blocks' roads fork: one way looks along rows, the other along columns."""
        middle = self._layer(f"{block}.branch3x3_1", x)
        double = self._road(block, x, DOUBLES[:2])
        forks = ((middle, "branch3x3_2"), (double, "branch3x3dbl_3"))
        parts = [self._layer(f"{block}.branch1x1", x)]
        parts += [self._layer(f"{block}.{name}{way}", y) for y, name in forks for way in "ab"]
        return jnp.concatenate([*parts, self._layer(f"{block}.branch_pool", pool(x))], axis=3)

    def _beside(
        self, block: str, x: Array, roads: Sequence[Sequence[str]], pool: Callable[[Array], Array]
    ) -> Array:
        parts = [self._road(block, x, road) for road in roads]
        return jnp.concatenate([*parts, self._layer(f"{block}.branch_pool", pool(x))], axis=3)

    def _halved(self, x: Array, road: Sequence[str], block: str, other: Sequence[str]) -> Array:
        """A block whose roads each end in a layer that halves the sides."""
        parts = []
        for names in (road, other):
            y = self._road(block, x, names[:-1])
            parts.append(self._layer(f"{block}.{names[-1]}", y, stride=2, margins="VALID"))
        return jnp.concatenate([*parts, _largest(x, stride=2)], axis=3)

    def _road(self, block: str, x: Array, names: Sequence[str]) -> Array:
        for name in names:
            x = self._layer(f"{block}.{name}", x)
        return x

    def _layer(self, name: str, x: Array, *, stride: int = 1, margins: str = "SAME") -> Array:
        """Convolution, norm with the statistics that come with the weights, ReLU."""
        kernel, scale, bias, mean, variance = (self.weights[f"{name}.{part}"] for part in PARTS)
        y = jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), margins, dimension_numbers=("NHWC", "OIHW", "NHWC")
        )
        return jax.nn.relu((y - mean) * jax.lax.rsqrt(variance + VARIANCE_FLOOR) * scale + bias)


def load_inception(path: Path, shape: tuple[int, int, int]) -> Inception:
    """The network of the weights in a file of arrays (.npz), for pictures of a shape."""
    try:
        arrays = read_arrays(path)
    except OSError as error:
        raise LimbeckError(f"Cannot read the weights {path}: {error.strerror}.") from None
    except NotArrays as error:
        raise LimbeckError(f"{path} is no file of arrays (.npz): {error}.") from None
    layers = [*STEM, *(f"{block}.{layer}" for block, inside in LAYERS.items() for layer in inside)]
    wanted = [f"{layer}.{part}" for layer in layers for part in PARTS]
    lacking = [name for name in wanted if name not in arrays]
    if lacking:
        raise LimbeckError(
            f"{path} has no array '{lacking[0]}' ({len(lacking)} of {len(wanted)} are missing): it does not hold "
            "the weights of the Inception network. See docs/scores.md for how to make it."
        )
    return Inception({name: jnp.asarray(arrays[name], jnp.float32) for name in wanted}, shape)


def _largest(x: Array, stride: int = 1) -> Array:
    margins = "VALID" if stride > 1 else "SAME"
    return jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, stride, stride, 1), margins
    )


def _means(x: Array) -> Array:
    """3 x 3 averages of what lies inside the picture."""
    around: tuple[tuple[int, ...], tuple[int, ...], str] = ((1, 3, 3, 1), (1, 1, 1, 1), "SAME")
    total = jax.lax.reduce_window(x, 0.0, jax.lax.add, *around)
    inside = np.ones((1, *x.shape[1:3], 1), np.float32)
    return total / jax.lax.reduce_window(inside, 0.0, jax.lax.add, *around)
