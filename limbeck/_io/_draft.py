"""Draft a schema: names and kinds from the source, bounds and values left to the owner.

A draft never holds a value from a row. Kinds are guessed from the first rows; they are the owner's
to confirm, which is why a draft stays `confirmed = false`.
"""

from __future__ import annotations

import re
from itertools import islice

import numpy as np

from .._check import DataError
from .._columns import Category, Image, Values
from .._schema import UNFILLED, Schema, toml_value
from . import _images, _tables

_HEAD = """\
# A draft. Fill in every "{unfilled}" from what you know about the data (documentation, the
# questionnaire, physical limits), not from looking at the rows; then set confirmed = true.

dataset = "{unfilled}"   # a name for these people's data: the ledger books all spending under it
rows = "measure"   # better: a public, approximate number such as 10000
unit = "one row"   # what one row stands for, such as "one patient"
confirmed = false
ignore = []   # columns to leave out, such as ["id"]

[lifetime]   # what may ever be spent on this data set, over all runs
epsilon = 10.0
delta = 1e-4
"""

_FIELDS = {
    "integer": 'min = "{u}"   # or min = "estimate" with outer = [lowest, highest]\nmax = "{u}"\n',
    "float": 'min = "{u}"   # or min = "estimate" with outer = [lowest, highest]\nmax = "{u}"\n',
    "date": 'min = "{u}"   # such as 1990-01-31\nmax = "{u}"\n',
    "category": 'values = "{u}"   # such as ["yes", "no"]; or values = "estimate"\n',
    "boolean": "",
}


def draft_schema(source: object) -> str:
    """A schema file to edit, for any source that `limbeck.read` takes."""
    from . import open_source

    opened = open_source(source)
    head = _HEAD.format(unfilled=UNFILLED)
    if isinstance(opened, _images.ArraySource | _images.ImageFolderSource):
        return head + _draft_images(opened)
    names = _column_names(opened)
    probe = Schema(dataset="draft", columns=tuple(Category(name=n, most=1) for n in names))
    first = next(iter(islice(opened.chunks(probe), 1)), None)
    parts = []
    for name in names:
        raw = None if first is None else first[name]
        kind = _guess(raw) if isinstance(raw, Values) else "category"
        fields = _FIELDS[kind].format(u=UNFILLED)
        parts.append(
            f"\n[[column]]\nname = {toml_value(name)}\n"
            f'kind = "{kind}"   # integer, float, category, boolean, date or label\n'
            f"{fields}missing = false\n"
        )
    return head + "".join(parts) + _LABEL_HINT


_LABEL_HINT = """
# One column may be the label: kind = "label" with values = [...] and no `missing`.
"""


def _column_names(source: object) -> list[str]:
    if isinstance(source, _tables.CsvSource):
        return source.names
    if isinstance(source, _tables.ParquetSource):
        return list(source._dataset.schema.names)
    if isinstance(source, _tables.FrameSource):
        return list(source._table.column_names)
    raise DataError(f"Cannot draft a schema for {type(source).__name__}.")


def _guess(raw: Values) -> str:
    texts = [t.strip() for t in raw.distinct[:1000] if t.strip()]
    if not texts:
        return "category"
    words = {t.lower() for t in texts}
    if words <= {"true", "false"}:
        return "boolean"
    if all(re.fullmatch(r"[+-]?\d+", t) for t in texts):
        return "integer"
    if _most(texts, _is_number):
        return "float" if any("." in t or "e" in t.lower() for t in texts) else "integer"
    if _most(texts, lambda t: bool(re.match(r"\d{4}-\d\d-\d\d", t))):
        return "date"
    return "category"


def _most(texts: list[str], test: object) -> bool:
    assert callable(test)
    return float(np.mean([test(t) for t in texts])) > 0.95


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _draft_images(source: _images.ArraySource | _images.ImageFolderSource) -> str:
    if isinstance(source, _images.ArraySource):
        height, width, channels = source._images.shape[1:]
        size = f"height = {height}\nwidth = {width}\nchannels = {channels}\n"
        label = source._labels is not None
    else:
        size = f'height = "{UNFILLED}"\nwidth = "{UNFILLED}"\nchannels = 1   # 1 grey, 3 colour\n'
        label = True
    image = Image(height=1, width=1)
    text = f'\n[[column]]\nname = "{image.name}"\nkind = "image"\n{size}min = 0\nmax = 255\n'
    if label:
        text += f'\n[[column]]\nname = "label"\nkind = "label"\nvalues = "{UNFILLED}"   # such as [0, 1]\n'
    return text
