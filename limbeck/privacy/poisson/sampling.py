"""Poisson batches: every record enters a step by its own coin.

A coin belongs to a record, not to a place: it is a keyed function of the step, the record's content,
and its number among equal records. So a record that is added anywhere throws a coin of its own
and changes no other's. Where persons are protected, the coin is the person's, by their id, and all
their kept rows enter or none.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ...data import Rows, distinct_digests
from ...errors import fraction, positive
from ..noise import Stream

TILE = 64
"""A batch's shape is a multiple of this. Matrix products treat the rows of a last, incomplete tile
otherwise, in the last bit; so there is none."""


class Records:
    """Identifiers of all records, 128 bits each, secret: of a record's content, and of its number
    among equal records; or of its person.

    Args:
        rows: All records.
        stream: Secret randomness for the key of the identifiers.
    """

    def __init__(self, rows: Rows, stream: Stream) -> None:
        key = stream.words(8).tobytes()
        sharing = rows.sharing
        if sharing is None:
            self._places, self._rank = np.arange(len(rows)), np.zeros(len(rows), np.int32)
            self._names = distinct_digests(_digests(rows, key), key)
        else:  # rows that are not kept are in no batch: they would push others aside
            self._places = np.flatnonzero(sharing.rank >= 0)
            self._rank = sharing.rank[self._places]
            whose = sharing.persons[self._places]
            self._names = b"".join(
                hashlib.blake2b(person, key=key, digest_size=16).digest() for person in whose
            )
        self._words = np.frombuffer(self._names, np.uint64).reshape(-1, 2)

    def __len__(self) -> int:
        return len(self._words)

    def heads(self, probability: float, stream: Stream) -> np.ndarray:
        """Places of the records whose coins show heads, in the order of their identifiers.

        A coin is the first half of the identifier, enciphered by AES under a key of this step:
        a pseudorandom function of distinct blocks. The probability is rounded down to 64 bits.
        """
        cipher = Cipher(algorithms.AES(stream.words(4).tobytes()), modes.ECB()).encryptor()
        threshold = int(probability * 2.0**64)
        if threshold >= 2**64:
            chosen = np.arange(len(self))
        else:
            coins = np.frombuffer(cipher.update(self._names), np.uint64)[::2]
            chosen = np.flatnonzero(coins < np.uint64(threshold))
        names, rank = self._words[chosen], self._rank[chosen]
        return self._places[chosen[np.lexsort((rank, names[:, 1], names[:, 0]))]]


def _digests(rows: Rows, key: bytes) -> bytes:
    """16 bytes of each record's content: its cells and its label, as numbers: whether pixels are stored as bytes may
    turn on a single one of all pictures."""
    parts = []
    for chunk in rows.chunks(1 << 14):
        wide = np.ascontiguousarray(chunk.cells, np.float32)
        cells = wide.reshape(len(chunk), -1).view(np.uint8)
        labels = np.ascontiguousarray(chunk.labels, np.int64).view(np.uint8).reshape(-1, 8)
        whole = np.concatenate([cells, labels], axis=1)
        parts += [hashlib.blake2b(row, key=key, digest_size=16).digest() for row in whole]
    return b"".join(parts)


class PoissonBatches:
    """Batches of a public, fixed shape; one that overflows comes in several pieces, never cut.

    Args:
        probability: With which each record enters a step.
        rows: Public, approximate number of records; sets the shape and nothing else.
    """

    def __init__(self, probability: float, rows: int) -> None:
        if probability != 1:
            fraction(sampling=probability)
        positive(rows=rows)
        mean = probability * rows
        self.probability = probability
        self.shape = TILE * math.ceil((mean + 3 * math.sqrt(mean)) / TILE)

    def draw(self, records: Records, stream: Stream) -> np.ndarray:
        """Places of one step's records."""
        return records.heads(self.probability, stream)
