"""A second opinion on the price, by other code: the exact curve and an attack."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

import limbeck as lk
from limbeck.accounting import Charge, cost
from limbeck.release import attack_delta, exact_epsilon, recompute

# ---- a second opinion ---------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [0.3, 1.0, 5.0, 80.0])
def test_the_exact_curve_twice(multiplier: float) -> None:
    charges = [
        Charge(name=n, sensitivity=1.0, coordinates=1, noise_multiplier=multiplier, steps=s)
        for n, s in (("a", 1), ("b", 7))
    ]
    found = cost(charges, lk.Budget(10.0))
    own = exact_epsilon(charges, found.delta - found.slack)
    assert own == pytest.approx(found.exact, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("sampling", [None, 0.01, 0.2, 0.9])
def test_the_attack_is_below_the_price_and_not_far(sampling: float | None) -> None:
    charge = Charge(
        name="a", sensitivity=1.0, coordinates=1, sampling=sampling, steps=30, noise_multiplier=2.0
    )
    epsilon = cost([charge], lk.Budget(20.0)).epsilon
    assert attack_delta(charge, epsilon) <= 1e-5
    assert attack_delta(charge, epsilon / 3) > 1e-5  # so a price of a third would be refuted


def test_a_price_that_an_attack_refutes_is_refused(
    gradients: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An accountant that is wrong by a factor, and consistent about it, does not pass."""
    from limbeck.release import arithmetic as _verify

    def too_cheap(charges: Any, budget: Any) -> Any:
        found = cost(charges, budget)
        low = {"epsilon": found.epsilon / 4, "pld": found.pld / 4, "rdp": found.rdp / 4}
        return replace(found, **low)

    monkeypatch.setattr(_verify, "cost", too_cheap)
    changed = copy.deepcopy(gradients)
    for name in ("epsilon", "epsilon_pld", "epsilon_rdp"):
        changed["accounting"][name] /= 4
    with pytest.raises(lk.ReleaseError, match="refuted"):
        recompute(changed)
