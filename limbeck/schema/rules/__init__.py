"""Rules between columns: public, and kept in every released row."""

from .combined import Forbidden as Forbidden
from .combined import Ties as Ties
from .given import GivenRows as GivenRows
from .learned import Learned as Learned
