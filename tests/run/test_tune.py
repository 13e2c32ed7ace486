"""Private choice of settings: both ways, what they cost, what they keep to themselves."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import FEW, TINY, folder_bytes

import limbeck as lk
from limbeck.accounting import Budget, Charge, calibrate_stopping, draw_runs, stopping_cost
from limbeck.cli import main as cli
from limbeck.evaluation import Linear, LinearNumber, learn, released_data
from limbeck.planning import CHECK
from limbeck.privacy import Noise, Sum
from limbeck.run import Near, Right

BUDGET = lk.Budget(1.0, 1e-5)
FREE = [lk.Marginals(soft_rows=60, steps=5, restraint=r) for r in (1.0, 0.2)]
NOT_FREE = [lk.DPMERF(**(TINY | {"features": n})) for n in (8, 24)]  # type: ignore[arg-type]


def schema(filter_name: str = "sum") -> lk.Schema:
    return lk.Schema(
        dataset="people",
        rows=600,
        lifetime=lk.Lifetime(epsilon=3.0, delta=1e-4, filter=filter_name),
        columns=(
            lk.Numeric(name="age", min=0.0, max=100.0),
            lk.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )


def rows(count: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, count)
    return pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")})


def unlike() -> pd.DataFrame:
    return rows(31, seed=9).assign(ill="no", age=np.nan)


@pytest.mark.parametrize("way", [FREE, NOT_FREE], ids=["free", "stopping"])
def test_a_choice_is_certified_and_charged_once(way, tmp_path: Path) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    release = lk.tune(lk.read(rows(), schema()), way, BUDGET, out=tmp_path / "out", ledger=book)
    chosen = release.certificate["method"]["chosen_among"]
    settings = [c["settings"] for c in chosen["candidates"]]
    assert release.certificate["method"]["settings"] in settings and len(settings) == 2
    assert lk.verify(tmp_path / "out").epsilon == pytest.approx(1.0, rel=2e-3)
    (account,) = book.accounts()
    (booked,) = account.runs
    assert booked.status == "done" and booked.epsilon <= 1.0 * (1 + 1e-9)
    assert booked.epsilon == pytest.approx(1.0, rel=2e-3)
    assert not list((tmp_path / "jobs").rglob("*"))  # nothing of losing runs is left
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["jobs", "out"]


@pytest.mark.parametrize("way", [FREE, NOT_FREE], ids=["free", "stopping"])
def test_without_data_the_rows_do_not_matter(way, tmp_path: Path) -> None:
    folders = []
    for number, side in enumerate((rows(), unlike())):
        book = lk.Ledger(tmp_path / f"book{number}" / "ledger.sqlite")
        out = tmp_path / f"out{number}"
        zero = Noise.from_seed(3, law=True)
        lk.tune(lk.read(side, schema()), way, BUDGET, out=out, ledger=book, noise=zero)
        folders.append(folder_bytes(out))
    assert folders[0] == folders[1]


@pytest.mark.parametrize("winner", [0, 1])
def test_the_better_candidate_wins(winner: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a learner that is always right about one candidate and always wrong about the other."""
    right = np.array([[-1.0, 1.0], [0.5, -0.5]], np.float32)  # ill from half of the range on
    made = iter([right if number == winner else -right for number in range(2)])
    monkeypatch.setattr(
        "limbeck.run.tuning.learn", lambda *told: (Linear(next(made)), "a fixed one")
    )
    release = lk.tune(lk.read(rows(), schema()), FREE, BUDGET, seed=0)
    assert release.certificate["method"]["settings"] == FREE[winner].settings()
    assert release.certificate["method"]["chosen_among"]["learner"] == "a fixed one"


def heights(count: int = 600) -> pd.DataFrame:
    return rows(count).assign(height=lambda r: 40 + r["age"]).drop(columns="ill")


def with_target() -> lk.Schema:
    height = lk.Numeric(name="height", min=0, max=200, target=True)
    return replace(schema(), dataset="heights", columns=(*schema().columns[:1], height))


