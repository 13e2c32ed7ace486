"""Where sums over rows are computed: this process, Spark, a database, or several processes under JAX."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .processes import serve as serve
    from .processes import together as together
    from .reading import read as read
    from .sql import Table as Table
    from .sql import read_table as read_table
else:
    __getattr__, __dir__ = lazily(
        __name__, {"processes": "serve together", "reading": "read", "sql": "Table read_table"}
    )
