"""The certificate's schema: it fits what is made, refuses what is not, and explains every field."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import limbeck

# ---- the certificate ----------------------------------------------------------------------------


SCHEMA = Path(limbeck.__file__).parent / "release" / "certificate.schema.json"
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A real one, of a small table with every kind of column, some of them estimated."""
    import datetime

    import pandas as pd

    folder = tmp_path_factory.mktemp("certificate")
    schema = limbeck.Schema(
        dataset="all kinds",
        columns=(
            limbeck.Numeric(name="height", outer=(0.0, 3.0), missing=True),
            limbeck.Numeric(name="age", integer=True, min=0, max=99),
            limbeck.Date(name="seen", min=datetime.date(2000, 1, 1), max=datetime.date(2020, 1, 1)),
            limbeck.Category(name="town", most=5),
            limbeck.Category(name="smoker", values=(False, True), boolean=True, missing=True),
            limbeck.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )
    row = {"height": 1.7, "age": 30, "seen": "2010-05-05", "town": "north", "smoker": True}
    rows = pd.DataFrame([row | {"ill": "no"}, row | {"ill": "yes"}] * 100)
    return made(rows, schema, folder)


def made(rows: object, schema: limbeck.Schema, folder: Path) -> dict[str, Any]:
    release = limbeck.distill(
        limbeck.read(rows, schema),
        limbeck.DPMERF(features=20, steps=2, batch=8, hidden=(4,)),
        limbeck.Budget(epsilon=1.0, delta=1e-5),
        rows=10,
        ledger=limbeck.Ledger(folder / "ledger.sqlite"),
    )
    release.save(folder / "release")
    return json.loads((folder / "release" / "certificate.json").read_text())


def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_schema_fits_a_table(certificate: dict[str, Any]) -> None:
    validator().validate(certificate)
    assert certificate["data"]["estimated_columns"] == ["height", "town"]


def test_schema_fits_images(tmp_path: Path) -> None:
    import numpy as np

    schema = limbeck.Schema(
        dataset="pictures",
        rows=20,
        columns=(
            limbeck.Image(height=8, width=8),
            limbeck.Category(name="label", values=(0, 1), label=True),
        ),
    )
    pixels = np.zeros((20, 8, 8), np.uint8)
    validator().validate(made((pixels, np.arange(20) % 2), schema, tmp_path))


def _change(certificate: dict[str, Any], path: tuple[str | int, ...], value: object) -> None:
    *way, last = path
    place: Any = certificate
    for step in way:
        place = place[step]
    place[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("surprise",), 1),
        (("version",), 1),
        (("unit", "kind"), "household"),
        (("unit", "rows_at_most"), 0),
        (("check", "seen"), "no"),
        (("noise", "sums", "class counts"), "roughly"),
        (("noise", "gaussian"), "Box-Muller"),
        (("method", "version"), 0),
        (("machine", "processors"), []),
        (("public_files",), [{"name": "../weights.npz"}]),
        (("signature",), "mine"),
        (("guarantee", "epsilon"), -1),
        (("guarantee", "epsilon"), "infinity"),
        (("guarantee", "delta"), 1.5),
        (("guarantee", "adjacency"), "vague"),
        (("charges",), []),
        (("charges", 0, "mechanism"), "magic"),
        (("charges", 0, "noise_multiplier"), -3.0),
        (("charges", 0, "steps"), 0),
        (("charges", 0, "sampling"), 2.0),
        (("charges", 0, "extra"), 1),
        (("noise", "seeded"), True),
        (("releasable",), False),
        (("data", "schema_sha256"), "abc"),
        (("data", "schema", "column", 0, "values"), ["a"]),
        (("data", "schema", "column", 1, "min"), "estimate"),
    ],
    ids=lambda v: "/".join(map(str, v)) if isinstance(v, tuple) else str(v),
)
def test_schema_refuses(
    certificate: dict[str, Any], path: tuple[str | int, ...], value: object
) -> None:
    changed = copy.deepcopy(certificate)
    _change(changed, path, value)
    assert not validator().is_valid(changed)


def _fields(schema: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every described field of a JSON schema; the branches of conditions repeat them."""
    for key, field in schema.get("properties", {}).items():
        yield f"{name}/{key}", field
        yield from _fields(field, f"{name}/{key}")
    for key, part in schema.get("$defs", {}).items():
        yield from _fields(part, f"{name}/{key}")


def test_every_field_of_the_certificate_is_explained() -> None:
    page = (ROOT / "docs" / "certificate.md").read_text()
    fields = list(_fields(json.loads(SCHEMA.read_text())))
    assert len(fields) > 60
    for name, field in fields:
        assert field.get("description"), f"{name} has no description in {SCHEMA.name}"
        assert f"`{name.rsplit('/', 1)[-1]}`" in page, f"docs/certificate.md lacks {name}"
