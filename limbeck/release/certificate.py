"""The certificate: what a release claims, in a form from which the claim can be recomputed.

Its fields follow what NIST SP 800-226 asks of a differential-privacy guarantee: epsilon and delta,
the unit of privacy and the adjacency, the mechanisms with sensitivity and noise, the trust model,
and the limits. The JSON schema is `certificate.schema.json` in this package. Here certificates are
written; `_verify` reads them.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ..accounting import Budget, Charge
from ..machine import processor
from ..methods import AbstractMethod, origin
from ..planning import Plan
from ..schema import Schema
from .arithmetic import (
    BOUNDED_BY,
    FORMAT,
    NEIGHBOURS,
    REMOVABLE,
    VERSION,
    accounting,
    as_json,
    check_measurements,
    cost_of,
    recompute,
)
from .questions import check_questions
from .schema_check import schema_check_section

PACKAGES = (
    "limbeck",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "dp-accounting",
    "cryptography",
)

TRUST_MODEL = (
    "Central: one curator holds the rows in clear, runs this software on a machine that the curator "
    "trusts, and publishes only this release."
)
UNIT_ASSUMED = {
    "row": "One row stands for one unit of privacy; a person with several rows is protected less.",
    "person": "The id column gives a person the same id in all rows and another to every other "
    "person; rows without an id enter nothing.",
}
ASSUMPTIONS = (
    "The schema's bounds, values, unit and row count were declared without looking at the rows.",
    "The machine and its operating system's random numbers are trusted; timing is not hidden.",
    "All releases from these people are booked under the same data set name in one ledger.",
)
LIMITS = (
    "The certificate proves what was claimed and that it adds up, not that the software ran unmodified.",
    "Differential privacy bounds what a release reveals about one unit, not what it reveals about "
    "groups or about the population.",
    "Released rows are synthetic: they resemble the data in what was measured and in nothing else.",
)
EXACT_SUM = "integers on the grid"
FLOAT_SUM = "float64 sum with proven margin"
"""Rows that are never made one by one are summed in float64; the charge includes the proven error."""
LOOKED = (
    "The schema's bounds, values, unit and row count were declared without looking at the rows, but for "
    "the look that `check` states."
)
"""The first assumption, where the owner looked without noise."""


def make_certificate(
    plan: Plan,
    charges: Sequence[Charge],
    schema: Schema,
    *,
    seeded: bool,
    law: bool,
    source: str,
    public_seed: int,
    rows_seed: int | None = None,
    unpaid: str = "",
    chosen_among: Mapping[str, Any] | None = None,
    float_sums: Collection[str] = (),
    check: Mapping[str, Any] | None = None,
    engine: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The certificate of a run whose charges were all carried out.

    Args:
        plan: What was planned.
        charges: What was executed.
        schema: The settled schema (estimated bounds filled in).
        seeded: Whether the noise can be reproduced from a seed.
        law: Whether the data were multiplied by zero (a test).
        source: Where the settings came from.
        public_seed: Of the features and the post-processing; with it they can be drawn again.
        rows_seed: Of the released rows, likewise; None: no rows are released.
        unpaid: What in the settings was read off the rows without being paid for.
        chosen_among: The candidates that the settings were privately chosen among.
        float_sums: Names of charges whose sums were taken in float64, with a proven margin.
        check: How the schema was held against the rows before the run; by default it was not.
        engine: Where the sums were computed: `name`, `version`, and its `processors` where they are
            not this one; by default in this process.
    """
    price = cost_of(charges, plan.budget, chosen_among)
    reasons = _reasons(plan.budget, seeded=seeded, law=law, unpaid=unpaid)
    facts, seen = schema.facts(), dict(check or schema_check_section(plan))
    ran_on = dict(engine or {"name": "local", "version": None})
    first = LOOKED if seen["seen"] == "without noise" else ASSUMPTIONS[0]
    return {
        "format": FORMAT,
        "version": VERSION,
        "created": _today(),
        "releasable": not reasons,
        "not_releasable_because": reasons,
        "guarantee": _guarantee(plan.budget, facts),
        "unit": _unit(facts),
        "accounting": accounting(price),
        "charges": [c.facts() for c in charges],
        "shares": {c.name: s for c, s in zip(plan.charges, plan.shares, strict=True)},
        "noise": _noise(charges, seeded, float_sums),
        "data": _data(plan, schema, facts),
        "method": _method(plan, source, public_seed, rows_seed, chosen_among),
        "public_files": [dict(file) for file in plan.method.public_files()],
        "check": seen,
        "trust_model": TRUST_MODEL,
        "assumptions": [first, *_assumptions(plan, schema)],
        "limits": list(LIMITS),
        "engine": {name: ran_on[name] for name in ("name", "version")},
        "machine": machine_facts(ran_on.get("processors")),
        "software": package_versions(),
        "papers": list(plan.method.papers),
        "signature": None,
    }


def check_before_publishing(
    certificate: Mapping[str, Any],
    schema: Schema,
    method: type[AbstractMethod],
    measurements: Mapping[str, np.ndarray],
) -> None:
    """Hold a new certificate to what `verify` will ask of it, before anything is written.

    Args:
        certificate: As it will be written.
        schema: As it will be written.
        method: What made the release, known to `verify` or not.
        measurements: As they will be written.

    Raises:
        ReleaseError: A charge, a price or a figure contradicts another; nothing may be published.
    """
    written = json.loads(json.dumps(certificate))
    recompute(written)
    check_questions(written, schema, method)
    check_measurements(written, measurements, "The release")


