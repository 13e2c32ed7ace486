"""Programs are compiled once for equal descriptions, not once for each object."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.comparable import comparable
from limbeck.nets import fit

traced = []


@dataclass(frozen=True)
class Parabola:
    """A loss that notes when it is traced."""

    middle: float
    held: np.ndarray | None = field(default=None, hash=True)

    def loss(self, at: jax.Array, key: jax.Array, data: jax.Array) -> jax.Array:
        traced.append(self.middle)
        return data * (at - self.middle) ** 2


def test_methods_of_equal_owners_are_equal() -> None:
    one, same, other = Parabola(1.0), Parabola(1.0), Parabola(2.0)
    assert one.loss != same.loss, "else none of this is needed"
    assert comparable(one.loss) == comparable(same.loss) != comparable(other.loss)
    assert hash(comparable(one.loss)) == hash(comparable(same.loss))
    assert comparable(one.loss)(3.0, None, 2.0) == one.loss(3.0, None, 2.0)  # type: ignore[arg-type]
    holding = Parabola(1.0, np.zeros(2))  # an array cannot be compared
    assert comparable(holding.loss) == holding.loss
    assert comparable(max) is max


def test_a_fit_is_compiled_once_for_equal_losses() -> None:
    traced.clear()
    key, start = jax.random.key(0), jnp.float32(0.0)
    settings = {"data": jnp.float32(1.0), "steps": 60, "learning_rate": 0.1, "key": key}
    found = [fit(start, Parabola(m).loss, **settings) for m in (1.0, 1.0, 2.0)]  # type: ignore[arg-type]
    assert np.allclose(found, [1.0, 1.0, 2.0], atol=0.2) and found[0] == found[1]
    assert sorted(set(traced)) == [1.0, 2.0]
    assert traced.count(1.0) == traced.count(2.0), "the second fit traced nothing"
