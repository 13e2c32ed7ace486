"""Soft rows fitted to noisy marginals: consistent, weighted by the noise, wary of fitting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...nets import fit

WORK = 1.25e8
"""Multiplications per update that a wide table may cost; it gets fewer soft rows beyond."""
LEAST_ROWS = 50


@dataclass(frozen=True, kw_only=True)
class NoisyMarginals:
    """Counts of single columns' groups and of pairs of groups, per class, with their noise.

    Args:
        sizes: Number of groups of each column.
        rows: Noisy rows of each class, at least one.
        single: (classes, groups).
        single_variance: (groups,).
        pair: (classes, groups, groups), symmetric; blocks of a column with itself are not used.
        pair_variance: Of a count.
    """

    sizes: tuple[int, ...]
    rows: np.ndarray
    single: np.ndarray
    single_variance: np.ndarray
    pair: np.ndarray
    pair_variance: float

    @property
    def member(self) -> np.ndarray:
        """(groups, columns): 1 where a group is one of the column's."""
        return np.repeat(np.eye(len(self.sizes), dtype=np.float32), self.sizes, axis=0)

    @property
    def places(self) -> list[slice]:
        ends = np.cumsum(self.sizes)
        return [slice(int(e) - s, int(e)) for e, s in zip(ends, self.sizes, strict=True)]

    def best_singles(self) -> tuple[np.ndarray, np.ndarray]:
        """Single counts from all that tells of them, non-negative, summing to the class's rows; variance.

        Summed over another column, a pair's counts are the single ones again, with that column's
        number of groups times the noise.
        """
        member = self.member.astype(np.float64)
        sums = self.pair @ member  # (classes, groups, columns)
        weight = (1 - member) / (self.pair_variance * np.asarray(self.sizes))
        precision = 1 / self.single_variance + weight.sum(axis=1)
        found = self.single / self.single_variance + (sums * weight).sum(axis=2)
        found /= precision
        for label, rows in enumerate(self.rows):
            for place in self.places:
                found[label, place] = to_simplex(found[label, place], float(rows))
        return found, 1 / precision


class Soft(eqx.Module):
    """Logits of soft rows; called, they are probabilities within each column."""

    logits: Float[Array, "classes rows groups"]

    def __call__(self, member: Float[Array, "groups columns"]) -> Array:
        weights = jnp.exp(jnp.clip(self.logits, -30.0, 30.0))
        return weights / ((weights @ member) @ member.T)


def fit_soft_rows(
    marginals: NoisyMarginals,
    *,
    soft_rows: int,
    steps: int,
    learning_rate: float,
    restraint: float,
    seed: int,
    progress: Callable[[float], None],
) -> np.ndarray:
    """Probabilities (classes, soft rows, groups) whose mixture has about the marginals measured.

    Minimises chi-square, that is squared errors in units of the noise, plus `restraint` times the
    information (in nats, times rows) that a soft row holds about its columns: what the noise alone
    suggests is not worth that price, so columns stay independent unless counts say otherwise.
    """
    classes, groups = marginals.single.shape
    single, variance = marginals.best_singles()
    each = int(min(soft_rows / classes, WORK / classes / groups**2))
    each = max(LEAST_ROWS, each)
    rows = marginals.rows[:, None]
    start_key, fit_key = jax.random.split(jax.random.key(seed))
    # A cell that seems empty may hold what the noise can hide.
    start = np.log((single + 0.03 * np.sqrt(marginals.pair_variance)) / rows)
    spread = jax.random.normal(start_key, (classes, each, groups))
    member = marginals.member
    target = {
        "member": jnp.asarray(member),
        "single": jnp.asarray(single / rows, jnp.float32),
        "single_weight": jnp.asarray(rows**2 / variance, jnp.float32),
        "pair": jnp.asarray(marginals.pair / rows[:, :, None], jnp.float32),
        "pair_weight": jnp.asarray(marginals.rows**2 / marginals.pair_variance, jnp.float32),
        "other": jnp.asarray(1 - member @ member.T),
        "price": jnp.asarray(restraint * marginals.rows, jnp.float32),
    }
    fitted = fit(
        Soft(jnp.asarray(start, jnp.float32)[:, None] + spread),
        _loss,
        data=target,
        steps=steps,
        learning_rate=learning_rate,
        key=fit_key,
        progress=progress,
    )
    return np.asarray(fitted(target["member"]))


def _loss(soft: Soft, key: Array, target: Any) -> Array:
    chances = soft(target["member"])
    mean = chances.mean(axis=1)
    total = jnp.zeros(())
    for label in range(len(mean)):  # plain matrix products: a batch of them runs on one core
        made = chances[label].T @ chances[label] / chances.shape[1]
        errors = target["other"] * (made - target["pair"][label]) ** 2
        total += 0.5 * target["pair_weight"][label] * errors.sum()  # each pair stands there twice
    total += (target["single_weight"] * (mean - target["single"]) ** 2).sum()
    surprise = chances * (jnp.log(chances + 1e-9) - jnp.log(mean + 1e-9)[:, None])
    total += (target["price"] * surprise.sum(axis=2).mean(axis=1)).sum()
    return total / target["pair"].size


def to_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest non-negative numbers with that sum.

    >>> to_simplex(np.array([3.0, 1.0, -5.0]), 2.0)
    array([2., 0., 0.])
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = int((falling > excess).sum())
    if kept == 0:
        return np.full(len(values), total / len(values))
    return np.maximum(values - excess[kept - 1], 0.0)
