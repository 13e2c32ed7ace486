"""Sums on a Spark cluster, with limbeck's own code on every worker.

Rows are encoded once, one record each, and kept on the cluster. Each task sums its own rows and gives one
partial sum; these are merged on the cluster, then here. A task that is run again recomputes its partial sum,
of which Spark takes one. No task draws noise, and keys travel inside the tasks alone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ..data import Dataset, Rows, Sharing, check_columns, check_types, raw_columns, values
from ..errors import DataError, LimbeckError
from ..privacy import FrequentValues, RowAccess, State, Texts, Work
from ..schema import Raw, Schema, Values
from .parts import (
    become_worker,
    bounded_part,
    counted_texts,
    encoded_part,
    joined,
    keyed_sum,
    merged,
    open_texts,
    processor_text,
    summed_part,
    versions,
)
from .remote import RemoteDataset, RemoteEngine

MERGERS = 8
"""Tasks that merge partial sums before this process does, where there are more of them."""
POLL_SECONDS = 0.5
"""How often the cluster is asked how far it is."""
FORM = "cells binary, label int, states binary, person binary, rank int, kept int, content binary"
"""An encoded row; after it the texts of columns whose values are not known yet (see `_form`)."""
Batches = Iterable[pa.RecordBatch]


def read_spark(frame: Any, schema: Schema) -> Dataset:
    """A Spark DataFrame bound to its schema; nothing is read."""
    return RemoteDataset(schema, SparkSource(frame), partial(SparkEngine, frame))


def open_spark(path: str, master: str | None) -> Any:
    """Parquet at a path that the cluster can read, as a Spark DataFrame."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise LimbeckError(
            "The engine spark needs an extra: pip install 'limbeck[spark]'."
        ) from None
    builder = SparkSession.builder.appName("limbeck")
    session = (builder.master(master) if master else builder).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        return session.read.parquet(path)
    except Exception as error:
        raise DataError(f"Spark cannot read {path} as Parquet: {type(error).__name__}.") from None


class SparkSource:
    """The structure of a Spark DataFrame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def check(self, schema: Schema) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        if schema.image:
            raise LimbeckError("Images cannot be read from Spark; read them here.")
        check_columns(self._frame.columns, schema, "the Spark frame")
        try:
            columns = to_arrow_schema(self._frame.select(*_quoted(schema)).schema)
        except Exception as error:
            raise DataError(
                f"the Spark frame has a column of a type that Arrow does not know ({type(error).__name__}). "
                "Convert or drop it."
            ) from None
        check_types(columns, schema, "the Spark frame")

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        raise DataError("The rows are with Spark, and are not read here.")


class SparkEngine(RemoteEngine):
    """Sums the rows of a Spark DataFrame."""

    name = "spark"

    def __init__(self, frame: Any, schema: Schema) -> None:
        self._frame, self._schema, self._versions = frame, schema, versions()
        self._kept: dict[bytes | None, Any] = {}
        self.processors: set[str] = set()
        weakref.finalize(self, _let_go, self._kept)

    def version(self) -> str:
        return str(self._frame.sparkSession.version)

    def keyed_sum(self, key: bytes) -> np.ndarray:
        task = partial(_digest_task, self._versions, key)
        sums = self._encoded().select("content").mapInArrow(_guarded(task), "found binary")
        found = self.collect(sums, "found binary", "reading")
        return sum(
            (np.frombuffer(one, np.uint64) for one in found["found"]), np.zeros(5, np.uint64)
        )

    def partial(self, work: Work, state: State, access: RowAccess) -> Any:
        name = work.planned.question.name
        task = partial(_sum_task, self._versions, work, dict(state))
        summed = self._bounded(access.key).mapInArrow(
            _guarded(task), "partial binary, processor string"
        )
        form = "partial binary, processor string"
        if _parts(self._frame) > MERGERS:
            merging = partial(_merge_task, self._versions, work)
            summed = summed.repartition(MERGERS).mapInArrow(_guarded(merging), form)
        found = self.collect(summed, form, name, access.progress)
        for texts in found["processor"]:
            self.processors |= set(texts.split("\n")) - {""}
        return merged(work, found["partial"])

    def _encoded(self) -> Any:
        if None not in self._kept:
            columns = self._frame.select(*_quoted(self._schema))
            task = partial(_encode_task, self._versions, self._schema)
            self._kept[None] = columns.mapInArrow(_guarded(task), _form(self._schema)).persist()
        return self._kept[None]

    def _bounded(self, key: bytes) -> Any:
        """The rows; where persons are protected, at most so many of each, who meet by one shuffle."""
        person = self._schema.person
        if person is None:
            return self._encoded()
        if key not in self._kept:
            task = partial(_bound_task, self._versions, key, person.rows_at_most)
            met = self._encoded().repartition("person")
            self._kept[key] = met.mapInArrow(_guarded(task), _form(self._schema)).persist()
        return self._kept[key]

    def collect(
        self,
        frame: Any,
        form: str,
        name: str,
        told: Callable[[float], None] = lambda done: None,
    ) -> dict[str, list[Any]]:
        """A frame of partial sums, brought here, with progress by Spark's own tasks."""
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(frame, told, done), daemon=True)
        watcher.start()
        try:
            rows = frame.collect()
        except Exception as error:  # Spark's own words may be pages long
            raise LimbeckError(
                f"Spark could not finish '{name}': {_reason(error)}. The same call goes on where this one "
                "stopped, and pays nothing more."
            ) from None
        finally:
            done.set()
            watcher.join()
        told(1.0)
        names = [column.split()[0] for column in form.split(", ")]
        return {n: [bytes(row[n]) if "binary" in f else row[n] for row in rows]
                for n, f in zip(names, form.split(", "), strict=True)}  # fmt: skip


