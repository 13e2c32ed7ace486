"""The one verb: data, a method and a budget in; a certified release out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..accounting import Budget, Charge
from ..data import Dataset
from ..errors import DataError, LimbeckError, positive
from ..ledger import Ledger, PaidRun, paid_run, randomness
from ..methods import (
    METHODS,
    AbstractInquiry,
    AbstractMeasureOnce,
    AbstractMethod,
    Diffused,
    Generated,
    Product,
)
from ..planning import Plan, plan
from ..privacy import Measurement, Noise
from ..progress import Progress
from ..release import (
    Release,
    check_before_publishing,
    check_target,
    drawn,
    make_certificate,
    redistilled,
    schema_check_section,
)
from ..schema import Schema, mean_rows
from .recipe import make_method

IMAGE_ROWS = 10_000
"""Images in a release, unless told otherwise; `Release.sample` draws more for free."""


def distill(
    data: Dataset,
    method: AbstractMethod | str,
    budget: Budget | float,
    *,
    out: str | Path | None = None,
    rows: int | None = None,
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
) -> Release:
    """Make a differentially private release.

    First a noisy check tells whether the file fits its schema: 1 % of the budget, booked alone. Where
    a column is mostly unusable, or over a tenth of it empty without declared gaps, the run stops there. Else the plan's whole charge is booked in the
    ledger before any other noise is drawn. A run that is killed is resumed by calling again with the
    same arguments: it pays nothing more and gives the same answers.

    Args:
        data: The rows with their schema, from `limbeck.read`.
        method: What to make, such as `limbeck.DPMERF()`, or its name: "dp-merf" with its defaults.
        budget: Epsilon and delta for this release, or epsilon alone: delta then suits the rows.
        out: Folder to write the release to, before the run's protected state is erased.
        rows: How many rows to release; by default as many as the schema declares.
        seed: Reproducible noise, for tests and benchmarks. Stamped "not for release".
        force: Replace an existing release at `out`.
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
    planned = plan(method, data.schema, budget, check=check, engine=data.engine_name)
    check_kind(planned, "rows", non_private)
    if rows is not None:
        _check_rows(planned.method, rows)
    if out is not None:
        check_target(Path(out), force=force)
    drawn = randomness(seed, noise)
    with paid_run(
        planned, data, ledger=ledger, noise=drawn, pay_again=pay_again, progress=progress
    ) as paid:
        release = _make(paid, planned, rows, settings_source, unpaid, progress)
        if out is not None:
            release.save(out, force=force)
    return release


def redistill(
    release: Release | str | Path,
    settings: Mapping[str, Any],
    *,
    out: str | Path | None = None,
    rows: int | None = None,
    force: bool = False,
    progress: Progress = lambda phase, done: None,
) -> Release:
    """Make another set from the measurements that a release carries: free, epsilon unchanged.

    Args:
        release: With its measurements, or its folder.
        settings: The method's settings that are to change, such as {"per_class": 50}.
        out: Folder to write the new release to.
        rows: How many rows to draw, where the method makes a generator.
        force: Replace an existing release at `out`.
        progress: Called with a phase and a fraction done.

    Raises:
        LimbeckError: The method keeps no measurements, or a setting changes what is measured.
    """
    release = Release.of(release)
    made_by = release.certificate["method"]
    _check_version(made_by)
    method = make_method(made_by["name"], {**made_by["settings"], **settings})
    if not isinstance(method, AbstractMeasureOnce):
        raise LimbeckError(
            f"{method.name} keeps no measurements to make another set from; distill anew."
        )
    before = make_method(made_by["name"], made_by["settings"])
    changed = {k for k, v in method.settings().items() if v != before.settings()[k]}
    if measured := sorted(changed - method.free):
        raise LimbeckError(
            f"With another {measured[0]}, {method.name} would measure something else, and the rows are "
            f"not at hand. Free to change: {', '.join(sorted(method.free))}. For the rest, distill anew."
        )
    if rows is not None:
        _check_rows(method, rows)
    if out is not None:
        check_target(Path(out), force=force)
    schema = release.schema
    method.questions(schema)  # what cannot be is said in the method's own words
    certificate = redistilled(release.certificate, schema, method)
    seed = made_by["public_seed"]
    charges = {facts["name"]: Charge(**facts) for facts in certificate["charges"]}
    answers = {
        name: Measurement.under(charges[name], values)
        for name, values in release.measurements.items()
    }
    product = method.distill(schema, answers, seed=seed, progress=progress)
    came = drawn(schema, product.row_source, rows or release_size(product, schema), seed=seed)
    again = Release(
        schema=schema,
        certificate=came.told_in(certificate, schema),
        data=came.data,
        source=product.row_source,
        measurements=release.measurements,
    )
    if out is not None:
        again.save(out, force=force)
    return again


