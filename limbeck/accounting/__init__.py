"""Charges to epsilon: accountants, calibration, random stopping, the analysis of votes."""

from .accountant import MECHANISMS as MECHANISMS
from .accountant import ORDERS as ORDERS
from .accountant import Charge as Charge
from .accountant import Cost as Cost
from .accountant import calibrate as calibrate
from .accountant import cost as cost
from .accountant import gaussian_epsilon as gaussian_epsilon
from .accountant import gaussian_mu as gaussian_mu
from .accountant import mu_for as mu_for
from .accountant import removable_noise as removable_noise
from .accountant import slack as slack
from .accountant import thresholds as thresholds
from .accountant import without_warnings as without_warnings
from .budget import ADJACENCIES as ADJACENCIES
from .budget import Budget as Budget
from .budget import default_delta as default_delta
from .grid_slack import SIGMA as SIGMA
from .grid_slack import SIGMA_BITS as SIGMA_BITS
from .stopping import STOPPING as STOPPING
from .stopping import calibrate_stopping as calibrate_stopping
from .stopping import draw_runs as draw_runs
from .stopping import stopping_cost as stopping_cost
from .votes import VoteAnalysis as VoteAnalysis
from .votes import analyse_votes as analyse_votes
from .votes import gnmax_rdp as gnmax_rdp
from .votes import log_chance_of_another as log_chance_of_another
