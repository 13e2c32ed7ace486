"""Full MMD: a generator fitted to the bare rows, batch against batch; the papers' reference.

It walks the same road as the private generators, without their measurement: what it scores shows
how much of a score is lost to features and noise, and how much to the generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ...errors import positive
from ...nets import GENERATORS, Generator, build_generator, settle
from ...privacy import Asked, BareRows, Private
from ...schema import Schema
from ..base import AbstractMethod, Product, Progress
from ..kip.kernel import choice
from ..source import Generated
from .dp_merf import default_length_scales
from .embedding import class_weights

ROWS = BareRows().name


@dataclass(frozen=True, kw_only=True)
class FullMMD(AbstractMethod):
    """A generator trained with Gaussian kernels on the rows themselves, class by class.

    Privacy:
        None. It reads the bare rows and runs at epsilon = infinity only.
    """

    name: ClassVar[str] = "full-mmd"
    good_for: ClassVar[str] = "a yardstick without privacy, for generators"
    papers: ClassVar[tuple[str, ...]] = (
        "Y. Li, K. Swersky, R. Zemel. Generative Moment Matching Networks. ICML 2015.",
    )
    needs_bare_rows: ClassVar[bool] = True

    length_scales: tuple[float, ...] = ()
    """Of the kernels that are added up, in units of an encoded row; empty: from the schema."""
    steps: int = 1000
    """Updates of the generator."""
    batch: int = 500
    """Rows per update, real and generated, divided evenly among the classes."""
    learning_rate: float = 0.01
    code: int = 10
    """Latent dimensions."""
    hidden: tuple[int, ...] = (200, 200)
    """Widths of the generator's dense layers."""
    generator: str = "auto"
    """What makes rows, as for the other generator methods."""

    def __post_init__(self) -> None:
        choice(generator=(self.generator, GENERATORS))
        positive(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        positive(code=self.code, hidden=len(self.hidden))
        positive(**{f"length_scales[{i}]": s for i, s in enumerate(self.length_scales)})

    def questions(self, schema: Schema) -> list[Asked]:
        return [Asked(question=BareRows(), share=1.0)]

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        schema, held = private.schema, private.ask(ROWS).values
        classes = len(schema.classes)
        members = [np.flatnonzero(held.labels == c) for c in range(classes)]
        weights, size = class_weights(np.asarray([len(m) for m in members]))
        build_key, fit_key, norm_key = jax.random.split(jax.random.key(seed), 3)
        settings: dict[str, Any] = {"code": self.code, "hidden": list(self.hidden)}
        if self.generator != "auto":
            settings["kind"] = self.generator
        generator = build_generator(schema, settings, key=build_key)
        scales = self.length_scales or default_length_scales(schema)
        present = [m for m in members if len(m)]
        labels = np.asarray([c for c, m in enumerate(members) if len(m)])
        update, state = self._update(generator, scales, weights[labels])
        rng = np.random.default_rng(seed)
        each = max(2, self.batch // classes)
        for step, key in enumerate(jax.random.split(fit_key, self.steps if present else 0)):
            picked = np.concatenate([rng.choice(m, each) for m in present])
            real = schema.expand(np.asarray(held.cells[picked]))
            generator, state = update(generator, state, key, np.repeat(labels, each), real)
            progress("generator", (step + 1) / self.steps)
        settled = settle(generator, jnp.arange(5000) % classes, key=norm_key)
        source = Generated(generator=settled, settings=settings, class_weights=weights)
        return Product(source=source, rows=schema.rows or max(1, round(size)))

    def _update(
        self, generator: Generator, scales: tuple[float, ...], weights: np.ndarray
    ) -> tuple[Any, Any]:
        rate = optax.cosine_decay_schedule(self.learning_rate, self.steps)
        optimiser = optax.adam(rate, b1=0.9, b2=0.99)

        @eqx.filter_jit
        def update(generator: Any, state: Any, key: Array, labels: Any, real: Any) -> Any:
            def loss(generator: Generator) -> Array:
                codes = jax.random.normal(key, (len(labels), generator.code))
                made = generator(codes, labels, []).reshape(len(weights), -1, real.shape[1])
                there = real.reshape(made.shape)
                each = jax.vmap(lambda a, b: discrepancy(a, b, scales))(made, there)
                return (weights * each).sum()

            slope = eqx.filter_grad(loss)(generator)
            change, state = optimiser.update(slope, state)
            return eqx.apply_updates(generator, change), state

        return update, optimiser.init(eqx.filter(generator, eqx.is_inexact_array))


def discrepancy(
    made: Float[Array, "rows slots"], real: Float[Array, "others slots"], scales: tuple[float, ...]
) -> Array:
    """Squared MMD, unbiased, less the part that only the real rows make; kernels averaged."""
    count = len(made)
    own, across = (_kernel(made, other, scales) for other in (made, real))
    return (own.sum() - jnp.trace(own)) / (count * (count - 1)) - 2 * across.mean()


def _kernel(left: Array, right: Array, scales: tuple[float, ...]) -> Array:
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
    squares = jnp.maximum(squares, 0.0)
    return sum(jnp.exp(-squares / (2 * s * s)) for s in scales) / len(scales)  # type: ignore[return-value]
