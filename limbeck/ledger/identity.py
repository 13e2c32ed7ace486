"""By what an unfinished run is found again, and what it must have in common with its resumption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..accounting import Charge
from ..errors import LimbeckError
from ..methods import origin
from ..planning import Plan
from ..privacy import Noise


def identity(planned: Plan, noise: Noise) -> dict[str, object]:
    """What the user asked for: by it an unfinished run is found again."""
    return {
        "schema": planned.schema.digest,
        "method": planned.method.name,
        "settings": planned.method.settings(),
        "budget": vars(planned.budget),
        "seed": hashlib.sha256(noise.secret).hexdigest() if noise.seeded else None,
        "law": noise.law,
        **({} if planned.check is None else {"check": True}),
    }


def kept_plan(planned: Plan, parts: Sequence[Sequence[Charge]]) -> dict[str, Any]:
    """What an unfinished run must have in common with the one that resumes it."""
    charges = [[c.facts() for c in several] for several in (planned.charges, *parts)]
    return {
        "charges": hashlib.sha256(json.dumps(charges, sort_keys=True).encode()).hexdigest(),
        "measurements": sorted({c["name"] for several in charges for c in several}),
        "software": _software(planned),
    }


def _software(planned: Plan) -> str:
    """Every package, with its version, whose code asks or answers."""
    kinds: list[type] = [Plan, type(planned.method), *(type(p.question) for p in planned.questions)]
    made_by = [origin(kind) for kind in kinds]
    return ", ".join(sorted({f"{package['name']} {package['version']}" for package in made_by}))


def another_plan(kept: Mapping[str, Any], now: Mapping[str, Any]) -> LimbeckError:
    """Why an unfinished run is not resumed."""
    before, this = (
        f"plan {plan['charges'][:12]} ({', '.join(plan['measurements'])}) of {plan['software']}"
        if plan
        else "a plan that an older version of limbeck did not keep"
        for plan in (kept, now)
    )
    return LimbeckError(
        f"An unfinished run of the same settings was paid for with {before}; this is {this}. Answers "
        "of two plans cannot be mixed. Finish it with what began it, or give it up and pay for a new "
        "one: pass pay_again=True."
    )
