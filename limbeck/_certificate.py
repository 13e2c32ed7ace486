"""The certificate: what a release claims, in a form from which the claim can be recomputed.

Its fields follow what NIST SP 800-226 asks of a differential-privacy guarantee: epsilon and delta,
the unit of privacy and the adjacency, the mechanisms with sensitivity and noise, the trust model,
and the limits. The JSON schema is `certificate.schema.json` in this package.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ._check import LimbeckError, ReleaseError
from ._plan import Plan, charges_of
from ._schema import Schema
from .methods import METHODS
from .privacy import MECHANISMS, Budget, Charge, Cost, cost, stopping_cost

VERSION = 1
PACKAGES = (
    "limbeck",
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "numpy",
    "scipy",
    "dp-accounting",
    "cryptography",
)

TRUST_MODEL = (
    "Central: one curator holds the rows in clear, runs this software on a machine that the curator "
    "trusts, and publishes only this release."
)
ASSUMPTIONS = (
    "The schema's bounds, values, unit and row count were declared without looking at the rows.",
    "One row stands for one unit of privacy; a person with several rows is protected less.",
    "The machine and its operating system's random numbers are trusted; timing is not hidden.",
    "All releases from these people are booked under the same data set name in one ledger.",
)
LIMITS = (
    "The certificate proves what was claimed and that it adds up, not that the software ran unmodified.",
    "Differential privacy bounds what a release reveals about one unit, not what it reveals about "
    "groups or about the population.",
    "Released rows are synthetic: they resemble the data in what was measured and in nothing else.",
)
RDP_CEILING = 1.25
"""For unsampled Gaussians RDP is looser than PLD, but not by more than this (and 0.05)."""
_SECTIONS = (
    "releasable",
    "not_releasable_because",
    "noise",
    "data",
    "method",
    "assumptions",
    "limits",
)


def make_certificate(
    plan: Plan,
    charges: Sequence[Charge],
    schema: Schema,
    *,
    seeded: bool,
    law: bool,
    source: str,
    public_seed: int,
    unpaid: str = "",
    chosen_among: Mapping[str, Any] | None = None,
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
        unpaid: What in the settings was read off the rows without being paid for.
        chosen_among: The candidates that the settings were privately chosen among.
    """
    found = _cost_of(charges, plan.budget, chosen_among)
    reasons = []
    if not plan.budget.private:
        reasons.append("epsilon is infinite: no noise was added")
    if seeded:
        reasons.append("seeded: reproducible, not for release")
    if law:
        reasons.append("law mode: a test of the software, holds no data")
    if unpaid:
        reasons.append(f"settings were read off the rows and not paid for: {unpaid}")
    return {
        "format": "limbeck certificate",
        "version": VERSION,
        "created": _today(),
        "releasable": not reasons,
        "not_releasable_because": reasons,
        "guarantee": _guarantee(plan.budget, schema),
        "accounting": _accounting(found),
        "charges": [c.facts() for c in charges],
        "shares": {c.name: s for c, s in zip(plan.charges, plan.shares, strict=True)},
        "noise": {
            "discrete gaussian": "exact sampler on a grid of 2^-24 standard deviations, integer arithmetic",
            "iterated gradients": "rows rounded and added in integers, or a float64 sum with proven margin",
            "discrete laplace": "exact sampler, integer arithmetic",
            "generator": "ChaCha20 key stream, one key per measurement",
            "entropy": "a seed" if seeded else "256 bits from the operating system",
            "seeded": seeded,
        },
        "data": {
            "dataset": schema.dataset,
            "declared_rows": schema.rows,
            "schema_sha256": schema.digest,
            "schema": schema.facts(),
            "estimated_columns": [c.name for c in plan.schema.estimated],
        },
        "method": {
            "name": plan.method.name,
            "settings": plan.method.settings(),
            "settings_source": source,
            "public_seed": public_seed,
            "redistilled_from": None,
            "chosen_among": None if chosen_among is None else dict(chosen_among),
        },
        "trust_model": TRUST_MODEL,
        "assumptions": [*ASSUMPTIONS, *plan.method.assumptions()],
        "limits": list(LIMITS),
        "software": _versions(),
        "papers": list(plan.method.papers),
    }


