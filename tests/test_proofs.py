"""The page of proofs: the tests that it names exist, and what no other test computes is computed here."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from limbeck.accounting import Charge, gaussian_epsilon
from limbeck.accounting.stopping import ORDERS, stopped_curve

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "proofs.md").read_text()


def _named(text: str) -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py::\w+)`", text)


@pytest.mark.parametrize("name", sorted(set(_named(PAGE))))
def test_every_test_that_the_page_names_exists(name: str) -> None:
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert function in [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]


def test_every_proof_names_a_test() -> None:
    sections = PAGE.split("\n## ")[1:]
    proofs = [s for s in sections if s.partition("\n")[0] not in UNPROVEN]
    assert len(proofs) == 9
    for section in proofs:
        assert "*Checked by*" in section and _named(section), section.partition("\n")[0]


UNPROVEN = ("Threat model", "Side channels", "References")


def test_every_path_on_the_page_exists() -> None:
    for name in re.findall(r"`(limbeck/[\w/]+\.py)`", PAGE):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_pure_run_is_as_gaussian_as_the_filter_takes_it_for(epsilon: float) -> None:
    """The trade-off curve of that mu lies nowhere above the one of pure epsilon, and touches it."""
    mu = -2 * float(ndtri(1 / (1 + math.exp(epsilon))))
    false = np.linspace(1e-6, 1 - 1e-6, 20_001)
    gaussian = ndtr(ndtri(1 - false) - mu)
    pure = np.maximum(1 - math.exp(epsilon) * false, math.exp(-epsilon) * (1 - false))
    assert (gaussian <= pure + 1e-12).all()
    assert np.min(pure - gaussian) < 1e-3
    both = math.sqrt(2) * mu  # two such runs, against what two randomised responses really cost
    chance = 1 / (1 + math.exp(-epsilon))
    true = chance**2 - math.exp(epsilon) * (1 - chance) ** 2
    assert gaussian_epsilon(both, true) >= epsilon - 1e-9


def test_random_stopping_bounds_the_best_of_many_runs() -> None:
    """The Renyi divergence of the best of randomly many runs, computed exactly for a small outcome:
    each run is one of two scores, whose chances differ between the worlds by e^0.5."""
    mean, orders = 3.0, np.asarray(ORDERS)
    worlds = np.array([[0.6, 0.4], [0.6 * math.exp(-0.5), 1 - 0.6 * math.exp(-0.5)]])
    gamma = _gamma_of(mean)
    count = np.arange(1, 4000)
    chance = (1 - gamma) ** count / (count * math.log(1 / gamma))
    assert chance.sum() == pytest.approx(1, abs=1e-9)
    assert (chance * count).sum() == pytest.approx(mean, rel=1e-6)
    low = [float((chance * world[0] ** count).sum()) for world in worlds]  # all runs score low
    best = np.array([[p, 1 - p] for p in low])
    for one, two in ((0, 1), (1, 0)):
        single = np.array([_renyi(a, worlds[one], worlds[two]) for a in orders])
        other = np.array([_renyi(a, worlds[two], worlds[one]) for a in orders])
        bound = stopped_curve(np.maximum(single, other), mean)
        true = np.array([_renyi(a, best[one], best[two]) for a in orders])
        assert (true <= bound + 1e-9).all()


def _gamma_of(mean: float) -> float:
    from limbeck.accounting.stopping import _gamma

    return _gamma(mean)


def _renyi(order: float, one: np.ndarray, two: np.ndarray) -> float:
    logs = order * np.log(one) + (1 - order) * np.log(two)
    return float(np.logaddexp.reduce(logs) / (order - 1))


def test_a_smaller_chance_of_a_batch_costs_no_more() -> None:
    """Mixtures: the hockey-stick divergence of a sampled Gaussian grows with its rate."""
    x = np.linspace(-12, 14, 40_001)
    step = x[1] - x[0]
    absent = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    present = np.exp(-((x - 1) ** 2) / 2) / math.sqrt(2 * math.pi)
    for epsilon in (0.1, 0.5, 1.0):
        costs = []
        for rate in (0.01, 0.1, 0.3, 0.9, 1.0):
            mixed = (1 - rate) * absent + rate * present
            ways = ((mixed, absent), (absent, mixed))
            costs.append(
                [float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step) for p, q in ways]
            )
        assert (np.diff(np.array(costs), axis=0) >= -1e-12).all()
    assert Charge(name="x", sensitivity=1.0, coordinates=1).sampling is None
