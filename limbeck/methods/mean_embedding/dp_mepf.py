"""DP-MEPF: mean embeddings of perceptual features (Harder et al. 2023).

Features are what the layers of an image network make of a picture, and their squares. The network's weights are a file that the
user vouches for as public; without one they are random. Per class the means of both are measured once, and a
generator is fitted to them freely, through the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array

from ...errors import LimbeckError, choice, not_negative, positive
from ...features import Activations
from ...nets import ConvNet, Generator, ResNet18, filled_network
from ...privacy import Asked, Measurement, Private, Sum
from ...schema import Schema
from ..base import Progress
from ..class_counts import COUNTS, class_means
from ..network_file import NetworkFile
from .embedding import EMBEDDING, AbstractMeanEmbedding, mean_distance

SQUARES = "mean squares"
"""Name of the question for each class's sum of squared features."""
ARCHITECTURES = ("convnet", "resnet18")
WIDEST = 1024
"""Filters of a layer, at most, that a file of weights may have."""


@dataclass(frozen=True, kw_only=True)
class DPMEPF(AbstractMeanEmbedding):
    """Means and mean squares of a public network's activations, class by class.

    Privacy:
        Measures class counts (a row changes one of them by 1) and per-class sums of activations and of
        their squares, each of norm 1, under add/remove of one row, with discrete Gaussian noise calibrated
        jointly. Events: three Gaussians. The network's file is public data: the guarantee holds for
        the rows, not for what the network was trained on, and the certificate names it. The published
        program divides by exact class counts, and chooses among generators by a score without noise.

    >>> from limbeck import Image, Category
    >>> label = Category(name="label", values=("a", "b"), label=True)
    >>> picture = Image(name="image", height=8, width=8, channels=1)
    >>> schema = Schema(dataset="d", columns=(picture, label))
    >>> [asked.question.name for asked in DPMEPF().questions(schema)]
    ['class counts', 'mean embedding', 'mean squares']
    """

    name: ClassVar[str] = "dp-mepf"
    good_for: ClassVar[str] = "a generator of images where a network of public images is at hand"
    data_kinds: ClassVar[tuple[str, ...]] = ("images",)
    takes_targets: ClassVar[bool] = False
    papers: ClassVar[tuple[str, ...]] = (
        "F. Harder, M. J. Asadabadi, D. J. Sutherland, M. Park. Pre-trained Perceptual Features Improve "
        "Differentially Private Image Generation. TMLR 2023.",
    )
    free: ClassVar[frozenset[str]] = AbstractMeanEmbedding.free | {"square_weight"}

    architecture: str = "convnet"
    """The network: the field's ConvNet of three layers (convnet), or a ResNet-18 (resnet18)."""
    network: str = ""
    """File (.npz) with the network's weights, which must be public; empty: random weights."""
    network_digest: str = ""
    """SHA-256 of that file; filled in where it is empty, checked where it is not."""
    filters: int = 32
    """Filters of the first layer, where weights are random; a file has its own."""
    grid: int = 8
    """Parts per side of the image over which activations are averaged, at most."""
    square_share: float = 0.3
    """Share of the budget for the mean squares; 0: means alone are measured."""
    square_weight: float = 1.0
    """Weight of the squares against the means, in fitting. Free."""
    steps: int = 600
    """Updates of the generator. Free."""
    batch: int = 300
    """Generated rows per update, as many of each class. Free."""

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(architecture=(self.architecture, ARCHITECTURES))
        positive(filters=self.filters, grid=self.grid)
        not_negative(square_share=self.square_share, square_weight=self.square_weight)
        if self.count_share + self.square_share >= 1:
            raise LimbeckError("The shares of counts and squares leave nothing for the means.")
        if self.network:
            object.__setattr__(self, "network_digest", self._file.sha256)

    @property
    def _file(self) -> NetworkFile:
        return NetworkFile(path=self.network, digest=self.network_digest)

    def assumptions(self) -> tuple[str, ...]:
        return self._file.assumptions() if self.network else ()

    def public_files(self) -> list[dict[str, str]]:
        if not self.network:
            return []
        return self._file.public_files("weights of the network whose activations are measured")

    # ---- what is measured -----------------------------------------------------------------------

    def feature_size(self, schema: Schema) -> tuple[int, float]:
        return self.feature_map(schema, 0).size, 1.0

    def questions(self, schema: Schema) -> list[Asked]:
        counts, embedding = super().questions(schema)
        if not self.square_share:
            return [counts, embedding]
        means = embedding.question
        assert isinstance(means, Sum)
        squares = Sum(name=SQUARES, bound=means.bound, size=means.size, groups=means.groups)
        share = embedding.share - self.square_share
        return [
            counts,
            Asked(question=means, share=share),
            Asked(question=squares, share=self.square_share),
        ]

    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        answers = super().measure(private, seed=seed, progress=progress)
        if self.square_share:
            answers[SQUARES] = private.ask(SQUARES, self.map_spec("square_map", seed))
        return answers

    def feature_map(self, schema: Schema, seed: int, power: int = 1) -> Activations:
        """The activations of the network: from the file, or with weights drawn from the seed."""
        if schema.image is None:
            raise LimbeckError(f"{self.name} is for images, and the schema declares a table.")
        shape = schema.image.shape
        network = self._network(shape, len(schema.classes), seed)
        return Activations(network, shape=shape, grid=self.grid, power=power)

    def square_map(self, schema: Schema, seed: int) -> Activations:
        """Their squares."""
        return self.feature_map(schema, seed, power=2)

    def _network(self, shape: tuple[int, int, int], classes: int, seed: int) -> ConvNet | ResNet18:
        arrays = self._file.arrays() if self.network else None
        # A file's network has its own width, and its own number of classes.
        first, last = (
            (".filters[0]", ".bias")
            if self.architecture == "convnet"
            else (".norm.bias", ".head.bias")
        )
        width, outputs = self.filters, classes
        if arrays is not None and all(np.ndim(arrays.get(name, 0)) for name in (first, last)):
            width, outputs = (min(arrays[name].shape[-1], WIDEST) for name in (first, last))
        key = jax.random.fold_in(jax.random.key(seed), 2)
        network: ConvNet | ResNet18
        if self.architecture == "convnet":
            network = ConvNet(shape, outputs, width=width, key=key)
        else:
            network = ResNet18(shape=shape, classes=outputs, width=width, key=key)
        return network if arrays is None else filled_network(network, arrays)

    # ---- what is made of it ---------------------------------------------------------------------

    def _target(self, schema: Schema, measurements: Mapping[str, np.ndarray], seed: int) -> Any:
        counts, features = measurements[COUNTS], self.feature_map(schema, seed)
        means, weights = class_means(counts, measurements[EMBEDDING])
        squares = None
        if SQUARES in measurements:
            squares = class_means(counts, measurements[SQUARES])[0]
        return means, squares, weights, features

    def _loss(self, generator: Generator, key: Array, target: Any) -> Array:
        means, squares, weights, features = target
        layers = features.layers(self._rows(generator, key, len(weights)))
        loss = mean_distance(features.moment(layers, 1), means, weights)
        if squares is not None:
            generated = features.moment(layers, 2)
            loss += self.square_weight * mean_distance(generated, squares, weights)
        return loss
