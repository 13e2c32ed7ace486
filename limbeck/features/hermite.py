"""Hermite features of the Gaussian kernel in one dimension, in their order of importance.

Mehler's formula writes exp(-(x - y)^2 / (2 length^2)) as a sum over orders of products
phi_k(x) phi_k(y). Cut off anywhere, the features have a norm of at most 1; the error is smallest
near zero and grows outwards. A stretch of the axis moves it around without changing the kernel.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import not_negative, positive

LARGEST_FALL = 60.0
"""Negative logarithm of the first feature beyond which float32 needs the recursion to be rescaled."""
UNROLLED_ORDERS = 40
"""Number of orders up to which the recursion is written out: several times quicker than a loop."""
STRETCHES = np.geomspace(0.25, 64, 97)
"""Factors among which the best stretch of the axis is sought."""


class Hermite(eqx.Module):
    """phi_0(x) to phi_order(x), for x from -1 to 1: counted from the centre in units of a range.

    Args:
        order: The last one; there are order + 1 features.
        length: Length scale of the Gaussian kernel, in units of the range.
        stretch: Factor by which the axis is stretched first; "auto": the one that suits the whole
            range best.

    >>> phi = Hermite(order=30, length=0.5)
    >>> close = phi(jnp.array([0.1])) @ phi(jnp.array([-0.2])).T
    >>> round(float(close[0, 0]), 4), round(math.exp(-0.3**2 / 2 / 0.5**2), 4)
    (0.8353, 0.8353)
    """

    order: int = eqx.field(static=True)
    length: float = eqx.field(static=True)
    stretch: float = eqx.field(static=True)

    def __init__(
        self, *, order: int, length: float, stretch: float | Literal["auto"] = "auto"
    ) -> None:
        positive(length=length)
        not_negative(order=order)
        self.order, self.length = order, length
        self.stretch = best_stretch(order, length) if stretch == "auto" else stretch
        positive(stretch=self.stretch)

    @property
    def size(self) -> int:
        return self.order + 1

    def __call__(self, x: Float[Array, "*any"]) -> Float[Array, "*any size"]:
        return jnp.stack(self.orders(x), axis=-1)

    def orders(self, x: Float[Array, "*any"]) -> list[Float[Array, "*any"]]:
        """The features one by one, each of the shape of x."""
        rho = mehler_rho(self.length * self.stretch)
        x = x * self.stretch
        steps = np.arange(self.order)
        up, back = np.sqrt(2 * rho / (steps + 1)), rho * np.sqrt(steps / (steps + 1))
        fall, height = rho * x * x / (1 + rho), (1 - rho * rho) ** 0.25
        if rho * self.stretch**2 / (1 + rho) >= LARGEST_FALL:
            return list(_far_orders(x, height, fall, jnp.float32(up), jnp.float32(back)))
        first = height * jnp.exp(-fall)
        if self.order > UNROLLED_ORDERS:
            return list(_orders(x, first, jnp.float32(up), jnp.float32(back)))
        values = [first]
        for k in range(self.order):
            before = float(back[k]) * values[k - 1] if k else 0.0
            values.append(float(up[k]) * x * values[k] - before)
        return values


def _orders(x: Array, first: Array, up: Array, back: Array) -> Array:
    """All orders, one after another along the first axis."""

    def step(state: tuple[Array, Array], factors: tuple[Array, Array]) -> Any:
        now, before = state
        following = factors[0] * x * now - factors[1] * before
        return (following, now), following

    _, rest = jax.lax.scan(step, (first, jnp.zeros_like(first)), (up, back))
    return jnp.concatenate([first[None], rest])


def _far_orders(x: Array, height: float, fall: Array, up: Array, back: Array) -> Array:
    """The same where the first order is too small for float32, while later ones are not.

    The recursion is linear, so it may start larger, and be brought down when it has grown.
    """
    owed = jnp.maximum(fall - LARGEST_FALL, 0.0)
    first = height * jnp.exp(-jnp.minimum(fall, LARGEST_FALL))

    def step(state: tuple[Array, Array, Array], factors: tuple[Array, Array]) -> Any:
        now, before, owed = state
        following = factors[0] * x * now - factors[1] * before
        paid = jnp.where(jnp.abs(following) > 1.0, jnp.minimum(owed, LARGEST_FALL), 0.0)
        shrink = jnp.exp(-paid)
        following, now, owed = following * shrink, now * shrink, owed - paid
        return (following, now, owed), following * jnp.exp(-owed)

    _, rest = jax.lax.scan(step, (first, jnp.zeros_like(first), owed), (up, back))
    return jnp.concatenate([(first * jnp.exp(-owed))[None], rest])


def mehler_rho(length: float) -> float:
    """The rho in (0, 1) with rho / (1 - rho^2) = 1 / (2 length^2).

    >>> round(mehler_rho(0.5) / (1 - mehler_rho(0.5) ** 2), 6)
    2.0
    """
    # The root of rho^2 + 2 length^2 rho - 1, in the form that does not cancel.
    square = length * length
    return 1.0 / (square + math.sqrt(square * square + 1.0))


def truncation_error(order: int, length: float, stretch: float) -> float:
    """Largest 1 - |phi(x)|^2 over the range from -1/2 to 1/2: what the kernel loses at the worst."""
    x = stretch * np.linspace(0.0, 0.5, 33)
    rho = mehler_rho(length * stretch)
    now, before = (1 - rho * rho) ** 0.25 * np.exp(-rho * x * x / (1 + rho)), np.zeros_like(x)
    square = now**2
    for k in range(order):
        following = math.sqrt(2 * rho / (k + 1)) * x * now - rho * math.sqrt(k / (k + 1)) * before
        now, before = following, now
        square += now**2
    return float(1.0 - square.min())


@functools.lru_cache(maxsize=256)
def best_stretch(order: int, length: float) -> float:
    """The stretch at which the truncated kernel is nearest to the whole one, over the whole range.

    >>> 5 < best_stretch(20, 0.15) < 10
    True
    """
    errors = [truncation_error(order, length, float(s)) for s in STRETCHES]
    # Below a millionth, rounding would choose: then the least stretch will do.
    return float(STRETCHES[int(np.argmin(np.maximum(errors, 1e-6)))])
