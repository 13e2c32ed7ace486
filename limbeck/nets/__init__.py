"""Networks and the one training loop. Post-processing only: nothing here ever sees a row."""

from .arrays import filled_network as filled_network
from .arrays import network_arrays as network_arrays
from .block import convolution as convolution
from .block import first_convolution as first_convolution
from .block import margins as margins
from .block import norm_relu_pool as norm_relu_pool
from .block import uniform_weights as uniform_weights
from .convnet import ConvNet as ConvNet
from .discriminator import ClassLogits as ClassLogits
from .discriminator import Discriminator as Discriminator
from .discriminator import Published as Published
from .discriminator import weights_of as weights_of
from .fitting import fit as fit
from .fitting import moving_average as moving_average
from .fitting import rate_schedule as rate_schedule
from .flat import FlatNetwork as FlatNetwork
from .flat import seen_images as seen_images
from .generator import GENERATORS as GENERATORS
from .generator import Generator as Generator
from .generator import build_generator as build_generator
from .generator import generate as generate
from .generator import settle as settle
from .vision import LeNet as LeNet
from .vision import ResNet18 as ResNet18
