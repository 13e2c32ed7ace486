"""The papers' tables and figures, run again: ours beside theirs."""

from .exhibit import Cell as Cell
from .exhibit import Exhibit as Exhibit
from .exhibit import Quote as Quote
from .exhibit import find as find
from .exhibit import names as names
from .reproduce import estimate as estimate
from .reproduce import reproduce as reproduce
from .result import Report as Report
from .result import Result as Result
