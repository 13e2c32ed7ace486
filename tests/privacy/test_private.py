"""The privacy boundary: sensitivity by brute force, plans kept, nothing decided by one row."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import ask, image_rows, image_schema, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st

import limbeck as lk
from limbeck._data import Rows
from limbeck.features import Fourier
from limbeck.privacy import Charge, Noise, Private, RowSums, calibrate
from limbeck.privacy._sampling import PoissonBatches, Records
from limbeck.privacy._sum import GridSum, clip_rows

NOISE = 3.7


class Wild:
    """A feature map that lies about its norm."""

    size = 5
    norm_bound = 0.1

    def __call__(self, rows: jax.Array) -> jax.Array:
        return 50.0 * rows[:, :5] - 7.0


def _sum_charge(size: int, classes: int, bound: float = 1.0) -> Charge:
    return Charge(name="sum", sensitivity=bound, coordinates=size * classes)


def _exact(data: lk.Dataset, features: object, size: int, bound: float = 1.0) -> np.ndarray:
    """The sum before noise: with the same frozen noise, only the data can move the answer."""
    private = ask(data, _sum_charge(size, len(data.schema.classes), bound))
    return private.sum("sum", features)  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [1.0, 0.2])
@pytest.mark.parametrize("kind", ["honest", "lying"])
def test_no_neighbour_moves_a_sum_beyond_its_sensitivity(kind: str, bound: float) -> None:
    """P9, P13, P14: brute force over every row that can be removed, noise frozen."""
    schema = table_schema()
    rows = table_rows(25, seed=3)
    rows.loc[0, "income"] = 1e12
    features = (
        Wild()
        if kind == "lying"
        else Fourier(slots=schema.slots, size=8, length_scales=(1.0,), key=jax.random.key(0))
    )
    whole = _exact(lk.read(rows, schema), features, features.size, bound)
    moves = []
    for i in range(len(rows)):
        without = _exact(lk.read(rows.drop(index=i), schema), features, features.size, bound)
        moves.append(np.linalg.norm(whole - without))
    assert max(moves) <= bound * (1 + 1e-12)
    assert max(moves) > 0.9 * bound  # the bound is used, not hidden behind zeros


def test_replacing_one_moves_a_sum_by_at_most_the_doubled_sensitivity() -> None:
    schema, rows = table_schema(), table_rows(20)
    features = Fourier(slots=schema.slots, size=8, length_scales=(1.0,), key=jax.random.key(0))
    planned = lk.plan(lk.DPMERF(features=8, steps=1), schema, lk.Budget(1.0, 1e-5, "replace-one"))
    charge = planned.charges[1]
    assert charge.sensitivity == 2.0
    one = Private(lk.read(rows, schema), planned.charges, planned.budget, Noise.from_seed(0))
    changed = rows.copy()
    changed.iloc[0] = table_rows(1, seed=77).iloc[0]
    two = Private(lk.read(changed, schema), planned.charges, planned.budget, Noise.from_seed(0))
    moved = one.sum(charge.name, features) - two.sum(charge.name, features)
    assert 0 < np.linalg.norm(moved) <= 2.0


def test_a_class_only_sees_its_own_rows() -> None:
    """P9: a record enters the sum of one class, never of all."""
    schema, rows = table_schema(), table_rows(40)
    features = Fourier(slots=schema.slots, size=8, length_scales=(1.0,), key=jax.random.key(0))
    whole = _exact(lk.read(rows, schema), features, 8)
    gone = rows[rows["ill"] != "yes"]
    without = _exact(lk.read(gone, schema), features, 8)
    assert np.array_equal(whole[[0, 2]], without[[0, 2]])
    assert not np.allclose(whole[1], without[1])


def test_sums_do_not_depend_on_order_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = table_schema(), table_rows(300)
    features = Fourier(slots=schema.slots, size=16, length_scales=(1.0,), key=jax.random.key(0))
    one = _exact(lk.read(rows, schema), features, 16)
    monkeypatch.setattr("limbeck.privacy._private.CHUNK_BYTES", 4096)
    two = _exact(lk.read(rows.sample(frac=1, random_state=1), schema), features, 16)
    # Features may differ in their last float32 bit with the shape; the sums of integers do not.
    assert np.allclose(one, two, atol=1e-4)


def test_partial_sums_merge_exactly() -> None:
    grid = GridSum(bound=1.0, noise=NOISE, groups=2, size=3)
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(90, 3)), rng.integers(-1, 2, 90)
    whole = grid.accumulate(rows, groups)
    parts = [grid.accumulate(rows[i::4], groups[i::4]) for i in range(4)]
    merged = grid.zero()
    for part in reversed(parts):
        merged = grid.merge(merged, part)
    assert np.array_equal(whole, merged) and whole.dtype == np.int64


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(width=64, allow_nan=True, allow_infinity=True), min_size=4, max_size=4),
    st.floats(1e-6, 1e6),
    st.sampled_from([0.5, 3.73, 60.0]),
)
def test_any_contribution_stays_within_the_bound(
    values: list[float], bound: float, multiplier: float
) -> None:
    """P23: huge, tiny, not a number: after clipping and rounding the norm is at most the bound."""
    grid = GridSum(bound=bound, noise=multiplier * bound, groups=1, size=4)
    whole = grid.accumulate(np.array([values]), np.array([0])).astype(object)
    square = sum(int(v) ** 2 for v in whole[0])
    assert math.isqrt(square) * grid.grid <= bound
    if not np.isfinite(values).all():
        assert square == 0


def test_noise_has_its_deviation_and_its_grid() -> None:
    grid = GridSum(bound=1.0, noise=NOISE, groups=1, size=200_000)
    drawn = grid.finalise(grid.zero(), Noise.from_seed(1).stream("x"))
    assert np.std(drawn) == pytest.approx(NOISE, rel=0.01)
    assert np.array_equal(np.rint(drawn / grid.grid) * grid.grid, drawn)


def test_too_many_features_for_the_grid_is_a_clear_error() -> None:
    grid = GridSum(bound=1.0, noise=1e6, groups=1, size=2000)
    with pytest.raises(lk.LimbeckError, match="too many"):
        grid.accumulate(np.zeros((1, 2000)), np.zeros(1))


def test_noise_zero_gives_the_plain_sum() -> None:
    schema, rows = table_schema(), table_rows(50)
    features = Fourier(slots=schema.slots, size=8, length_scales=(1.0,), key=jax.random.key(0))
    data = lk.read(rows, schema)
    got = ask(data, _sum_charge(8, 3), epsilon=math.inf).sum("sum", features)
    held = data._encoded()
    phi = np.asarray(features(schema.expand(held.cells)))
    plain = np.stack([phi[held.labels == c].sum(axis=0) for c in range(3)])
    assert np.allclose(got, plain, atol=1e-4)


def test_removing_a_row_changes_nothing_but_its_own_part() -> None:
    """Also across a power of two: other rows' features keep every bit, whatever n is."""
    schema = image_schema(size=28)
    images, _ = image_rows(65, size=28)
    labels = np.zeros(65, np.int64)
    features = Fourier(slots=784, size=1000, length_scales=(3.0,), key=jax.random.key(0))

    def total(keep: np.ndarray) -> np.ndarray:
        charge = _sum_charge(1000, 3)
        return ask(lk.read((images[keep], labels[keep]), schema), charge).sum("sum", features)

    everyone = np.arange(65)
    whole = total(everyone)
    grid = GridSum(bound=1.0, noise=3.7306, groups=3, size=1000)
    for gone in (0, 7, 64):
        moved = whole - total(np.delete(everyone, gone))
        assert np.linalg.norm(moved) <= 1.0
        alone = total(np.array([gone])) - total(np.array([], int))
        assert np.abs(moved - alone).max() < grid.grid / 2  # to the last step of the grid


