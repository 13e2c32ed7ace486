"""What was ever spent on a data set, unfinished runs, and the order of payment."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .booked import Run as Run
    from .booked import planned_run as planned_run
    from .filters import spent as spent
    from .job import Job as Job
    from .ledger import Account as Account
    from .ledger import Ledger as Ledger
    from .ledger import unfinished as unfinished
    from .paid import PaidRun as PaidRun
    from .paid import paid_run as paid_run
    from .paid import randomness as randomness
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "booked": "Run planned_run",
            "filters": "spent",
            "job": "Job",
            "ledger": "Account Ledger unfinished",
            "paid": "PaidRun paid_run randomness",
        },
    )
