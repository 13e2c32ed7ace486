"""The kernels that KIP and DP-KIP can use, each with settings of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import choice, positive
from ...features import ConvolutionalNTK, EmpiricalNTK, FullyConnectedNTK, Perceptual, Scattering
from ...nets import LeNet, ResNet18
from ...privacy import TangentGradients
from ...schema import Schema
from .kernel import (
    AbstractFeatureKernel,
    AbstractKernel,
    AbstractNetworkKernel,
    SinglePrecision,
    SupportRegression,
    image_of,
)

CONVOLUTION_BYTES = 1 << 26
"""Memory for one block of the convolutional kernel's work (64 MiB)."""


@dataclass(frozen=True, kw_only=True)
class FullyConnectedKernel(AbstractKernel):
    """The neural tangent kernel of an infinitely wide, fully connected ReLU network."""

    name: ClassVar[str] = "fc-ntk"
    for_tables: ClassVar[bool] = True

    depth: int = 1
    """Hidden layers of the network."""

    def __post_init__(self) -> None:
        positive(depth=self.depth)

    def function(self, schema: Schema, seed: int) -> FullyConnectedNTK:
        return FullyConnectedNTK(depth=self.depth)

    def gradients(
        self, schema: Schema, seed: int, regression: SupportRegression
    ) -> TangentGradients:
        return TangentGradients(kernel=self.function(schema, seed), **vars(regression))


@dataclass(frozen=True, kw_only=True)
class ConvolutionalKernel(AbstractKernel):
    """The neural tangent kernel of an infinitely wide convolutional network."""

    name: ClassVar[str] = "conv-ntk"

    blocks: int = 3
    """Blocks of the network, each of which halves the sides of the image."""

    def __post_init__(self) -> None:
        positive(blocks=self.blocks)

    def function(self, schema: Schema, seed: int) -> SinglePrecision:
        height, width, channels = image_of(schema).shape
        kernel = ConvolutionalNTK(
            height=height,
            width=width,
            channels=channels,
            blocks=self.blocks,
            memory=CONVOLUTION_BYTES,
        )
        return SinglePrecision(kernel)


@dataclass(frozen=True, kw_only=True)
class EmpiricalTangentKernel(AbstractNetworkKernel):
    """The tangent kernel of one finite network: LeNet for grey images, ResNet-18 for colour."""

    name: ClassVar[str] = "e-ntk"

    outputs: str = "summed"
    """Gradients of what are the features: of the sum of all outputs (summed); or of each output, the whole
    Jacobian, as in the paper (each), which is as many times as large."""

    def __post_init__(self) -> None:
        super().__post_init__()
        choice(outputs=(self.outputs, ("summed", "each")))

    def features(self, schema: Schema, seed: int) -> EmpiricalNTK:
        image = image_of(schema)
        kind = LeNet if image.channels == 1 else ResNet18
        network = self._filled(kind, schema, seed)
        return EmpiricalNTK(network, image.shape, summed=self.outputs == "summed")


@dataclass(frozen=True, kw_only=True)
class ScatteringKernel(AbstractFeatureKernel):
    """Inner products of scattering features: cascades of fixed wavelets and absolute values."""

    name: ClassVar[str] = "scattering"

    normalisation: str = "none"
    """What puts the 27 groups of three channels on one scale: none; position, which standardises
    the three values at each place (the published way); or group, all values of a group at once."""
    unit_norm: bool = False
    """Whether a row's features are divided by their norm."""

    def __post_init__(self) -> None:
        choice(normalisation=(self.normalisation, ("none", "position", "group")))

    def features(self, schema: Schema, seed: int) -> Scattering:
        height, width, channels = image_of(schema).shape
        return Scattering(
            height=height,
            width=width,
            channels=channels,
            normalisation=self.normalisation,
            unit_norm=self.unit_norm,
        )


@dataclass(frozen=True, kw_only=True)
class PerceptualKernel(AbstractNetworkKernel):
    """Inner products of the activations of a ResNet-18, averaged over parts of the image."""

    name: ClassVar[str] = "perceptual"

    grid: int = 2
    """Parts per side of the image over which activations are averaged; as many as pixels: they are not."""
    layers: str = "stages"
    """Whose activations are the features: those of the four stages, or of all layers, as in the paper."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(grid=self.grid)
        choice(layers=(self.layers, ("stages", "all")))

    def features(self, schema: Schema, seed: int) -> Perceptual:
        network = self._filled(ResNet18, schema, seed)
        return Perceptual(network, grid=self.grid, every_layer=self.layers == "all")


KERNELS: dict[str, type[AbstractKernel]] = {
    kernel.name: kernel
    for kernel in (
        FullyConnectedKernel,
        ConvolutionalKernel,
        EmpiricalTangentKernel,
        ScatteringKernel,
        PerceptualKernel,
    )
}
"""Kernels by the names that recipes and the command line use."""
