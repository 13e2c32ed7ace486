"""The public description of the data: columns, bounds, values, the unit of privacy."""

from .category import Category as Category
from .columns import Column as Column
from .date import Date as Date
from .fit import Fit as Fit
from .fit import fits_of as fits_of
from .image import Image as Image
from .lifetime import Lifetime as Lifetime
from .numeric import Numeric as Numeric
from .person import Person as Person
from .raw import EPOCH as EPOCH
from .raw import Numbers as Numbers
from .raw import Raw as Raw
from .raw import Scalar as Scalar
from .raw import Values as Values
from .raw import canonical as canonical
from .schema import Schema as Schema
from .schema import check_encoding as check_encoding
from .schema import dataset_name as dataset_name
from .states import STATES as STATES
from .states import counted as counted
from .states import says_nothing as says_nothing
from .toml import UNFILLED as UNFILLED
from .toml import toml_value as toml_value
