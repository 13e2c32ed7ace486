"""A part of the rows, on whatever machine it lies: encoded there, bounded there, summed there.

This is what a worker runs. It gives partial sums and digests, draws no noise, and is told no secret but the
key that decides which rows of a person are kept. A part that is worked on twice gives the same twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from importlib.metadata import version
from typing import Any

import numpy as np

from ..data import Rows, Sharing, encoded, shared, texts_that_count
from ..errors import LimbeckError
from ..machine import processor
from ..privacy import Texts, Work
from ..schema import Category, Numbers, Raw, Schema, Values

SAME = ("limbeck", "numpy", "jax", "jaxlib", "pyarrow")
"""Packages that must have one version wherever a part is summed."""
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
"""What a worker sets before JAX is imported: there are as many workers as there are cores."""


def versions() -> dict[str, str]:
    """What this process computes with."""
    return {name: version(name) for name in SAME}


def become_worker(wanted: Mapping[str, str]) -> None:
    """One thread for this process, and the software of whoever asks."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    other = [
        f"{name} {v} here, {wanted[name]} there"
        for name, v in versions().items()
        if v != wanted[name]
    ]
    if other:
        raise LimbeckError(f"A worker has other versions than the driver: {'; '.join(other)}.")


def row_digests(raw: Mapping[str, Raw], schema: Schema) -> np.ndarray:
    """128 bits of each row's raw values, (rows, 16) bytes, whatever bounds they are encoded with."""
    parts = []
    for name in schema.names_read:
        column = raw[name]
        if isinstance(column, Values):
            texts = [
                hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=16)
                for t in column.distinct
            ]
            table = np.frombuffer(b"".join(t.digest() for t in texts) + bytes(16), np.uint8)
            parts.append(table.reshape(-1, 16)[column.codes])
        else:
            assert isinstance(column, Numbers)
            numbers = np.where(np.isnan(column.values), np.nan, column.values)  # one kind of NaN
            parts += [numbers[:, None].view(np.uint8), column.unread[:, None].astype(np.uint8)]
    content = np.ascontiguousarray(np.concatenate(parts, axis=1))
    found = b"".join(hashlib.blake2b(row, digest_size=16).digest() for row in content)
    return np.frombuffer(found, np.uint8).reshape(-1, 16)


def keyed_sum(contents: np.ndarray, key: bytes) -> np.ndarray:
    """A keyed digest of rows in any order and any parts: sums of 32 secret bytes of each; and their number."""
    found = b"".join(hashlib.blake2b(row, key=key, digest_size=32).digest() for row in contents)
    words = np.frombuffer(found, np.uint64).reshape(-1, 4)
    return np.append(words.sum(axis=0, dtype=np.uint64), np.uint64(len(contents)))


def open_texts(schema: Schema) -> list[str]:
    """Columns whose values the schema leaves open: of these a worker keeps the texts, too."""
    return [column.name for column in schema.estimated if isinstance(column, Category)]


def encoded_part(
    raw: Mapping[str, Raw], schema: Schema
) -> tuple[Rows, np.ndarray, dict[str, Values]]:
    """Rows encoded, a digest of each one's raw values, and texts of columns that are open; persons are
    known and not bounded yet."""
    rows, persons, _ = encoded(schema, raw)
    sharing = None
    if persons is not None:
        none = np.zeros(len(rows), np.int32)
        sharing = Sharing(persons, none, none)
    texts = {}
    for name in open_texts(schema):
        column = texts_that_count(schema, raw, name)
        assert isinstance(column, Values)
        texts[name] = column
    given = Rows(rows.cells, rows.labels, rows.states, sharing)
    return given, row_digests(raw, schema), texts


def bounded_part(rows: Rows, key: bytes, most: int) -> Rows:
    """Rows of whole persons, of whom at most so many are kept, as in one process."""
    assert rows.sharing is not None
    found = shared(rows.sharing.persons, rows.cells, rows.labels, key, most)
    return Rows(rows.cells, np.where(found.rank < 0, -1, rows.labels), rows.states, found)


def summed_part(work: Work, state: Mapping[str, Any], parts: Iterable[Rows]) -> bytes:
    """The partial sum of some rows at a step, as bytes."""
    size = work.mechanism.rows_at_once(work.schema, work.row_map)
    return work.mechanism.to_bytes(work.partial(regrouped(parts, size), state))


def counted_texts(work: Work, parts: Iterable[Texts]) -> bytes:
    """How many rows hold which text, as bytes."""
    return work.mechanism.to_bytes(work.partial(parts, {}))


def merged(work: Work, partials: Iterable[bytes]) -> Any:
    """One partial sum from several, which came as bytes."""
    mechanism = work.mechanism
    return reduce(mechanism.merge, map(mechanism.from_bytes, partials), mechanism.zero())


def processor_text() -> str:
    return json.dumps(processor(), sort_keys=True)


def regrouped(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows, so many at a time."""
    waiting: list[Rows] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= size:
            together = joined(waiting)
            whole = len(together) // size * size
            yield from together.take(slice(0, whole)).chunks(size)
            waiting = [together.take(slice(whole, None))]
    if waiting and any(map(len, waiting)):
        yield joined(waiting)


def joined(parts: list[Rows]) -> Rows:
    """Rows of several parts."""

    def all_of(name: str, of: list[Any]) -> Any:
        return np.concatenate([getattr(one, name) for one in of])

    states = None if parts[0].states is None else all_of("states", parts)
    sharing = None
    if parts[0].sharing is not None:
        shares = [part.sharing for part in parts]
        sharing = Sharing(*(all_of(name, shares) for name in ("persons", "rank", "kept")))
    return Rows(all_of("cells", parts), all_of("labels", parts), states, sharing)
