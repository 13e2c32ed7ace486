"""DP-CGAN: a conditional GAN whose discriminator learns by noisy gradients (Torkzadehmahani et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .private_gan import AbstractPrivateGAN


@dataclass(frozen=True, kw_only=True)
class DPCGAN(AbstractPrivateGAN):
    """A generator of labelled rows taught by a discriminator that learns by noisy gradients.

    Privacy:
        Each step of the discriminator measures the sum of the logistic loss's gradients over a Poisson
        batch of real rows, every row's clipped to norm `clip`, under add/remove of one row, with
        discrete Gaussian noise. Gradients by generated rows are clipped apart and cost nothing.
        Events: Poisson-sampled Gaussians, as many as there are steps, and one Gaussian for the class counts.
    """

    name: ClassVar[str] = "dp-cgan"
    good_for: ClassVar[str] = "a yardstick: a private GAN of labelled rows"
    loss: ClassVar[str] = "logistic"
    papers: ClassVar[tuple[str, ...]] = (
        "R. Torkzadehmahani, P. Kairouz, B. Paten. DP-CGAN: Differentially Private Synthetic Data and "
        "Label Generation. CVPR workshops 2019.",
    )

    discriminator_steps: int = 1
    """Steps of the discriminator for each one of the generator. A logistic one that takes more of them grows sure of
    itself, and then its gradient is noise alone."""
