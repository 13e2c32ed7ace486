"""DP-GAN: a Wasserstein GAN whose discriminator learns by noisy gradients (Xie et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from ...errors import positive
from .private_gan import AbstractPrivateGAN


@dataclass(frozen=True, kw_only=True)
class DPGAN(AbstractPrivateGAN):
    """A generator taught by a critic of bounded weights, which learns by noisy gradients.

    Privacy:
        Each step of the critic measures the sum of the loss's gradients over a Poisson batch, every
        row's clipped to norm `clip`, under add/remove of one row, with discrete Gaussian noise. Events:
        Poisson-sampled Gaussians, as many as there are steps, and one Gaussian for the class counts. The
        published code counts on bounded weights to bound gradients; here they are clipped.
    """

    name: ClassVar[str] = "dp-gan"
    good_for: ClassVar[str] = (
        "a yardstick: the first private GAN, at its best with much data and budget"
    )
    loss: ClassVar[str] = "wasserstein"
    papers: ClassVar[tuple[str, ...]] = (
        "L. Xie, K. Lin, S. Wang, F. Wang, J. Zhou. Differentially Private Generative Adversarial "
        "Network. 2018.",
    )

    weight_limit: float = 0.1
    """Largest size of each of the critic's numbers, so that it cannot become arbitrarily steep."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(weight_limit=self.weight_limit)

    def limited(self, numbers: Array) -> Array:
        return jnp.clip(numbers, -self.weight_limit, self.weight_limit)
