"""Sources of rows that make a row of any class they are told: what further rows are wanted of them."""

from __future__ import annotations

import abc

import numpy as np

from ..errors import LimbeckError
from ..schema import Schema
from .apportion import apportion
from .wanted import ANYTHING, Given, Wanted, chosen_rows


class ByClass(abc.ABC):
    """A source that makes rows of given classes, in the noisy shares of the classes."""

    class_weights: np.ndarray
    """Noisy share of each class, non-negative, summing to one."""

    @abc.abstractmethod
    def of_classes(
        self, schema: Schema, labels: np.ndarray, rng: np.random.Generator, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """One encoded row for each label code, and the codes."""

    def draw(
        self, schema: Schema, rows: int, *, seed: int, wanted: Wanted = ANYTHING
    ) -> tuple[np.ndarray, np.ndarray]:
        """Encoded rows and label codes (rows,), classes in their noisy proportions.

        A wanted class is generated as such; conditions on other columns are met by choosing among
        many generated rows.
        """
        rng = np.random.default_rng(seed)
        weights = wanted.class_weights(self.class_weights)
        if wanted.given is not None:
            labels = _given_classes(wanted.given, weights, rng)
            return self.of_classes(schema, labels, rng, seed)
        if not wanted.on_inputs:
            return self.of_classes(schema, rng.permutation(apportion(weights, rows)), rng, seed)
        if not wanted.rebalanced:
            return self._chosen(schema, rows, weights, wanted, rng)
        counts = np.bincount(apportion(weights, rows), minlength=len(weights))
        one_class = np.eye(len(weights))
        parts = [
            self._chosen(schema, count, one_class[label], wanted, rng)
            for label, count in enumerate(counts)
            if count
        ]
        order = rng.permutation(rows)
        slots, labels = (np.concatenate(part)[order] for part in zip(*parts, strict=True))
        return slots, labels

    def _chosen(
        self,
        schema: Schema,
        rows: int,
        weights: np.ndarray,
        wanted: Wanted,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that meet the conditions, classes in the proportions that they then have."""

        def draw(many: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            labels = rng.choice(len(weights), many, p=weights)
            return self.of_classes(schema, labels, rng, int(rng.integers(1 << 31)))

        return chosen_rows(draw, lambda drawn: wanted.meets(schema, drawn), rows, rng, wanted.words)


def _given_classes(given: Given, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The classes that are given, others drawn by their weights (rows,)."""
    if given.known.any():
        raise LimbeckError(
            "A generator fills in rows of a given class only. Give the label alone, or make a release "
            "by marginals, whose rows can be filled in from any column."
        )
    drawn = rng.permutation(apportion(weights, len(given.labels)))
    return np.where(given.labels < 0, drawn, given.labels)
