"""A data set: a schema, a source of raw columns, and the encoded rows behind them.

Only `limbeck.privacy.Private` may look at the rows (the underscore says so; Python cannot enforce
it). Rows are parsed once into compact cells. Beyond a memory limit they lie in an unlinked
temporary file that no one else can open, and are read back as a memory map.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Protocol

import numpy as np

from ..errors import DataError
from ..schema import Numbers, Raw, Schema, Values, label_codes, says_something
from .ahead import in_order
from .persons import Sharing, person_digests, shared

ROWS_IN_MEMORY = 1 << 26
"""Bytes of cells, states or labels that are kept in memory (64 MiB each)."""
ROWS_AT_MOST = 1 << 30
"""Rows of a data set: so many sum exactly in whole numbers of 64 bits (see `limbeck.privacy.grid`)."""


class Source(Protocol):
    """Where raw rows come from: a file, a folder, a frame in memory."""

    def check(self, schema: Schema) -> None:
        """Refuse a source whose structure (columns, sizes) is not the schema's; reads no rows."""

    def chunks(self, schema: Schema) -> Iterator[Mapping[str, Raw]]:
        """The declared columns, some thousands of rows at a time, each in its raw form."""


@dataclass(frozen=True)
class Rows:
    """Encoded rows: cells (rows, columns) and label codes (rows,), -1 for no declared label, or no target; how
    the cells of all columns, the label's too, stand to the schema (`limbeck.schema.STATES`); and where
    persons are protected whose they are, with the label -1 for rows that are not kept."""

    cells: np.ndarray
    labels: np.ndarray
    states: np.ndarray | None = None
    sharing: Sharing | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def weights(self) -> np.ndarray | None:
        """What each row counts for, where persons share; None: every row for one."""
        return None if self.sharing is None else self.sharing.weights

    def chunks(self, size: int) -> Iterator[Rows]:
        """Consecutive slices of at most `size` rows; of a hidden file, no more is kept in memory."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))
            for array in (self.cells, self.labels, self.states):
                if isinstance(array, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
                    held: Any = array  # what is let go is read again if it is asked for
                    held._mmap.madvise(mmap.MADV_DONTNEED)

    def take(self, at: np.ndarray | slice) -> Rows:
        states = None if self.states is None else self.states[at]
        sharing = None if self.sharing is None else self.sharing[at]
        return Rows(self.cells[at], self.labels[at], states, sharing)


class Dataset:
    """A schema and a source of rows; made by `limbeck.read`."""

    engine: Any = None
    """What computes sums over rows that are elsewhere; None: this process does."""

    def __init__(self, schema: Schema, source: Source) -> None:
        source.check(schema)
        self.schema = schema
        self._source = source
        self._rows: Rows | None = None
        self._persons: np.ndarray | None = None
        self._kept: tuple[bytes, Rows] | None = None
        self._raw_digest: bytes | None = None

    def __repr__(self) -> str:
        return f"Dataset({self.schema.dataset!r}, columns={len(self.schema.columns)})"

    @property
    def engine_name(self) -> str:
        """Where sums over the rows are computed: `local` is this process."""
        return "local" if self.engine is None else self.engine.name

    def with_schema(self, schema: Schema) -> Dataset:
        """The same source under another schema, such as one with estimated bounds filled in."""
        return Dataset(schema, self._source)

    def _encoded(self, progress: Callable[[int], None] = lambda rows: None) -> Rows:
        """All rows, parsed and encoded on first use."""
        if self._rows is None:
            self._rows, self._persons, self._raw_digest = _encode(
                self.schema, self._source, progress
            )
        return self._rows

    def _bounded(self, key: bytes) -> Rows:
        """All rows; where persons are protected, at most so many of each, chosen by a secret key."""
        rows, person = self._encoded(), self.schema.person
        if person is None:
            return rows
        if self._kept is None or self._kept[0] != key:
            assert self._persons is not None
            sharing = shared(self._persons, rows.cells, rows.labels, key, person.rows_at_most)
            labels = np.where(sharing.rank < 0, -1, rows.labels)
            self._kept = key, Rows(rows.cells, labels, rows.states, sharing)
        return self._kept[1]

    def _values(self, name: str) -> Iterator[Raw]:
        """`texts_that_count` of all rows, for the private estimate of a column's values."""
        for chunk in self._source.chunks(self.schema):
            yield texts_that_count(self.schema, chunk, name)

    def _content(self) -> bytes:
        """Digest of the raw values of all declared columns, whatever bounds they are encoded with."""
        self._encoded()
        assert self._raw_digest is not None
        return self._raw_digest

    def _digest(self, key: bytes) -> str:
        """Keyed digest of the rows: tells whether a resumed run sees the same ones."""
        return hashlib.blake2b(self._content(), key=key, digest_size=32).hexdigest()


