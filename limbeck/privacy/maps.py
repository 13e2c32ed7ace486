"""Maps of rows: functions of one row at a time, made anew wherever rows are.

A `MapSpec` is plain data from which a map is built: on this machine, or in another process that
holds a part of the rows. A map's answers are clipped by whoever adds them up, so a map that is
wrong costs accuracy, never privacy; that it sees one row at a time is made sure of here.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..schema import Schema

CHUNK_BYTES = 1 << 26
"""Memory for one chunk of features (64 MiB, in float64)."""


@dataclass(frozen=True, kw_only=True)
class MapSpec:
    """How to build a map of rows from public knowledge.

    Args:
        factory: Where the maker is: "package.module:function", called with the schema, the seed and
            the settings; or "package.module:Class.method", for which the class's `from_settings`
            takes the settings.
        settings: Plain data.
        seed: Public; features are drawn with it.
    """

    factory: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def build(self, schema: Schema, state: Mapping[str, Any]) -> Any:
        """The map, with what earlier answers decided."""
        module, _, path = self.factory.partition(":")
        owner, _, name = path.rpartition(".")
        found = importlib.import_module(module)
        if not owner:
            return getattr(found, name)(schema, self.seed, **self.settings, **state)
        made = getattr(found, owner).from_settings(self.settings)
        return getattr(made, name)(schema, self.seed, **state)

    def digest(self, state: Mapping[str, Any]) -> str:
        """Tells maps apart: an answer is replayed only to the very same question."""
        facts = [self.factory, dict(self.settings), self.seed]
        return public_digest(json.dumps(facts, sort_keys=True, default=str), state)


def build_map(spec: Any, schema: Schema, state: Mapping[str, Any]) -> Any:
    """The map of a spec; a map that was built already is taken as it is, on this machine only."""
    return spec.build(schema, state) if isinstance(spec, MapSpec) else spec


def map_digest(spec: Any, state: Mapping[str, Any]) -> str:
    return spec.digest(state) if isinstance(spec, MapSpec) else public_digest("", [spec, state])


def public_digest(text: str, values: Any) -> str:
    """SHA-256 of a text and of all arrays in a tree of public values."""
    digest = hashlib.sha256(text.encode())
    for leaf in jax.tree_util.tree_leaves(values):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float):
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@eqx.filter_jit
def evaluate(row_map: Any, *arrays: Any) -> Any:
    """A map's answers for one row at a time, by construction: it cannot see a row's neighbours."""

    def one(*row: Any) -> Any:
        answer = row_map(*(part[None] for part in row))
        return jax.tree_util.tree_map(lambda array: array[0], answer)

    return jax.vmap(one)(*arrays)


def evaluated(row_map: Any, size: int, *arrays: np.ndarray) -> Any:
    """A map's answers for some rows, at most `size` of them, worked on in that fixed shape."""
    count = len(arrays[0])
    found = evaluate(row_map, *(padded(array, size) for array in arrays))
    return jax.tree_util.tree_map(lambda answer: np.asarray(answer)[:count], found)


def evaluated_in_pieces(row_map: Any, size: int, *arrays: np.ndarray) -> Any:
    """The same for more rows, a piece after the other."""
    pieces = range(0, len(arrays[0]), size)
    made = [
        evaluated(row_map, size, *(a[start : start + size] for a in arrays)) for start in pieces
    ]
    return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts), *made)


def chunk_rows(size: int, slots: int) -> int:
    """Rows per chunk: of one shape for all numbers of rows, so that a row's features (their last
    bit, too) do not depend on how many others there are."""
    return max(64, min(4096, CHUNK_BYTES // (8 * max(size, slots)) // 64 * 64))


def padded(array: np.ndarray, size: int, with_value: int = 0) -> np.ndarray:
    """Rows appended up to a fixed shape, so that compiled code is compiled once."""
    missing = size - len(array)
    if missing == 0:
        return array
    width = [(0, missing)] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, width, constant_values=with_value)
