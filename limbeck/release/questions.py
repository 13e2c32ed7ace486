"""Are a certificate's charges the questions of the method that it names?

Only the code of that method in that version can tell, so this needs the methods, and JAX with them.
Where they are not at hand, the certificate may still add up: `_verify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..accounting import Budget
from ..errors import FileMissing, LimbeckError, ReleaseError
from ..methods import METHODS, AbstractMethod, origin
from ..planning import charges_of
from ..schema import Schema
from .arithmetic import budget_of


def known_method(certificate: Mapping[str, Any]) -> type[AbstractMethod] | str:
    """The method that a certificate names, in its version; or words that say why it is not here."""
    stated = certificate["method"]
    if "version" not in stated:
        return "a certificate of version 1 does not say which version of its method was run"
    name, version, package = stated["name"], stated["version"], stated["package"]["name"]
    words = f"this method ({name}, version {version}, of {package}) is not known here"
    try:
        method = METHODS.get(name)
    except LimbeckError as error:  # of another package, which is broken: the release need not be
        return f"{words}: {error}".rstrip(".")
    if method is None or origin(method)["name"] != package:
        return words
    if method.version != version:
        return f"{words}, only version {method.version}"
    return method


def check_questions(
    certificate: Mapping[str, Any], schema: Schema, method: type[AbstractMethod]
) -> None:
    """Refuse charges that are not what the method asks with the stated settings.

    Args:
        certificate: One that adds up.
        schema: The release's own.
        method: The one that the certificate names.
    """
    stated, budget = certificate["method"], budget_of(certificate)
    if stated["name"] != method.name or stated.get("version", method.version) != method.version:
        raise ReleaseError(
            f"The certificate names the method {stated['name']}, version {stated.get('version')}; "
            f"this is {method.name}, version {method.version}."
        )
    if certificate["data"]["schema_sha256"] != schema.digest:
        raise ReleaseError("schema.toml is not the schema that the certificate speaks of.")
    chosen = stated.get("chosen_among")
    runs = [(stated["settings"], certificate["charges"])]
    if chosen and chosen["mean_runs"] is not None:
        runs += [(c["settings"], c["charges"]) for c in chosen["candidates"]]
    more = {
        "estimated": certificate["data"]["estimated_columns"],
        "candidates": _candidates(chosen),
        "check": bool(certificate.get("check", {}).get("charges")),
    }
    for settings, charges in runs:
        asked = _asked(method, settings, schema, budget, more)
        _compare(method.name, asked, charges)


def _candidates(chosen: Mapping[str, Any] | None) -> int:
    """How many candidates the charged choice compares at once."""
    if chosen is None:
        return 0
    return 1 if chosen["mean_runs"] else len(chosen["candidates"])


def _asked(
    method: type[AbstractMethod],
    settings: Mapping[str, Any],
    schema: Schema,
    budget: Budget,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Facts of every charge of a run with these settings, and of what is asked besides, by name."""
    try:
        inquiry = method.from_settings(settings)
        asked = charges_of(inquiry, schema, budget, **more)
    except FileMissing:
        raise
    except LimbeckError as error:
        raise ReleaseError(f"The certificate's method cannot be: {error}") from None
    except Exception as error:  # settings in another's certificate may be of any type and size
        raise ReleaseError(
            f"The certificate's method cannot be: its settings are not what {method.name} takes "
            f"({type(error).__name__})."
        ) from None
    return {c.name: c.facts() for c in asked}


def _compare(method: str, asked: Mapping[str, Any], charges: Sequence[Mapping[str, Any]]) -> None:
    free = {"noise_multiplier": 0.0}  # the budget's choice, not the method's
    wanted = {name: facts | free for name, facts in asked.items()}
    stated = {c["name"]: dict(c) | free for c in charges}
    if len(stated) != len(charges):
        raise ReleaseError("Two charges of the certificate have the same name.")
    for name in sorted({*wanted, *stated}):
        if wanted.get(name) != stated.get(name):
            raise ReleaseError(
                f"The charge '{name}' is not what {method} measures with these settings."
            )
