"""What a worker does with its part of the rows, without any cluster: every row once, no key of the noise."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine_cases import OPEN, SCHEMA, people
from small_cluster import Nowhere

import limbeck as lk
from limbeck.data import Rows, Sharing
from limbeck.engines import parts, spark
from limbeck.engines.processes import together
from limbeck.engines.remote import RemoteDataset
from limbeck.privacy import (
    FrequentValues,
    Histogram,
    Mechanism,
    Noise,
    Planned,
    RowAccess,
    Unit,
    Work,
)

PERSON = lk.Person(column="who", rows_at_most=2, persons=60)


def rows_of(numbers: np.ndarray) -> Rows:
    count = len(numbers)
    sharing = Sharing(np.ones((count, 2), np.uint64), numbers.astype(np.int32), numbers)
    return Rows(numbers[:, None], numbers.astype(np.int32), numbers[:, None], sharing)


@pytest.mark.parametrize("size", [1, 4, 7, 64])
def test_regrouped_rows_come_once_and_in_order(size: int) -> None:
    """However they were parted, each batch but the last is full."""
    cuts = [0, 1, 1, 9, 16, 17, 40, 40, 63]
    given = [rows_of(np.arange(a, b)) for a, b in zip(cuts, cuts[1:], strict=False)]
    batches = list(parts.regrouped(given, size))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    for place in ("cells", "labels", "states"):
        found = np.concatenate([getattr(batch, place).ravel() for batch in batches])
        assert found.tolist() == list(range(63)), place
    kept = np.concatenate([batch.sharing.rank for batch in batches if batch.sharing is not None])
    assert kept.tolist() == list(range(63))


def work(count: int = 2, schema: lk.Schema = SCHEMA) -> Work:
    question = Histogram(name="counts", bins=count)
    unit = Unit.of(lk.Budget(1.0), schema)
    charges = tuple(replace(c, noise_multiplier=1.0) for c in question.charges(unit))
    asked = Planned(question=question, charges=charges)
    return Work(planned=asked, unit=unit, schema=schema, spec=None, state={})


def test_parts_add_up_to_what_one_process_counts() -> None:
    """Each part once, one without rows too, and merged in any order or in two rounds."""
    whole = lk.read(people(), SCHEMA)._encoded()
    cuts, asked = [0, 0, 5, 120, 121, 300], work()
    made = [
        parts.summed_part(asked, {}, [whole.take(slice(a, b))])
        for a, b in zip(cuts, cuts[1:], strict=False)
    ]
    wanted = np.bincount(whole.labels[whole.labels >= 0], minlength=2)
    assert parts.merged(asked, made).tolist() == wanted.tolist()
    halves = [parts.merged(asked, made[:2]), parts.merged(asked, made[:1:-1])]
    rounds = [asked.mechanism.to_bytes(half) for half in halves]
    assert parts.merged(asked, rounds).tolist() == wanted.tolist()
    assert not parts.merged(asked, []).any()


def test_persons_of_a_part_are_bounded_as_in_one_process() -> None:
    rows = people(120)
    rows["who"] = [f"p{number % 50}" if number % 9 else "" for number in range(120)]
    schema = replace(SCHEMA, person=PERSON)
    given = lk.read(rows, schema)
    alone = given._bounded(b"key")
    assert alone.sharing is not None
    (raw,) = given._source.chunks(schema)
    there = parts.bounded_part(parts.encoded_part(raw, schema)[0], b"key", PERSON.rows_at_most)
    assert there.sharing is not None and there.labels.tolist() == alone.labels.tolist()
    for place in ("persons", "rank", "kept"):
        assert np.array_equal(getattr(there.sharing, place), getattr(alone.sharing, place))
    assert (there.labels[there.sharing.rank < 0] == -1).all() and (there.labels >= 0).any()


def test_texts_of_open_columns_are_counted_as_in_one_process() -> None:
    """Through all that a cluster does with a row: encoded in parts, met by persons, counted, merged."""
    rows = people().assign(who=[str(number % 90) for number in range(300)])
    rows.loc[::5, "town"] = None
    given = lk.read(rows, OPEN)
    question = FrequentValues(name="v", column="town", most=None, threshold_delta=1e-6)
    unit = Unit.of(lk.Budget(1.0), OPEN)
    charges = tuple(replace(c, noise_multiplier=1.0) for c in question.charges(unit))
    asked = Work(
        planned=Planned(question=question, charges=charges), unit=unit, schema=OPEN, spec=None, state={}
    )  # fmt: skip
    access = RowAccess(data=given, noise=Noise.from_seed(0), progress=lambda done: None, key=b"key")
    here = asked.mechanism.session(access, None).partial(0, {})
    software = parts.versions()
    batches = [
        pa.RecordBatch.from_pandas(rows[a:b]) for a, b in ((0, 7), (7, 7), (7, 200), (200, 300))
    ]
    encoded = [list(spark._encode_task(software, OPEN, [batch])) for batch in batches]
    met = list(spark._bound_task(software, b"key", 2, [b for one in encoded for b in one]))
    assert max(met[0].column("rank").to_pylist()) == 1  # two of each are kept
    persons = np.asarray([int.from_bytes(p) % 2 for p in met[0].column("person").to_pylist()])
    sums = [
        next(spark._sum_task(software, asked, {}, [met[0].filter(pa.array(persons == half))]))
        for half in (0, 1)
    ]
    (together,) = spark._merge_task(software, asked, sums)
    found = parts.merged(asked, together.column(0).to_pylist())
    assert found == here and len(found) > 3 and 0 < sum(found.values()) <= 90


def test_texts_of_rows_without_a_label_are_of_no_one() -> None:
    """Where rows are protected, not persons, nothing else keeps them out of the counts."""
    schema = replace(OPEN, person=None, unit="row")
    rows = people().drop(columns="who", errors="ignore")
    (raw,) = lk.read(rows, schema)._source.chunks(schema)
    given, _, texts = parts.encoded_part(raw, schema)
    codes = texts["town"].codes
    assert (codes[given.labels < 0] == -1).all() and (codes[given.labels >= 0] >= 0).any()
    assert (given.labels < 0).any()


def test_a_workers_error_says_nothing_of_a_row() -> None:
    """Spark writes it into its logs, on machines of others."""

    def task(batches: object) -> Iterator[pa.RecordBatch]:
        yield from ()
        raise ValueError("a row of Jane Doe's")

    with pytest.raises(RuntimeError) as told:
        list(spark._guard(task, []))
    assert "Jane" not in str(told.value) and told.value.__cause__ is None
    assert told.value.__suppress_context__


def test_a_partial_sum_is_never_unpickled() -> None:
    """Bytes of another process: an array of objects is refused."""
    file = io.BytesIO()
    np.savez(file, partial=np.asarray([{"a": 1}], object))
    with pytest.raises(ValueError, match="allow_pickle"):
        Mechanism.from_bytes(file.getvalue())


class Overheard:
    """An engine that notes the keys it is told."""

    name = "overheard"

    def __init__(self, schema: lk.Schema) -> None:
        self.keys: list[bytes] = []

    def keyed_sum(self, key: bytes) -> np.ndarray:
        self.keys.append(key)
        return parts.keyed_sum(np.arange(32, dtype=np.uint8).reshape(2, 16), key)


def test_workers_are_told_no_key_that_noise_is_made_with() -> None:
    """They digest the rows under a key of its own, from which the secret does not follow."""
    made: list[Overheard] = []

    def engine(schema: lk.Schema) -> Overheard:
        made.append(Overheard(schema))
        return made[-1]

    secret = Noise.from_seed(1).secret
    given = RemoteDataset(SCHEMA, Nowhere(), engine)
    one, again, other = (given._digest(key) for key in (secret, secret, bytes(32)))
    assert one == again != other
    told = made[0].keys
    assert len(set(told)) == 2 and secret not in told and not any(secret[:8] in key for key in told)


def test_the_digest_of_rows_elsewhere_is_keyed_and_counts_them() -> None:
    raw = next(lk.read(people(), SCHEMA)._source.chunks(SCHEMA))
    contents = parts.row_digests(raw, SCHEMA)
    whole = parts.keyed_sum(contents, b"key")
    halves = parts.keyed_sum(contents[150:], b"key") + parts.keyed_sum(contents[:150], b"key")
    assert np.array_equal(whole, halves) and int(whole[-1]) == 300
    assert not np.array_equal(whole[:4], parts.keyed_sum(contents, b"yek")[:4])
    twice = np.concatenate([contents[:-1], contents[:1]])  # one row for another
    assert not np.array_equal(whole, parts.keyed_sum(twice, b"key"))


@pytest.mark.parametrize("name", SCHEMA.names_read)
def test_a_digest_sees_every_cell(name: str) -> None:
    rows = people()
    changed = rows.copy()
    changed.loc[11, name] = {"age": 51, "income": 0.25, "worth": 7.5, "smoker": not rows.smoker[11]}.get(
        name, "no" if rows[name][11] != "no" else "yes"
    )  # fmt: skip
    sums = [
        parts.keyed_sum(
            parts.row_digests(next(lk.read(some, SCHEMA)._source.chunks(SCHEMA)), SCHEMA), b"k"
        )
        for some in (rows, changed)
    ]
    assert not np.array_equal(*sums)


def test_persons_whose_rows_may_lie_in_several_processes_are_refused() -> None:
    part: Any = lk.read(people(9).assign(who="a"), replace(SCHEMA, person=PERSON))
    with pytest.raises(lk.LimbeckError, match="several processes"):
        together(part)


def test_too_many_rows_elsewhere_are_refused() -> None:
    class Many(Overheard):
        def keyed_sum(self, key: bytes) -> np.ndarray:
            return np.asarray([0, 0, 0, 0, (1 << 30) + 1], np.uint64)

    given = RemoteDataset(SCHEMA, Nowhere(), Many)
    with pytest.raises(lk.DataError, match="add up exactly"):
        given._digest(bytes(32))
    assert math.log2(lk.data.ROWS_AT_MOST) == 30
