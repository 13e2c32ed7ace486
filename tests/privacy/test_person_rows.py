"""Whom a row belongs to, and which of a person's rows are kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers import ask, table_rows
from test_person_bounds import MOST, data, people, strange_persons

import limbeck as lk
from limbeck.privacy import Histogram

# ---- who a row belongs to ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "same", "others"),
    [
        ("text", ["7", " 7", "7.0", "7."], ["07", "7.5", "seven", "-7"]),
        ("integer", ["7", " 7 ", "7.0", "007", "7e0", "+7"], ["-7", "70"]),
    ],
)
def test_an_id_is_one_however_it_is_written(kind: str, same: list[str], others: list[str]) -> None:
    person = lk.Person(column="id", rows_at_most=1, kind=kind)
    assert {person.identity(text) for text in same} == {"7"}
    found = [person.identity(text) for text in others]
    assert "7" not in found and len(set(found)) == len(others)


def test_what_is_no_id_is_none() -> None:
    person = lk.Person(column="id", rows_at_most=1, kind="integer")
    for text in ("", " ", "seven", "7.5", "nan", "inf", "1e999999", "snan", "1_0", "7" * 99):
        assert person.identity(text) is None
    assert lk.Person(column="id", rows_at_most=1).identity("  ") is None


def test_numbers_of_any_type_are_one_id() -> None:
    """Whole numbers, floats, texts and objects: all are counted as the same persons."""
    rows, question = people(9), Histogram(name="counts", bins=3)
    forms = [
        rows["id"].astype(np.int32), rows["id"].astype(float), rows["id"].astype(str),
        rows["id"].astype(object), rows["id"].astype("category"), rows["id"].astype(str) + ".0",
    ]  # fmt: skip
    found = [
        ask(data(rows.assign(id=ids)), question, multiplier=0.0).ask("counts").values
        for ids in forms
    ]
    assert all(np.array_equal(found[0], other) for other in found)


def test_rows_without_an_id_count_for_nothing() -> None:
    rows = people(9).astype({"id": object})
    nobody = table_rows(5, seed=1).assign(id=[None, "", "  ", np.nan, None])
    question = Histogram(name="counts", bins=3)
    found = [
        ask(data(given), question, multiplier=0.0).ask("counts").values
        for given in (rows, pd.concat([rows, nobody]), nobody)
    ]
    assert np.array_equal(found[0], found[1])
    assert not found[2].any()


# ---- which rows are kept -----------------------------------------------------------------------


def kept(rows: pd.DataFrame, key: bytes = b"secret") -> list[tuple[object, ...]]:
    """The kept rows with their weights, in an order of their own."""
    found = data(rows)._bounded(key)
    at = np.flatnonzero(found.labels >= 0)
    assert found.weights is not None and found.sharing is not None
    assert (found.weights[found.labels < 0] == 0).all()
    return sorted(
        (*map(int, found.sharing.persons[i]), *map(repr, found.cells[i]), float(found.weights[i]))
        for i in at
    )


def test_what_is_kept_depends_on_no_order_and_on_no_one_else() -> None:
    rows = pd.concat([people(8), *(p.assign(id=n) for n, p in strange_persons().items())])
    everyone = kept(rows)
    assert kept(rows.sample(frac=1.0, random_state=1)) == everyone
    alone = [row for name in rows["id"].unique() for row in kept(rows[rows["id"] == name])]
    assert sorted(alone) == everyone


def test_a_persons_rows_count_for_one() -> None:
    rows = people(20)
    found = data(rows)._bounded(b"secret")
    assert found.weights is not None
    for name, some in pd.Series(found.weights).groupby(rows["id"].to_numpy()):
        size = int((rows["id"] == name).sum())
        assert (some > 0).sum() == min(size, MOST)
        assert some.sum() == pytest.approx(1)


def test_which_rows_are_kept_differs_from_person_to_person_and_by_key() -> None:
    """Twenty persons with the same ten rows: not the same three of all, under no key."""
    same = table_rows(10, seed=2)
    rows = pd.concat([same.assign(id=n) for n in range(20)])
    chosen = {}
    for key in (b"one", b"two"):
        found = data(rows)._bounded(key)
        chosen[key] = (found.labels >= 0).reshape(20, 10)
        assert len({tuple(c) for c in chosen[key]}) > 10
        assert chosen[key].sum(axis=0).min() > 0  # no row is always left out
    assert (chosen[b"one"] != chosen[b"two"]).any()


def test_equal_rows_of_a_person_are_kept_as_often_as_any() -> None:
    rows = table_rows(1).iloc[[0] * 7].assign(id="a")
    assert len(kept(rows)) == MOST
