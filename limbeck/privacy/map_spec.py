"""`MapSpec`: plain data from which a map of rows is built, here or wherever a part of the rows is.

Nothing here is trusted: whoever adds up a map's answers clips them, so a wrong map costs accuracy
and never privacy.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..schema import Schema


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
        room = importlib.import_module(module)
        if not owner:
            return getattr(room, name)(schema, self.seed, **self.settings, **state)
        method = getattr(room, owner).from_settings(self.settings)
        return getattr(method, name)(schema, self.seed, **state)

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
    """SHA-256 of a text and of all arrays and texts in a tree of public values."""
    digest = hashlib.sha256(text.encode())
    for leaf in jax.tree_util.tree_leaves(values):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | str):
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
