"""Free texts and identifiers: declared columns of which no cell is read."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SchemaError


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A column of which no cell is read. A text is left out of the release; an id is counted afresh from 1."""

    name: str
    kind: str
    """"text" or "id"."""
    place: int
    """Of the column among all that are declared."""

    def __post_init__(self) -> None:
        if self.kind not in ("text", "id"):
            raise SchemaError(f"Column '{self.name}': expected kind text or id, got {self.kind!r}.")
