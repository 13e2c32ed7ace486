"""The kinds of column a schema can declare: public bounds, and the road from raw values and back.

`encode` turns a raw column (`raw.py`) into one float32 cell per row. The cell is compact; `expand` gives the
slots that methods see (one-hot blocks, numbers in [0, 1], a slot for "missing"), `collapse`
turns slots made by a generator back into cells, and `decode` gives the owner's own values.

No rule in a kind can fail on what one row contains: whatever is outside the declaration follows the
declared policy.
"""

from __future__ import annotations

from .category import Category
from .date import Date
from .date_time import DateTime
from .duration import Duration
from .image import Image
from .numeric import Numeric

Column = Numeric | Date | DateTime | Duration | Category | Image
