"""Feature maps: x -> phi(x), one row at a time, each with a bound on its norm."""

from ._cells import Cells as Cells
from ._cells import group_cells as group_cells
from ._cells import most_cells as most_cells
from ._cells import table_cells as table_cells
from ._convnets import RandomConvNets as RandomConvNets
from ._entk import EmpiricalNTK as EmpiricalNTK
from ._fourier import Fourier as Fourier
from ._ghost_features import FeatureGradients as FeatureGradients
from ._ghost_features import FeatureSpaceGradients as FeatureSpaceGradients
from ._ghost_features import features_of as features_of
from ._ghost_features import pull_back as pull_back
from ._ghost_ntk import TangentGradients as TangentGradients
from ._ghost_plain import PlainGradients as PlainGradients
from ._marginals import Pairs as Pairs
from ._marginals import Singles as Singles
from ._ntk import ConvolutionalNTK as ConvolutionalNTK
from ._ntk import FullyConnectedNTK as FullyConnectedNTK
from ._perceptual import Perceptual as Perceptual
from ._regression import centred as centred
from ._regression import row_loss as row_loss
from ._regression import with_ridge as with_ridge
from ._scattering import Scattering as Scattering
from ._support import Support as Support
from ._support import gaussian_support as gaussian_support
