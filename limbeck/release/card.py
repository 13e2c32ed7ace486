"""The two descriptions that travel with a release: a Hugging Face data set card and Croissant."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..schema import Category, Column, Schema, mean_rows

_CONTENTS = {
    "data.parquet": "the released rows",
    "data.csv": "the same rows as text",
    "data.npz": "the released images (`images`) and their `labels`",
    "images/": "the same images as PNG files, one folder per class",
    "contact-sheet.png": "the first images of each class at a glance",
    "generator.npz": "the generator, with its settings in `generator.json`: draws further rows for free",
    "softrows.npz": "soft rows, from which further rows are drawn for free, with `softrows.json`",
    "tables.npz": "tables of chances, from which further rows are drawn for free, with `tables.json`",
    "denoiser.npz": "a denoiser, with its settings in `denoiser.json`: draws further images for free",
    "distilled.npz": "the exact numbers (`slots`, encoded rows), `labels` (codes) and, where a method "
    "makes them, labels learned for its kernel (`targets`) or `soft` ones for networks: train on these. "
    "`stored`, if there: images that each hold several rows in turn, as the tiles of a square; cut one into its "
    "equal parts, line by line, and enlarge each linearly to full size, and you have its rows",
}
_MODEL = {
    "model.npz": "the model's numbers",
    "model.json": "what the model is built from, before they are filled in",
}
_ALWAYS = {
    "schema.toml": "the columns with their declared bounds and values",
    "measurements.npz": "the noisy numbers everything was made from",
    "certificate.json": "the privacy claim, with all that is needed to recompute it",
    "croissant.json": "this description for machines",
    "SHA256SUMS": "checksums of all files",
}


def make_card(
    certificate: Mapping[str, Any], schema: Schema, rows: int, files: Sequence[str]
) -> str:
    """README.md of a release."""
    method = certificate["method"]
    contents = "".join(
        f"- `{name}`: {_CONTENTS[name] if name in _CONTENTS else _ALWAYS[name]}\n"
        for name in [*files, *_ALWAYS]
    )
    kind = "images" if schema.image else "table"
    config = (
        "" if schema.image else "configs:\n- config_name: default\n  data_files: data.parquet\n"
    )
    name = json.dumps(f"{schema.dataset} (synthetic, differentially private)", ensure_ascii=False)
    head = f"""---
pretty_name: {name}
tags:
- synthetic
- differential-privacy
- limbeck
size_categories:
- {_size_category(rows)}
{config}---
"""
    body = f"""
# {schema.dataset}: a differentially private synthetic {kind}
{_stamp(certificate)}
{rows} synthetic {"images" if schema.image else "rows"}, made by [limbeck] with the method
`{method["name"]}`. No row of the original data is in here.

{_guarantee(certificate, schema)}{_ids(schema)}{_rules(certificate)}## Contents

{contents}
{_citing(certificate)}"""
    return head + _plain(body)


def make_model_card(certificate: Mapping[str, Any], schema: Schema) -> str:
    """README.md of a released model."""
    label = schema.label
    assert label is not None
    name = json.dumps(f"{schema.dataset} (classifier, differentially private)", ensure_ascii=False)
    head = f"""---
model_name: {name}
tags:
- differential-privacy
- limbeck
---
"""
    there = _MODEL | {n: words for n, words in _ALWAYS.items() if n != "croissant.json"}
    contents = "".join(f"- `{name}`: {words}\n" for name, words in there.items())
    body = f"""
# {schema.dataset}: a differentially private classifier
{_stamp(certificate)}
Predicts `{label.name}` ({", ".join(map(str, label.values))}), trained by [limbeck] with the method
`{certificate["method"]["name"]}`. No row of the original data is in here. With `limbeck predict` on this folder, or
`limbeck.Model.load` in Python, it predicts new rows, at no cost of privacy to those it learned from.

{_guarantee(certificate, schema)}## Contents

{contents}
{_citing(certificate)}"""
    return head + _plain(body)


def _stamp(certificate: Mapping[str, Any]) -> str:
    """What stands against publication; nothing if nothing does."""
    reasons = "; ".join(certificate["not_releasable_because"])
    return "" if certificate["releasable"] else f"\n> **Not for release:** {reasons}.\n"


def _plain(body: str) -> str:
    """Names and values are the owner's words, and stay words: a page made of the card runs none of them."""
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", body)


def _guarantee(certificate: Mapping[str, Any], schema: Schema) -> str:
    """What is promised, what it rests on, and its limits."""
    guarantee = certificate["guarantee"]
    return f"""## The guarantee

- **epsilon** {guarantee["epsilon"]}, **delta** {guarantee["delta"]:g} ({guarantee["definition"]})
- **Unit of privacy:** {schema.unit}. Neighbouring data sets differ by {guarantee["neighbours"]}.
- **Trust model:** {certificate["trust_model"]}

What was measured; noise is given in multiples of the sensitivity:

| measurement | mechanism | sensitivity | noise | sampling | steps |
|---|---|---|---|---|---|
{_charges(certificate)}
Check it with `limbeck verify` on this folder: epsilon is recomputed from `certificate.json` alone.

It rests on these assumptions:

{_bullets(certificate["assumptions"])}
and has these limits:

{_bullets(certificate["limits"])}
"""


