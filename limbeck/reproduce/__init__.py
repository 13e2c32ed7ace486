"""The papers' tables and figures, run again: ours beside theirs."""

from ._exhibit import Cell as Cell
from ._exhibit import Exhibit as Exhibit
from ._exhibit import Quote as Quote
from ._exhibit import find as find
from ._exhibit import names as names
from ._reproduce import estimate as estimate
from ._reproduce import reproduce as reproduce
from ._result import Report as Report
from ._result import Result as Result
