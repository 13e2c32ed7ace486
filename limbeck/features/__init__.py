"""Feature maps: x -> phi(x), one row at a time, each with a bound on its norm."""

from ._cells import Cells as Cells
from ._cells import group_cells as group_cells
from ._cells import most_cells as most_cells
from ._cells import table_cells as table_cells
from ._convnets import RandomConvNets as RandomConvNets
from ._fourier import Fourier as Fourier
from ._marginals import Pairs as Pairs
from ._marginals import Singles as Singles
from ._ntk import ConvolutionalNTK as ConvolutionalNTK
from ._ntk import FullyConnectedNTK as FullyConnectedNTK
from ._scattering import Scattering as Scattering
