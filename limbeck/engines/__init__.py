"""Where sums over rows are computed: this process, Spark, a database, or several processes under JAX."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .reading import read as read
else:
    __getattr__, __dir__ = lazily(__name__, {"reading": "read"})
