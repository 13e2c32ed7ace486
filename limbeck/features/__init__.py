"""Feature maps: x -> phi(x), one row at a time, each with a bound on its norm."""

from ._convnets import RandomConvNets as RandomConvNets
from ._fourier import Fourier as Fourier
from ._ntk import ConvolutionalNTK as ConvolutionalNTK
from ._ntk import FullyConnectedNTK as FullyConnectedNTK
from ._scattering import Scattering as Scattering
