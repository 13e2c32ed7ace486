"""The public description of the data: columns, bounds, values, the unit of privacy."""

from .aside import Aside as Aside
from .category import Category as Category
from .columns import Column as Column
from .date import Date as Date
from .duration import Duration as Duration
from .duration import clock_reading as clock_reading
from .duration import duration_seconds as duration_seconds
from .image import Image as Image
from .lifetime import Lifetime as Lifetime
from .moment import Moment as Moment
from .numeric import Numeric as Numeric
from .pattern import matched as matched
from .pattern import spelled_by as spelled_by
from .raw import EPOCH as EPOCH
from .raw import Raw as Raw
from .raw import Scalar as Scalar
from .raw import Values as Values
from .raw import canonical as canonical
from .schema import Schema as Schema
from .schema import check_encoding as check_encoding
from .schema import dataset_name as dataset_name
from .toml import UNFILLED as UNFILLED
from .toml import toml_value as toml_value
