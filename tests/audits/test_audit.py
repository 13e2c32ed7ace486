"""Audits find what is planted, and nothing in what is right."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import table_rows, table_schema
from scipy.stats import binom, norm
from typer.testing import CliRunner

import limbeck as lk
from limbeck.accounting import gaussian_epsilon
from limbeck.audits import bounds, tight
from limbeck.audits.bounds import AT_DELTA, curve_of, epsilon_at_least, mu_between
from limbeck.audits.result import Finding
from limbeck.audits.rows import generated_rows, made_for, neighbours
from limbeck.audits.small import SMALL, small_method
from limbeck.audits.worst_cases import NOT_BUILT
from limbeck.cli.main import app
from limbeck.methods import AbstractMethod
from limbeck.privacy import Choice, Gradients, GridSum, Planned, Sum, Unit
from limbeck.privacy.questions import choice
from limbeck.report import make_report

BUDGET = lk.Budget(4.0, 1e-5)
ROOT = Path(__file__).parent.parent.parent


# ---- what is right ------------------------------------------------------------------------------


def test_a_method_that_is_right_passes_every_part() -> None:
    found = lk.audit("marginals", quick=True)
    assert found.holds and [f.part for f in found.findings] == [
        "replay", "noise", "draws", "one run", "release",
    ]  # fmt: skip
    draws = found.finding("draws")
    assert draws is not None and draws.tight and draws.bound is not None
    assert 0.8 * draws.claim < draws.bound <= draws.claim  # type: ignore[operator]
    assert all(not f.broken and f.seconds > 0 for f in found.findings)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (replace(small_method("marginals"), triples=2), "tables"),
        (replace(small_method("measure-once"), views=2), "images"),
    ],
)
def test_answers_that_only_some_settings_ask_for_are_replayed(
    method: AbstractMethod, kind: str
) -> None:
    found = lk.audit(method, schema=made_for(kind), parts=("replay",), quick=True)
    assert found.holds and not found.findings[0].broken


def test_every_method_has_small_settings() -> None:
    private = {name for name, kind in lk.METHODS.items() if kind.__module__.startswith("limbeck.")}
    assert set(SMALL) == {name for name in private if not lk.METHODS[name].needs_bare_rows}


def test_a_release_is_audited_for_what_its_certificate_claims(tmp_path: Path) -> None:
    columns = tuple(
        replace(c, min=None, max=None, outer=(-1e4, 1e4)) if c.name == "income" else c
        for c in table_schema().columns
    )
    schema = table_schema(columns=columns)
    method = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
    made = lk.distill(lk.read(table_rows(90), schema), method, 2.0, out=tmp_path / "release")
    found = lk.audit(tmp_path / "release", quick=True, parts=("replay", "draws"))
    assert found.holds and (found.epsilon, found.method) == (2.0, "marginals")
    told = found.finding("draws")
    assert told is not None and told.facts["left_out"] == {}
    assert set(told.facts["moved"]) == {c["name"] for c in made.certificate["charges"]}
    found.save(tmp_path / "audit.json")
    assert json.loads((tmp_path / "audit.json").read_text())["holds"] is True
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["report", str(tmp_path / "release"), "--out", str(page)])
    assert shown.exit_code == 0 and "no attack showed that it spends more" in page.read_text()
    again = lk.Audit.load(tmp_path / "audit.json")
    with pytest.raises(lk.LimbeckError, match="of another release"):
        make_report([made], audit=replace(again, release="of another"))


def test_bare_rows_and_infinite_epsilon_have_no_claim() -> None:
    with pytest.raises(lk.LimbeckError, match="promises nothing"):
        lk.audit("kip")
    with pytest.raises(lk.LimbeckError, match="infinity"):
        lk.audit("marginals", budget=math.inf)
    with pytest.raises(lk.LimbeckError, match="no part 'all'"):
        lk.audit("marginals", parts=("all",))
    with pytest.raises(lk.LimbeckError, match="folder of a release, got 'nothing'"):
        lk.audit("nothing")


def test_persons_and_replaced_rows_are_audited_as_such() -> None:
    person = lk.Person(column="id", rows_at_most=2, persons=150)
    for schema, budget in (
        (replace(made_for("tables"), person=person), BUDGET),
        (made_for("tables"), lk.Budget(4.0, 1e-5, "replace-one")),
    ):
        found = lk.audit(
            lk.Marginals(**SMALL["marginals"]),
            schema=schema, budget=budget, quick=True, parts=("replay",),
        )  # fmt: skip
        assert found.holds, found.findings
        replay = found.finding("replay")
        assert replay is not None and max(replay.facts["moved"].values()) > 0.6


@pytest.mark.parametrize("kind", ["tables", "images"])
def test_neighbours_differ_by_one_unit(kind: str) -> None:
    schema = made_for(kind)
    rows = generated_rows(schema, 12)
    count = len(lk.read(rows, schema)._encoded())
    sizes = [len(lk.read(other, schema)._encoded()) for _, other in neighbours(schema, rows)]
    assert len(sizes) >= 8 and {abs(size - count) for size in sizes} == {1}


# ---- bounds -------------------------------------------------------------------------------------


def test_bounds_of_a_gaussian_are_below_what_is_true_and_near_it() -> None:
    rng = np.random.default_rng(0)
    mu, drawn = 1.0, 400_000
    without, held = rng.standard_normal(drawn), rng.standard_normal(drawn) + mu
    true = gaussian_epsilon(mu, AT_DELTA)
    curve = curve_of(held, without, [mu / 2, true / mu + mu / 2])
    assert 0.93 * true < epsilon_at_least(curve, AT_DELTA) < true
    low, high = mu_between(curve)
    assert 0.95 * mu < low < mu < high < 1.05 * mu


def test_a_bound_fails_no_more_often_than_it_says() -> None:
    """At one chance in five, of 400 audits of fair mechanisms about at most one in five is wrong."""
    rng = np.random.default_rng(1)
    true = gaussian_epsilon(0.5, AT_DELTA)
    wrong = 0
    for _ in range(400):
        held, without = rng.standard_normal(2000) + 0.5, rng.standard_normal(2000)
        wrong += (
            epsilon_at_least(curve_of(held, without, [true / 0.5 + 0.25]), AT_DELTA, 0.2) > true
        )
    assert wrong <= 0.2 * 400


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_one_run_allows_randomised_response_all_that_it_can(epsilon: float) -> None:
    """The chance of so many right guesses is that of randomised response, which is as private."""
    for right in (30, 45, 55):
        most = bounds.one_run_chance(epsilon, 0.0, 60, 60, right)
        assert most == pytest.approx(binom.sf(right - 1, 60, 1 / (1 + math.exp(-epsilon))))
        assert bounds.one_run_chance(epsilon, 1e-5, 60, 60, right) >= most
    found = bounds.one_run_epsilon(0.0, 60, 60, 55, 0.05)
    assert bounds.one_run_chance(found, 0.0, 60, 60, 55) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_one_run_refutes_no_true_mu_more_often_than_it_says(mu: float) -> None:
    """Independent Gaussians, all guessed at: the chance of a refutation, summed up exactly."""
    count, wrong = 60, 0.05
    refuted = [c for c in range(count + 1) if bounds.one_run_refutes_mu(mu, count, count, c, wrong)]
    assert all(binom.sf(c - 1, count, norm.cdf(mu / 2)) <= wrong for c in refuted)
    assert bounds.one_run_mu(count, count, 30, wrong) == 0.0
    assert 0 < bounds.one_run_mu(count, count, 55, wrong) < 3


def test_jax_privacy_computes_the_same_bounds_of_one_run() -> None:
    theirs = pytest.importorskip("jax_privacy.auditing")
    for guesses, right in ((200, 190), (100, 90)):
        ours = bounds.one_run_epsilon(1e-5, 200, guesses, right, 0.05)
        told = theirs._epsilon_one_run(0, 200, guesses, right, 0.05, 1e-5)
        assert ours == pytest.approx(told, abs=1e-5)
        mu = bounds.one_run_mu(200, guesses, right, 0.05)
        told = theirs._epsilon_one_run_fdp(0, 200, guesses, right, 0.05, 1e-5)
        assert gaussian_epsilon(mu, 1e-5) == pytest.approx(told, abs=1e-4)


# ---- many draws -----------------------------------------------------------------------------------


def _planned(question: Any, multiplier: float, **changes: Any) -> Planned:
    charges = question.charges(Unit())
    priced = tuple(replace(c, noise_multiplier=multiplier, **changes) for c in charges)
    return Planned(question=question, charges=priced)


def test_sampled_steps_are_tight_together() -> None:
    """Batches, clip and noise of three sampled steps: nearly what three steps are priced at."""
    question = Gradients(name="g", clip=1.0, size=9, rate=0.3, rows=200, count=3)
    found = tight.tight([_planned(question, 0.7)], Unit(), BUDGET, trials=30_000)
    assert not found.noise_wrong and 0.7 < found.share <= 1


def test_choices_are_tight_together() -> None:
    """Permute-and-flip between two, a few times: the one gets one more, the other one less. Few picks of
    a large price tell less than what is priced, which is whatever is as pure."""
    question = Choice(name="c", candidates=9, cells=40)
    several = [_planned(replace(question, name=f"c{number}"), 5.0) for number in range(2)]
    several.append(_planned(Sum(name="s", bound=1.0, size=3, groups=2), 1.0))
    found = tight.tight(several, Unit(), BUDGET, trials=6_000)
    assert 0.6 < found.share <= 1 and not found.left_out
    assert found.moved == pytest.approx(dict.fromkeys(found.moved, 1.0), abs=1e-5)
    many = tight.tight([_planned(replace(question, picks=2), 2.0)], Unit(), BUDGET, trials=10)
    assert many.left_out == {"c": NOT_BUILT["Choice"]}


@pytest.mark.parametrize("person", [False, True])
def test_a_choice_with_half_its_noise_is_caught(
    person: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip = choice.permute_and_flip
    monkeypatch.setattr(choice, "permute_and_flip", lambda s, u, noise: flip(s, u, noise / 2))
    unit = Unit(person=person, rows_at_most=2 if person else 1)
    asked = [_planned(Choice(name=f"c{number}", candidates=4, cells=4), 1.0) for number in range(2)]
    found = tight.tight(asked, unit, BUDGET, trials=2_000)
    assert found.bound > found.claim


def _caught(monkeypatch: pytest.MonkeyPatch, factor: float) -> tight.Tight:
    """A sum whose noise is `factor` of what is charged."""
    finalise = GridSum.finalise

    def quieter(self: GridSum, total: np.ndarray, stream: Any) -> np.ndarray:
        held = total * self.grid
        return held + factor * (finalise(self, total, stream) - held)

    monkeypatch.setattr(GridSum, "finalise", quieter)
    question = Sum(name="s", bound=1.0, size=3, groups=2)
    return tight.tight([_planned(question, 1.0)], Unit(), BUDGET, trials=50_000)


def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _caught(monkeypatch, 0.5)
    assert found.bound > found.claim and found.noise_wrong


def test_a_twentieth_less_noise_is_caught_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _caught(monkeypatch, 0.95).noise_wrong


# ---- the command --------------------------------------------------------------------------------


def test_the_command_writes_its_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["audit", "--method", "marginals", "--quick"])
    assert done.exit_code == 0, done.output
    assert "replay" in done.output and "draws" in done.output
    assert lk.Audit.load("audit.json").holds


def test_the_command_ends_with_an_error_where_a_claim_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    finding = Finding(part="noise", holds=False, says="half of it", broken=("half of it",))
    told = {"method": "m", "settings": {}, "epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove"}
    found = lk.Audit(**told, unit="row", dataset="d", findings=(finding,))
    monkeypatch.setattr(lk, "audit", lambda *given, **more: found)
    done = CliRunner().invoke(app, ["audit", "--method", "marginals"])
    assert done.exit_code == 2 and "The claim is broken" in done.output
    assert not lk.Audit.load("audit.json").holds


def test_the_command_refuses_what_it_cannot_audit(tmp_path: Path) -> None:
    for given, words in (
        ([], "Say what to audit"),
        (["x", "--method", "marginals"], "Say what to audit"),
        ([str(tmp_path), "--epsilon", "2"], "leave yours out"),
        (["--method", "nothing"], "Unknown method"),
    ):
        done = CliRunner().invoke(app, ["audit", *given])
        assert done.exit_code != 0 and words in str(done.exception)
