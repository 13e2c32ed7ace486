"""The privacy boundary: budget, charges, noise, the ledger, and `Private`, the holder of rows.

Names are looked up on first use: what only adds up charges needs no JAX.
"""

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ._accountant import MECHANISMS as MECHANISMS
    from ._accountant import Charge as Charge
    from ._accountant import Cost as Cost
    from ._accountant import calibrate as calibrate
    from ._accountant import cost as cost
    from ._accountant import gaussian_epsilon as gaussian_epsilon
    from ._accountant import mu_for as mu_for
    from ._budget import ADJACENCIES as ADJACENCIES
    from ._budget import Budget as Budget
    from ._gnmax import VoteAnalysis as VoteAnalysis
    from ._gnmax import analyse_votes as analyse_votes
    from ._job import Job as Job
    from ._ledger import Account as Account
    from ._ledger import Ledger as Ledger
    from ._ledger import Run as Run
    from ._ledger import new_run as new_run
    from ._noise import Noise as Noise
    from ._noise import Stream as Stream
    from ._stopping import STOPPING as STOPPING
    from ._stopping import calibrate_stopping as calibrate_stopping
    from ._stopping import draw_runs as draw_runs
    from ._stopping import stopping_cost as stopping_cost
    from .estimate import OTHER as OTHER
    from .estimate import FrequentValues as FrequentValues
    from .estimate import Quantiles as Quantiles
    from .estimate import estimates as estimates
    from .maps import MapSpec as MapSpec
    from .poisson.ghost_features import FeatureGradients as FeatureGradients
    from .poisson.ghost_features import FeatureSpaceGradients as FeatureSpaceGradients
    from .poisson.ghost_features import PulledGradients as PulledGradients
    from .poisson.ghost_ntk import TangentGradients as TangentGradients
    from .poisson.ghost_plain import PlainGradients as PlainGradients
    from .poisson.gradients import Gradients as Gradients
    from .poisson.row_gradients import RowBlocks as RowBlocks
    from .poisson.row_gradients import RowGradients as RowGradients
    from .poisson.row_gradients import RowSums as RowSums
    from .private import Private as Private
    from .question import Asked as Asked
    from .question import HeldRows as HeldRows
    from .question import Measurement as Measurement
    from .question import Mechanism as Mechanism
    from .question import Planned as Planned
    from .question import Question as Question
    from .question import Session as Session
    from .question import Unit as Unit
    from .questions.bare import BareRows as BareRows
    from .questions.head import Head as Head
    from .questions.histogram import Histogram as Histogram
    from .questions.outer import BlockFactors as BlockFactors
    from .questions.outer import LabelledFactors as LabelledFactors
    from .questions.outer import OneBlock as OneBlock
    from .questions.outer import OuterSum as OuterSum
    from .questions.sum import FeatureMap as FeatureMap
    from .questions.sum import GroupedFeatures as GroupedFeatures
    from .questions.sum import Sum as Sum
    from .teachers.ballots import Ballot as Ballot
    from .teachers.ballots import Directions as Directions
    from .teachers.ballots import Votes as Votes
    from .teachers.ensemble import Faculty as Faculty
    from .teachers.ensemble import Teacher as Teacher
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_accountant": "MECHANISMS Charge Cost calibrate cost gaussian_epsilon mu_for",
            "_budget": "ADJACENCIES Budget",
            "_gnmax": "VoteAnalysis analyse_votes",
            "_job": "Job",
            "_ledger": "Account Ledger Run new_run",
            "_noise": "Noise Stream",
            "_stopping": "STOPPING calibrate_stopping draw_runs stopping_cost",
            "estimate": "OTHER FrequentValues Quantiles estimates",
            "maps": "MapSpec",
            "poisson.ghost_features": "FeatureGradients FeatureSpaceGradients PulledGradients",
            "poisson.ghost_ntk": "TangentGradients",
            "poisson.ghost_plain": "PlainGradients",
            "poisson.gradients": "Gradients",
            "poisson.row_gradients": "RowBlocks RowGradients RowSums",
            "private": "Private",
            "question": "Asked HeldRows Measurement Mechanism Planned Question Session Unit",
            "questions.bare": "BareRows",
            "questions.head": "Head",
            "questions.histogram": "Histogram",
            "questions.outer": "BlockFactors LabelledFactors OneBlock OuterSum",
            "questions.sum": "FeatureMap GroupedFeatures Sum",
            "teachers.ballots": "Ballot Directions Votes",
            "teachers.ensemble": "Faculty Teacher",
        },
    )
