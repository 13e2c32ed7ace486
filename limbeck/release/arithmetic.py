"""Does a certificate add up? Arithmetic and checksums, from the release alone and without JAX.

Whether the charges are those of the method that is named is another question: `_asked`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..accounting import MECHANISMS, Budget, Charge, Cost, cost, stopping_cost
from ..errors import ReleaseError
from .second_opinion import check_second_opinion

FORMAT = "limbeck certificate"
VERSION = 2
"""Of the layout that is written; version 1 can still be read."""
RDP_CEILING = 1.25
"""For unsampled Gaussians RDP is looser than PLD, but not by more than this (and 0.05)."""
OLDER_ROOM = 1.1
"""Factor by which an epsilon of version 1 may exceed the one that is computed today."""
REMOVABLE = "gaussian"
"""A mechanism of version 1: noise in floating point, whose coordinates gave each other away."""
NEIGHBOURS = {
    ("row", "add-remove"): "adding or removing one unit's row",
    ("row", "replace-one"): "replacing one unit's row by another",
    ("person", "add-remove"): "adding or removing all rows of one person",
    ("person", "replace-one"): "replacing all rows of one person by those of another",
}
BOUNDED_BY = {
    "row": "each row counts on its own",
    "person": "at most that many rows of a person are kept, and each counts for one part in as many as "
    "are kept: together for no more than one row",
}
"""How the share of a unit in the rows is bounded."""
_SECTIONS_OF_VERSION_1 = (
    "releasable", "not_releasable_because", "guarantee", "accounting", "charges", "noise", "data",
    "method", "assumptions", "limits",
)  # fmt: skip
_OPEN = ("charges", "schema", "settings", "candidates")
"""Parts whose own fields are checked elsewhere, or not this page's business."""


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


def read_certificate(folder: Path) -> dict[str, Any]:
    """The certificate of a release as it stands there."""
    try:
        certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{folder} is not a release: certificate.json: {error}.") from None
    if not isinstance(certificate, dict):
        raise ReleaseError(f"{folder} is not a release: certificate.json holds no certificate.")
    return certificate


