"""limbeck: sensitive data in, a certified distilled or synthetic data set out.

>>> import limbeck as lk
>>> lk.Budget(epsilon=1.0, delta=1e-5)
Budget(epsilon=1.0, delta=1e-05, adjacency='add-remove')
"""

from typing import TYPE_CHECKING

from . import memory as memory  # first, before anything starts a thread
from .lazy import lazily

# The table of contents, twice: for type checkers and readers, and for looking up on first use.
if TYPE_CHECKING:
    from . import accounting as accounting
    from . import datasets as datasets
    from . import engines as engines
    from . import features as features
    from . import ledger as ledger
    from . import methods as methods
    from . import nets as nets
    from . import privacy as privacy
    from . import release as release
    from . import scores as scores
    from .accounting import Budget as Budget
    from .audits import Audit as Audit
    from .audits import audit as audit
    from .data import Dataset as Dataset
    from .data import draft_schema as draft_schema
    from .engines import read as read
    from .errors import BudgetExceeded as BudgetExceeded
    from .errors import DataError as DataError
    from .errors import LimbeckError as LimbeckError
    from .errors import LimbeckWarning as LimbeckWarning
    from .errors import ReleaseError as ReleaseError
    from .errors import SchemaError as SchemaError
    from .evaluation import MeasuredScores as MeasuredScores
    from .evaluation import check as check
    from .evaluation import evaluate as evaluate
    from .evaluation import measure_scores as measure_scores
    from .ledger import Ledger as Ledger
    from .methods import AIM as AIM
    from .methods import DPCGAN as DPCGAN
    from .methods import DPDM as DPDM
    from .methods import DPGAN as DPGAN
    from .methods import DPHP as DPHP
    from .methods import DPKIP as DPKIP
    from .methods import DPMEPF as DPMEPF
    from .methods import DPMERF as DPMERF
    from .methods import DPNTK as DPNTK
    from .methods import DPSGD as DPSGD
    from .methods import GPATE as GPATE
    from .methods import GSWGAN as GSWGAN
    from .methods import KIP as KIP
    from .methods import METHODS as METHODS
    from .methods import MST as MST
    from .methods import NDPDC as NDPDC
    from .methods import PATEGAN as PATEGAN
    from .methods import PEARL as PEARL
    from .methods import PSG as PSG
    from .methods import DataLens as DataLens
    from .methods import DPSinkhorn as DPSinkhorn
    from .methods import FullMMD as FullMMD
    from .methods import LinearHead as LinearHead
    from .methods import Marginals as Marginals
    from .methods import MeasureOnce as MeasureOnce
    from .methods import PrivBayes as PrivBayes
    from .planning import Plan as Plan
    from .planning import plan as plan
    from .release import Images as Images
    from .release import Model as Model
    from .release import Release as Release
    from .release import Verdict as Verdict
    from .release import verify as verify
    from .run import classify as classify
    from .run import distill as distill
    from .run import redistill as redistill
    from .run import tune as tune
    from .schema import Category as Category
    from .schema import Date as Date
    from .schema import DateTime as DateTime
    from .schema import Duration as Duration
    from .schema import Image as Image
    from .schema import Lifetime as Lifetime
    from .schema import Numeric as Numeric
    from .schema import Person as Person
    from .schema import Schema as Schema
    from .schema import Unread as Unread
    from .scores import Scores as Scores
    from .version import __version__ as __version__
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "accounting": "Budget",
            "audits": "Audit audit",
            "data": "Dataset draft_schema",
            "engines": "read",
            "errors": "BudgetExceeded DataError LimbeckError LimbeckWarning ReleaseError SchemaError",
            "evaluation": "MeasuredScores check evaluate measure_scores",
            "ledger": "Ledger",
            "methods": "AIM DPCGAN DPDM DPGAN DPHP DPKIP DPMEPF DPMERF DPNTK DPSGD GPATE GSWGAN KIP METHODS MST NDPDC PATEGAN PEARL PSG DPSinkhorn DataLens FullMMD LinearHead Marginals MeasureOnce PrivBayes",
            "release": "Images Model Release Verdict verify",
            "planning": "Plan plan",
            "run": "classify distill redistill tune",
            "schema": "Unread Category Date Duration Image Lifetime DateTime Numeric Person Schema",
            "scores": "Scores",
            "version": "__version__",
        },
        rooms="accounting datasets engines features ledger methods nets privacy release scores",
    )
