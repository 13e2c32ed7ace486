"""AIM, MST and PrivBayes: what they choose, the models they fit, the rows drawn from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.methods.graphical.conditional_tables import ConditionalTable, draw_codes
from limbeck.methods.graphical.fit_model import NoisyTable, fit_model
from limbeck.methods.graphical.graphical import Knowledge
from limbeck.methods.graphical.junction_tree import axes_without, junction_tree, tree_cells
from limbeck.methods.graphical.privbayes import _given_parents
from limbeck.methods.graphical.variables import Variables, expected_counts

SIZES = (3, 4, 2, 5, 3)
CLIQUES = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]
METHODS = {"aim": lk.AIM(rounds=4), "mst": lk.MST(), "privbayes": lk.PrivBayes()}


def _exact(cliques: list[tuple[int, ...]], total: float = 10_000) -> list[NoisyTable]:
    """Counts of cliques of some joint table."""
    joint = np.random.default_rng(0).dirichlet(np.full(360, 0.3)).reshape(SIZES) * total
    return [NoisyTable(c, joint.sum(axis=axes_without(c, (0, 1, 2, 3, 4))), 1.0) for c in cliques]


def test_what_cliques_of_a_tree_share_lies_on_the_paths_between_them() -> None:
    """The defining law of junction trees, on random cliques."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        cliques = [tuple(sorted(rng.choice(8, rng.integers(1, 4), False))) for _ in range(7)]
        tree = junction_tree([2] * 8, cliques, root=7)
        assert 7 in tree.cliques[0]
        assert all(any(set(c) <= set(held) for held in tree.cliques) for c in cliques)
        before: set[int] = set()
        for clique, shared in zip(tree.cliques, tree.separators, strict=True):
            assert set(shared) == set(clique) & before
            before |= set(clique)
        assert before == set(range(8))
        assert tree_cells([2] * 8, cliques) == sum(2 ** len(c) for c in tree.cliques)


def test_a_model_has_the_marginals_it_was_fitted_to() -> None:
    measured = _exact(CLIQUES)
    model = fit_model(SIZES, measured, 10_000, steps=300)
    for table in measured:
        home = model.tree.home(table.clique)
        counts = model.marginals[home].sum(
            axis=axes_without(table.clique, model.tree.cliques[home])
        )
        np.testing.assert_allclose(counts, table.counts, atol=0.1)


def test_a_model_assumes_no_more_dependence_than_was_measured() -> None:
    """Of all tables with the counts measured, the one of largest entropy: here 0 and 2 given 1."""
    measured = _exact([(0, 1), (1, 2), (3, 4)])
    model = fit_model(SIZES, measured, 10_000, steps=300)
    codes = draw_codes(model.tables(), 200_000, 5, np.random.default_rng(0))
    first, second = (t.counts for t in measured[:2])
    wanted = first[:, :, None] * second[None] / second.sum(axis=1)[None, :, None]
    drawn = np.zeros((3, 4, 2))
    np.add.at(drawn, tuple(codes[:, :3].T), 10_000 / 200_000)
    assert np.abs(drawn - wanted).sum() / 2 < 0.01 * 10_000


def test_counts_of_one_clique_are_weighed_by_their_noise() -> None:
    """Twice the same cells, once with ten times the noise: nearer to the truer ones, by 100 to 1."""
    tables = [
        NoisyTable((0,), np.array([600.0, 400.0]), 5.0),
        NoisyTable((0,), np.array([400.0, 600.0]), 50.0),
    ]
    model = fit_model((2,), tables, 1000, steps=300)
    assert model.marginals[0][0] == pytest.approx(600 - 200 / 101, abs=0.5)


def test_a_table_draws_in_its_proportions_and_survives_what_never_occurs() -> None:
    chances = np.array([[1.0, 3.0], [0.0, 0.0]])  # nothing is known where the first is 1
    codes = np.repeat([[0, 0], [1, 0]], 400, axis=0)
    ConditionalTable((0,), (1,), chances).draw(codes, np.random.default_rng(0))
    assert codes[:400, 1].sum() == pytest.approx(300, abs=1)
    assert codes[400:, 1].sum() == pytest.approx(300, abs=1)  # then as over all


