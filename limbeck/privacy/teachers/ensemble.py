"""Teachers on disjoint shards: many small models side by side, whose states never leave.

A record belongs to the shard that a keyed hash of its own content names, whatever other records
there are; where persons are protected, one of the person's id, so that a shard holds whole persons. A
public table may give every class teachers of its own, so that a rare class is not spread over teachers
that see one of its rows or none: the hash then chooses among the teachers of the record's class. A teacher
is written for itself alone, and is run for all of them by `vmap`: it cannot see another's rows, weights,
moments or statistics. What a record changes is one teacher's state.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ...data import Rows, Store
from ..maps import chunk_rows, evaluated
from ..noise import Stream
from ..question import RowAccess
from ..row_maps import FeatureMap

CHUNK_BYTES = 1 << 25
"""Memory for the work on one chunk of teachers (32 MiB): larger chunks leave the processor's cache."""


class Teacher(Protocol):
    """One teacher's life, from public knowledge and the rows of its own shard.

    Equal teachers do the same, whatever their seed: it enters by `start` alone.
    """

    @property
    def seed(self) -> int:
        """Public, for `start`."""

    @property
    def count(self) -> int:
        """How many teachers there are."""

    @property
    def batch(self) -> int:
        """Rows that a teacher is shown at a time."""

    @property
    def turns(self) -> int:
        """How often it is shown rows before it answers a question."""

    def start(self, seed: Any, number: Any) -> Any:
        """The state of a fresh teacher with this number: weights, moments, statistics."""

    def learn(self, state: Any, rows: Any, labels: Any, present: Any, question: Any) -> Any:
        """The state after a look at rows (batch, width), of which some may not be `present`."""

    def answer(self, state: Any, question: Any) -> Any:
        """Its answer: whole numbers for `Votes`, a vector for `Directions`."""


@dataclass(frozen=True)
class Faculty:
    """What all teachers do, and what they see of a row: features, computed once; None: its slots."""

    teacher: Teacher
    features: FeatureMap | None = None
    of_class: tuple[int, ...] = ()
    """Public: how many teachers see the rows of each class alone, which add up to all of them; none:
    every teacher sees rows of all classes."""


class Shards:
    """Which rows belong to which teacher.

    Args:
        rows: All rows; those without a declared label belong to no one.
        count: Number of teachers.
        stream: Secret randomness for the key of the hash.
        of_class: Teachers of each class, if classes have their own.
    """

    def __init__(
        self, rows: Rows, count: int, stream: Stream, of_class: tuple[int, ...] = ()
    ) -> None:
        key = stream.words(8).tobytes()
        if of_class and rows.sharing is not None:
            raise RuntimeError("a person's rows may be of several classes: shards go by persons")
        known = 1 + int(rows.labels.max(initial=-1))
        choices = _teachers_of_classes(count, of_class, known)
        named = [_shard(rows, i, key, choices) for i in range(len(rows))]
        self.of_row = np.asarray(named, np.int64).reshape(len(rows))
        self.sizes = np.bincount(self.of_row[self.of_row >= 0], minlength=count)
        self._order = np.argsort(self.of_row, kind="stable")[len(rows) - self.sizes.sum() :]
        self._starts = np.cumsum(self.sizes) - self.sizes

    def look(self, first: int, last: int, batch: int, turn: int) -> tuple[np.ndarray, np.ndarray]:
        """Places (teachers, batch) of the rows that teachers see in a turn, and which are there.

        A teacher goes round its own shard, `batch` rows at a time. Of a smaller shard every row is
        there once, and seats that are not `present` hold repetitions.
        """
        known = slice(first, min(last, len(self.sizes)))
        sizes, starts = (
            np.concatenate([array[known], np.zeros(last - first - len(array[known]), np.int64)])
            for array in (self.sizes, self._starts)
        )
        seat = np.arange(batch)
        turned = (turn * batch + seat) % np.maximum(sizes, 1)[:, None]
        places = np.where(sizes[:, None] > 0, starts[:, None] + turned, 0)
        if not len(self._order):
            return np.zeros_like(places), np.zeros(places.shape, bool)
        return self._order[places], seat < sizes[:, None]


