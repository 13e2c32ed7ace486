"""What was ever spent on a data set, unfinished runs, and the order of payment."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .job import Job as Job
    from .job import unfinished as unfinished
    from .ledger import Account as Account
    from .ledger import Ledger as Ledger
    from .ledger import Run as Run
    from .ledger import new_run as new_run
    from .ledger import spent as spent
    from .paid import PaidRun as PaidRun
    from .paid import paid_run as paid_run
    from .paid import randomness as randomness
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "job": "Job unfinished",
            "ledger": "Account Ledger Run new_run spent",
            "paid": "PaidRun paid_run randomness",
        },
    )