def _check_version(made_by: Mapping[str, Any]) -> None:
    """Refuse measurements of a method in another version than the one here: settings and questions differ."""
    here = METHODS.get(made_by["name"])
    if here is not None and made_by.get("version", here.version) != here.version:
        raise LimbeckError(
            f"This release was made by {here.name} in version {made_by['version']}, and here it is version "
            f"{here.version}, which measures otherwise. Make the set where version {made_by['version']} is "
            "installed (the certificate's `software` says with what), or distill anew."
        )


def check_read(data: object) -> None:
    """Refuse rows without a schema."""
    if not isinstance(data, Dataset):
        came = type(data).__name__
        raise DataError(f"Expected rows with their schema, from limbeck.read; got {came}.")


def check_kind(planned: Plan, wanted: str, non_private: bool) -> None:
    """Refuse a method that makes something else, and a run without noise that nobody asked for."""
    method = planned.method
    assert isinstance(method, AbstractMethod)
    if method.makes != wanted:
        verb, other = ("distill", "rows") if wanted == "model" else ("classify", "a model")
        raise LimbeckError(
            f"{method.name} makes {other}: it is for `limbeck {verb}` (in Python limbeck.{verb})."
        )
    if not planned.budget.private and not non_private:
        raise LimbeckError("epsilon = infinity adds no noise; say so with non_private=True.")


def _check_rows(method: AbstractInquiry, rows: int) -> None:
    positive(rows=rows)
    if isinstance(method, AbstractMethod) and method.fixed_size:
        raise LimbeckError(
            f"{method.name} makes a set of a fixed size, which its settings give; got rows = {rows}."
        )


def release_size(product: Product, schema: Schema) -> int:
    """How many rows to release when nobody said."""
    many = schema.image and isinstance(product.source, Generated | Diffused)
    rows = min(product.rows, IMAGE_ROWS) if many else product.rows
    if schema.rows is None and schema.person and product.source.kind != "distilled":
        return round(rows * mean_rows(schema.person))  # persons were counted
    return rows


def _make(
    paid: PaidRun,
    planned: Plan,
    rows: int | None,
    settings_source: str,
    unpaid: str,
    progress: Progress,
) -> Release:
    seed = paid.noise.public_seed("rows")
    schema, certificate, product = made(paid, planned, settings_source, unpaid, progress, seed)
    count = rows or release_size(product, schema)
    came = drawn(schema, product.row_source, count, seed=seed)
    return Release(
        schema=schema,
        certificate=came.told_in(certificate, schema),
        data=came.data,
        source=product.row_source,
        measurements=product.measurements,
    )


def made(
    paid: PaidRun,
    planned: Plan,
    settings_source: str,
    unpaid: str,
    progress: Progress,
    rows_seed: int | None,
) -> tuple[Schema, dict[str, Any], Product]:
    """The settled schema, the certificate and what the method made, once all is paid for."""
    private, noise, method = paid.private, paid.noise, planned.method
    assert isinstance(method, AbstractMethod)
    schema = private.estimate()
    public_seed = noise.public_seed("method")
    product = method.run(private, seed=public_seed, progress=progress)
    certificate = make_certificate(
        planned,
        private.executed(),
        schema,
        float_sums=private.float_sums,
        seeded=noise.seeded,
        law=noise.law,
        source=settings_source,
        unpaid=unpaid,
        public_seed=public_seed,
        rows_seed=rows_seed,
        check=schema_check_section(planned, paid.looks, paid.fits),
        engine=None if paid.data.engine is None else paid.data.engine.facts(),
    )
    check_before_publishing(certificate, schema, type(method), product.measurements)
    return schema, certificate, product
