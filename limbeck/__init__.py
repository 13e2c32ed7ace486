"""limbeck: sensitive data in, a certified distilled or synthetic data set out.

>>> import limbeck as lk
>>> lk.Budget(epsilon=1.0, delta=1e-5)
Budget(epsilon=1.0, delta=1e-05, adjacency='add-remove')
"""

from typing import TYPE_CHECKING

from . import _memory as _memory  # first, before anything starts a thread
from ._lazy import lazily

# The table of contents, twice: for type checkers and readers, and for looking up on first use.
if TYPE_CHECKING:
    from . import datasets as datasets
    from . import features as features
    from . import methods as methods
    from . import nets as nets
    from . import privacy as privacy
    from . import scores as scores
    from ._check import BudgetExceeded as BudgetExceeded
    from ._check import DataError as DataError
    from ._check import LimbeckError as LimbeckError
    from ._check import ReleaseError as ReleaseError
    from ._check import SchemaError as SchemaError
    from ._columns import Category as Category
    from ._columns import Date as Date
    from ._columns import Image as Image
    from ._columns import Numeric as Numeric
    from ._data import Dataset as Dataset
    from ._distill import distill as distill
    from ._distill import redistil as redistil
    from ._evaluate import evaluate as evaluate
    from ._io import draft_schema as draft_schema
    from ._io import read as read
    from ._measured import MeasuredScores as MeasuredScores
    from ._measured import measure_scores as measure_scores
    from ._plan import Plan as Plan
    from ._plan import plan as plan
    from ._release import Images as Images
    from ._release import Release as Release
    from ._schema import Lifetime as Lifetime
    from ._schema import Schema as Schema
    from ._tune import tune as tune
    from ._verdict import Verdict as Verdict
    from ._verdict import verify as verify
    from ._version import __version__ as __version__
    from .methods import DPHP as DPHP
    from .methods import DPKIP as DPKIP
    from .methods import DPMERF as DPMERF
    from .methods import DPNTK as DPNTK
    from .methods import GPATE as GPATE
    from .methods import KIP as KIP
    from .methods import METHODS as METHODS
    from .methods import FullMMD as FullMMD
    from .methods import Marginals as Marginals
    from .methods import MeasureOnce as MeasureOnce
    from .privacy import Budget as Budget
    from .privacy import Ledger as Ledger
    from .scores import Scores as Scores
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_check": "BudgetExceeded DataError LimbeckError ReleaseError SchemaError",
            "_columns": "Category Date Image Numeric",
            "_data": "Dataset",
            "_distill": "distill redistil",
            "_evaluate": "evaluate",
            "_io": "draft_schema read",
            "_measured": "MeasuredScores measure_scores",
            "_plan": "Plan plan",
            "_release": "Images Release",
            "_schema": "Lifetime Schema",
            "_tune": "tune",
            "methods": "DPHP DPKIP DPMERF DPNTK GPATE KIP METHODS FullMMD Marginals MeasureOnce",
            "privacy": "Budget Ledger",
            "scores": "Scores",
            "_verdict": "Verdict verify",
            "_version": "__version__",
        },
        rooms="datasets features methods nets privacy scores",
    )
