"""Certificates of searches and of measured scores say what was done, and cannot be changed unnoticed."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from forging import tamper
from helpers import TINY, table_rows, table_schema
from test_certificate_laws import EPSILON

import limbeck as lk
from limbeck.accounting import Charge, calibrate, cost
from limbeck.release import certificate as _certificate
from limbeck.release.questions import check_questions
from limbeck.run import tuning as _tuning

# ---- choices ---------------------------------------------------------------------------------


def _candidates() -> list[lk.DPMERF]:
    return [lk.DPMERF(**TINY | {"features": n}) for n in (24, 26, 28)]


def test_tune_publishes_nothing_that_verify_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = _tuning.make_certificate

    def wrong(*given: Any, **told: Any) -> dict[str, Any]:
        made = make(*given, **told)
        made["accounting"]["epsilon"] = 0.5
        return made

    monkeypatch.setattr(_tuning, "make_certificate", wrong)
    data = lk.read(table_rows(60), table_schema())
    several = [lk.DPMERF(**TINY | {"steps": n}) for n in (1, 2)]
    with pytest.raises(lk.ReleaseError, match="claims"):
        lk.tune(data, several, EPSILON, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_the_number_of_runs_of_a_search_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By coins of the run's own secret, and so is what each of them tries; all is in the certificate."""
    asked: list[float] = []
    below: list[int] = []

    def draw_runs(coins: Any, mean: float) -> int:
        asked.append(mean)
        draw = coins.below

        def noted(limit: int) -> int:
            below.append(limit)
            return draw(limit) * 0 + 2

        coins.below = noted
        return 1

    monkeypatch.setattr(_tuning, "draw_runs", draw_runs)
    data = lk.read(table_rows(60), table_schema())
    release = lk.tune(data, _candidates(), EPSILON, out=tmp_path / "r")
    assert asked == [3.0] and below == [3]
    assert release.certificate["method"]["settings"]["features"] == 28
    assert len(release.certificate["method"]["chosen_among"]["candidates"]) == 3


def test_candidates_of_random_stopping_are_held_against_the_method() -> None:
    schema, budget = table_schema(), lk.Budget(3.0, 1e-5)
    from limbeck.planning import charges_of, plan_stopping

    plans = plan_stopping(_candidates(), schema, budget, share=0.1, mean=3.0)
    several = [
        {"settings": p.method.settings(), "charges": [c.facts() for c in p.charges]} for p in plans
    ]
    assert [c.name for c in charges_of(plans[0].method, schema, budget, estimated=(), candidates=1)]
    chosen = {"way": "random stopping", "learner": "x", "share": 0.1, "mean_runs": 3.0}
    made = _certificate.make_certificate(
        plans[0], plans[0].charges, schema, seeded=False, law=False, source="declared",
        public_seed=0, chosen_among=chosen | {"candidates": several},
    )  # fmt: skip
    made = json.loads(json.dumps(made))
    check_questions(made, schema, lk.DPMERF)
    for number in (0, 2):
        changed = copy.deepcopy(made)
        changed["method"]["chosen_among"]["candidates"][number]["charges"][-1]["coordinates"] += 1
        with pytest.raises(lk.ReleaseError, match="is not what"):
            check_questions(changed, schema, lk.DPMERF)


# ---- measured scores -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(sealed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scores") / "scores.json"
    test = lk.read(table_rows(60, seed=5), table_schema())
    release = lk.Release.load(sealed)
    lk.measure_scores(release, test, 1.0, seed=3, out=place)
    return place


def test_measured_scores_say_what_was_done(scores: Path) -> None:
    found = json.loads(scores.read_text())["certificate"]
    assert found["noise"]["seeded"] and not found["releasable"]
    assert found["not_releasable_because"][0].startswith("seeded")
    assert found["method"]["rows_seed"] is None


def test_measured_scores_cannot_be_changed_unnoticed(scores: Path, tmp_path: Path) -> None:
    """More numbers than were paid for, cheaper ones, figures that do not follow."""
    whole = json.loads(scores.read_text())

    def more(facts: dict[str, Any]) -> None:
        facts["counts"] = [[*row, 1.0, 2.0] for row in facts["counts"]]

    def cheaper(facts: dict[str, Any]) -> None:
        charges = [Charge(**c | {"sensitivity": 0.5}) for c in facts["certificate"]["charges"]]
        budget = lk.Budget(1.0, facts["certificate"]["guarantee"]["delta"])
        from limbeck.release import accounting

        priced = calibrate(charges, [1.0, 1.0], budget)
        facts["certificate"]["charges"] = [c.facts() for c in priced]
        facts["certificate"]["accounting"] = accounting(cost(priced, budget))

    def nicer(facts: dict[str, Any]) -> None:
        facts["figures"]["accuracy"]["value"] = 0.99

    def repriced(**cheaper: Any) -> Any:
        """Fields of a charge that would make the same noise cost less, all figures following."""

        def change(facts: dict[str, Any]) -> None:
            from limbeck.release import accounting

            made = facts["certificate"]
            budget = lk.Budget(1.0, made["guarantee"]["delta"])
            charges = [Charge(**c | cheaper) for c in made["charges"]]
            made["charges"] = [c.facts() for c in charges]
            made["accounting"] = accounting(cost(charges, budget))

        return change

    changes = [(more, "pays for"), (cheaper, "pay for"), (nicer, "does not follow")]
    changes += [
        (repriced(sampling=0.1), "pay for"),
        (repriced(mechanism="permute-and-flip"), "pay for"),
    ]
    for change, told in changes:
        facts = copy.deepcopy(whole)
        change(facts)
        (tmp_path / "scores.json").write_text(json.dumps(facts))
        with pytest.raises(lk.ReleaseError, match=told):
            lk.MeasuredScores.load(tmp_path / "scores.json")


def test_a_certificate_that_nobody_can_read_is_refused(sealed: Path, tmp_path: Path) -> None:
    """Other kinds of values in every place are one clear line, never a traceback."""
    folder = Path(shutil.copytree(sealed, tmp_path / "r"))
    for path in (
        ("charges",),
        ("guarantee", "epsilon"),
        ("data", "schema"),
        ("method",),
        ("check",),
    ):
        for other in (None, 7, "x", [], {}, [1], {"a": 1}):

            def change(c: dict[str, Any], path: Any = path, other: Any = other) -> None:
                place = c
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = other

            tamper(folder, change)
            with pytest.raises(lk.ReleaseError) as refused:
                lk.verify(folder)
            assert "\n" not in str(refused.value)
            shutil.copy(sealed / "certificate.json", folder / "certificate.json")
