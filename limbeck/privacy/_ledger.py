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
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from dp_accounting.rdp import RdpAccountant
from scipy.special import ndtri

from .._check import BudgetExceeded, LimbeckError
from .._schema import Lifetime
from ._accountant import (
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

_TABLES = """
CREATE TABLE IF NOT EXISTS datasets (
    name TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, filter TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES datasets(name),
    method TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, adjacency TEXT NOT NULL,
    charges TEXT NOT NULL, private INTEGER NOT NULL,
    status TEXT NOT NULL, started TEXT NOT NULL
);
"""


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
            with self._connect() as database:
                database.executescript(_TABLES)
        except OSError as error:
            raise LimbeckError(
                f"Cannot open the ledger {self.path}: {error}. Nothing can be spent without it; "
                "name a writable place in LIMBECK_LEDGER."
            ) from None

    @property
    def jobs(self) -> Path:
        """Folder with the protected state of unfinished runs."""
        return self.path.parent / "jobs"

    def check(self, dataset: str, lifetime: Lifetime, run: Run) -> None:
        """Refuse a run that would overdraw; called before rows are read."""
        with self._connect() as database:
            self._admit(database, dataset, lifetime, run)

    def charge(self, lifetime: Lifetime, run: Run) -> None:
        """Check and book in one transaction; called before noise is drawn."""
        with self._connect() as database:
            database.execute("BEGIN IMMEDIATE")
            self._admit(database, run.dataset, lifetime, run)
            database.execute(
                "INSERT OR IGNORE INTO datasets VALUES (?, ?, ?, ?)",
                (run.dataset, lifetime.epsilon, lifetime.delta, lifetime.filter),
            )
            charges = json.dumps([c.facts() for c in run.charges])
            database.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run.id, run.dataset, run.method, run.epsilon, run.delta, run.adjacency)
                + (charges, int(run.private), run.status, run.started),
            )

    def finish(self, run: str) -> None:
        """Mark a run as completed; its charge stays what it was."""
        with self._connect() as database:
            database.execute("UPDATE runs SET status = 'done' WHERE id = ? AND private", (run,))

    def has(self, run: str) -> bool:
        with self._connect() as database:
            return (
                database.execute("SELECT 1 FROM runs WHERE id = ?", (run,)).fetchone() is not None
            )

    def accounts(self) -> list[Account]:
        """Every data set that was ever charged."""
        with self._connect() as database:
            rows = database.execute(
                "SELECT name, epsilon, delta, filter FROM datasets ORDER BY name"
            )
            return [
                self._account(database, n, Lifetime(epsilon=e, delta=d, filter=f))
                for n, e, d, f in rows
            ]

    def set_lifetime(self, dataset: str, lifetime: Lifetime) -> None:
        """Change a data set's lifetime budget: a decision of the owner, made knowingly."""
        with self._connect() as database:
            changed = database.execute(
                "UPDATE datasets SET epsilon = ?, delta = ?, filter = ? WHERE name = ?",
                (lifetime.epsilon, lifetime.delta, lifetime.filter, dataset),
            ).rowcount
            if not changed:
                raise LimbeckError(f"The ledger has no data set '{dataset}'.")

    def _admit(
        self, database: sqlite3.Connection, dataset: str, declared: Lifetime, run: Run
    ) -> None:
        row = database.execute(
            "SELECT epsilon, delta, filter FROM datasets WHERE name = ?", (dataset,)
        ).fetchone()
        lifetime = (
            declared if row is None else Lifetime(epsilon=row[0], delta=row[1], filter=row[2])
        )
        if row is not None and lifetime != declared:
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
        rows = database.execute("SELECT * FROM runs WHERE dataset = ? ORDER BY rowid", (name,))
        runs = tuple(_run(row) for row in rows)
        return Account(name, lifetime, spent(runs, lifetime), runs)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                yield database
                if database.in_transaction:
                    database.execute("COMMIT")
        except sqlite3.Error as error:
            raise LimbeckError(
                f"Cannot open the ledger {self.path}: {error}. Nothing can be spent without it; name "
                "a writable place in LIMBECK_LEDGER."
            ) from None


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


def _run(row: tuple) -> Run:
    names = [field.name for field in fields(Run)]
    values = dict(zip(names, row, strict=True))
    charges = tuple(Charge(**c) for c in json.loads(values["charges"]))
    return Run(**(values | {"charges": charges, "private": bool(values["private"])}))