def check_schema_file(certificate: Mapping[str, Any], folder: Path) -> None:
    """Refuse a schema.toml that is not the schema whose facts and digest the certificate holds."""
    try:
        written = tomllib.loads((folder / "schema.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{folder} is incomplete: schema.toml: {error}.") from None
    if not written.pop("confirmed", False) or written != certificate["data"]["schema"]:
        raise ReleaseError("schema.toml is not the schema that the certificate speaks of.")


def check_measurements(
    certificate: Mapping[str, Any], measurements: Mapping[str, np.ndarray], where: object
) -> None:
    """Refuse measurements that no charge pays for, by their names and sizes."""
    paid = {c["name"]: c["coordinates"] for c in certificate["charges"]}
    for name, values in measurements.items():
        if values.size > paid.get(name, 0):
            raise ReleaseError(f"{where} holds a measurement '{name}' that no charge pays for.")


def removable_noise(charges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of charges whose noise can be removed by who knows how it was drawn."""
    return [c["name"] for c in charges if c["mechanism"] == REMOVABLE and c["noise_multiplier"] > 0]


def budget_of(certificate: Mapping[str, Any]) -> Budget:
    """The budget that a certificate claims to have kept."""
    stated = certificate["guarantee"]
    return Budget(_number(stated["epsilon"]), stated["delta"], stated["adjacency"])


def accounting(price: Cost) -> dict[str, Any]:
    """A price as certificates state it."""
    return {
        "epsilon": as_json(price.epsilon),
        "basis": price.basis or ("PLD" if price.exact is None else "exact Gaussian curve"),
        "epsilon_exact": as_json(price.exact),
        "epsilon_pld": as_json(price.pld),
        "epsilon_rdp": as_json(price.rdp),
        "delta_for_grid": price.slack,
        "delta_for_thresholds": price.threshold,
    }


def cost_of(
    charges: Sequence[Charge], budget: Budget, chosen_among: Mapping[str, Any] | None
) -> Cost:
    """What the charges cost; where the settings won by random stopping, what all of that cost."""
    charges = _charges([c.facts() for c in charges])
    if chosen_among is None or chosen_among["mean_runs"] is None:
        return cost(charges, budget)
    if not budget.private:
        raise ReleaseError("The certificate claims a private choice without noise.")
    alternatives = [_charges(c["charges"]) for c in chosen_among["candidates"]]
    if charges not in alternatives:
        raise ReleaseError("The charges are those of none of the candidates.")
    return stopping_cost(alternatives, budget, float(chosen_among["mean_runs"]))


def as_json(value: float | None) -> float | str | None:
    """A number as certificates write it: JSON has no infinity."""
    return "infinity" if value is not None and math.isinf(value) else value


def _recompute(certificate: Mapping[str, Any]) -> Cost:
    layout = certificate["version"]
    if certificate["format"] != FORMAT or layout not in (1, VERSION):
        raise ReleaseError(
            f"certificate.json is not a limbeck certificate of version 1 or {VERSION}."
        )
    if layout == 1:
        for name in (n for n in _SECTIONS_OF_VERSION_1 if n not in certificate):
            raise ReleaseError(f"certificate.json is incomplete: it has no '{name}'.")
    else:
        _check_layout(certificate, _layout(), "")
    budget = budget_of(certificate)
    charges = _charges(certificate["charges"])
    if budget.adjacency == "replace-one" and any(c.sampling is not None for c in charges):
        raise ReleaseError("The certificate claims replace-one adjacency for Poisson sampling.")
    price = cost_of(charges, budget, certificate["method"].get("chosen_among"))
    figures = accounting(price)
    if layout == 1 or removable_noise(certificate["charges"]):
        del figures["delta_for_grid"]  # version 1 bounded it otherwise, or had no grid
    _compare_figures(certificate["accounting"], figures, price, budget, exactly=layout > 1)
    _compare_accountants(charges, price)
    check_second_opinion(charges, price)
    _check_releasable(certificate, budget)
    _check_unit(certificate, budget, layout)
    _check_data(certificate["data"])
    if layout > 1:
        _check_check(certificate["check"], certificate["charges"], budget)
    return price


def _charges(stated: Sequence[Mapping[str, Any]]) -> list[Charge]:
    for charge in stated:
        _check_charge(charge)
    # Floating-point noise had no grid to pay for: priced as if it measured one number.
    priced = {"mechanism": "discrete gaussian", "coordinates": 1}
    return [Charge(**{**c, **(priced if c["mechanism"] == REMOVABLE else {})}) for c in stated]


def _check_charge(charge: Mapping[str, Any]) -> None:
    """Only what the accountants have a meaning for may be priced."""
    if charge["mechanism"] not in (*MECHANISMS, REMOVABLE):
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


def _compare_figures(
    stated: Mapping[str, Any],
    figures: Mapping[str, Any],
    price: Cost,
    budget: Budget,
    *,
    exactly: bool,
) -> None:
    parts_of_delta = [name for name in figures if name.startswith("delta")]
    for name in (n for n in figures if n not in parts_of_delta):
        _compare(name, stated[name], figures[name], exactly=exactly)
    if price.epsilon > budget.epsilon * (1 + 1e-6):
        raise ReleaseError(
            f"The charges cost epsilon {price.epsilon:.6g}, more than the {budget.epsilon:g} claimed."
        )
    for name in parts_of_delta:
        _compare(name, stated[name], figures[name], exactly=exactly)


def _compare(name: str, claim: object, recomputed: object, *, exactly: bool) -> None:
    """A figure must follow from the charges; an epsilon of version 1 may be a little larger: it
    paid more of delta for its grid."""
    if claim is None or recomputed is None or isinstance(claim, str) or isinstance(recomputed, str):
        same = claim == recomputed
    else:
        stated, own = float(claim), float(recomputed)  # type: ignore[arg-type]
        room = 1.0 if exactly or name.startswith("delta") else OLDER_ROOM
        same = math.isclose(stated, own, rel_tol=1e-4) or own < stated <= room * own
    if not same:
        raise ReleaseError(
            f"The certificate claims {name} = {claim}, but its charges give {recomputed}. It was changed, "
            "or written by another version of the accountants."
        )


def _compare_accountants(charges: Sequence[Charge], price: Cost) -> None:
    gaussian = not any(c.pure for c in charges)
    if not math.isfinite(price.epsilon) or not gaussian:
        return  # pure-DP charges are priced loosely by RDP: nothing to learn from the comparison
    # RDP may also be far above PLD where few rows are sampled in few steps.
    ceiling = math.inf if any(c.sampling for c in charges) else RDP_CEILING * price.pld + 0.05
    if not price.pld * (1 - 1e-3) <= price.rdp <= ceiling:
        raise ReleaseError(
            f"The accountants contradict each other: PLD gives epsilon {price.pld:.4g}, RDP "
            f"{price.rdp:.4g}."
        )


def _check_releasable(certificate: Mapping[str, Any], budget: Budget) -> None:
    reasons, noise = certificate["not_releasable_because"], certificate["noise"]
    seeded = noise["seeded"]
    if seeded is not (noise["entropy"] == "a seed"):
        raise ReleaseError(
            f"The certificate says seeded = {json.dumps(seeded)}, and that its entropy is "
            f"{noise['entropy']}."
        )
    if seeded is not any(reason.startswith("seeded") for reason in reasons):
        raise ReleaseError(
            f"The certificate says seeded = {json.dumps(seeded)}, and gives as reasons against "
            f"release: {reasons}."
        )
    if certificate["releasable"] is not (not reasons) or (
        certificate["releasable"] and (seeded or not budget.private)
    ):
        raise ReleaseError("The certificate calls a seeded, noiseless or test run releasable.")


def _check_unit(certificate: Mapping[str, Any], budget: Budget, layout: int) -> None:
    stated, schema = certificate["guarantee"], certificate["data"]["schema"]
    if stated["unit_of_privacy"] != schema["unit"]:
        raise ReleaseError("The certificate's unit of privacy is not the schema's.")
    kind = "row"
    if layout > 1:
        unit, person = certificate["unit"], schema.get("person")
        kind = "row" if person is None else "person"
        declared = {"column": None, "rows_at_most": 1} if person is None else person
        claimed = (
            unit["kind"],
            unit["rows_at_most"],
            unit["bounded_by"],
            unit["id_column"],
            unit["id_column_kept_out"],
        )
        if claimed != (
            kind,
            declared["rows_at_most"],
            BOUNDED_BY[kind],
            declared["column"],
            None if person is None else True,
        ):
            raise ReleaseError(
                f"The certificate's unit is {_unit_words(claimed)}, which its schema does not declare."
            )
    if stated["neighbours"] != NEIGHBOURS[kind, budget.adjacency]:
        raise ReleaseError(
            f"The certificate's neighbours differ by '{stated['neighbours']}', which is not "
            f"{budget.adjacency} of one {kind}."
        )


def _unit_words(claimed: tuple[Any, ...]) -> str:
    kind, rows, bounded_by, column, kept_out = claimed
    noun = f"a {kind} with at most {rows} rows ({bounded_by})"
    return noun + (
        "" if column is None else f" by '{column}' ({'kept out' if kept_out else 'kept'})"
    )


def _check_data(data: Mapping[str, Any]) -> None:
    text = json.dumps(data["schema"], sort_keys=True, ensure_ascii=False)
    if hashlib.sha256(text.encode()).hexdigest() != data["schema_sha256"]:
        raise ReleaseError("The certificate's schema does not have the digest that it states.")
    rows = data["schema"]["rows"]
    if data["declared_rows"] != (None if rows == "measure" else rows):
        raise ReleaseError("The certificate's declared_rows are not those of its schema.")
    person = data["schema"].get("person") or {}
    if data.get("declared_persons") != person.get("persons"):
        raise ReleaseError("The certificate's declared_persons are not those of its schema.")
    if data["dataset"] != data["schema"]["dataset"]:
        raise ReleaseError("The certificate's dataset is not the one its schema names.")
    estimated, columns = data["estimated_columns"], {c["name"] for c in data["schema"]["column"]}
    if isinstance(person.get("rows_per_person"), list):
        columns.add(person["column"])  # whose ids may have numbers of rows that were bought
    if not (isinstance(estimated, list) and set(estimated) <= columns):
        raise ReleaseError("The certificate's estimated_columns are not columns of its schema.")


def _check_check(
    check: Mapping[str, Any], charges: Sequence[Mapping[str, Any]], budget: Budget
) -> None:
    """A noisy look at the rows before the run is among its charges, and has a price of its own, which
    must add up, too; one without noise can come with it or without."""
    noisy = bool(check["charges"])
    if check["seen"] != "without noise" and (check["seen"] == "with noise") != noisy:
        raise ReleaseError(
            f"The certificate's check says seen = {check['seen']!r} and has {len(check['charges'])} "
            "charges."
        )
    for charge in check["charges"]:
        if charge not in charges:
            raise ReleaseError(
                f"The check's charge '{charge['name']}' is not among the release's charges."
            )
    if check["charges"]:
        own = Budget(_number(check["epsilon"]), check["delta"], budget.adjacency)
        price = cost(_charges(check["charges"]), own)
        if own.delta != budget.delta or not math.isclose(price.epsilon, own.epsilon, rel_tol=1e-6):
            raise ReleaseError(
                f"The check's charges cost epsilon {price.epsilon:.6g} at the release's delta "
                f"{budget.delta:g}; the certificate says {own.epsilon:g} at {own.delta:g}."
            )
    _check_results(check)


def _check_results(check: Mapping[str, Any]) -> None:
    """Noisy counts are published as they were charged: all there are, with their noise."""
    results, paid = check["results"], sum(c["coordinates"] for c in check["charges"])
    published = 0 if results is None else sum(len(states) for states in results["columns"].values())
    noise = [c["noise_multiplier"] * c["sensitivity"] for c in check["charges"]]
    if (
        published > paid
        or (published == 0) != (paid == 0)
        or (results is not None and not math.isclose(results["noise"], noise[0]))
    ):
        raise ReleaseError("The check's results are not what its charges pay for.")


@functools.cache
def _layout() -> dict[str, Any]:
    path = Path(__file__).parent / "certificate.schema.json"
    layout: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return layout


def _check_layout(part: Any, rule: Mapping[str, Any], where: str) -> None:
    """Refuse missing and unknown fields, and values that are none of those the layout allows."""
    if part is None and rule.get("type") is not None and "null" in rule["type"]:
        return
    allowed = [rule["const"]] if "const" in rule else rule.get("enum", [part])
    if part not in allowed:
        raise ReleaseError(f"certificate.json: '{where}' is {part!r}; expected {allowed}.")
    if not isinstance(part, dict):
        if rule.get("type") == "object":
            raise ReleaseError(f"certificate.json: '{where}' holds no fields.")
        return
    fields = rule.get("properties", {})
    for name in (n for n in rule.get("required", ()) if n not in part):
        raise ReleaseError(f"certificate.json is incomplete: it has no '{_path(where, name)}'.")
    if rule.get("additionalProperties") is False:
        for name in sorted(set(part) - set(fields)):
            raise ReleaseError(f"certificate.json has an unknown field '{_path(where, name)}'.")
    for name in (n for n in fields if n in part and n not in _OPEN):
        _check_layout(part[name], fields[name], _path(where, name))


def _path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _number(value: Any) -> float:
    return math.inf if value == "infinity" else float(value)
