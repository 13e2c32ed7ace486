"""The privacy boundary: budget, charges, noise, the ledger, and `Private`, the holder of rows."""

from ._accountant import (
    Charge as Charge,
    Cost as Cost,
    calibrate as calibrate,
    cost as cost,
    gaussian_epsilon as gaussian_epsilon,
    mu_for as mu_for,
)
from ._budget import ADJACENCIES as ADJACENCIES, Budget as Budget
from ._job import Job as Job
from ._ledger import Account as Account, Ledger as Ledger, Run as Run, new_run as new_run
from ._noise import Noise as Noise, Stream as Stream
from ._private import OTHER as OTHER, FeatureMap as FeatureMap, Private as Private