def _encode(
    schema: Schema, source: Source, progress: Callable[[int], None]
) -> tuple[Rows, np.ndarray | None, bytes]:
    """Rows, whose they are, and a digest of the raw values."""
    stores, count = (Store(), Store(), Store()), 0
    digest, persons = hashlib.blake2b(digest_size=32), [np.zeros((0, 2), np.uint64)]
    with closing(in_order(partial(encoded, schema), source.chunks(schema))) as parts:
        for rows, own, content in parts:
            assert rows.states is not None
            for store, array in zip(stores, (rows.cells, rows.states, rows.labels), strict=True):
                store.add(array)
            if own is not None:
                persons.append(own)
            digest.update(content)
            count += len(rows)
            if count > ROWS_AT_MOST:
                raise DataError(
                    f"'{schema.dataset}' has more rows than the {ROWS_AT_MOST:,} that limbeck can add "
                    "up exactly. Make several data sets of it, or take a part."
                )
            progress(count)
    width = schema.slots if schema.image else len(schema.inputs)
    cells, states = stores[0].close(width), stores[1].close(len(schema.columns))
    rows = Rows(cells, stores[2].close(1).astype(np.int32, copy=False).reshape(-1), states)
    return rows, np.concatenate(persons) if schema.person else None, digest.digest()


def encoded(schema: Schema, raw: Mapping[str, Raw]) -> tuple[Rows, np.ndarray | None, bytes]:
    """Some rows encoded, 128 bits of each one's person, and a digest of the raw values."""
    digest, persons = hashlib.blake2b(digest_size=32), None
    for column in schema.columns:
        _absorb(digest, raw[column.name])
    if schema.person:
        ids = raw[schema.person.column]
        assert isinstance(ids, Values)
        persons = person_digests(ids, schema.person)
        _absorb(digest, persons)
    cells = schema.encode(raw)
    labels = np.zeros(len(cells), np.int32)
    if schema.label:
        labels = schema.label.encode(raw[schema.label.name]).astype(np.int32)
    elif schema.target:
        labels = label_codes(schema, cells, raw[schema.target.name])
    states = np.stack([c.states(raw[c.name]) for c in schema.columns], axis=1)
    return Rows(cells, labels, states), persons, digest.digest()


def texts_that_count(schema: Schema, raw: Mapping[str, Raw], name: str) -> Raw:
    """Some rows' texts of a column; null in rows without a declared label, which enter no question."""
    texts, predicted = raw[name], schema.label or schema.target
    if isinstance(texts, Values) and predicted:
        without = ~says_something(predicted, raw[predicted.name])
        texts = Values(np.where(without, -1, texts.codes), texts.distinct)
    return texts


def _absorb(digest: hashlib.blake2b, raw: Raw) -> None:
    if isinstance(raw, Values):
        digest.update("\x00".join(raw.distinct).encode("utf-8", "surrogatepass"))
        raw = raw.codes.astype(np.int8) if len(raw.distinct) < 128 else raw.codes
    if isinstance(raw, Numbers):
        digest.update(np.packbits(raw.unread).data)
        raw = raw.values
    digest.update(np.ascontiguousarray(raw).data)


class Store:
    """Chunks of cells that become one array: in memory, or beyond the limit in a hidden file."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._bytes = self._rows = 0
        self._file: IO[bytes] | None = None

    def add(self, cells: np.ndarray) -> None:
        self._bytes += cells.nbytes
        self._rows += len(cells)
        if self._file is None and self._bytes > ROWS_IN_MEMORY:
            self._file = tempfile.TemporaryFile(prefix="limbeck-")  # noqa: SIM115
            for part in self._parts:
                self._write(part)
            self._parts = [cells]  # keeps the kind of the cells, no longer the cells
        if self._file is None:
            self._parts.append(cells)
        else:
            self._write(cells)

    def _write(self, cells: np.ndarray) -> None:
        assert self._file is not None
        self._file.write(np.ascontiguousarray(cells).data)

    def close(self, width: int) -> np.ndarray:
        if not self._parts:
            return np.zeros((0, width), np.float32)
        if self._file is None:
            return np.concatenate(self._parts)
        self._file.flush()
        shape = (self._rows, width)
        array = np.memmap(self._file, self._parts[0].dtype, mode="r", shape=shape)
        self._file.close()  # the map keeps the file alive, unlinked as it is
        return array