def _citing(certificate: Mapping[str, Any]) -> str:
    """What to cite, and the software."""
    return f"""## Please cite

{_bullets(citations(certificate))}
[limbeck]: the software of this name, version {certificate["software"]["limbeck"]}
"""


def _ids(schema: Schema) -> str:
    """What ids of persons mean; nothing where there are none."""
    if schema.person is None:
        return ""
    name, shares = schema.person.column, schema.person.shares
    rows = (
        "Every row is another person's."
        if shares is None
        else f"How many rows a person has follows the shares in `schema.toml`: {mean_rows(schema.person):.3g} "
        "on average. Rows are drawn one by one: nothing ties those of one person together but the id."
    )
    return (
        f"## Persons\n\nIds in `{name}` are counted afresh from 1 and belong to no one. {rows}\n\n"
    )


def _rules(certificate: Mapping[str, Any]) -> str:
    """The rules between columns, and how they were kept; nothing where there are none."""
    rules = certificate["data"]["schema"].get("rules")
    if not rules:
        return ""
    kept = "".join(f"{line}\n" for line in rule_sentences(certificate))
    return f"## Rules between columns\n\n{_bullets([f'`{rule}`' for rule in rules])}\n{kept}\n"


def rule_sentences(certificate: Mapping[str, Any]) -> list[str]:
    """How the rules were kept in the released rows, in words."""
    kept = certificate["data"].get("rules")
    lines = [
        "They are public, and every released row (100 %) keeps them; a missing cell breaks none."
    ]
    if kept and kept["drawn_again"]:
        lines.append(
            f"{kept['drawn_again']:.1%} of the rows first came with a forbidden combination and were drawn again."
        )
    if kept and kept["drawn_evenly"]:
        lines.append(
            f"For {kept['drawn_evenly']:.1%} of the rows what was measured left nothing that the rules allow: "
            "these were drawn evenly among the allowed combinations."
        )
    return lines


def _charges(certificate: Mapping[str, Any]) -> str:
    """A line of the table for each measurement."""
    return "".join(
        f"| {c['name']} | {c['mechanism']} | {c['sensitivity']:g} | {c['noise_multiplier']:.4g} | "
        f"{'all rows' if c['sampling'] is None else 'Poisson ' + format(c['sampling'], '.3g')} | {c['steps']} |\n"
        for c in certificate["charges"]
    )


def make_croissant(
    certificate: Mapping[str, Any], schema: Schema, sums: Mapping[str, str]
) -> dict[str, Any]:
    """croissant.json: the data set's files and fields in MLCommons' vocabulary (1.0)."""
    main = "data.npz" if schema.image else "data.parquet"
    formats = {
        ".parquet": "application/x-parquet",
        ".csv": "text/csv",
        ".npz": "application/zip",
        ".png": "image/png",
    }
    files = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "encodingFormat": formats["." + name.rsplit(".", 1)[-1]],
            "sha256": digest,
        }
        for name, digest in sums.items()
    ]
    guarantee = certificate["guarantee"]
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": schema.dataset,
        "description": (
            f"Synthetic data made by limbeck ({certificate['method']['name']}) under "
            f"({guarantee['epsilon']}, {guarantee['delta']:g})-differential privacy; unit: {schema.unit}."
        ),
        "datePublished": certificate["created"],
        "version": "1.0.0",
        "citeAs": " ".join(citations(certificate)),
        "rai:personalSensitiveInformation": (
            f"None in clear. Made from sensitive data under ({guarantee['epsilon']}, "
            f"{guarantee['delta']:g})-differential privacy; see certificate.json."
        ),
        "distribution": files,
    }
    if not schema.image:
        described["recordSet"] = [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "field": [
                    *(_field(c.name, _data_type(c), main) for c in schema.columns),
                    *(_field(name, "sc:Integer", main) for name in id_names(schema)),
                ],
            }
        ]
    return described


def citations(certificate: Mapping[str, Any]) -> list[str]:
    """What to cite: the method's papers, or for a method without any, the software."""
    method, software = certificate["method"]["name"], certificate["software"]
    return list(certificate["papers"]) or [
        f"limbeck {software['limbeck']}, software, method {method}."
    ]


def id_names(schema: Schema) -> list[str]:
    """Columns of a release that hold fresh ids."""
    persons = [schema.person.column] if schema.person else []
    return persons + [column.name for column in schema.unread if column.kind == "id"]


def _data_type(column: Column) -> str:
    kinds = {
        "integer": "sc:Integer",
        "float": "sc:Float",
        "boolean": "sc:Boolean",
        "date": "sc:Date",
        "datetime": "sc:DateTime",
    }
    whole = isinstance(column, Category) and all(isinstance(v, int) for v in column.values)
    if whole and column.kind != "boolean":
        return "sc:Integer"
    return kinds.get(column.kind, "sc:Text")


def _field(name: str, kind: str, file: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"rows/{name}",
        "name": name,
        "dataType": kind,
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }


def _bullets(lines: Sequence[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _size_category(rows: int) -> str:
    steps = [
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    ]
    return next((name for limit, name in steps if rows < limit), "n>1M")


_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
