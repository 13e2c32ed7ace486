"""The methods: a folder for each family. `METHODS` is the table that the command line reads."""

from .._schema import Schema
from ._base import (
    AbstractInquiry as AbstractInquiry,
)
from ._base import (
    AbstractMeasureOnce as AbstractMeasureOnce,
)
from ._base import (
    AbstractMethod as AbstractMethod,
)
from ._base import (
    Product as Product,
)
from ._base import origin as origin
from ._base import values_of as values_of
from ._dphp import DPHP as DPHP
from ._dpkip import DPKIP as DPKIP
from ._dpmerf import DPMERF as DPMERF
from ._dpntk import DPNTK as DPNTK
from ._embedding import COUNTS as COUNTS
from ._fullmmd import FullMMD as FullMMD
from ._gpate import GPATE as GPATE
from ._kernel import AbstractKernelMethod as AbstractKernelMethod
from ._kip import KIP as KIP
from ._marginals import Marginals as Marginals
from ._measureonce import MeasureOnce as MeasureOnce
from ._registry import METHODS as METHODS
from ._softrows import SoftRows as SoftRows
from ._source import SOURCES as SOURCES
from ._source import Distilled as Distilled
from ._source import Generated as Generated
from ._source import Source as Source
from ._teacher import linear_features as linear_features
from ._teacher import train_teacher as train_teacher


def default_method(schema: Schema) -> str:
    """The name of the method that is used where the owner names none: it fits the kind of data."""
    if not schema.image:
        return Marginals.name
    return MeasureOnce.name if schema.label else DPMERF.name