def _let_go(kept: Mapping[bytes | None, Any]) -> None:
    """Free what a cluster keeps of rows that no one asks for any more."""
    for frame in kept.values():
        with suppress(Exception):  # the session may be gone
            frame.unpersist()


def _form(schema: Schema) -> str:
    """An encoded row of a schema."""
    return ", ".join([FORM, *(f"{_text(name, schema)} binary" for name in open_texts(schema))])


def _text(name: str, schema: Schema) -> str:
    """What the texts of a column are called in an encoded row."""
    return f"text{open_texts(schema).index(name)}"


def _parts(frame: Any) -> int:
    """In how many parts a frame is; many, where Spark does not say."""
    try:
        return int(frame.rdd.getNumPartitions())
    except Exception:  # Spark Connect
        return MERGERS + 1


def _quoted(schema: Schema) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in schema.names_read]


def _reason(error: Exception) -> str:
    """Which of limbeck's own errors a task failed with; else only its kind: texts may quote cells."""
    text = str(error)
    start = text.find(MARK)
    return (
        text[start + len(MARK) :].split("\n")[0].rstrip(". ")
        if start >= 0
        else type(error).__name__
    )


MARK = "limbeck says: "


def _guarded(task: Callable[[Batches], Iterator[pa.RecordBatch]]) -> Any:
    return partial(_guard, task)


def _guard(
    task: Callable[[Batches], Iterator[pa.RecordBatch]], batches: Batches
) -> Iterator[pa.RecordBatch]:
    """A task whose errors say nothing of a row, in Spark's logs neither."""
    try:
        yield from task(batches)
    except LimbeckError as error:
        raise RuntimeError(f"{MARK}{error}") from None
    except Exception as error:
        raise RuntimeError(f"{MARK}a worker failed with {type(error).__name__}") from None


def _encode_task(
    same: Mapping[str, str], schema: Schema, batches: Batches
) -> Iterator[pa.RecordBatch]:
    become_worker(same)
    for batch in batches:
        rows, content, texts = encoded_part(raw_columns(batch, schema), schema)
        named = {_text(name, schema): _spelled(column) for name, column in texts.items()}
        yield _as_batch(rows, content, named)


