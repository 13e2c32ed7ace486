"""The conformance suite: each law, for every method in `laws.CASES`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import folder_bytes
from laws import CASES, Case, release_in_law_mode, verb

import limbeck as lk
from limbeck.audits.replay import Replay, replayed
from limbeck.methods import METHODS, Generated
from limbeck.nets import generate
from limbeck.privacy import Noise, Private
from limbeck.release import draw

# One process compiles a case's programs and keeps them for all laws.
each_case = pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.xdist_group(c.name), id=c.name) for c in CASES]
)


@functools.cache
def released(case: Case) -> lk.Release | lk.Model:
    """A release of a case, for all laws that only look at one."""
    return verb(case.method)(case.dataset(case.rows()), case.method, lk.Budget(1.0), seed=3)


def _size(drawn: lk.Images | pd.DataFrame) -> int:
    return len(drawn.images if isinstance(drawn, lk.Images) else drawn)


def test_every_method_is_under_the_laws() -> None:
    private = {name for name, method in METHODS.items() if not method.needs_bare_rows}
    assert {c.method.name for c in CASES} == private


@each_case
def test_infinite_noise_hides_everything(case: Case, tmp_path: Path) -> None:
    """Two data sets that differ in all rows, in number and in class balance: the same bytes."""
    one = release_in_law_mode(case, case.rows(), tmp_path / "one")
    two = release_in_law_mode(case, case.other(), tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []


@each_case
def test_law_mode_is_not_the_real_thing(case: Case, tmp_path: Path) -> None:
    """The law above can fail: without law mode the two releases do differ."""
    made = []
    for name, rows in (("one", case.rows()), ("two", case.other())):
        ledger = lk.Ledger(tmp_path / f"{name}.sqlite")
        release = verb(case.method)(
            case.dataset(rows),
            case.method,
            lk.Budget(1.0),
            seed=5,
            out=tmp_path / name,
            ledger=ledger,
        )
        assert "seeded" in release.certificate["not_releasable_because"][0]
        made.append(folder_bytes(tmp_path / name))
    kept = "distilled.npz" if case.method.fixed_size else "measurements.npz"
    kept = "model.npz" if case.method.makes == "model" else kept
    assert made[0][kept] != made[1][kept]


@each_case
def test_no_neighbour_moves_a_measurement_beyond_its_sensitivity(case: Case) -> None:
    """Every row is taken out in turn, noise frozen: each measurement moves within its charge.

    Questions may depend on earlier answers: the run without a row is told those of the whole one,
    so that both are asked the same. Coins of sampled gradients are each record's own.
    """
    rows, size = case.rows(), 5

    def without(gone: int | None) -> object:
        keep = [i for i in range(size) if i != gone]
        return rows.iloc[keep] if isinstance(rows, pd.DataFrame) else (rows[0][keep], rows[1][keep])

    _hold_to_charges(case, without(None), [without(gone) for gone in range(size)])


OF_PERSONS = {
    case.name if case.schema.rules else case.method.name: case
    for case in CASES
    if not case.schema.image
}
"""A case of each method for tables, and all that have rules between columns."""


@pytest.mark.parametrize("case", OF_PERSONS.values(), ids=lambda c: c.name)
def test_no_person_moves_a_measurement_beyond_its_sensitivity(case: Case) -> None:
    """The same with persons of one to four rows, of which three are kept, in all classes."""
    person = lk.Person(column="id", rows_at_most=3, persons=150, rows_per_person="estimate")
    case = replace(case, schema=replace(case.schema, person=person))
    if not all(asked.question.persons for asked in case.method.questions(case.schema)):
        assert not type(case.method).__module__.startswith("limbeck."), "ours are bounded so"
        pytest.skip("a kind of another package that is bounded for rows alone")
    rows = case.rows()[:9].assign(  # type: ignore[index]
        id=["a", "b", "b", "c", "c", "c", "c", "d", None],
        ill=["no", "yes", "no", "no", "yes", "unsure", "yes", "no", "no"],
    )
    _hold_to_charges(case, rows, [rows[rows["id"] != gone] for gone in "bc"])


def _hold_to_charges(case: Case, rows: object, neighbours: Sequence[object]) -> None:
    """Each measurement moves from rows to neighbouring ones, but within its charge."""
    found = Replay(lk.plan(case.method, case.schema, lk.Budget(1.0)))
    found.begin(case.dataset(rows))
    for number, some in enumerate(neighbours):
        found.compare(f"neighbour {number}", case.dataset(some))
    assert found.broken == []
    for name, charge in found.charges.items():
        assert found.moved[name] > 0 or charge.sampling is not None, name  # a batch may be empty


def _measured(
    case: Case, data: lk.Dataset, *, epsilon: float = 1.0, noise_seed: int = 0
) -> Mapping[str, np.ndarray]:
    """Every answer in numbers that `Private` gives in a run, with frozen noise."""
    made = lk.plan(case.method, case.schema, lk.Budget(epsilon))
    seen = replayed(made, data, {}, noise_seed=noise_seed).seen
    return {name: values for name, values in seen.items() if values.dtype.kind == "f"}


@each_case
def test_charged_is_executed(case: Case) -> None:
    release = released(case)
    planned = lk.plan(case.method, case.schema, lk.Budget(1.0), check=True)
    assert release.certificate["charges"] == [c.facts() for c in planned.charges]


@each_case
def test_an_unexecuted_charge_is_an_error(case: Case) -> None:
    planned = lk.plan(case.method, case.schema, lk.Budget(1.0))
    data = case.dataset(case.rows())
    private = Private(data, planned.questions, planned.unit, Noise.from_seed(0))
    with pytest.raises(RuntimeError, match="planned"):
        private.executed()


@each_case
def test_released_values_are_declared_ones(case: Case) -> None:
    release = released(case)
    if isinstance(release, lk.Model):
        predicted = release.predict(case.rows())[release.label]
        assert set(predicted.tolist()) <= set(case.schema.classes)
        return
    if isinstance(release.data, lk.Images):
        assert release.data.images.dtype == np.uint8
        assert set(release.data.labels.tolist()) <= set(case.schema.classes)
        return
    assert list(release.data.columns) == [c.name for c in case.schema.columns]
    again = lk.read(release.data, release.schema)._encoded()
    assert (again.labels >= 0).all()
    for i, column in enumerate(release.schema.inputs):
        if isinstance(column, lk.Category):
            assert (again.cells[:, i] >= 0).all()
    for column in release.schema.columns:  # beside rules, not all of them are learned
        if not getattr(column, "missing", False):
            assert not release.data[column.name].isna().any()


@each_case
def test_infinite_epsilon_walks_the_same_road_without_noise(case: Case) -> None:
    """Noise zero recovers the exact sums: the same with any noise seed, counts as counted by hand."""
    budget = lk.Budget(float("inf"))
    data = case.dataset(case.rows())
    with pytest.raises(lk.LimbeckError, match="non_private"):
        verb(case.method)(data, case.method, budget)
    release = verb(case.method)(data, case.method, budget, seed=1, non_private=True)
    assert release.certificate["guarantee"]["epsilon"] == "infinity"
    assert not release.certificate["releasable"]
    one, two = (_measured(case, data, epsilon=budget.epsilon, noise_seed=s) for s in (1, 2))
    charges = lk.plan(case.method, case.schema, budget).charges
    assert one.keys() == two.keys()
    # Which teacher a row is dealt to is drawn, as are Poisson batches.
    sampled = tuple(c.name for c in charges if c.sampling is not None)
    fixed = [name for name in one if not name.startswith(("teachers' ", *sampled))]
    assert fixed or all(c.sampling is not None for c in charges)
    for name in fixed:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    if "class counts" in {c.name for c in charges}:
        # Bins of a target follow the bounds that were found.
        labels = data.with_schema(release.schema)._encoded().labels
        counts = np.bincount(labels[labels >= 0], minlength=max(1, len(case.schema.classes)))
        np.testing.assert_allclose(release.measurements["class counts"].ravel(), counts, atol=1e-3)


@each_case
@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_rows_still_give_a_release(case: Case, count: int, tmp_path: Path) -> None:
    rows = case.rows()
    few = (
        rows.iloc[:count] if isinstance(rows, pd.DataFrame) else (rows[0][:count], rows[1][:count])
    )
    verb(case.method)(case.dataset(few), case.method, lk.Budget(1.0), out=tmp_path / "release")
    assert lk.verify(tmp_path / "release").epsilon <= 1.0 + 1e-6


@each_case
def test_strange_rows_still_give_a_release(case: Case, tmp_path: Path) -> None:
    rows = case.rows()
    if isinstance(rows, pd.DataFrame):
        rows["income"] = [np.nan, np.inf, -np.inf, 1e300] + [7.0] * (len(rows) - 4)
        rows["age"] = 50.0
        rows["town"] = None
        rows["ill"] = "no"
    else:
        images = rows[0].astype(np.float64)
        images[0], images[1] = np.nan, np.inf
        rows = images, np.zeros_like(rows[1])
    verb(case.method)(case.dataset(rows), case.method, lk.Budget(1.0), out=tmp_path / "release")
    assert lk.verify(tmp_path / "release").epsilon <= 1.0 + 1e-6


@each_case
def test_release_survives_saving_and_loading(case: Case, tmp_path: Path) -> None:
    made = released(case)
    made.save(tmp_path / "release")
    if isinstance(made, lk.Model):
        told = [model.predict(case.rows()) for model in (made, lk.Model.load(tmp_path / "release"))]
        pd.testing.assert_frame_equal(*told)
        return
    read = lk.Release.load(tmp_path / "release")
    if case.method.fixed_size:
        for release in (made, read):
            with pytest.raises(lk.LimbeckError, match="fixed set"):
                release.sample(17)
        assert np.array_equal(made.source.slots, read.source.slots)
        assert np.array_equal(made.source.labels, read.source.labels)
        return
    some = _size(made.data) - 17  # few enough for the program that drew the first
    one, two = made.sample(some, seed=1), read.sample(some, seed=1)
    for drawn in (one, two):
        assert _size(drawn) == some
    if isinstance(one, lk.Images):
        assert np.array_equal(one.images, two.images) and np.array_equal(one.labels, two.labels)
        assert np.array_equal(made.data.images, read.data.images)
    else:
        pd.testing.assert_frame_equal(one, two)
        assert len(made.data) == len(read.data)


@each_case
def test_a_drawn_row_does_not_depend_on_its_neighbours(case: Case) -> None:
    """Generators have no batch statistics left once they are released."""
    made = released(case)
    if isinstance(made, lk.Model) or not isinstance(made.source, Generated):
        pytest.skip("no generator")
    rng, rows = np.random.default_rng(0), _size(made.data)  # as many as were: no new program
    nine, drawn = rng.standard_normal((9, made.source.generator.code)), []
    for _ in range(2):
        codes = rng.standard_normal((rows, nine.shape[1])).astype(np.float32)
        labels = rng.integers(0, len(case.schema.classes), rows)
        codes[:9], labels[:9] = nine, np.arange(9) % len(case.schema.classes)
        drawn.append(generate(made.source.generator, codes, labels))
    one, two = drawn
    assert np.allclose(one[:9], two[:9], atol=1e-5)
    assert not np.allclose(one[9:], two[9:], atol=1e-5)


def test_a_canary_is_nowhere_in_the_release(tmp_path: Path) -> None:
    """A row's own bytes, as text or as numbers, are in no released file."""
    case = CASES[0]
    rows = case.rows()
    rows.loc[:, "town"] = "canary-7319"
    rows.loc[:, "income"] = 613.8675309
    release = lk.distill(case.dataset(rows), case.method, lk.Budget(1.0), out=tmp_path / "release")
    needles = [b"canary-7319", b"613.8675309", np.float64(613.8675309).tobytes()]
    cell = case.schema.inputs[1].encode(np.array([613.8675309]))
    needles.append(cell.astype(np.float32).tobytes())
    for name, content in folder_bytes(tmp_path / "release").items():
        assert not any(needle in content for needle in needles), name
    assert release.certificate["releasable"]


def test_every_declared_category_is_reachable() -> None:
    """Even those that no row holds: the generator's softmax gives each some weight."""
    case = CASES[0]
    release = lk.distill(case.dataset(case.rows()), case.method, lk.Budget(1.0), seed=0)
    weights = np.full(len(case.schema.classes), 1 / len(case.schema.classes))
    drawn = draw(case.schema, replace(release.source, class_weights=weights), 20_000, seed=0)
    for column in case.schema.columns:
        if isinstance(column, lk.Category):
            seen = set(drawn[column.name].dropna().unique().tolist())
            assert seen == set(column.values), column.name
            assert not column.missing or drawn[column.name].isna().any()
