"""Show the doctests of docstrings as blocks of code, wherever they stand in a docstring."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^[ \t]*>>> .*?(?=\n[ \t]*\n(?![ \t]*>>> )|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(griffe.Extension):
    """Puts every doctest between fences, so that Markdown does not read it as a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = DOCTEST.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    lines = found[0].split("\n")
    margin = re.match(r"[ \t]*", lines[0])[0]  # type: ignore[index]
    return "\n".join([f"{margin}```pycon", *lines, f"{margin}```"])
