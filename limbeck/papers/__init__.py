"""The papers' tables and figures, run again: ours beside theirs."""

from .exhibit import Cell as Cell
from .exhibit import Exhibit as Exhibit
from .exhibit import Quote as Quote
from .exhibit import find as find
from .exhibit import names as names
from .result import Report as Report
from .result import Result as Result
from .running import estimate as estimate
from .running import reproduce as reproduce
