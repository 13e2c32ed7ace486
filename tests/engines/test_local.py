"""This process: batches side by side give the same bytes, and what is summed does not stay in memory."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_cases import COUNTS, SCHEMA, measured, people

import limbeck as lk
from limbeck.data import Rows, ahead
from limbeck.privacy import question

pytestmark = pytest.mark.filterwarnings("ignore::limbeck.LimbeckWarning")


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same_bytes(
    threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = measured(lk.read(people(), SCHEMA), COUNTS)[0]
    monkeypatch.setattr(question, "THREADS", threads)
    monkeypatch.setattr(ahead, "THREADS", threads)
    people().to_csv(tmp_path / "people.csv", index=False)
    assert measured(lk.read(tmp_path / "people.csv", SCHEMA), COUNTS)[0] == usual


class Failing:
    """A mechanism whose second batch fails."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def zero(self) -> np.ndarray:
        return np.zeros(1, np.int64)

    def evaluate(self, row_map: Any, batch: Rows, schema: Any) -> None:
        self.seen.append(len(batch))
        if len(self.seen) == 2:
            raise ValueError("the second one")

    def accumulate(self, partial: np.ndarray, batch: Rows, mapped: Any) -> np.ndarray:
        return partial + len(batch)

    @staticmethod
    def merge(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return left + right


def test_an_error_in_one_thread_ends_the_others() -> None:
    failing, rows = Failing(), Rows(np.zeros((10_000, 1)), np.zeros(10_000, np.int32))
    before = threading.active_count()
    with pytest.raises(ValueError, match="the second one"):
        question.summed(failing, None, None, rows.chunks(1), side_by_side=3)  # type: ignore[arg-type]
    assert len(failing.seen) < 10_000 and threading.active_count() == before


def test_results_keep_their_order_and_few_are_ahead() -> None:
    taken: list[int] = []

    def items() -> Any:
        for item in range(50):
            taken.append(item)
            yield item

    results = ahead.in_order(lambda item: item * item, items())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(taken) <= 3 + ahead.THREADS + 1
    results.close()


def test_a_hidden_file_leaves_memory_when_it_is_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    from limbeck.data import Store, dataset

    monkeypatch.setattr(dataset, "ROWS_IN_MEMORY", 1 << 10)
    store = Store()
    for start in range(0, 4000, 100):
        store.add(np.arange(start, start + 100, dtype=np.float32)[:, None].repeat(64, axis=1))
    rows = Rows(store.close(64), np.zeros(4000, np.int32))
    assert isinstance(rows.cells, np.memmap)
    for _ in range(2):  # what was let go is there again
        found = np.concatenate([batch.cells[:, 0].copy() for batch in rows.chunks(64)])
        assert (found == np.arange(4000)).all()


def test_an_engine_is_named_and_a_kind_it_cannot_carry_is_refused() -> None:
    assert measured(lk.read(people(), SCHEMA), COUNTS)[1].certificate["engine"] == {
        "name": "local",
        "version": None,
    }
    for engine in ("spark", "jax", "sql"):
        refused = f"by the engine {engine}: it draws batches of rows at random, which needs the engine local"
        with pytest.raises(lk.LimbeckError, match=refused):
            lk.plan(lk.DPGAN(batch=50), SCHEMA, 1.0, engine=engine)
    with pytest.raises(lk.LimbeckError, match="Expected one of the engines local, spark, sql"):
        lk.read("people.parquet", SCHEMA, engine="hadoop")


def test_what_looks_at_rows_is_refused_where_they_are_elsewhere(tmp_path: Path) -> None:
    ledger = lk.Ledger(tmp_path / "ledger.sqlite")
    release = measured(lk.read(people(), SCHEMA), COUNTS)[1]
    data = lk.read(people(), SCHEMA)
    data.engine = SimpleNamespace(name="spark")
    with pytest.raises(lk.LimbeckError, match="the rows are elsewhere"):
        lk.tune(data, [lk.DPMERF(), lk.DPMERF(steps=5)], 1.0, ledger=ledger)
    with pytest.raises(lk.DataError, match="are elsewhere .engine 'spark'."):
        lk.check(data, ledger=ledger)
    with pytest.raises(lk.DataError, match="are elsewhere .engine 'spark'."):
        lk.evaluate(release, data)
    with pytest.raises(lk.DataError, match="are elsewhere .engine 'spark'."):
        lk.measure_scores(release, data, 1.0, ledger=ledger)
    assert not ledger.accounts() and not ledger.looks()
    frame = SimpleNamespace(mapInArrow=None)
    for looks in (lambda: lk.evaluate(release, frame), lambda: lk.draft_schema(frame)):
        with pytest.raises(lk.DataError, match="The frame is Spark's"):
            looks()
