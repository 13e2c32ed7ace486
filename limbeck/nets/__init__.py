"""Networks and the one training loop. Post-processing only: nothing here ever sees a row."""

from ._block import convolution as convolution
from ._block import first_convolution as first_convolution
from ._block import margins as margins
from ._block import norm_relu_pool as norm_relu_pool
from ._discriminator import ClassLogits as ClassLogits
from ._discriminator import Discriminator as Discriminator
from ._discriminator import Published as Published
from ._discriminator import weights_of as weights_of
from ._fit import fit as fit
from ._generator import (
    GENERATORS as GENERATORS,
)
from ._generator import (
    Generator as Generator,
)
from ._generator import (
    arrays_of as arrays_of,
)
from ._generator import (
    build_generator as build_generator,
)
from ._generator import (
    generate as generate,
)
from ._generator import (
    settle as settle,
)
from ._generator import (
    with_arrays as with_arrays,
)
from ._vision import (
    LeNet as LeNet,
)
from ._vision import (
    ResNet18 as ResNet18,
)
from ._vision import (
    filled_network as filled_network,
)
from ._vision import (
    network_arrays as network_arrays,
)
