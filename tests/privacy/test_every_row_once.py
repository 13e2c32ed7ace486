"""Every row, value and person is counted once, whatever their number and however batches fall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from helpers import planned
from kinds import (
    VALUES,
    Kind,
    answers,
    partial,
)

import limbeck as lk
from limbeck.privacy import (
    Faculty,
    Gradients,
    Head,
    Histogram,
    OuterSum,
    RowSums,
    Sum,
    Unit,
    Votes,
)
from limbeck.privacy.estimate.quantiles import ColumnHistogram, Edges

# ---- (d) every row once ----------------------------------------------------------------------

NARROW = lk.Schema(
    dataset="narrow",
    rows=70_000,
    columns=(
        lk.Numeric(name="x", min=0.0, max=1.0),
        lk.Category(name="class", values=("a", "b"), label=True),
    ),
)


class Plain:
    """What a function says of a row, in the shapes that questions want."""

    size, norm_bound, groups, bins, blocks = 1, 1.0, 2, 2, ((1, 1),)

    def __init__(self, made: Callable[..., Any], chunk: int | None = None) -> None:
        self._made = made
        if chunk is not None:
            self.chunk = chunk

    def __call__(self, *seen: jax.Array) -> Any:
        return self._made(*seen)


class PlainGhost:
    """Gradients that are the row itself, known by norms and sums alone."""

    def prepare(self, parameters: np.ndarray, slots: np.ndarray, labels: np.ndarray) -> RowSums:
        made = slots.astype(np.float64)
        norms = np.abs(made[:, 0]) * (1 + 1e-9)
        return RowSums(norms, norms, len(made) + 2, lambda factors: factors @ made)


@dataclass(frozen=True)
class Counting:
    """A lone teacher that votes for how many rows it has seen, beyond `least`."""

    least: int
    count: int = 1
    batch: int = 5000
    turns: int = 1
    seed: int = 0

    def start(self, seed: Any, number: Any) -> Any:
        return jnp.zeros((), jnp.int32)

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        return state + ((rows[:, 0] > 0) & present).sum()

    def answer(self, state: Any, question: Any) -> Any:
        return (state - self.least)[None].astype(jnp.int32)


def _by_class(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.bincount(labels, weights=x, minlength=2)


def _head(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) @ (0.5 - np.eye(2)[labels])


def _count(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.bincount(labels, minlength=2)


def _halves(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.bincount((x >= 0.5).astype(int), minlength=2)


def _sum(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return x.astype(np.float64).sum(keepdims=True)


_OUTER = OuterSum(name="q", bound=1.0, blocks=((1, 1),), groups=2)
_ONES = Plain(lambda rows: ((rows, jnp.ones_like(rows)),))
_BY_MAP = Sum(name="q", bound=1.0, size=1, groups=2, by="map")
_WEIGHTS = {"weights": np.zeros((1, 2))}
_PARAMETERS = {"parameters": np.zeros(1, np.float32)}
_SAMPLED = Gradients(name="q", clip=1.0, size=1, rate=1.0, rows=64, count=1)


def _linear(parameters: jax.Array, slots: jax.Array, label: jax.Array) -> jax.Array:
    return jnp.dot(parameters, slots)


COUNTED: dict[str, tuple[Kind, Callable[..., np.ndarray]]] = {
    "sum by label": (
        Kind("", Sum(name="q", bound=1.0, size=1, groups=2), Plain(lambda rows: rows)),
        _by_class,
    ),
    "sum by map": (Kind("", _BY_MAP, Plain(lambda rows, labels: (rows, labels))), _by_class),
    "sum by map, a hundred at a time": (
        Kind("", _BY_MAP, Plain(lambda rows, labels: (rows, labels), chunk=100)),
        _by_class,
    ),
    "products": (Kind("", _OUTER, _ONES), _by_class),
    "products, a hundred at a time": (
        Kind("", _OUTER, Plain(_ONES, chunk=100)),
        _by_class,
    ),
    "histogram of classes": (Kind("", Histogram(name="q", bins=2)), _count),
    "histogram by map": (
        Kind("", Histogram(name="q", bins=2), Plain(lambda rows, labels: labels)),
        _count,
    ),
    "histogram of a column": (
        Kind("", ColumnHistogram(name="q", bins=2, column=0), Edges(np.linspace(0, 1, 3))),
        _halves,
    ),
    "head": (
        Kind("", Head(name="q", bound=1.0, size=1, outputs=2, count=1), Plain(lambda r: r), _WEIGHTS),
        _head,
    ),
    "gradients": (Kind("", _SAMPLED, _linear, _PARAMETERS), _sum),
    "gradients, many": (Kind("", replace(_SAMPLED, rows=65_536), _linear, _PARAMETERS), _sum),
    "ghost gradients": (Kind("", _SAMPLED, PlainGhost(), _PARAMETERS), _sum),
    "ghost gradients, many": (
        Kind("", replace(_SAMPLED, rows=4096), PlainGhost(), _PARAMETERS),
        _sum,
    ),
}  # fmt: skip


def _narrow(count: int) -> tuple[lk.Dataset, np.ndarray, np.ndarray]:
    place = np.arange(count)
    x, labels = 0.25 + (place % 1024) / 2048, place % 2
    frame = pd.DataFrame({"x": x, "class": np.array(["a", "b"])[labels]})
    return lk.read(frame, NARROW), x, labels


def _edges(kind: Kind) -> list[int]:
    """Numbers of rows at which a batch is full, and one more and less; none, and one."""
    asked = planned(kind.question, multiplier=0.0)[0]
    mechanism = kind.question.calibrated(asked.charges, Unit(), kind.row_map)
    size = mechanism.rows_at_once(NARROW, kind.row_map)
    full = {size, 65_536}
    if isinstance(kind.question, Gradients):
        shape = mechanism.batches.shape  # type: ignore[attr-defined]
        # Beyond two pieces a ghost's rows go one by one, which takes its time.
        full = {shape, 2 * shape} if isinstance(kind.row_map, PlainGhost) else {shape, 65_536}
    return [0, 1, *(count + more for count in sorted(full) for more in (-1, 0, 1))]


@pytest.mark.parametrize("name", COUNTED)
def test_every_row_is_counted_once_whatever_their_number(name: str) -> None:
    """Without noise, and with batches that are nearly full, full, and just overflowing."""
    kind, wanted = COUNTED[name]
    for count in _edges(kind):
        given, x, labels = _narrow(count)
        (answer,) = answers(kind, given, multiplier=0.0)[0]
        assert np.allclose(answer.values.ravel(), wanted(x, labels), rtol=0, atol=0.05), count


@pytest.mark.parametrize("count", [0, 1, 65_535, 65_536, 65_537])
def test_every_value_is_counted_once(count: int) -> None:
    question = replace(VALUES, column="class")
    found = partial(
        Kind("", question), _narrow(count)[0], planned(question, multiplier=0.0)[0], Unit()
    )
    assert +found == +Counter({"a": (count + 1) // 2, "b": count // 2})


def test_every_row_is_shown_to_a_teacher_once() -> None:
    """Their features are computed some thousand rows at a time."""
    for count in (4095, 4096, 4097):
        faculty = Faculty(Counting(least=count - 2), Plain(lambda rows: rows))
        question = Votes(name="q", coordinates=1, bins=5, count=1)
        kind = Kind("", question, faculty, {"question": jnp.zeros(1)})
        (answer,) = answers(kind, _narrow(count)[0], multiplier=0.0)[0]
        assert answer.values.ravel().round(6).tolist() == [0, 0, 1, 0, 0], count