class BatchCentred:
    """A feature map that looks at its neighbours: the classic mistake."""

    size, norm_bound = 4, 1.0

    def __call__(self, rows: jax.Array) -> jax.Array:
        return jnp.sign(rows[:, :4] - rows[:, :4].mean(axis=0))


def test_a_map_that_looks_at_its_neighbours_sees_none() -> None:
    schema, rows = table_schema(), table_rows(30)
    whole = _exact(lk.read(rows, schema), BatchCentred(), 4)
    for i in (0, 5, 29):
        without = _exact(lk.read(rows.drop(index=i), schema), BatchCentred(), 4)
        assert np.linalg.norm(whole - without) <= 1.0


class Narrow:
    """Says it has eight features and returns one, which must not be copied eight times."""

    size, norm_bound = 8, 1.0

    def __call__(self, rows: jax.Array) -> jax.Array:
        return rows[:, :1]


# ---- plans are kept --------------------------------------------------------------------------


def test_only_planned_questions_and_only_once() -> None:
    private = ask(
        lk.read(table_rows(9), table_schema()), Charge(name="n", sensitivity=1.0, coordinates=3)
    )
    with pytest.raises(RuntimeError, match="not planned"):
        private.histogram("other")
    private.histogram("n")
    with pytest.raises(RuntimeError, match="already"):
        private.histogram("n")


