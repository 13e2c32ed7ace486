"""The teacher of PATE-GAN: it says of generated rows whether they look real."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from ..gpate.critic import AbstractCritic, Consultation, TeacherState


@dataclass(frozen=True, kw_only=True)
class Judge(AbstractCritic):
    """Votes on each row in question: 1, it looks real; 0, it looks generated; -1, it cannot say.

    Args:
        ranks: Whether it compares rows with each other: 1, a row looks more real than half of those of its
            class in question. So rows are told apart even where all of them look generated.
    """

    ranks: bool = False

    def answer(self, state: TeacherState, question: Consultation) -> Array:
        """One vote for each row."""
        logits = self.network_of(state.weights)(question.asked, question.asked_labels)
        # A logit of exactly 0 is that of a class of which it has seen no row.
        knows = self.knows(state, question.asked_labels) & (logits != 0)
        if self.ranks:
            alike = question.asked_labels[:, None] == question.asked_labels
            better = jnp.sign(logits[:, None] - logits)
            logits = jnp.where(alike, better, 0.0).sum(axis=1)
            knows &= logits != 0
        return jnp.where(knows, (logits > 0).astype(jnp.int32), -1)
