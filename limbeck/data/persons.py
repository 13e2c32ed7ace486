"""Persons among rows: who a row belongs to, and which of a person's rows are kept.

What is kept of a person is decided by a key and by that person's own rows, whatever their order:
no one's rows change what is kept of anyone else. A row that is not kept, or belongs to no one, gets
the label -1, and so enters no question.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from ..schema import Person, Values


@dataclass(frozen=True)
class Sharing:
    """What bounding knows of each row, given the rows' persons."""

    persons: np.ndarray
    """128 bits of each row's person, (rows, 2); zeros: nobody's."""
    rank: np.ndarray
    """Place of a row among the kept ones of its person, (rows,); -1: not kept."""
    kept: np.ndarray
    """How many rows of its person are kept, (rows,): a row counts for one part in so many."""

    def __getitem__(self, at: slice | np.ndarray) -> Sharing:
        return Sharing(self.persons[at], self.rank[at], self.kept[at])

    @property
    def weights(self) -> np.ndarray:
        """What a row counts for: those of one person add up to one; 0 for rows that are not kept."""
        return np.where(self.rank < 0, 0.0, 1.0 / np.maximum(self.kept, 1))


def person_digests(ids: Values, person: Person) -> np.ndarray:
    """128 bits of the person that each row belongs to, (rows, 2); zeros for a row without an id."""
    digests = np.zeros((len(ids.distinct) + 1, 2), np.uint64)  # the last one is for no id
    for place, text in enumerate(ids.distinct):
        identity = person.identity(text)
        if identity is not None:
            words = identity.encode("utf-8", "surrogatepass")
            digests[place] = np.frombuffer(
                hashlib.blake2b(words, digest_size=16).digest(), np.uint64
            )
    return digests[ids.codes]


def shared(
    persons: np.ndarray, cells: np.ndarray, labels: np.ndarray, key: bytes, most: int
) -> Sharing:
    """Which rows are kept: of each person `most` at most, those of the least secret numbers.

    A row's number is a keyed digest of its person, its content, and its place among equal rows of
    that person; equal rows are the same whichever of them is kept.
    """
    count = len(labels)
    usable = np.flatnonzero((labels >= 0) & persons.any(axis=1))
    numbers = np.frombuffer(_numbers(persons, cells, labels, usable, key), np.uint64).reshape(-1, 2)
    owners = persons[usable]
    order = np.lexsort((numbers[:, 1], numbers[:, 0], owners[:, 1], owners[:, 0]))
    place = _places(owners[order])
    rank, kept = np.full(count, -1, np.int32), np.zeros(count, np.int32)
    rank[usable[order]] = np.where(place < most, place, -1)
    sizes = np.bincount(np.cumsum(place == 0))[1:]  # rows of each person, in this order
    kept[usable[order]] = np.minimum(np.repeat(sizes, sizes), most)
    return Sharing(persons, rank, np.where(rank < 0, 0, kept).astype(np.int32))


def _numbers(
    persons: np.ndarray, cells: np.ndarray, labels: np.ndarray, usable: np.ndarray, key: bytes
) -> bytes:
    """16 secret bytes for each usable row, another for each of several equal ones."""
    digests = []
    for row in usable:
        content = persons[row].tobytes() + int(labels[row]).to_bytes(8, "little", signed=True)
        digest = hashlib.blake2b(content + cells[row].tobytes(), key=key, digest_size=16)
        digests.append(digest.digest())
    return distinct_digests(b"".join(digests), key)


def distinct_digests(digests: bytes, key: bytes) -> bytes:
    """Digests of 16 bytes each, of which equal ones become different, by their number among equals."""
    words = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    order = np.lexsort((words[:, 1], words[:, 0]))
    numbers, named = _places(words[order]), bytearray(digests)
    for at in np.flatnonzero(numbers):
        place = 16 * int(order[at])
        text = digests[place : place + 16] + int(numbers[at]).to_bytes(8, "little")
        named[place : place + 16] = hashlib.blake2b(text, key=key, digest_size=16).digest()
    return bytes(named)


def _places(sorted_words: np.ndarray) -> np.ndarray:
    """The place of each row among those of equal words, where equal ones are side by side."""
    fresh = np.ones(len(sorted_words), bool)
    fresh[1:] = (sorted_words[1:] != sorted_words[:-1]).any(axis=1)
    at = np.arange(len(sorted_words))
    return at - np.maximum.accumulate(np.where(fresh, at, 0))