def test_more_coordinates_than_planned_are_refused() -> None:
    private = ask(lk.read(table_rows(9), table_schema()), _sum_charge(4, 3))
    with pytest.raises(RuntimeError, match="coordinates"):
        private.sum("sum", Wild())


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": 0.01},
        {"mechanism": "discrete laplace", "noise_multiplier": 1.0},
        {"steps": 3},
    ],
)
def test_a_question_must_be_the_one_that_was_priced(change: dict) -> None:
    """Sampling or another mechanism is never credited to a question that does not use it."""
    data = lk.read(table_rows(9), table_schema())
    charge = replace(_sum_charge(5, 3), noise_multiplier=4.0)
    for ask_it in (
        lambda p: p.sum("sum", Wild()),
        lambda p: p.frequent("sum", data.schema.columns[2]),
    ):
        private = Private(data, [replace(charge, **change)], lk.Budget(1.0), Noise.from_seed(0))
        with pytest.raises(RuntimeError, match="another kind|times are planned"):
            ask_it(private)
    private = Private(data, [charge], lk.Budget(1.0), Noise.from_seed(0))
    with pytest.raises(RuntimeError, match="another kind"):
        private.gradients("sum", _loss, rows=9)


@pytest.mark.parametrize("mechanism", ["discrete gaussian", "discrete laplace"])
def test_counts_have_sensitivity_one_whatever_a_charge_says(mechanism: str) -> None:
    charge = Charge(
        name="n", mechanism=mechanism, sensitivity=0.01, coordinates=3, noise_multiplier=1.0
    )
    private = Private(
        lk.read(table_rows(9), table_schema()), [charge], lk.Budget(1.0), Noise.from_seed(0)
    )
    with pytest.raises(RuntimeError, match="sensitivity"):
        private.histogram("n")


def test_features_of_another_shape_are_refused() -> None:
    data = lk.read(table_rows(9), table_schema())
    with pytest.raises(RuntimeError, match="shape"):
        ask(data, _sum_charge(8, 3)).sum("sum", Narrow())


def test_two_charges_cannot_share_a_name() -> None:
    with pytest.raises(RuntimeError, match="same name"):
        ask(lk.read(table_rows(9), table_schema()), _sum_charge(5, 3), _sum_charge(5, 3))


def test_rows_are_only_had_at_infinite_epsilon() -> None:
    data = lk.read(table_rows(9), table_schema())
    with pytest.raises(lk.LimbeckError, match="infinity"):
        ask(data, _sum_charge(5, 3)).raw("sum")
    private = ask(data, _sum_charge(5, 3), epsilon=math.inf)
    assert len(private.raw("sum")) == 9
    assert private.executed()[0].noise_multiplier == 0


def test_nothing_of_the_rows_shows_in_a_repr() -> None:
    data = lk.read(table_rows(987), table_schema())
    data._encoded()
    private = ask(data, _sum_charge(5, 3))
    assert "987" not in repr(data) + repr(private)


# ---- histograms ------------------------------------------------------------------------------


def test_histograms_count() -> None:
    rows = table_rows(4000)
    private = ask(
        lk.read(rows, table_schema()),
        Charge(name="n", sensitivity=1.0, coordinates=3),
        epsilon=10.0,
    )
    counts = private.histogram("n")
    truth = [(rows["ill"] == v).sum() for v in ("no", "yes", "unsure")]
    assert np.abs(counts - truth).max() < 5


