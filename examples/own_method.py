"""A method of one's own, in one file: random tanh features, one noisy mean embedding per class.

Usage: python examples/own_method.py
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import limbeck as lk
from limbeck.methods import AbstractMeanEmbedding


class Tanh(eqx.Module):
    """phi(x) = tanh(Wx) / sqrt(size): each entry is within 1/sqrt(size), so the norm is within 1."""

    weight: jax.Array
    norm_bound: float = eqx.field(static=True, default=1.0)

    @property
    def size(self) -> int:
        return self.weight.shape[1]

    def __call__(self, rows):  # (rows, slots), all in [0, 1] -> (rows, size)
        return jnp.tanh((rows - 0.5) @ self.weight) / jnp.sqrt(jnp.float32(self.size))


@dataclass(frozen=True, kw_only=True)
class DPTanh(AbstractMeanEmbedding):
    """Random tanh features, one noisy mean embedding per class.

    Privacy:
        Measures class counts (a row changes one of them by 1) and per-class sums of features of
        norm at most 1, under add/remove of one row, with discrete Gaussian noise calibrated
        jointly. Events: two Gaussians.
    """

    name: ClassVar[str] = "dp-tanh"
    papers: ClassVar[tuple[str, ...]] = ("An example of the documentation.",)

    features: int = 500
    """Number of features."""

    def feature_size(self, schema):
        return self.features, 1.0

    def feature_map(self, schema, seed):
        key = jax.random.fold_in(jax.random.key(seed), 1)
        return Tanh(weight=jax.random.normal(key, (schema.slots, self.features)))


def main() -> None:
    schema = lk.Schema(
        dataset="example",
        rows=1000,
        columns=(
            lk.Numeric(name="age", integer=True, min=0, max=100),
            lk.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(0, 100, 1000), "ill": rng.choice(["no", "yes"], 1000)})
    ledger = lk.Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")  # for practice
    method = DPTanh(features=20, steps=3, batch=8, hidden=(4,))
    release = lk.distill(
        lk.read(rows, schema), method, lk.Budget(epsilon=1.0, delta=1e-5), ledger=ledger
    )
    print(release.data.head())


if __name__ == "__main__":
    main()