class Ensemble:
    """The hidden states of all teachers.

    Args:
        teacher: What each of them does.
        shards: Who sees which rows.
        read: Places of rows to what a teacher sees of them, and their labels.
    """

    def __init__(
        self,
        teacher: Teacher,
        shards: Shards,
        read: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self._teacher, self._shards, self._read = teacher, shards, read
        self._turn = self._size = 0
        self._states: list[Any] = []
        self._alone: dict[int, tuple[Any, int]] = {}

    @classmethod
    def of_rows(cls, faculty: Faculty, access: RowAccess) -> Ensemble:
        """Fresh teachers on disjoint shards of the rows."""
        rows, schema, features = access.rows, access.schema, faculty.features
        seen = _all_features(features, access) if features else rows.cells

        def read(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if not len(rows):
                width = features.size if features else schema.slots
                return np.zeros((len(places), width), np.float32), np.zeros(len(places), np.int32)
            slots = seen[places] if features else schema.expand(seen[places])
            return slots, np.maximum(rows.labels[places], 0)

        stream = access.stream("teachers/shards")
        shards = Shards(rows, faculty.teacher.count, stream, faculty.of_class)
        return cls(faculty.teacher, shards, read)

    def ask(self, question: Any, *, answers: bool = True) -> Iterator[tuple[float, np.ndarray]]:
        """Let all teachers learn and, if wanted, answer; chunk by chunk, with the part done."""
        count = self._teacher.count
        self._size = size = self._size or self._chunk(question)
        for number, first in enumerate(range(0, count, size)):
            if len(self._states) <= number:
                numbers = jnp.arange(first, first + size)
                self._states.append(_start(self._teacher, self._teacher.seed, numbers))
            state = self._taught(self._states[number], first, size, self._turn, question)
            self._states[number] = state
            votes = np.asarray(_answer(self._teacher, state, question)) if answers else np.zeros(0)
            # Beyond the last teacher there is none: the last chunk has the shape of the others.
            yield min(1.0, (first + size) / count), votes[: count - first]
        self._turn += self._teacher.turns

    def ask_one(
        self, number: int, question: Any, *, answers: bool = True, last: bool = False
    ) -> np.ndarray:
        """Let one teacher alone learn and, if wanted, answer, (1, size); then it is forgotten, if it is
        the `last` time."""
        fresh = number not in self._alone
        state, seen = (self._fresh(number), 0) if fresh else self._alone.pop(number)
        state = self._taught(state, number, 1, seen, question)
        if not last:
            self._alone[number] = state, seen + self._teacher.turns
        return np.asarray(_answer(self._teacher, state, question)) if answers else np.zeros(0)

    def _fresh(self, number: int) -> Any:
        return _start(self._teacher, self._teacher.seed, np.asarray([number], np.int32))

    def _taught(self, state: Any, first: int, size: int, seen: int, question: Any) -> Any:
        """The states of some teachers, who were shown rows so often before, after they were shown more."""
        for turn in range(self._teacher.turns):
            places, present = self._shards.look(
                first, first + size, self._teacher.batch, seen + turn
            )
            rows, labels = self._read(places.ravel())
            rows = rows.reshape(*places.shape, -1)
            labels = labels.reshape(places.shape)
            state = _learn(self._teacher, state, rows, labels, present, question)
        return state

    def _chunk(self, question: Any) -> int:
        """Teachers worked on at once: from shapes alone, so of the same number for any rows."""
        state = jax.eval_shape(self._teacher.start, 0, 0)
        answer = jax.eval_shape(self._teacher.answer, state, question)
        numbers = sum(leaf.size for leaf in jax.tree_util.tree_leaves(state)) + 8 * answer.size
        public = sum(np.size(leaf) for leaf in jax.tree_util.tree_leaves(question))
        return max(1, min(self._teacher.count, CHUNK_BYTES // (4 * (2 * numbers + 2 * public))))


def _all_features(features: FeatureMap, access: RowAccess) -> np.ndarray:
    """Features of all rows, in a hidden file where they are many."""
    size, store = chunk_rows(features.size, access.schema.slots), Store()
    for batch in access.batches(size):
        store.add(evaluated(features, size, access.schema.expand(batch.cells)))
    return store.close(features.size)


def _teachers_of_classes(
    count: int, of_class: tuple[int, ...], known: int
) -> list[tuple[int, int]]:
    """Number of the first teacher that sees rows of a class, and how many do, for each class."""
    if not of_class:
        return [(0, count)] * known
    if min(of_class) < 1 or sum(of_class) != count or known > len(of_class):
        raise RuntimeError("every class needs teachers, and every teacher a class")
    return list(zip(np.cumsum((0, *of_class[:-1])).tolist(), of_class, strict=True))


def _shard(rows: Rows, at: int, key: bytes, choices: list[tuple[int, int]]) -> int:
    if rows.labels[at] < 0:
        return -1
    first, count = choices[rows.labels[at]]
    content = rows.cells[at].astype(np.float32).tobytes() + int(rows.labels[at]).to_bytes(
        8, "little"
    )
    if rows.sharing is not None:
        content = rows.sharing.persons[at].tobytes()
    digest = hashlib.blake2b(content, key=key, digest_size=16).digest()
    return first + int.from_bytes(digest, "little") % count


@functools.partial(jax.jit, static_argnums=0)
def _start(teacher: Teacher, seed: int, numbers: Any) -> Any:
    return jax.vmap(teacher.start, in_axes=(None, 0))(seed, numbers)


@functools.partial(jax.jit, static_argnums=0)
def _learn(
    teacher: Teacher, states: Any, rows: Any, labels: Any, present: Any, question: Any
) -> Any:
    """All teachers of a chunk, each by itself; one without rows keeps its initial state."""

    def one(state: Any, rows: Any, labels: Any, present: Any) -> Any:
        some = present.any()
        # Seats of an empty shard point at some row of another teacher: wiped before anyone looks.
        rows, labels = jnp.where(some, rows, 0), jnp.where(some, labels, 0)
        learned = teacher.learn(state, rows, labels, present, question)
        return jax.tree_util.tree_map(lambda new, old: jnp.where(some, new, old), learned, state)

    return jax.vmap(one)(states, rows, labels, present)


@functools.partial(jax.jit, static_argnums=0)
def _answer(teacher: Teacher, states: Any, question: Any) -> Any:
    return jax.vmap(teacher.answer, in_axes=(0, None))(states, question)