def test_laplace_histograms_count_in_whole_numbers() -> None:
    rows = table_rows(4000)
    charge = Charge(
        name="n", mechanism="discrete laplace", sensitivity=1.0, coordinates=3, noise_multiplier=2.0
    )
    counts = ask(lk.read(rows, table_schema()), charge).histogram("n")
    assert np.array_equal(counts, np.rint(counts))
    assert abs(counts[0] - (rows["ill"] == "no").sum()) < 60


# ---- sampled gradients -----------------------------------------------------------------------


def _gradient_charge(steps: int = 4, sampling: float = 0.2, size: int = 10) -> Charge:
    return Charge(
        name="gradient",
        sensitivity=1.0,
        coordinates=size,
        sampling=sampling,
        noise_multiplier=1.0,
        steps=steps,
    )


def _loss(parameters: jax.Array, slots: jax.Array, label: jax.Array) -> jax.Array:
    return (jnp.dot(parameters, slots[:10]) - label) ** 2


def test_gradients_run_as_many_steps_as_charged_with_fresh_noise_and_batches() -> None:
    """P3, P15, P19: charged steps are executed steps; no two share noise."""
    data = lk.read(table_rows(300), table_schema())
    private = ask(data, _gradient_charge())
    oracle = private.gradients("gradient", _loss, rows=200)
    answers = [oracle(np.zeros(10, np.float32)) for _ in range(4)]
    assert len({a.tobytes() for a in answers}) == 4
    with pytest.raises(RuntimeError, match="already"):
        oracle(np.zeros(10, np.float32))
    assert private.executed() == list(private._planned.values())


@pytest.mark.parametrize("declared", [1, 200, 5000])
def test_gradient_sums_are_those_of_the_batch_whatever_its_declared_size(declared: int) -> None:
    """Overflowing batches come in pieces, none is cut; noise frozen, the sum is the clipped one."""
    data = lk.read(table_rows(300), table_schema())
    answers = []
    for size in (declared, 300):
        private = ask(data, _gradient_charge(steps=1, sampling=0.5))
        answers.append(private.gradients("gradient", _loss, rows=size)(np.ones(10, np.float32)))
    assert np.allclose(*answers, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 30])
def test_diverged_parameters_tell_nothing_of_the_rows(rows: int) -> None:
    """A sum that is not a number would say whether a batch was empty."""

    class Endless:
        def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> object:
            broken, ones = np.full(4, parameters.sum()), np.ones(len(labels))
            return RowSums(ones, ones, 1, lambda factors: broken * factors.sum())

    private = ask(lk.read(table_rows(rows), table_schema()), _gradient_charge(steps=1, size=4))
    oracle = private.gradients("gradient", Endless(), rows=30)
    empty = ask(lk.read(table_rows(0), table_schema()), _gradient_charge(steps=1, size=4))
    answer = oracle(np.full(4, np.nan))
    assert np.array_equal(
        answer, empty.gradients("gradient", Endless(), rows=30)(np.full(4, np.nan))
    )


def test_gradients_of_no_rows_are_noise_of_the_charged_scale() -> None:
    """P12: the noise that was charged is the noise that is added, fresh in every step."""

    def loss(parameters: jax.Array, slots: jax.Array, label: jax.Array) -> jax.Array:
        return parameters.sum() * slots[0]

    private = ask(lk.read(table_rows(0), table_schema()), _gradient_charge(steps=2, size=20_000))
    oracle = private.gradients("gradient", loss, rows=200)
    one, two = (oracle(np.zeros(20_000, np.float32)) for _ in range(2))
    assert np.std(one) == pytest.approx(private._planned["gradient"].noise, rel=0.02)
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05


