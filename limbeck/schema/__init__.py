"""The public description of the data: columns, bounds, values, the unit of privacy."""

from .columns import EPOCH as EPOCH
from .columns import Category as Category
from .columns import Column as Column
from .columns import Date as Date
from .columns import Image as Image
from .columns import Numeric as Numeric
from .columns import Raw as Raw
from .columns import Scalar as Scalar
from .columns import Values as Values
from .columns import canonical as canonical
from .lifetime import Lifetime as Lifetime
from .schema import Schema as Schema
from .schema import check_encoding as check_encoding
from .schema import dataset_name as dataset_name
from .toml import UNFILLED as UNFILLED
from .toml import toml_value as toml_value
