"""A schema as plain data: what certificates hold of it, and by which a resumed run knows that it is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .tables import written_tables

if TYPE_CHECKING:
    from .schema import Schema


def facts_of(schema: Schema) -> dict[str, object]:
    """All that a schema says; what is as usual is left out."""
    unusual: dict[str, object] = {}
    if schema.names_are_right:
        unusual["names_are_right"] = True
    if schema.encoding != "utf-8":
        unusual["encoding"] = schema.encoding
    if schema.delimiter is not None:
        unusual["delimiter"] = schema.delimiter
    if schema.decimal != ".":
        unusual["decimal"] = schema.decimal
    if schema.thousands is not None:
        unusual["thousands"] = schema.thousands
    columns = [{"name": c.name, "kind": c.kind} | c.facts() for c in schema.columns]
    for unread in schema.unread:
        columns.insert(unread.place, {"name": unread.name, "kind": unread.kind})
    if schema.person:
        unusual["person"] = schema.person.facts()
    if schema.rules:
        unusual["rules"] = list(schema.rules)
    if schema.tables:
        unusual["tables"] = {text: dict(pairs) for text, pairs in written_tables(schema.tables)}
    return {
        "dataset": schema.dataset,
        "rows": "measure" if schema.rows is None else schema.rows,
        "unit": schema.unit,
        "ignore": list(schema.ignore),
        **unusual,
        "estimate_share": schema.estimate_share,
        "lifetime": vars(schema.lifetime),
        "column": columns,
    }