def test_gradient_steps_see_poisson_batches() -> None:
    """P4, P15, P18: what a step really adds up are independent coins per row, fresh every step."""
    count, steps = 40, 150
    values = tuple(f"v{i}" for i in range(count))
    schema = lk.Schema(dataset="d", rows=count, columns=(lk.Category(name="c", values=values),))
    data = lk.read(pd.DataFrame({"c": values}), schema)
    charge = _gradient_charge(steps=steps, sampling=0.3, size=count)
    charge = replace(charge, noise_multiplier=1e-6)
    private = Private(data, [charge], lk.Budget(1.0), Noise.from_seed(0))
    oracle = private.gradients("gradient", lambda p, slots, label: jnp.dot(p, slots), rows=count)
    batches = np.array([oracle(np.zeros(count, np.float32)) for _ in range(steps)]).round(3)
    assert set(np.unique(batches)) == {0.0, 1.0}
    assert abs(batches.mean() - 0.3) < 0.03
    assert np.abs(batches.mean(axis=0) - 0.3).max() < 0.16
    assert batches.sum(axis=1).std() == pytest.approx(math.sqrt(count * 0.21), rel=0.25)
    assert np.abs(np.corrcoef(batches) - np.eye(steps)).mean() < 0.2


def test_gradients_of_another_size_are_refused() -> None:
    """One parameter must not be copied over a hundred charged coordinates."""
    private = ask(lk.read(table_rows(9), table_schema()), _gradient_charge(size=100))
    with pytest.raises(RuntimeError, match="parameters"):
        private.gradients("gradient", _loss, rows=9)(np.zeros(1, np.float32))


def test_no_neighbour_moves_a_gradient_beyond_the_clip() -> None:
    """One row more, first or last: batches and noise of the others stay as they were."""
    rows = table_rows(60)
    moves = []
    for bad in (np.nan, 1e30, 5.0):
        more = pd.concat([rows.iloc[:1].assign(income=bad), rows], ignore_index=True)
        pair = []
        for frame in (rows, more):
            private = ask(lk.read(frame, table_schema()), _gradient_charge(steps=1, sampling=0.999))
            pair.append(private.gradients("gradient", _loss, rows=60)(np.full(10, 9.0, np.float32)))
        moves.append(np.linalg.norm(pair[1] - pair[0]))
    assert max(moves) <= 1.0 + 1e-9 and max(moves) > 0.9


class Ghost:
    """Gradients label x slots, told by norms and sums alone; what it says of row 0 can be set."""

    def __init__(self, told: float | None = None, size: int = 10) -> None:
        self.told, self.size = told, size

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        made = (1.0 + labels[:, None]) * slots[:, : self.size].astype(np.float64) * 40
        norms = np.linalg.norm(made, axis=1) * (1 + 1e-9)
        if self.told is not None:
            norms[0] = self.told
        return RowSums(norms, norms, len(made) + 2, lambda factors: factors @ made)


def _traces_of_box_muller(noise: np.ndarray) -> float:
    """How far exp(-(a^2 + b^2) / 2) is from the grid of 53 bits on average, for numbers a and b half
    the answer apart: 0.25 for any numbers, near 0 for a sine and a cosine of one radius that was
    made from a uniform number of 53 bits. Only long radii are looked at, where float64 can tell."""
    first, second = noise.reshape(2, -1)
    uniform = np.exp(-(first**2 + second**2) / 2)
    fine = uniform[uniform < 2e-3] * 2.0**53
    return float(np.abs(fine - np.rint(fine)).mean())


def test_noise_cannot_be_told_from_noise_by_its_bits() -> None:
    """L1: with Box-Muller in float64, a guess of the true sum is confirmed by the rest being
    sines and cosines. Here the rest of the true guess (no rows, 0) looks like that of any other."""
    size = 200_000
    charge = _gradient_charge(steps=1, size=size)
    uniform = Noise.from_seed(0).stream("attack").uniform(size).reshape(2, -1)
    radius, angle = np.sqrt(-2 * np.log(uniform[0])), 2 * np.pi * uniform[1]
    told = charge.noise * np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    assert _traces_of_box_muller(told / charge.noise) < 0.1  # the attack works where it should
    private = ask(lk.read(table_rows(0), table_schema()), charge)
    drawn = private.gradients("gradient", _loss, rows=9)(np.zeros(size, np.float32))
    assert _traces_of_box_muller(drawn / charge.noise) > 0.2