def certificate_digest(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate's content, by which scores and further releases name their release."""
    return hashlib.sha256(json.dumps(certificate, sort_keys=True).encode()).hexdigest()


def redistilled(
    certificate: Mapping[str, Any], schema: Schema, method: AbstractMethod
) -> dict[str, Any]:
    """The certificate of a release that was made again from the measurements of another.

    Args:
        certificate: Of the release that paid for the measurements.
        schema: Its schema.
        method: With its settings now; only free ones may differ.
    """
    digest = certificate_digest(certificate)
    again = {"settings": method.settings(), "redistilled_from": digest}
    if certificate["version"] > 1:
        again["rows_seed"] = certificate["method"]["public_seed"]
    renewed = {
        **certificate,
        "created": _today(),
        "method": {**certificate["method"], **again},
        "software": package_versions(),
    }
    if certificate["version"] > 1:
        renewed["machine"] = machine_facts()
    check_questions(renewed, schema, type(method))
    return renewed


def _reasons(budget: Budget, *, seeded: bool, law: bool, unpaid: str) -> list[str]:
    """What stands against publication."""
    reasons = []
    if not budget.private:
        reasons.append("epsilon is infinite: no noise was added")
    if seeded:
        reasons.append("seeded: reproducible, not for release")
    if law:
        reasons.append("law mode: a test of the software, holds no data")
    if unpaid:
        reasons.append(f"settings were read off the rows and not paid for: {unpaid}")
    return reasons


def _guarantee(budget: Budget, schema: Mapping[str, Any]) -> dict[str, Any]:
    kind = "row" if schema.get("person") is None else "person"
    return {
        "definition": "(epsilon, delta)-differential privacy",
        "epsilon": as_json(budget.epsilon),
        "delta": budget.delta,
        "unit_of_privacy": schema["unit"],
        "adjacency": budget.adjacency,
        "neighbours": NEIGHBOURS[kind, budget.adjacency],
    }


def _unit(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What is protected, and how its share in the rows was bounded."""
    person = schema.get("person")
    return {
        "kind": "row" if person is None else "person",
        "rows_at_most": 1 if person is None else person["rows_at_most"],
        "bounded_by": BOUNDED_BY["row" if person is None else "person"],
        "id_column": None if person is None else person["column"],
        "id_column_kept_out": None if person is None else True,
    }


def _data(plan: Plan, schema: Schema, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": schema.dataset,
        "declared_rows": schema.rows,
        "declared_persons": schema.person.persons if schema.person else None,
        "schema_sha256": schema.digest,
        "schema": facts,
        "estimated_columns": list(plan.schema.estimated_names),
    }


def _method(
    plan: Plan,
    source: str,
    public_seed: int,
    rows_seed: int | None,
    chosen_among: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "name": plan.method.name,
        "version": plan.method.version,
        "package": origin(type(plan.method)),
        "settings": plan.method.settings(),
        "settings_source": source,
        "public_seed": public_seed,
        "rows_seed": rows_seed,
        "redistilled_from": None,
        "chosen_among": None if chosen_among is None else dict(chosen_among),
    }


def _assumptions(plan: Plan, schema: Schema) -> list[str]:
    """All but the first, which depends on whether the rows were seen before."""
    unit = UNIT_ASSUMED["person" if schema.person else "row"]
    return [unit, *ASSUMPTIONS[1:], *plan.method.assumptions(), *_brought(plan)]


def _brought(plan: Plan) -> list[str]:
    """Kinds of question from other packages, whose clip, sum and noise limbeck does not vouch for."""
    packages = {}
    for kind in {type(planned.question) for planned in plan.questions}:
        package = origin(kind)
        if package["name"] != "limbeck":
            version_of = package["version"] or "not installed"
            packages[kind.__name__] = f"{package['name']} ({version_of})"
    return [
        f"Questions of the kind {name}, which {package} brings, clip, sum and noise as they are charged."
        for name, package in sorted(packages.items())
    ]


def _noise(charges: Sequence[Charge], seeded: bool, float_sums: Collection[str]) -> dict[str, Any]:
    return {
        "discrete gaussian": "exact sampler on a grid of 2^-24 standard deviations, integer arithmetic",
        "discrete laplace": "exact sampler, integer arithmetic",
        "permute-and-flip": "exact coins, integer arithmetic",
        "sums": {
            c.name: FLOAT_SUM if c.name in float_sums else EXACT_SUM
            for c in charges
            if c.mechanism != REMOVABLE
        },
        "generator": "ChaCha20 key stream, one key per measurement",
        "entropy": "a seed" if seeded else "256 bits from the operating system",
        "seeded": seeded,
    }


def machine_facts(processors: Sequence[Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Where the sums were computed: maps in floating point give the same bits on like machines."""
    import jax

    return {
        "system": platform.system(),
        "processors": [dict(one) for one in processors or [processor()]],
        "device": jax.default_backend(),
    }


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return versions


def _today() -> str:
    """The day, or that of SOURCE_DATE_EPOCH where builds are to be reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = (
        datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
        if epoch
        else datetime.datetime.now(datetime.UTC)
    )
    return moment.date().isoformat()