@pytest.mark.parametrize("way", [FREE, NOT_FREE], ids=["free", "stopping"])
def test_candidates_are_compared_by_a_number_that_they_predict(way, tmp_path: Path) -> None:
    data = lk.read(heights(), with_target())
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    release = lk.tune(data, way, BUDGET, out=tmp_path / "out", ledger=book)
    chosen = release.certificate["method"]["chosen_among"]
    assert chosen["learner"] == "linear regression"
    assert lk.verify(tmp_path / "out").epsilon == pytest.approx(1.0, rel=2e-3)


@pytest.mark.parametrize("winner", [0, 1])
def test_the_better_prediction_of_a_number_wins(
    winner: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = np.array([0.5, 0, 0.2], np.float32), np.array([0.5, 0, 0.5], np.float32)
    ways = [good, bad][:: 1 if winner == 0 else -1]
    given = iter([(LinearNumber(weights, at=1), "fixed") for weights in ways])
    monkeypatch.setattr("limbeck.run.tuning.learn", lambda released: next(given))
    release = lk.tune(lk.read(heights(), with_target()), FREE, BUDGET, seed=0)
    assert release.certificate["method"]["settings"] == FREE[winner].settings()


def test_a_prediction_of_a_number_does_not_look_at_it() -> None:
    released = released_data(lk.distill(lk.read(heights(), with_target()), FREE[0], 2.9, seed=0))
    learned, _ = learn(released)
    assert isinstance(learned, LinearNumber) and learned.weights[learned.at] == 0
    slots = np.random.default_rng(1).random((50, 2), dtype=np.float32)
    near, _ = Near(np.stack([learned.weights, 3 * learned.weights]), learned.at)(
        slots, np.zeros(50)
    )
    assert float(np.linalg.norm(np.asarray(near), axis=1).max()) <= np.sqrt(2) / 2 + 1e-6
    exact = np.stack([slots[:, 0], 0.2 + 0.5 * slots[:, 0]], axis=1).astype(np.float32)
    one, _ = Near(learned.weights[None], learned.at)(exact, np.zeros(50))
    assert float(np.asarray(one).mean()) > 0.5  # 600 rows are enough for a straight line


def test_measurements_are_paid_once() -> None:
    """The comparison takes its share and no more: the method's noise grows by a few percent."""
    alone = lk.plan(FREE[0], schema(), BUDGET, check=True)
    release = lk.tune(lk.read(rows(), schema()), FREE, BUDGET, seed=0)
    noise = {c["name"]: c["noise_multiplier"] for c in release.certificate["charges"]}
    for charge in alone.charges:
        share = 1.0 if charge.name == CHECK else 0.9
        assert noise[charge.name] == pytest.approx(charge.noise_multiplier / share**0.5, rel=1e-6)
    assert lk.redistill(release, {"steps": 2}).certificate["method"]["chosen_among"]


def test_random_stopping_costs_less_than_trying_all() -> None:
    one = Charge(name="a", sensitivity=1.0, coordinates=4)
    budget = Budget(1.0, 1e-5)
    (found,) = calibrate_stopping([[one]], [[1.0]], budget, 4.0)
    price = stopping_cost([found], budget, 4.0)
    assert price.epsilon <= 1.0 and price.epsilon == pytest.approx(1.0, rel=2e-3)
    factor = found[0].noise_multiplier / 3.7306
    assert 1.5 < factor < 2.0  # trying all four would be 2.0
    from dp_accounting.dp_event import GaussianDpEvent, RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    from limbeck.accounting.stopping import ORDERS

    peer = RdpAccountant(list(ORDERS))
    peer.compose(RepeatAndSelectDpEvent(GaussianDpEvent(found[0].noise_multiplier), 4.0, 0.0))
    assert peer.get_epsilon(1e-5 - price.slack) == pytest.approx(price.epsilon, rel=1e-9)


def test_progress_does_not_tell_the_number_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The price holds for the winner alone, whatever the number of runs: so none may show."""
    drawn, told = iter([1, 4]), []
    monkeypatch.setattr("limbeck.run.tuning.draw_runs", lambda coins, mean: next(drawn))
    for seed in (1, 2):
        seen: list[tuple[str, float]] = []
        lk.tune(
            lk.read(rows(), schema()), NOT_FREE, BUDGET, seed=seed,
            progress=lambda phase, done, seen=seen: seen.append((phase, done)),
        )  # fmt: skip
        told.append(seen)
    assert told[0] == told[1] and told[0][-1] == ("candidates", 1.0)


def test_a_resumed_choice_never_mixes_the_plans_of_its_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is booked is one charge for all; what its parts would ask counts, too."""
    book, data = lk.Ledger(tmp_path / "ledger.sqlite"), lk.read(rows(), schema())

    def die(*told: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("limbeck.run.tuning._tried", die)
        lk.tune(data, NOT_FREE, BUDGET, ledger=book)
    with monkeypatch.context() as patched, pytest.raises(lk.LimbeckError, match="two plans"):
        patched.setattr(
            "limbeck.planning.choice_of",
            lambda n: Sum(name="choice", bound=1.5, size=n, groups=1, by="map"),
        )
        lk.tune(data, NOT_FREE, BUDGET, ledger=book)
    lk.tune(data, NOT_FREE, BUDGET, ledger=book)
    assert [r.status for r in book.accounts()[0].runs] == ["done"]


def test_the_number_of_runs_has_its_mean() -> None:
    noise = Noise.from_seed(0)
    drawn = [draw_runs(noise.stream(f"{i}"), 3.0) for i in range(4000)]
    assert min(drawn) == 1 and np.mean(drawn) == pytest.approx(3.0, abs=0.25)


def test_rows_move_the_comparison_by_no_more_than_its_bound() -> None:
    weights = np.random.default_rng(0).standard_normal((5, 4, 3)).astype(np.float32)
    compare = Right(weights)
    slots = np.random.default_rng(1).random((200, 3), dtype=np.float32)
    right, _ = compare(slots, np.arange(200) % 3)
    assert float(np.linalg.norm(np.asarray(right), axis=1).max()) <= compare.norm_bound + 1e-6


def test_what_is_refused(tmp_path: Path, monkeypatch, capsys) -> None:
    given = lk.read(rows(), schema("rdp"))
    for candidates, budget, word in (
        (FREE[:1], BUDGET, "2 to 32 candidates"),
        ([*FREE, FREE[0]], BUDGET, "are the same"),
        ([FREE[0], NOT_FREE[0]], BUDGET, "several methods"),
        (FREE, lk.Budget(float("inf")), "finite epsilon"),
        (NOT_FREE, BUDGET, "rdp filter cannot"),
        (FREE, lk.Budget(9.0), "Budget spent"),
    ):
        with pytest.raises(lk.LimbeckError, match=word):
            lk.tune(given, candidates, budget, seed=0)
    rows().to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "schema.toml").write_text(schema().toml())
    words = ["distill", tmp_path / "rows.csv", "--schema", tmp_path / "schema.toml"]
    words += ["--epsilon", "1", "--out", tmp_path / "out", "--method", "marginals"]
    words += ["--set", "soft_rows=60", "--tune"]
    assert _run(*words, "steps=3", monkeypatch=monkeypatch) == 2
    assert "two values or more" in capsys.readouterr().err
    assert _run(*words, "steps=[1, 20]", monkeypatch=monkeypatch) == 0
    assert "chosen among 2 candidates by one set of measurements" in capsys.readouterr().out
    changed = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert lk.verify(tmp_path / "out").epsilon <= 1 + 1e-9
    from limbeck.release import check_questions

    changed["method"]["chosen_among"] = None
    with pytest.raises(lk.ReleaseError, match="choice"):
        check_questions(changed, lk.Schema.load(tmp_path / "out" / "schema.toml"), lk.Marginals)


def test_sampled_gradients_may_be_tuned() -> None:
    ways = [lk.DPKIP(**(FEW | {"learning_rate": r})) for r in (0.01, 0.1)]  # type: ignore[arg-type]
    release = lk.tune(lk.read(rows(), schema()), ways, lk.Budget(2.0, 1e-5), seed=1)
    assert release.certificate["accounting"]["basis"] == "RDP of random stopping"


def _run(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)
