"""The other way to spend a budget: a private classifier of the rows, and no data set."""

from __future__ import annotations

from pathlib import Path

from ..accounting import Budget
from ..data import Dataset
from ..ledger import Ledger, paid_run, randomness
from ..methods import AbstractMethod, TrainedModel
from ..planning import plan
from ..privacy import Noise
from ..progress import Progress
from ..release import MODEL_LIMITS, Model, check_target
from .distilling import check_kind, check_read, made


def classify(
    data: Dataset,
    method: AbstractMethod | str,
    budget: Budget | float,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    force: bool = False,
    non_private: bool = False,
    ledger: Ledger | None = None,
    settings_source: str = "defaults",
    unpaid: str = "",
    progress: Progress = lambda phase, done: None,
    noise: Noise | None = None,
    pay_again: bool = False,
    check: bool = True,
) -> Model:
    """Train a differentially private classifier of the schema's label, which may be released.

    It is planned, checked, paid for and resumed as `limbeck.distill` is, and certified in the same way. Rules
    between columns are left out: they are about released rows, and a model has none.

    Args:
        data: The rows with their schema, from `limbeck.read`.
        method: `limbeck.LinearHead()` or `limbeck.DPSGD()`, or the name of one.
        budget: Epsilon and delta, or epsilon alone: delta then suits the rows.
        out: Folder to write the model to, before the run's protected state is erased.
        seed: Reproducible noise, for tests and benchmarks. Stamped "not for release".
        force: Replace what is there at `out`.
        non_private: Must be set for epsilon = infinity.
        ledger: Where spending is booked; by default the user's own ledger.
        settings_source: Where the method's settings came from, for the certificate.
        unpaid: What in them was read off the rows without being paid for. Stamped "not for release".
        progress: Called with a phase and a fraction done.
        noise: Instead of a seed: the randomness that a test of the software brings.
        pay_again: Give up an unfinished run of the same kind, which stays booked, and pay anew.
        check: Whether to hold the file against its schema first, with noise.

    Raises:
        DataError: The file does not fit its schema; no more than the check was spent then.
        LimbeckError: For anything a user can mend; nothing was spent then.
    """
    check_read(data)
    if data.schema.rules:
        data = data.with_schema(data.schema.without_rules())
    planned = plan(method, data.schema, budget, check=check, engine=data.engine_name)
    check_kind(planned, "model", non_private)
    if out is not None:
        check_target(Path(out), force=force)
    drawn = randomness(seed, noise)
    with paid_run(
        planned, data, ledger=ledger, noise=drawn, pay_again=pay_again, progress=progress
    ) as paid:
        schema, certificate, product = made(paid, planned, settings_source, unpaid, progress, None)
        assert isinstance(product.source, TrainedModel)
        model = Model(
            schema=schema,
            certificate={**certificate, "limits": list(MODEL_LIMITS)},
            classifier=product.source,
            measurements=product.measurements,
        )
        if out is not None:
            model.save(out, force=force)
    return model