def test_expected_counts_are_those_of_the_model() -> None:
    alone = [ConditionalTable((), (v,), np.ones(2)) for v in range(3)]
    counts = expected_counts(alone, [(0, 1), (0, 1, 2)], (2, 2, 2), 800, seed=0)
    np.testing.assert_allclose(counts, [200] * 4 + [100] * 8, rtol=0.05)


def _rows(count: int) -> pd.DataFrame:
    """The third column follows the first two, the label the third; the others follow nothing."""
    rng = np.random.default_rng(3)
    one, two = rng.integers(0, 2, (2, count))
    three = np.where(rng.random(count) < 0.95, one ^ two, rng.integers(0, 2, count))
    return pd.DataFrame(
        {
            "one": one, "two": two, "three": three, "noise": rng.integers(0, 3, count),
            "size": rng.normal(50 + 20 * three, 8).clip(0, 100),
            "ill": np.where(rng.random(count) < 0.9, three, 1 - three),
        }
    ).astype({"size": float})  # fmt: skip


def _schema() -> lk.Schema:
    names = {"one": 2, "two": 2, "three": 2, "noise": 3}
    columns = [lk.Category(name=n, values=tuple(range(k))) for n, k in names.items()]
    size = lk.Numeric(name="size", min=0, max=100)
    label = lk.Category(name="ill", values=(0, 1), label=True)
    return lk.Schema(dataset="xor", rows=5000, columns=(*columns, size, label))


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, lk.Release]:
    folder = tmp_path_factory.mktemp("graphical")
    data = lk.read(_rows(5000), _schema())
    return {
        name: lk.distill(
            data, method, lk.Budget(3.0, 1e-6), seed=2, out=folder / name,
            ledger=lk.Ledger(folder / f"{name}.sqlite"),
        )
        for name, method in METHODS.items()
    }  # fmt: skip


def _xor(rows: pd.DataFrame) -> float:
    return float(
        (rows["one"].astype(int) ^ rows["two"].astype(int) == rows["three"].astype(int)).mean()
    )


def test_triples_are_found_where_pairs_say_nothing(releases: dict[str, lk.Release]) -> None:
    """Of an exclusive or, every pair is independent: a tree of pairs cannot hold it."""
    assert _xor(releases["aim"].data) > 0.9
    assert 0.4 < _xor(releases["mst"].data) < 0.6


@pytest.mark.parametrize("name", METHODS)
def test_what_depends_on_each_other_does_so_in_the_release(
    name: str, releases: dict[str, lk.Release]
) -> None:
    rows, real = releases[name].data, _rows(5000)
    for made in (rows, real):
        made["ill"] = made["ill"].astype(int)
    assert abs(rows["size"].corr(rows["ill"]) - real["size"].corr(real["ill"])) < 0.1
    assert abs(rows["size"].mean() - real["size"].mean()) < 3
    assert abs(rows["size"].corr(rows["noise"].astype(int))) < 0.1


@pytest.mark.parametrize("name", METHODS)
def test_releases_are_loaded_verified_drawn_from_and_made_anew(
    name: str, releases: dict[str, lk.Release], tmp_path: Path
) -> None:
    releases[name].save(tmp_path / name)
    again = lk.Release.load(tmp_path / name)
    pd.testing.assert_frame_equal(again.data, releases[name].data)
    found = lk.verify(tmp_path / name)
    assert found.verified and 2.9 < found.epsilon <= 3.0
    more = again.sample(500, where={"ill": 1, "size": (60, None)})
    assert (more["ill"].astype(int) == 1).all() and (more["size"] >= 60).all()
    even = again.sample(500, classes="even")
    assert even["ill"].astype(int).sum() == 250
    free = {"trust": 2.0} if name == "privbayes" else {"last_steps": 20}
    other = lk.redistill(again, free)
    assert other.certificate["charges"] == again.certificate["charges"]