def test_gradients_lie_on_the_grid_of_the_noise() -> None:
    private = ask(lk.read(table_rows(90), table_schema()), _gradient_charge(steps=1))
    for source in (_loss, Ghost()):
        private = ask(lk.read(table_rows(90), table_schema()), _gradient_charge(steps=1))
        drawn = private.gradients("gradient", source, rows=90)(np.ones(10, np.float32))
        whole = drawn / (private._planned["gradient"].noise / 2**24)
        assert np.array_equal(whole, np.rint(whole))


def test_no_neighbour_moves_a_ghost_gradient_beyond_the_clip() -> None:
    """As above where gradients are never made: the boundary itself computes the factors."""
    rows = table_rows(60)
    moves = []
    for bad in (np.nan, 1e30, 5.0):
        more = pd.concat([rows, rows.iloc[:1].assign(income=bad)], ignore_index=True)
        pair = []
        for frame in (rows, more):
            private = ask(lk.read(frame, table_schema()), _gradient_charge(steps=1, sampling=0.999))
            pair.append(private.gradients("gradient", Ghost(), rows=20)(np.ones(10, np.float32)))
        moves.append(np.linalg.norm(pair[1] - pair[0]))
    assert max(moves) <= 1.0 + 1e-9 and max(moves) > 0.9


@pytest.mark.parametrize("told", [np.nan, np.inf, -1.0])
def test_a_ghost_without_a_norm_counts_for_nothing(told: float) -> None:
    data = lk.read(table_rows(1), table_schema())
    charge = replace(_gradient_charge(steps=1, sampling=0.9999), noise_multiplier=1e-9)
    private = ask(data, charge)
    found = private.gradients("gradient", Ghost(told), rows=1)(np.ones(10, np.float32))
    assert np.abs(found).max() < 1e-6
    seen = ask(data, charge).gradients("gradient", Ghost(), rows=1)(np.ones(10, np.float32))
    assert np.linalg.norm(seen) == pytest.approx(1 - 3e-6, rel=1e-7)  # the margin of sums


def test_a_ghost_and_padding_and_rows_without_a_label() -> None:
    """Rows of no declared class, and the rows that fill up a batch, add nothing."""
    rows = table_rows(30)
    answers = []
    for frame in (rows, pd.concat([rows, rows.assign(ill="?")], ignore_index=True)):
        private = ask(lk.read(frame, table_schema()), _gradient_charge(steps=1, sampling=1.0))
        answers.append(private.gradients("gradient", Ghost(), rows=7)(np.ones(10, np.float32)))
    assert np.allclose(*answers, atol=1e-12)


def test_a_ghost_whose_sum_has_another_size_is_refused() -> None:
    private = ask(lk.read(table_rows(9), table_schema()), _gradient_charge(sampling=0.9999))
    with pytest.raises(RuntimeError, match="shape"):
        private.gradients("gradient", Ghost(size=3), rows=9)(np.zeros(10, np.float32))


def test_poisson_is_refused_under_replacement() -> None:
    class Sampled(lk.DPMERF):
        def requests(self, schema: lk.Schema) -> list:
            first, second = super().requests(schema)
            return [first, replace(second, charge=_gradient_charge())]

    with pytest.raises(lk.LimbeckError, match="add/remove"):
        lk.plan(Sampled(), table_schema(), lk.Budget(1.0, 1e-5, "replace-one"))


def test_poisson_batches_are_independent_coins() -> None:
    """P4, P15, P18: inclusion is Bernoulli per row and pairwise uncorrelated across steps; so is it
    for rows that are all equal."""
    noise = Noise.from_seed(0)
    for name, cells in {"other": np.arange(50.0), "equal": np.zeros(50)}.items():
        records = Records(Rows(cells[:, None], np.zeros(50, np.int32)), noise.stream(name))
        inclusion = np.zeros((2000, 50))
        for step in range(2000):
            inclusion[
                step, PoissonBatches(0.3, 50).draw(records, noise.stream(f"{name}{step}"))
            ] += 1
        assert set(np.unique(inclusion)) <= {0.0, 1.0}
        assert np.abs(inclusion.mean(axis=0) - 0.3).max() < 0.06
        correlation = np.corrcoef(inclusion.T) - np.eye(50)
        assert np.abs(correlation).max() < 0.12
        assert inclusion.sum(axis=1).std() == pytest.approx(math.sqrt(50 * 0.3 * 0.7), rel=0.1)


