"""The persistent ledger: what was ever spent on a data set, and whether there is some left.

Keyed by the name that the schema declares, never by the rows. A run's charge is committed before
its noise is drawn, so a crash can over-count, never under-count. Admission is one SQLite
transaction that checks and books, so two processes cannot both spend the last of a budget.

Later budgets may be chosen after seeing earlier releases, so runs are added up by a *filter*
valid for adaptive choices, fixed per data set:

- "gdp": squared mus add (Gaussian differential privacy is closed under fully adaptive
  composition). A run that is not Gaussian enters with the mu that its epsilon implies, and its
  delta is set aside.
- "rdp": Renyi divergences add at one order, fixed by the lifetime budget.
- "sum": epsilons add and deltas add.

The file is for its owner alone (mode 0600): it says which data sets there are and what was done.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtri

from ..accounting import (
    ORDERS,
    Charge,
    Cost,
    gaussian_epsilon,
    gaussian_mu,
    mu_for,
    slack,
    thresholds,
    without_warnings,
)
from ..errors import BudgetExceeded, LimbeckError
from ..schema import Lifetime
from . import entries as entries
from .entries import Seal, key_of
from .job import restrict, unfinished


def default_path() -> Path:
    """`$LIMBECK_LEDGER`, or ledger.sqlite in the user's state folder."""
    if "LIMBECK_LEDGER" in os.environ:
        return Path(os.environ["LIMBECK_LEDGER"])
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "limbeck" / "ledger.sqlite"


@dataclass(frozen=True)
class Run:
    """One entry of the ledger."""

    id: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    adjacency: str
    charges: tuple[Charge, ...]
    private: bool
    status: str
    started: str

    def facts(self) -> dict[str, Any]:
        """Plain values for JSON, but for the data set, which has a column of its own."""
        values = {k: v for k, v in vars(self).items() if k != "dataset"}
        return values | {
            "epsilon": self.epsilon if self.private else None,
            "charges": [c.facts() for c in self.charges],
        }

    def set_aside(self, epsilon: float) -> float:
        """Delta that no curve prices: thresholds, and discrete against continuous noise."""
        return slack(self.charges, epsilon) + thresholds(self.charges)


@dataclass(frozen=True)
class Account:
    """A data set's lifetime budget and what is spent of it."""

    dataset: str
    lifetime: Lifetime
    spent: float
    """Epsilon at the lifetime's delta, by the lifetime's filter."""
    runs: tuple[Run, ...]

    @property
    def remaining(self) -> float:
        return max(0.0, self.lifetime.epsilon - self.spent)