def test_what_cannot_be_is_said_beforehand() -> None:
    image = lk.Schema(
        dataset="i", rows=10, columns=(lk.Image(name="image", height=4, width=4, channels=1),)
    )
    with pytest.raises(lk.LimbeckError, match="mst is a method for tables"):
        lk.plan(lk.MST(), image, 1.0)
    lone = lk.Schema(dataset="l", rows=10, columns=(lk.Numeric(name="x", min=0, max=1),))
    with pytest.raises(lk.LimbeckError, match="chooses among pairs of columns"):
        lk.plan(lk.PrivBayes(), lone, 1.0)
    wide = tuple(lk.Numeric(name=f"x{n}", min=0, max=1) for n in range(500))
    with pytest.raises(lk.LimbeckError, match="too many cliques for aim"):
        lk.plan(lk.AIM(), lk.Schema(dataset="w", rows=10, columns=wide), 1.0)
    with pytest.raises(lk.LimbeckError, match="groups > 1"):
        lk.MST(groups=1)
    with pytest.raises(lk.LimbeckError, match="all_shares"):
        lk.AIM(single_share=0.6, choice_share=0.5)


def test_a_tree_connects_all_columns_once(releases: dict[str, lk.Release]) -> None:
    release = releases["mst"]
    picks = [int(v[0]) for n, v in release.measurements.items() if n.startswith("choice")]
    method = lk.MST()
    pairs = [method._cliques(release.schema)[pick] for pick in picks]
    assert len(pairs) == 5 and tree_cells([2] * 6, pairs) == 5 * 4
    assert {v for pair in pairs for v in pair} == set(range(6))


def test_privbayes_chooses_no_more_parents_than_noise_leaves_rows_for() -> None:
    """1600 rows, three columns of 16 values, a label of two; the first column was drawn given the label."""
    columns = [lk.Category(name=n, values=tuple(range(16))) for n in "abc"]
    label = lk.Category(name="ill", values=(0, 1), label=True)
    schema = lk.Schema(dataset="wide", rows=1600, columns=(*columns, label))
    singles, classes = np.full(48, 100.0), np.full(2, 800.0)
    variables = Variables.of_counts(schema, 64, 16, singles, classes, 1.0)
    method = lk.PrivBayes()
    known = NoisyTable((0, 3), np.full((16, 2), 50.0), 1.0)
    knowledge = Knowledge(variables, method._cliques(schema), (known,))
    for noise, wanted in (
        (0.5, {(0, 1), (0, 2), (1, 3), (2, 3), (0, 1, 3), (0, 2, 3)}),
        (1.0, {(0, 1), (0, 2), (1, 3), (2, 3)}),
        (10.0, {(1, 3), (2, 3)}),
        (100.0, {(1, 3), (2, 3)}),  # too much for any: those with the fewest cells
    ):
        allowed = method.allowed(knowledge, schema, noise)
        assert {c for c, yes in zip(knowledge.cliques, allowed, strict=True) if yes} == wanted


def test_noise_in_empty_cells_of_privbayes_draws_no_rows() -> None:
    """Two columns of 16 values that are always equal: of the noise in 240 empty cells little is left."""
    rng = np.random.default_rng(0)
    real = np.diag(np.full(16, 100.0))
    table = NoisyTable((0, 1), real + rng.normal(0, 10, real.shape), 10.0)
    columns = tuple(lk.Category(name=n, values=tuple(range(16))) for n in "ab")
    schema = lk.Schema(dataset="equal", rows=1600, columns=columns)
    variables = Variables.of_counts(schema, 64, 16, np.full(32, 100.0), np.array([1600.0]), 1.0)
    drawn = _given_parents(table, 1, variables, trust=0.01).chances
    assert (
        np.trace(drawn) / drawn.sum() > 0.8
    )  # 0.62 where cells below zero are set to it one by one