@pytest.mark.parametrize("probability", [0.0, 0.03, 0.5, 1.0])
def test_coins_have_their_probability(probability: float) -> None:
    count = 100_000
    rows = Rows(np.arange(count, dtype=np.float32)[:, None] // 2, np.zeros(count, np.int32))
    records = Records(rows, Noise.from_seed(1).stream("records"))
    share = len(records.heads(probability, Noise.from_seed(1).stream("coins"))) / count
    assert abs(share - probability) < 5 * np.sqrt(probability * (1 - probability) / count) + 1e-12


@pytest.mark.parametrize("place", [0, 7, 20])
@pytest.mark.parametrize("equal", [False, True])
def test_an_added_record_changes_no_other_records_coin(place: int, equal: bool) -> None:
    """Not even one that equals others: among k equal records there are then k + 1 coins."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 5, (20, 1)).astype(np.float32)  # four or so of each
    labels = np.zeros(20, np.int32)
    new = cells[3] if equal else np.array([99.0], np.float32)
    more = Rows(np.insert(cells, place, new, axis=0), np.zeros(21, np.int32))
    for step in range(30):
        seen = []
        for rows in (Rows(cells, labels), more):
            noise = Noise.from_seed(5)
            records = Records(rows, noise.stream("records"))
            chosen = records.heads(0.4, noise.stream(f"{step}"))
            seen.append(Counter(rows.cells[chosen, 0].tolist()))
        assert not seen[0] - seen[1]
        assert sum((seen[1] - seen[0]).values()) <= 1
        assert set(seen[1] - seen[0]) <= {float(new[0])}


def test_the_order_of_rows_changes_no_bit_of_a_gradient() -> None:
    """Coins go with records, and batches are in the order of their identifiers."""
    rows = table_rows(150)
    answers = []
    for frame in (rows, rows.sample(frac=1.0, random_state=1)):
        private = ask(lk.read(frame, table_schema()), _gradient_charge(steps=1, sampling=0.5))
        answers.append(private.gradients("gradient", _loss, rows=60)(np.ones(10, np.float32)))
    assert np.array_equal(*answers)


# ---- estimated bounds and values -------------------------------------------------------------


def _estimating_schema(**income: object) -> lk.Schema:
    columns = {c.name: c for c in table_schema().columns}
    columns["income"] = lk.Numeric(name="income", outer=(-1e6, 1e6), **income)
    columns["town"] = lk.Category(name="town", most=3)
    return replace(table_schema(), columns=tuple(columns.values()), rows=20_000)


def test_bounds_and_values_are_estimated_within_the_budget() -> None:
    schema = _estimating_schema()
    rows = table_rows(20_000)
    rows.loc[0, "town"] = "a secret hamlet"
    planned = lk.plan(lk.DPMERF(features=8, steps=1), schema, lk.Budget(1.0))
    names = [c.name for c in planned.charges]
    assert names[:4] == [f"bounds of income/{i}" for i in range(3)] + ["values of town"]
    assert planned.cost.threshold > 0 and planned.cost.epsilon == pytest.approx(1.0)
    data, budget = lk.read(rows, schema), planned.budget
    settled = Private(data, planned.charges, budget, Noise.from_seed(0)).estimate()
    income, town = settled.columns[1], settled.columns[2]
    assert set(town.values) <= {"north", "south", "east", "?", "(other)"}
    assert "(other)" in town.values and len(town.values) == 4
    assert not settled.estimated
    low, high = np.quantile(rows["income"], [0.005, 0.995])
    for seed in range(100):  # noise in a few hundred bins: now and then it looks like rows far out
        private = Private(data, planned.charges, budget, Noise.from_seed(seed))
        bottom, top = private.bounds("bounds of income", schema.columns[1])  # type: ignore[arg-type]
        assert abs(bottom - low) < 150 and abs(top - high) < 150
        assert seed or (income.min, income.max) == (bottom, top)


def test_a_value_of_one_row_is_hardly_ever_published() -> None:
    """The threshold keeps a singleton out with probability 1 - threshold_delta."""
    schema = _estimating_schema()
    rows = table_rows(300)
    rows["town"] = [f"hamlet {i}" for i in range(len(rows))]
    charge = Charge(name="values", sensitivity=1.0, coordinates=2, threshold_delta=1e-6)
    data = lk.read(rows, schema)
    for seed in range(5):
        private = ask(data, charge, noise=Noise.from_seed(seed))
        assert private.frequent("values", schema.columns[2]) == ("(other)",)  # type: ignore[arg-type]


def test_a_threshold_delta_is_what_it_says() -> None:
    """With a large threshold_delta singletons do pass about that often: the test above can fail."""
    schema = _estimating_schema()
    schema = replace(schema, columns=(lk.Category(name="town", most=10_000),))
    rows = pd.DataFrame({"town": [f"hamlet {i}" for i in range(5000)]})
    charge = Charge(
        name="values", sensitivity=1.0, coordinates=2, threshold_delta=0.05, noise_multiplier=5.0
    )
    private = Private(lk.read(rows, schema), [charge], lk.Budget(1.0), Noise.from_seed(0))
    passed = len(private.frequent("values", schema.columns[0])) - 1  # type: ignore[arg-type]
    assert abs(passed / 5000 - 0.05) < 0.012


# ---- features --------------------------------------------------------------------------------


@pytest.mark.parametrize("scales", [(1.0,), (0.5, 4.0)])
def test_fourier_features_have_norm_one_and_their_kernel(scales: tuple[float, ...]) -> None:
    phi = Fourier(slots=6, size=40_000, length_scales=scales, key=jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    features = np.asarray(phi(x), np.float64)
    assert np.allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-5)
    squared = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    kernel = np.mean([np.exp(-squared / (2 * s * s)) for s in scales], axis=0)
    assert np.abs(features @ features.T - kernel).max() < 0.03


def test_a_feature_sees_one_row_at_a_time() -> None:
    phi = Fourier(slots=6, size=32, length_scales=(1.0,), key=jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    alone = np.concatenate([np.asarray(phi(x[i : i + 1])) for i in range(50)])
    assert np.allclose(np.asarray(phi(x)), alone, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2),
    st.text(max_size=5),
)
def test_norm_bounds_hold_for_anything_a_row_may_contain(numbers: list[float], town: str) -> None:
    schema = table_schema()
    rows = table_rows(1)
    rows.loc[0, "age"], rows.loc[0, "income"] = numbers
    rows["town"] = [town]
    slots = schema.expand(lk.read(rows, schema)._encoded().cells)
    assert slots.min() >= 0 and slots.max() <= 1
    phi = Fourier(slots=schema.slots, size=64, length_scales=(0.01, 100.0), key=jax.random.key(0))
    norms = np.linalg.norm(np.asarray(phi(slots), np.float64), axis=1)
    assert (norms <= phi.norm_bound * (1 + 1e-5)).all()


def test_pixels_of_any_kind_expand_to_the_unit_range() -> None:
    image = image_schema().image
    wild = np.array([[np.nan, np.inf, -np.inf, 1e30] + [3.0] * 60])
    slots = image.expand(wild)
    assert slots.min() >= 0 and slots.max() <= 1
    pixels, _ = image_rows(5)
    assert np.array_equal(image.decode(image.expand(image.encode(pixels))), pixels)


def test_clipping_shortens_and_keeps_direction() -> None:
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    clipped = clip_rows(rows, 1.0, 1.0)
    assert np.allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], atol=1e-6)
    assert np.linalg.norm(clipped, axis=1).max() <= 1.0


def test_calibrated_noise_reaches_the_answer() -> None:
    """The noise in an answer is the certificate's: multiplier times sensitivity."""
    data = lk.read(table_rows(0), table_schema())
    charge = Charge(name="sum", sensitivity=0.5, coordinates=3 * 20_000)
    [planned] = calibrate([charge], [1.0], lk.Budget(1.0))
    features = Fourier(
        slots=table_schema().slots, size=20_000, length_scales=(1.0,), key=jax.random.key(0)
    )
    answer = ask(data, charge).sum("sum", features)
    assert np.std(answer) == pytest.approx(planned.noise, rel=0.02)
    assert planned.noise == pytest.approx(3.7306 * 0.5, rel=1e-4)
