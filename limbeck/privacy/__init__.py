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
    from ._ballots import Ballot as Ballot
    from ._ballots import Directions as Directions
    from ._ballots import Votes as Votes
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
    from ._private import OTHER as OTHER
    from ._private import Private as Private
    from ._questions import BlockFactors as BlockFactors
    from ._questions import Factors as Factors
    from ._questions import FeatureMap as FeatureMap
    from ._questions import GroupedFeatures as GroupedFeatures
    from ._questions import LabelledFactors as LabelledFactors
    from ._questions import RowBlocks as RowBlocks
    from ._questions import RowGradients as RowGradients
    from ._questions import RowSums as RowSums
    from ._stopping import STOPPING as STOPPING
    from ._stopping import calibrate_stopping as calibrate_stopping
    from ._stopping import draw_runs as draw_runs
    from ._stopping import stopping_cost as stopping_cost
    from ._sum import check_grid as check_grid
    from ._teachers import Teacher as Teacher
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "_accountant": "MECHANISMS Charge Cost calibrate cost gaussian_epsilon mu_for",
            "_ballots": "Ballot Directions Votes",
            "_budget": "ADJACENCIES Budget",
            "_gnmax": "VoteAnalysis analyse_votes",
            "_job": "Job",
            "_ledger": "Account Ledger Run new_run",
            "_noise": "Noise Stream",
            "_private": "OTHER Private",
            "_questions": "BlockFactors Factors FeatureMap GroupedFeatures LabelledFactors RowBlocks RowGradients RowSums",
            "_stopping": "STOPPING calibrate_stopping draw_runs stopping_cost",
            "_sum": "check_grid",
            "_teachers": "Teacher",
        },
    )
