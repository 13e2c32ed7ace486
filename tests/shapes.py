"""Which modules' annotations of arrays are held against what they are called with, in every test."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "limbeck"
ROOMS = ("limbeck.features", "limbeck.nets", "limbeck.scores")
"""Rooms of which all annotations are held."""
SHAPE = re.compile(r"\b(Float|Int)\[")
SETTINGS = re.compile(r"^    good_for: ClassVar", re.MULTILINE)
"""What a method says of itself. Its settings come from recipes, and limbeck has its own words for wrong ones, which a
checker of types would forestall: files of methods are left out."""


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def _writes_shapes(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return bool(SHAPE.search(text)) and not SETTINGS.search(text)


CHECKED = [
    *ROOMS,
    *(_module(p) for p in sorted((PACKAGE / "methods").rglob("*.py")) if _writes_shapes(p)),
]
"""Names of modules and rooms."""
