"""Soft rows fitted to noisy marginals.

A soft row gives probabilities of groups for every column; a mixture of soft rows has marginals. They are
fitted by gradient descent so that these come near the noisy ones, in units of the noise, but at a
price for every dependence between columns, so that noise is not taken for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...draws import normal
from ...nets import fit
from .noisy_cells import count_error, numbered, to_simplex
from .triples import NoisyTriple

MOST_WORK = 1.25e8
"""Multiplications per update that a wide table may cost; it gets fewer soft rows beyond."""
FEWEST_ROWS = 50
"""Number of soft rows of a class, at least."""


@dataclass(frozen=True, kw_only=True)
class NoisyMarginals:
    """Counts of single columns' groups and of pairs of groups, per class, with their noise.

    Args:
        sizes: Number of groups of each column.
        rows: Noisy number of rows of each class, at least one.
        single: Counts of groups, (classes, groups).
        single_variance: Variance of their noise, (groups,).
        pair: Counts of pairs of groups, (classes, groups, groups), symmetric; blocks of a column with
            itself are not used.
        pair_variance: Variance of the noise of a pair's count.
    """

    sizes: tuple[int, ...]
    rows: np.ndarray
    single: np.ndarray
    single_variance: np.ndarray
    pair: np.ndarray
    pair_variance: float

    @classmethod
    def of_answers(
        cls,
        groups: list[np.ndarray],
        rows: np.ndarray,
        singles: np.ndarray,
        pairs: np.ndarray,
        single_noise: float,
        pair_noise: float,
    ) -> NoisyMarginals:
        """All counts by groups: each pair is measured twice, and the diagonal of pairs counts single groups
        once more, so means are taken, weighted by the inverse of their variances."""
        sizes = tuple(int(g.max()) + 1 for g in groups)
        into = np.eye(sum(sizes))[numbered(groups)]  # (cells, groups)
        fine, pair = count_error(single_noise) ** 2, count_error(pair_noise) ** 2
        variance = fine * into.sum(axis=0)
        precision = 1 / variance + 1 / pair
        diagonal = np.einsum("cgg->cg", pairs)
        return cls(
            sizes=sizes,
            rows=rows,
            single=(singles @ into / variance + diagonal / pair) / precision,
            single_variance=1 / precision,
            pair=(pairs + pairs.transpose(0, 2, 1)) / 2,
            pair_variance=pair / 2,
        )

    @property
    def member(self) -> np.ndarray:
        """(groups, columns): 1 where a group is one of the column's."""
        return np.repeat(np.eye(len(self.sizes), dtype=np.float32), self.sizes, axis=0)

    @property
    def places(self) -> list[slice]:
        """Where each column's groups stand among those of all columns."""
        ends = np.cumsum(self.sizes)
        return [slice(int(e) - s, int(e)) for e, s in zip(ends, self.sizes, strict=True)]

    def best_singles(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts of groups (classes, groups) from single and pair counts together, and their variance.

        Summed over another column, a pair's counts are counts of single groups again, with variance
        times that column's number of groups; all are averaged by their precision, then made
        non-negative with the class's rows as their sum.
        """
        member = self.member.astype(np.float64)
        sums = self.pair @ member  # (classes, groups, columns)
        weight = (1 - member) / (self.pair_variance * np.asarray(self.sizes))
        precision = 1 / self.single_variance + weight.sum(axis=1)
        estimates = self.single / self.single_variance + (sums * weight).sum(axis=2)
        estimates /= precision
        for label, rows in enumerate(self.rows):
            for place in self.places:
                estimates[label, place] = to_simplex(estimates[label, place], float(rows))
        return estimates, 1 / precision


class Soft(eqx.Module):
    """Logits of soft rows; called with which column each group belongs to, their probabilities."""

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
    triples: Sequence[NoisyTriple] = (),
) -> np.ndarray:
    """Probabilities (classes, soft rows, groups) whose mixture has about the marginals measured.

    Minimises chi-square, that is squared errors in units of the noise, plus `restraint` times the
    information (in nats, times rows) that a soft row holds about its columns: what the noise alone
    suggests is not worth that price, so columns stay independent unless counts say otherwise.

    Args:
        marginals: What to come near to.
        soft_rows: Number of soft rows over all classes; wide tables get fewer.
        steps: Number of updates.
        learning_rate: Learning rate of the first update.
        restraint: Price of information.
        seed: Draws where soft rows begin.
        progress: Called with the fraction done.
        triples: Counts of triples of columns to come near to, too.
    """
    classes, groups = marginals.single.shape
    single, variance = marginals.best_singles()
    each = int(min(soft_rows / classes, MOST_WORK / classes / groups**2))
    each = max(FEWEST_ROWS, each)
    rows = marginals.rows[:, None]
    start_key, fit_key = jax.random.split(jax.random.key(seed))
    # A cell that seems empty may hold what the noise can hide.
    start = np.log((single + 0.03 * np.sqrt(marginals.pair_variance)) / rows)
    spread = normal(start_key, (classes, each, groups))
    member = marginals.member
    target: dict[str, Any] = {
        "member": jnp.asarray(member),
        "single": jnp.asarray(single / rows, jnp.float32),
        "single_weight": jnp.asarray(rows**2 / variance, jnp.float32),
        "pair": jnp.asarray(marginals.pair / rows[:, :, None], jnp.float32),
        "pair_weight": jnp.asarray(marginals.rows**2 / marginals.pair_variance, jnp.float32),
        "other": jnp.asarray(1 - member @ member.T),
        "price": jnp.asarray(restraint * marginals.rows, jnp.float32),
        "triples": [_triple_target(triple, marginals.rows) for triple in triples],
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


def _triple_target(triple: NoisyTriple, rows: np.ndarray) -> dict[str, Any]:
    """What a triple's shares should be, and what errors in them weigh, in units of the noise."""
    classes, *sizes = triple.counts.shape
    shares = triple.counts.reshape(classes, -1, sizes[-1]) / rows[:, None, None]
    return {
        "joins": [jnp.asarray(join) for join in triple.joins],
        "share": jnp.asarray(shares, jnp.float32),
        "weight": jnp.asarray(rows**2 / triple.variance, jnp.float32),
    }


def _loss(soft: Soft, key: Array, target: Any) -> Array:
    chances = soft(target["member"])
    mean = chances.mean(axis=1)
    total = jnp.zeros(())
    for label in range(len(mean)):  # plain matrix products: a batch of them runs on one core
        own = chances[label].T @ chances[label] / chances.shape[1]
        errors = target["other"] * (own - target["pair"][label]) ** 2
        total += 0.5 * target["pair_weight"][label] * errors.sum()  # each pair stands there twice
        for triple in target["triples"]:
            first, second, third = (chances[label] @ join for join in triple["joins"])
            both = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
            apart = both.T @ third / len(first) - triple["share"][label]
            total += triple["weight"][label] * (apart**2).sum()
    total += (target["single_weight"] * (mean - target["single"]) ** 2).sum()
    surprise = chances * (jnp.log(chances + 1e-9) - jnp.log(mean + 1e-9)[:, None])
    total += (target["price"] * surprise.sum(axis=2).mean(axis=1)).sum()
    return total / target["pair"].size
