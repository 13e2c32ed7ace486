"""Sums of features: sensitivity by brute force, grids, and rows that keep to themselves."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import asked, image_rows, image_schema, table_rows, table_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import BOUND, Clusters, Wild

import limbeck as lk
from limbeck.accounting import calibrate
from limbeck.features import Fourier
from limbeck.privacy import Noise, Private, Sum
from limbeck.privacy.grid import GridSum, clip_rows

NOISE = 3.7


def _fourier(size: int = 8) -> Fourier:
    slots = table_schema().slots
    return Fourier(slots=slots, size=size, length_scales=(1.0,), key=jax.random.key(0))


def _sum(data: lk.Dataset, features: object, bound: float = 1.0, **asking: object) -> np.ndarray:
    """With the same frozen noise, only the data can move the answer."""
    groups = len(data.schema.classes)
    question = Sum(name="sum", bound=bound, size=features.size, groups=groups)  # type: ignore[attr-defined]
    return asked(data, question, features, **asking)


@pytest.mark.parametrize("bound", [1.0, 0.2])
@pytest.mark.parametrize("kind", ["honest", "lying"])
def test_no_neighbour_moves_a_sum_beyond_its_sensitivity(kind: str, bound: float) -> None:
    """P9, P13, P14: brute force over every row that can be removed, noise frozen."""
    schema = table_schema()
    rows = table_rows(25, seed=3)
    rows.loc[0, "income"] = 1e12
    features = Wild() if kind == "lying" else _fourier()
    whole = _sum(lk.read(rows, schema), features, bound)
    moves = []
    for i in range(len(rows)):
        without = _sum(lk.read(rows.drop(index=i), schema), features, bound)
        moves.append(np.linalg.norm(whole - without))
    assert max(moves) <= bound * (1 + 1e-12)
    assert max(moves) > 0.9 * bound  # the bound is used, not hidden behind zeros


def test_replacing_one_moves_a_sum_by_at_most_the_doubled_sensitivity() -> None:
    schema, rows = table_schema(), table_rows(20)
    planned = lk.plan(lk.DPMERF(features=8, steps=1), schema, lk.Budget(1.0, 1e-5, "replace-one"))
    charge = planned.charges[1]
    assert charge.sensitivity == 2.0
    changed = rows.copy()
    changed.iloc[0] = table_rows(1, seed=77).iloc[0]
    one, two = (
        Private(lk.read(r, schema), planned.questions, planned.unit, Noise.from_seed(0))
        for r in (rows, changed)
    )
    moved = one.ask(charge.name, _fourier()).values - two.ask(charge.name, _fourier()).values
    assert 0 < np.linalg.norm(moved) <= 2.0


def test_a_class_only_sees_its_own_rows() -> None:
    """P9: a record enters the sum of one class, never of all."""
    schema, rows = table_schema(), table_rows(40)
    whole = _sum(lk.read(rows, schema), _fourier())
    gone = rows[rows["ill"] != "yes"]
    without = _sum(lk.read(gone, schema), _fourier())
    assert np.array_equal(whole[[0, 2]], without[[0, 2]])
    assert not np.allclose(whole[1], without[1])


def test_sums_do_not_depend_on_order_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = table_schema(), table_rows(300)
    one = _sum(lk.read(rows, schema), _fourier(16))
    monkeypatch.setattr("limbeck.privacy.maps.CHUNK_BYTES", 4096)
    two = _sum(lk.read(rows.sample(frac=1, random_state=1), schema), _fourier(16))
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
        merged = merged + part
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
    schema = table_schema()
    data = lk.read(table_rows(50), schema)
    held = data._encoded()
    slots = jnp.asarray(schema.expand(held.cells))
    phi = np.asarray(_fourier()(slots))
    plain = np.stack([phi[held.labels == c].sum(axis=0) for c in range(3)])
    assert np.allclose(_sum(data, _fourier(), epsilon=math.inf), plain, atol=1e-4)

    made, group = Clusters()(slots, jnp.asarray(held.labels))
    each = clip_rows(np.asarray(made), BOUND, 1.0)
    plain = np.stack([each[np.asarray(group) == g].sum(axis=0) for g in range(5)])
    found = asked(data, Sum.of_groups("sum", Clusters()), Clusters(), epsilon=math.inf)
    assert np.allclose(found, plain, atol=1e-5)


def test_removing_a_row_changes_nothing_but_its_own_part() -> None:
    """Also across a power of two: other rows' features keep every bit, whatever n is."""
    schema = image_schema(size=28)
    images, _ = image_rows(65, size=28)
    labels = np.zeros(65, np.int64)
    features = Fourier(slots=784, size=1000, length_scales=(3.0,), key=jax.random.key(0))

    def total(keep: np.ndarray) -> np.ndarray:
        return _sum(lk.read((images[keep], labels[keep]), schema), features)

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
    whole = _sum(lk.read(rows, schema), BatchCentred())
    for i in (0, 5, 29):
        without = _sum(lk.read(rows.drop(index=i), schema), BatchCentred())
        assert np.linalg.norm(whole - without) <= 1.0


class Narrow:
    """Says it has eight features and returns one, which must not be copied eight times."""

    size, norm_bound = 8, 1.0

    def __call__(self, rows: jax.Array) -> jax.Array:
        return rows[:, :1]


def test_features_of_another_shape_are_refused() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        _sum(lk.read(table_rows(9), table_schema()), Narrow())


def test_clipping_shortens_and_keeps_direction() -> None:
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    clipped = clip_rows(rows, 1.0, 1.0)
    assert np.allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], atol=1e-6)
    assert np.linalg.norm(clipped, axis=1).max() <= 1.0


def test_calibrated_noise_reaches_the_answer() -> None:
    """The noise in an answer is the certificate's: multiplier times sensitivity."""
    data = lk.read(table_rows(0), table_schema())
    question = Sum(name="sum", bound=0.5, size=20_000, groups=3)
    [planned] = calibrate(question.measured(), [1.0], lk.Budget(1.0))
    answer = _sum(data, _fourier(20_000), 0.5)
    assert np.std(answer) == pytest.approx(planned.noise, rel=0.02)
    assert planned.noise == pytest.approx(3.7306 * 0.5, rel=1e-4)