class Ledger:
    """The local book of all spending.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Ledger(Path(folder) / "ledger.sqlite").accounts()
    []
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise LimbeckError(_cannot_open(self.path, error)) from None
        with self._connect() as database:
            entries.prepare(database)
        self._guard()

    def _guard(self) -> None:
        """Let nobody but the owner read: the file, what SQLite keeps beside it, the jobs."""
        for ending in ("", "-journal", "-wal", "-shm"):
            restrict(self.path.with_name(self.path.name + ending), 0o600)
        restrict(self.jobs, 0o700)

    @property
    def jobs(self) -> Path:
        """Folder with the protected state of unfinished runs."""
        return self.path.parent / "jobs"

    def check(self, dataset: str, lifetime: Lifetime, run: Run) -> None:
        """Refuse a run that would overdraw; called before rows are read."""
        with self._connect() as database:
            self._admit(database, dataset, lifetime, run)

    def charge(self, lifetime: Lifetime, run: Run, *, instead_of: str | None = None) -> None:
        """Check and book in one transaction; called before noise is drawn.

        Args:
            lifetime: What the schema declares.
            run: What is booked.
            instead_of: An unfinished run that is given up; it stays booked.
        """
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            self._admit(database, run.dataset, lifetime, run)
            if entries.lifetime_of(database, run.dataset) is None:
                entries.append(database, "lifetime", run.dataset, "", vars(lifetime))
            if instead_of is not None:
                _mark(database, instead_of, "abandoned")
            entries.append(database, "run", run.dataset, run.id, run.facts())

    def finish(self, run: str) -> None:
        """Mark a run as completed; its charge stays what it was."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            _mark(database, run, "done")

    def has(self, run: str) -> bool:
        with self._connect() as database:
            return entries.run_of(database, run) is not None

    def account(self, dataset: str) -> Account | None:
        """What was spent on one data set; None if it was never charged."""
        return next((a for a in self.accounts() if a.dataset == key_of(dataset)), None)

    def accounts(self) -> list[Account]:
        """Every data set that was ever charged; runs that did not end are told apart."""
        found = []
        with self._connect() as database:
            for name in entries.datasets(database):
                lifetime = Lifetime(**(entries.lifetime_of(database, name) or {}))
                found.append(self._account(database, name, lifetime))
        if any(run.status == "running" for account in found for run in account.runs):
            states = unfinished(self.jobs)
            found = [replace(a, runs=tuple(_now(r, states) for r in a.runs)) for a in found]
        return found

    def set_lifetime(self, dataset: str, lifetime: Lifetime) -> None:
        """Change a data set's lifetime budget: a decision of the owner, made knowingly."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            if entries.lifetime_of(database, dataset) is None:
                raise LimbeckError(f"The ledger has no data set '{dataset}'.")
            entries.append(database, "lifetime", dataset, "", vars(lifetime))

    def check_entries(self, noted: str | None = None) -> Seal:
        """Recompute the chain of entries, and find one that was edited.

        Args:
            noted: The digest of an earlier check, which must still be in the chain. Without one,
                entries removed at the end cannot be missed.
        """
        with self._connect() as database:
            return entries.check_chain(database, noted)

    def _admit(
        self, database: sqlite3.Connection, dataset: str, declared: Lifetime, run: Run
    ) -> None:
        held = entries.lifetime_of(database, dataset)
        lifetime = declared if held is None else Lifetime(**held)
        if lifetime != declared:
            raise LimbeckError(
                f"The schema's [lifetime] (epsilon {declared.epsilon:g}, delta {declared.delta:g}, "
                f"{declared.filter}) is not the one the ledger holds for '{dataset}' (epsilon "
                f"{lifetime.epsilon:g}, delta {lifetime.delta:g}, {lifetime.filter}). Put the "
                f"ledger's back, or change it knowingly: limbeck ledger --set {dataset} --epsilon "
                f"{declared.epsilon:g} --delta {declared.delta:g} --filter {declared.filter}."
            )
        if not run.private:
            return
        account = self._account(database, dataset, lifetime)
        after = spent([*account.runs, run], lifetime)
        if after > lifetime.epsilon * (1 + 1e-9):
            price = (
                "cannot be paid at all" if math.isinf(after) else f"would bring that to {after:.4g}"
            )
            raise BudgetExceeded(
                f"Budget spent: '{dataset}' may cost epsilon {lifetime.epsilon:g} over its lifetime "
                f"(delta {lifetime.delta:g}, filter {lifetime.filter}); {account.spent:.4g} is spent "
                f"and this run {price}. Use a smaller epsilon, or stop here."
            )

    def _account(self, database: sqlite3.Connection, name: str, lifetime: Lifetime) -> Account:
        runs = tuple(_run(facts | {"dataset": name}) for facts in entries.runs_of(database, name))
        return Account(name, lifetime, spent(runs, lifetime), runs)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                database.row_factory = sqlite3.Row
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
        except sqlite3.Error as error:
            raise LimbeckError(_cannot_open(self.path, error)) from None


def _cannot_open(path: Path, error: Exception) -> str:
    return (
        f"Cannot open the ledger {path}: {error}. Nothing can be spent without it; name a writable "
        "place in LIMBECK_LEDGER."
    )


def _mark(database: sqlite3.Connection, run: str, state: str) -> None:
    """Note what became of a run; one that is never released stays so."""
    facts = entries.run_of(database, run)
    if facts is not None and facts["private"] and facts["status"] != state:
        entries.append(database, "state", facts["dataset"], run, {"status": state})


def _now(run: Run, states: Mapping[str, str]) -> Run:
    """A run booked as running whose job is gone will never end."""
    return replace(run, status=states.get(run.id, "abandoned")) if run.status == "running" else run


def new_run(
    dataset: str, method: str, charges: Sequence[Charge], cost: Cost, adjacency: str
) -> Run:
    """A run to be booked, at what its plan costs."""
    private = math.isfinite(cost.epsilon)
    return Run(
        id=uuid.uuid4().hex,
        dataset=dataset,
        method=method,
        epsilon=cost.epsilon,
        delta=cost.delta,
        adjacency=adjacency,
        charges=tuple(charges),
        private=private,
        status="running" if private else "never released",
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def spent(runs: Sequence[Run], lifetime: Lifetime) -> float:
    """Epsilon of all private runs together at the lifetime's delta; infinity if delta is used up."""
    counted = [r for r in runs if r.private]
    if not counted:
        return 0.0
    return {"gdp": _spent_gdp, "rdp": _spent_rdp, "sum": _spent_sum}[lifetime.filter](
        counted, lifetime
    )


def _spent_gdp(runs: Sequence[Run], lifetime: Lifetime) -> float:
    squares, aside = 0.0, 0.0
    for run in runs:
        mu = gaussian_mu(run.charges)
        if mu is None:
            # epsilon-DP implies mu-GDP at mu = 2 quantile(exp(eps) / (1 + exp(eps))).
            mu, aside = -2 * float(ndtri(1 / (1 + math.exp(run.epsilon)))), aside + run.delta
        else:
            aside += run.set_aside(lifetime.epsilon)
        squares += mu * mu
    rest = lifetime.delta - aside
    return math.inf if rest <= 0 else gaussian_epsilon(math.sqrt(squares), rest)


@without_warnings()
def _spent_rdp(runs: Sequence[Run], lifetime: Lifetime) -> float:
    mu = mu_for(lifetime.epsilon, lifetime.delta)
    order = min(ORDERS, key=lambda a: _convert(a, a * mu * mu / 2, lifetime.delta))
    accountant = RdpAccountant([order])
    for run in runs:
        for charge in run.charges:
            accountant.compose(charge.event(renyi=True))
    rest = lifetime.delta - sum(r.set_aside(lifetime.epsilon) for r in runs)
    return math.inf if rest <= 0 else float(accountant.get_epsilon(rest))


def _convert(order: float, divergence: float, delta: float) -> float:
    return divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)


def _spent_sum(runs: Sequence[Run], lifetime: Lifetime) -> float:
    if sum(r.delta for r in runs) > lifetime.delta * (1 + 1e-9):
        return math.inf
    return sum(r.epsilon for r in runs)


def _run(facts: Mapping[str, Any]) -> Run:
    try:
        charges = tuple(Charge(**c) for c in facts["charges"])
        epsilon = math.inf if facts["epsilon"] is None else facts["epsilon"]
        return Run(**{**facts, "charges": charges, "epsilon": epsilon})
    except (KeyError, TypeError):
        raise LimbeckError(
            "An entry of the ledger cannot be read. `limbeck ledger check` tells whether it was edited."
        ) from None