def _bound_task(
    same: Mapping[str, str], key: bytes, most: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    become_worker(same)
    parts = [batch for batch in batches if batch.num_rows]
    if parts:
        rows = bounded_part(joined([_as_rows(part) for part in parts]), key, most)
        names = [name for name in parts[0].schema.names if name.startswith("text")]
        texts = {n: pa.concat_arrays([part.column(n) for part in parts]) for n in names}
        yield _as_batch(rows, np.zeros((len(rows), 16), np.uint8), texts)


def _sum_task(
    same: Mapping[str, str], work: Work, state: State, batches: Batches
) -> Iterator[pa.RecordBatch]:
    become_worker(same)
    question = work.planned.question
    if isinstance(question, FrequentValues):
        place = _text(question.column, work.schema)
        found = counted_texts(
            work, (Texts(values(b.column(place)), _as_rows(b).sharing) for b in batches)
        )
    else:
        found = summed_part(work, state, (_as_rows(batch) for batch in batches))
    yield _outcome([found], [processor_text()])


def _merge_task(same: Mapping[str, str], work: Work, batches: Batches) -> Iterator[pa.RecordBatch]:
    become_worker(same)
    partials, processors = [], set()
    for batch in batches:
        partials += batch.column(0).to_pylist()
        processors |= set(batch.column(1).to_pylist())
    if partials:
        together = work.mechanism.to_bytes(merged(work, partials))
        yield _outcome([together], ["\n".join(sorted(processors))])


def _digest_task(same: Mapping[str, str], key: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    become_worker(same)
    total = np.zeros(5, np.uint64)
    for batch in batches:
        total = total + keyed_sum(_matrix(batch.column(0), np.uint8), key)
    yield pa.record_batch([pa.array([total.tobytes()], pa.binary())], names=["found"])


def _outcome(partials: list[bytes], processors: list[str]) -> pa.RecordBatch:
    arrays = [pa.array(partials, pa.binary()), pa.array(processors, pa.string())]
    return pa.record_batch(arrays, names=["partial", "processor"])


def _as_batch(rows: Rows, content: np.ndarray, texts: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Encoded rows, a record each."""
    assert rows.states is not None
    empty, none = np.zeros((len(rows), 0), np.uint8), np.zeros(len(rows), np.int32)
    sharing = rows.sharing
    arrays = {
        "cells": _column(rows.cells.astype(np.float32, copy=False)),
        "label": pa.array(rows.labels, pa.int32()),
        "states": _column(rows.states),
        "person": _column(empty if sharing is None else sharing.persons),
        "rank": pa.array(none if sharing is None else sharing.rank.astype(np.int32)),
        "kept": pa.array(none if sharing is None else sharing.kept.astype(np.int32)),
        "content": _column(content),
        **texts,
    }
    return pa.record_batch(list(arrays.values()), names=list(arrays))


def _spelled(column: Values) -> pa.Array:
    """Each row's text."""
    distinct = [text.encode("utf-8", "replace") for text in column.distinct]
    codes = pa.array(column.codes, pa.int64(), mask=column.codes < 0)
    return pa.array(distinct, pa.binary()).take(codes)


def _column(matrix: np.ndarray) -> pa.Array:
    """Each row's bytes."""
    content = np.ascontiguousarray(matrix)
    width = content.itemsize * content.shape[1]
    ends = np.arange(len(content) + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(
        pa.binary(), len(content), [None, pa.py_buffer(ends), pa.py_buffer(content)]
    )


def _matrix(column: pa.Array, kind: type) -> np.ndarray:
    """What `_column` made a column of."""
    content = b"".join(column.to_pylist())
    return np.frombuffer(content, kind).reshape(len(column), -1)


def _as_rows(batch: pa.RecordBatch) -> Rows:
    person = _matrix(batch.column("person"), np.uint64)
    sharing = None
    if person.shape[1]:
        sharing = Sharing(person, batch.column("rank").to_numpy(), batch.column("kept").to_numpy())
    labels = batch.column("label").to_numpy()
    cells, states = (
        _matrix(batch.column(n), k) for n, k in (("cells", np.float32), ("states", np.uint8))
    )
    return Rows(cells, labels, states, sharing)


def _watch(frame: Any, told: Callable[[float], None], done: threading.Event) -> None:
    """Tell how many of Spark's running tasks are done, where the driver knows."""
    try:
        tracker = frame.sparkSession.sparkContext.statusTracker()
    except Exception:  # Spark Connect has no such thing
        return
    while not done.wait(POLL_SECONDS):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(s.numTasks for s in stages if s)
        if tasks:
            told(min(1.0, sum(s.numCompletedTasks for s in stages if s) / tasks))