def redistilled(
    certificate: Mapping[str, Any], schema: Schema, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The certificate of a release that was made again from the measurements of another.

    Args:
        certificate: Of the release that paid for the measurements.
        schema: Its schema.
        settings: The method's settings now; only free ones may differ.
    """
    text = json.dumps(certificate, sort_keys=True).encode()
    method = {
        **certificate["method"],
        "settings": dict(settings),
        "redistilled_from": hashlib.sha256(text).hexdigest(),
    }
    made = {**certificate, "created": _today(), "method": method, "software": _versions()}
    check_consistency(made, schema)
    return made


def recompute(certificate: Mapping[str, Any]) -> Cost:
    """Epsilon from the certificate alone; refuses one whose figures do not follow from its charges."""
    try:
        return _recompute(certificate)
    except ReleaseError:
        raise
    except KeyError as error:
        raise ReleaseError(f"certificate.json is incomplete: it has no {error}.") from None
    except (TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ReleaseError(f"certificate.json is malformed: {error}") from None


def _recompute(certificate: Mapping[str, Any]) -> Cost:
    if certificate["format"] != "limbeck certificate" or certificate["version"] != VERSION:
        raise ReleaseError(f"certificate.json is not a version {VERSION} limbeck certificate.")
    stated, accounts = certificate["guarantee"], certificate["accounting"]
    for section, needed in ((stated, ("unit_of_privacy", "neighbours")), (certificate, _SECTIONS)):
        missing = [name for name in needed if name not in section]
        if missing:
            raise ReleaseError(f"certificate.json is incomplete: it has no '{missing[0]}'.")
    budget = Budget(_number(stated["epsilon"]), stated["delta"], stated["adjacency"])
    for charge in certificate["charges"]:
        _check_charge(charge)
    charges = [Charge(**c) for c in certificate["charges"]]
    if budget.adjacency == "replace-one" and any(c.sampling is not None for c in charges):
        raise ReleaseError("The certificate claims replace-one adjacency for Poisson sampling.")
    found = _cost_of(charges, budget, certificate["method"].get("chosen_among"))
    figures = _accounting(found)
    parts_of_delta = [name for name in figures if name.startswith("delta")]
    for name in (n for n in figures if n not in parts_of_delta):
        _compare(name, accounts[name], figures[name])
    if found.epsilon > budget.epsilon * (1 + 1e-6):
        raise ReleaseError(
            f"The charges cost epsilon {found.epsilon:.6g}, more than the {budget.epsilon:g} claimed."
        )
    for name in parts_of_delta:
        _compare(name, accounts[name], figures[name])
    reasons = certificate["not_releasable_because"]
    if certificate["releasable"] != (not reasons) or (
        certificate["releasable"] and (certificate["noise"]["seeded"] or not budget.private)
    ):
        raise ReleaseError("The certificate calls a seeded, noiseless or test run releasable.")
    _compare_accountants(charges, found)
    return found


def _cost_of(
    charges: Sequence[Charge], budget: Budget, chosen_among: Mapping[str, Any] | None
) -> Cost:
    """What the charges cost; where the settings won by random stopping, what all of that cost."""
    if chosen_among is None or chosen_among["mean_runs"] is None:
        return cost(charges, budget)
    if not budget.private:
        raise ReleaseError("The certificate claims a private choice without noise.")
    alternatives = []
    for candidate in chosen_among["candidates"]:
        for charge in candidate["charges"]:
            _check_charge(charge)
        alternatives.append([Charge(**c) for c in candidate["charges"]])
    if list(charges) not in alternatives:
        raise ReleaseError("The charges are those of none of the candidates.")
    return stopping_cost(alternatives, budget, float(chosen_among["mean_runs"]))


def check_consistency(certificate: Mapping[str, Any], schema: Schema) -> None:
    """Refuse a certificate that the release's own schema or the named method contradicts."""
    data, guarantee, method = (certificate[k] for k in ("data", "guarantee", "method"))
    if data["schema_sha256"] != schema.digest or data["schema"] != schema.facts():
        raise ReleaseError("schema.toml is not the schema that the certificate speaks of.")
    if guarantee["unit_of_privacy"] != schema.unit:
        raise ReleaseError("The certificate's unit of privacy is not the schema's.")
    if method["name"] not in METHODS:
        raise ReleaseError(f"This version of limbeck knows no method '{method['name']}'.")
    budget = Budget(_number(guarantee["epsilon"]), guarantee["delta"], guarantee["adjacency"])
    chosen = method.get("chosen_among")
    _check_asked(certificate, schema, budget, method["settings"], certificate["charges"], chosen)
    for candidate in chosen["candidates"] if chosen and chosen["mean_runs"] is not None else ():
        _check_asked(
            certificate, schema, budget, candidate["settings"], candidate["charges"], chosen
        )


def _check_asked(
    certificate: Mapping[str, Any],
    schema: Schema,
    budget: Budget,
    settings: Mapping[str, Any],
    charges: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, Any] | None,
) -> None:
    """Refuse charges that are not what the method asks with these settings."""
    data, method = certificate["data"], certificate["method"]
    candidates = 0
    if chosen is not None:
        candidates = 1 if chosen["mean_runs"] else len(chosen["candidates"])
    try:
        made = METHODS[method["name"]].from_settings(settings)
        asked = charges_of(
            made, schema, budget, estimated=data["estimated_columns"], candidates=candidates
        )
    except LimbeckError as error:
        raise ReleaseError(f"The certificate's method cannot be: {error}") from None
    free = {"noise_multiplier": 0.0}
    wanted = {c.name: c.facts() | free for c in asked}
    stated = {c["name"]: dict(c) | free for c in charges}
    if wanted != stated:
        differing = sorted(n for n in {*wanted, *stated} if wanted.get(n) != stated.get(n))
        raise ReleaseError(
            f"The charge '{differing[0]}' is not what {method['name']} measures with these settings."
        )


def _check_charge(charge: Mapping[str, Any]) -> None:
    """Only what the accountants have a meaning for may be priced."""
    if charge["mechanism"] not in MECHANISMS:
        raise ReleaseError(
            f"The certificate charges for a mechanism '{charge['mechanism']}'. Known: "
            f"{', '.join(MECHANISMS)}."
        )
    least = {"noise_multiplier": 0, "sensitivity": 0, "threshold_delta": 0}
    for key, bound in (least | {"steps": 1, "coordinates": 1}).items():
        if not (isinstance(charge[key], int | float) and charge[key] >= bound):
            raise ReleaseError(
                f"The certificate charges for '{charge['name']}' with {key} = {charge[key]!r}; "
                f"expected a number, at least {bound}."
            )


def _compare_accountants(charges: Sequence[Charge], found: Cost) -> None:
    gaussian = all(c.mechanism != "discrete laplace" for c in charges)
    if not math.isfinite(found.epsilon) or not gaussian:
        return  # pure-DP charges are priced loosely by RDP: nothing to learn from the comparison
    # RDP may also be far above PLD where few rows are sampled in few steps.
    ceiling = math.inf if any(c.sampling for c in charges) else RDP_CEILING * found.pld + 0.05
    if not found.pld * (1 - 1e-3) <= found.rdp <= ceiling:
        raise ReleaseError(
            f"The accountants contradict each other: PLD gives epsilon {found.pld:.4g}, RDP "
            f"{found.rdp:.4g}."
        )


def _compare(name: str, claim: object, found: object) -> None:
    if claim is None or found is None or isinstance(claim, str) or isinstance(found, str):
        same = claim == found
    else:
        same = math.isclose(float(claim), float(found), rel_tol=1e-4)  # type: ignore[arg-type]
    if not same:
        raise ReleaseError(
            f"The certificate claims {name} = {claim}, but its charges give {found}. It was changed, "
            "or written by another version of the accountants."
        )


def _guarantee(budget: Budget, schema: Schema) -> dict[str, Any]:
    neighbours = {
        "add-remove": "adding or removing one unit's row",
        "replace-one": "replacing one unit's row by another",
    }[budget.adjacency]
    return {
        "definition": "(epsilon, delta)-differential privacy",
        "epsilon": _json(budget.epsilon),
        "delta": budget.delta,
        "unit_of_privacy": schema.unit,
        "adjacency": budget.adjacency,
        "neighbours": neighbours,
    }


def _accounting(found: Cost) -> dict[str, Any]:
    return {
        "epsilon": _json(found.epsilon),
        "basis": found.basis or ("PLD" if found.exact is None else "exact Gaussian curve"),
        "epsilon_exact": _json(found.exact),
        "epsilon_pld": _json(found.pld),
        "epsilon_rdp": _json(found.rdp),
        "delta_for_grid": found.slack,
        "delta_for_thresholds": found.threshold,
    }


def _json(value: float | None) -> float | str | None:
    return "infinity" if value is not None and math.isinf(value) else value


def _number(value: Any) -> float:
    return math.inf if value == "infinity" else float(value)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _today() -> str:
    """The day, or that of SOURCE_DATE_EPOCH where builds are to be reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = (
        datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
        if epoch
        else datetime.datetime.now(datetime.UTC)
    )
    return moment.date().isoformat()
