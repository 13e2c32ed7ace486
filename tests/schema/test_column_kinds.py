"""Kinds of column: what is declared is read cell by cell, and comes back as it came."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.data.bare import bare_values
from limbeck.features.cells import Cells
from limbeck.report import make_report
from limbeck.schema import Category, DateTime, Duration, Numbers

BANK = """\
dataset = "bank"
rows = 3
confirmed = true
encoding = "latin-1"
delimiter = ";"
decimal = ","
[[column]]
name = "Kunde"
kind = "id"
[[column]]
name = "Betrag"
kind = "float"
min = -1000
max = 5000
decimals = 2
[[column]]
name = "Tag"
kind = "date"
format = "%d.%m.%Y"
min = 2020-01-01
max = 2020-12-31
[[column]]
name = "Notiz"
kind = "text"
[[column]]
name = "PLZ"
kind = "category"
values = ["01067", "80331"]
[[column]]
name = "Gebühr"
kind = "boolean"
values = ["nein", "ja"]
"""


def bank() -> lk.Schema:
    return lk.Schema.parse(BANK.replace('["nein", "ja"]', "[0, 1]"))


def test_a_bank_file_is_read_and_comes_back_as_it_came(tmp_path: Path) -> None:
    """Semicolons, decimal commas, day before month, Latin-1: by declaration."""
    path = tmp_path / "bank.csv"
    rows = ["7;1.234,50;03.02.2020;frei;01067;1", "8;-0,25;31.12.2020;;80331;0", "9;1.5;x;;1067;2"]
    path.write_text("\n".join(["Kunde;Betrag;Tag;Notiz;PLZ;Gebühr", *rows]), encoding="latin-1")
    schema = bank()
    held = lk.read(path, schema)._encoded()
    back = schema.decode(held.cells, held.labels)
    assert list(back.columns) == ["Kunde", "Betrag", "Tag", "PLZ", "Gebühr"]
    assert back["Kunde"].tolist() == [1, 2, 3]
    assert back["Betrag"].tolist()[:2] == [1234.5, -0.25]
    assert back["Tag"].dt.strftime("%Y-%m-%d").tolist()[:2] == ["2020-02-03", "2020-12-31"]
    assert back["PLZ"].tolist()[:2] == ["01067", "80331"]
    assert back["Gebühr"].tolist()[:2] == [1, 0]
    assert held.cells[2, 2:].tolist() == [-1, -1]  # no declared value: it counts as nothing
    assert lk.Schema.parse(schema.toml()) == schema


def test_a_released_file_is_written_as_the_owner_writes(tmp_path: Path) -> None:
    from limbeck.data.write import save_table

    schema = bank()
    frame = schema.decode(np.asarray([[0.5, 0.0, 0.0, 1.0]], np.float32), np.zeros(1, np.int32))
    save_table(frame, schema, tmp_path)
    head, line = (tmp_path / "data.csv").read_text("latin-1").splitlines()
    assert (head, line) == ("Kunde;Betrag;Tag;PLZ;Gebühr", "1;2000,0;01.01.2020;01067;1")


def test_zero_stands_apart_on_a_logarithmic_scale() -> None:
    column = lk.Numeric(name="n", integer=True, min=0, max=200_000, scale="log")
    values = np.asarray([0.0, 1, 2, 29, 1000, 199_999, 200_000])
    assert column.decode(column.encode(values)).tolist() == values.tolist()
    cells = Cells(column=column, grid=64)
    found = np.asarray(cells.indicators(jnp.asarray(column.expand(column.encode(values)))))
    assert (found.sum(axis=1) == 1).all()
    codes = found.argmax(axis=1)
    assert codes[:3].tolist() == [0, 1, 2] and (np.diff(codes) > 0)[:5].all()
    rng = np.random.default_rng(0)
    everywhere = np.repeat(np.arange(cells.count), 20)
    drawn = cells.draw(everywhere, rng)
    again = np.asarray(cells.indicators(jnp.asarray(drawn[:, None]))).argmax(axis=1)
    assert (again == everywhere).all()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"scale": "log", "min": 0}, "least amount above it"),
        ({"scale": "log", "min": -1}, "needs min >= 0"),
        ({"scale": "root", "min": 0}, "must be"),
        ({"step": 0, "min": 0}, "step > 0"),
    ],
)
def test_scales_and_steps_that_make_no_sense(facts: dict[str, object], words: str) -> None:
    with pytest.raises(lk.SchemaError, match=words):
        lk.Numeric(name="n", max=9, **facts)  # type: ignore[arg-type]


def test_steps_are_kept() -> None:
    column = lk.Numeric(name="n", min=0.5, max=3, step=0.25)
    made = column.decode(np.linspace(0, 1, 50, dtype=np.float32))
    assert set(made) <= {0.5 + 0.25 * i for i in range(11)} and len(set(made)) == 11


def moments(**more: object) -> DateTime:
    bounds = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
    return DateTime(name="t", min=bounds[0], max=bounds[1], **more)  # type: ignore[arg-type]


def one(column: object, cells: list[object]) -> np.ndarray:
    schema = lk.Schema(dataset="d", rows=2, columns=(column,))  # type: ignore[arg-type]
    return lk.read(pd.DataFrame({column.name: cells}), schema)._encoded().cells[:, 0]  # type: ignore[attr-defined]


def test_moments_keep_their_time_in_steps() -> None:
    column = moments(step="15 minutes", missing=True)
    cells = one(column, ["2020-01-01T06:14", "2020-01-01 06:00:00+00:00", "noon"])
    back = column.decode(cells)
    assert back[0] == pd.Timestamp("2020-01-01 06:15") and back[1:].isna().all()


def test_moments_with_a_zone_name_their_distance() -> None:
    column = moments(zone="Europe/Berlin", missing=True)
    back = column.decode(one(column, ["2020-01-01T06:00Z", "2020-01-01T06:00"]))
    assert back[0] == pd.Timestamp("2020-01-01 07:00", tz="Europe/Berlin") and pd.isna(back[1])
    with pytest.raises(lk.DataError, match="with no time zone"):
        one(column, [pd.Timestamp("2020-01-01")])
    with pytest.raises(lk.SchemaError, match="unknown zone"):
        moments(zone="Mars")


def test_durations() -> None:
    column = Duration(name="t", min="0 hours", max="2 days", step="15 minutes", missing=True)
    back = column.decode(one(column, ["1:30", "PT45M", "1 day 06:00", "long"]))
    assert (back.dropna() / pd.Timedelta("1min")).tolist() == [90, 45, 1800] and len(back) == 4
    typed = column.decode(one(column, [pd.Timedelta("36h"), pd.NaT]))
    assert typed[0] == pd.Timedelta("36h") and pd.isna(typed[1])


@pytest.mark.parametrize(
    "pattern", ["%d %B %Y", "%d.%m", "%d.%m.%Y %I %p", "%d.%m.%Y %H", "%Y-%d-%m"]
)
def test_patterns_of_dates_without_names(pattern: str) -> None:
    day = datetime.date(2020, 1, 1)
    with pytest.raises(lk.SchemaError, match="format"):
        lk.Date(name="d", min=day, max=day, format=pattern)


def test_booleans_have_two_values() -> None:
    column = Category(name="b", values=("no", "yes"), boolean=True)
    assert column.decode(np.asarray([1.0, 0.0])).tolist() == ["yes", "no"]
    with pytest.raises(lk.SchemaError, match="no before yes"):
        Category(name="b", values=("yes", "no"), boolean=True)


@pytest.mark.parametrize("column", [moments(step="1 hour", zone="UTC"), moments(format="%d.%m.%Y %H:%M"),
    Duration(name="t", min="0:00", max="36:00", scale="log"),
    lk.Numeric(name="t", min=0, max=9, scale="log", step=0.1)])  # fmt: skip
def test_kinds_survive_their_file(column: object) -> None:
    schema = lk.Schema(dataset="d", rows=2, columns=(column,))  # type: ignore[arg-type]
    again = lk.Schema.parse(schema.toml())
    assert again.facts() == schema.facts() and again.digest == schema.digest


def _filled(draft: str) -> str:
    """A draft with everything declared but one pattern."""
    for kind, low, high in (("datetime", "2020-01-01T00:00", "2021-01-01T00:00"), ("date", "2020-01-01", "2021-01-01"),
        ("duration", "0:00", "9:00"), ("float", 0, 1)):  # fmt: skip
        before, *after = draft.split(f'kind = "{kind}"')
        after = [a.replace('min = "?"', f"min = {low!r}", 1).replace('max = "?"', f"max = {high!r}", 1) for a in after]  # fmt: skip
        draft = f'kind = "{kind}"'.join([before, *after])
    return draft.replace('dataset = "?"', 'dataset = "d"').replace('values = "?"', 'values = ["a"]')


DRAFTED = """\
Kunden_ID;Betrag;Tag;Um;Dauer;PLZ;Aktiv;Gebaut;Notiz
"""


def test_a_draft_proposes_kinds_and_how_they_are_written(tmp_path: Path) -> None:
    note = "ein langer freier Text, wie er in vielen Akten steht, Nummer"
    lines = [
        f"K{i};{i}.234,{i % 10}0;{1 + i % 28:02d}.02.2020;2020-02-03 04:{i:02d};1:{i:02d};0{1000 + i};"
        f"{('Ja', 'Nein')[i % 2]};{1 + i % 12:02d}/0{1 + i % 9}/2020;{note} {i}"
        for i in range(10, 50)
    ]
    (tmp_path / "bank.csv").write_text(DRAFTED + "\n".join(lines))
    draft = lk.draft_schema(tmp_path / "bank.csv")
    assert 'delimiter = ";"' in draft and 'decimal = ","' in draft
    found = tomllib.loads(draft)["column"]
    kinds = ["id", "float", "date", "datetime", "duration", "category", "category", "date", "text"]
    assert [c["kind"] for c in found] == kinds
    assert found[1]["decimals"] == 2 and found[2]["format"] == "%d.%m.%Y"
    assert found[3]["step"] == "1 minute" and found[7]["format"] == "?"
    with pytest.raises(lk.SchemaError, match="fill in `format`"):
        lk.Schema.parse(_filled(draft))


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ("0 1 1", "values = [0, 1]"),
        ("Yes No No", 'values = ["No", "Yes"]'),
        ("N Y", 'values = ["N", "Y"]'),
        ("true false", 'kind = "boolean"'),
        ("TRUE FALSE", 'values = ["FALSE", "TRUE"]'),
        ("1,234 900 12,345", "numbers with separators of thousands are not read"),
        ("80% 100%", "numbers with units are not read"),
        ("$1,200.50 $90", "numbers with units are not read"),
        ("007 123", 'kind = "category"'),
        ("2020-01-01T03:00Z 2020-01-01T03:00+01:00", 'zone = "?"'),
        ("13/01/2020 01/02/2020", 'format = "%d/%m/%Y"'),
        ("01/13/2020 01/02/2020", 'format = "%m/%d/%Y"'),
        ("1.25 3.5", "decimals = 2"),
    ],
)
def test_guesses(cells: str, line: str) -> None:
    assert line in lk.draft_schema(pd.DataFrame({"c": cells.split()}))


def test_a_zone_that_the_type_names_is_drafted() -> None:
    moments = pd.to_datetime(["2020-01-01 03:04", "2020-06-01 05:06"]).tz_localize("Europe/Berlin")
    draft = lk.draft_schema(pd.DataFrame({"a": moments, "b": moments.tz_localize(None)}))
    assert draft.count("zone =") == 1 and 'zone = "Europe/Berlin"' in draft


@pytest.mark.parametrize("mark", [",", "'", " ", "\u00a0"])
def test_thousands_are_read_as_the_schema_says(tmp_path: Path, mark: str) -> None:
    """Drafted, read cell by cell, and written plainly; without a word in the schema such a cell is no number."""
    cells = ["1,234.5", "900", "-12,345", "1,23", "1,2345"]
    lines = [f'"{c.replace(",", mark)}"' for c in cells]
    (tmp_path / "pay.csv").write_text("\ufeffpay\n" + "\n".join([*lines[:3], *lines[:3] * 9]))
    draft = lk.draft_schema(tmp_path / "pay.csv")
    said = mark.replace("\u00a0", " ")
    assert (
        f'thousands = "{said}"' in draft and 'kind = "float"' in draft and "decimals = 1" in draft
    )
    (tmp_path / "pay.csv").write_text("\ufeffpay\n" + "\n".join(lines))
    pay = lk.Numeric(name="pay", min=-(10**5), max=10**5)
    schema = lk.Schema(dataset="pay", rows=5, columns=(pay,), thousands=said)
    assert lk.Schema.parse(schema.toml()) == schema
    for declared, known in ((schema, 3), (replace(schema, thousands=None), 1)):
        raws = [chunk["pay"] for chunk in bare_values(lk.read(tmp_path / "pay.csv", declared))]
        values = np.concatenate([raw.values for raw in raws if isinstance(raw, Numbers)])
        assert np.isfinite(values).sum() == known and values[1] == 900
    with pytest.raises(lk.SchemaError, match="expected thousands"):
        replace(schema, thousands="_")
    with pytest.raises(lk.SchemaError, match="not what stands before decimals"):
        replace(schema, decimal=",", thousands=",")


EVERY = """\
dataset = "every kind"
rows = 300
confirmed = true
decimal = ","
[[column]]
name = "id"
kind = "id"
[[column]]
name = "seen"
kind = "datetime"
format = "%d.%m.%Y %H:%M"
step = "15 minutes"
min = 2020-01-01T00:00:00
max = 2020-12-31T00:00:00
[[column]]
name = "called"
kind = "datetime"
zone = "Europe/Berlin"
min = 2020-01-01T00:00:00
max = 2020-12-31T00:00:00
missing = true
[[column]]
name = "stay"
kind = "duration"
scale = "log"
step = "1 minute"
min = "0:00"
max = "300 hours"
[[column]]
name = "cost"
kind = "float"
scale = "log"
decimals = 2
min = 0
max = "estimate"
outer = [0, 100000]
[[column]]
name = "note"
kind = "text"
[[column]]
name = "ill"
kind = "boolean"
values = ["no", "yes"]
"""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, lk.Schema]:
    path = tmp_path_factory.mktemp("kinds") / "every.csv"
    rng = np.random.default_rng(0)
    moments = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3e7, 300), unit="s")
    cost = np.where(rng.random(300) < 0.3, 0, rng.lognormal(5, 2, 300))
    lines = [
        f"{i};{m:%d.%m.%Y %H:%M};{m.isoformat()}Z;{int(h)}:30;{c:.2f};free;{'ny'[i % 2]}".replace(
            ".", ","
        )
        for i, (m, h, c) in enumerate(zip(moments, rng.exponential(20, 300), cost, strict=True))
    ]
    lines = [line.replace(",", ".", 2) for line in lines]  # of the date
    path.write_text("id;seen;called;stay;cost;note;ill\n" + "\n".join(lines))
    return path, lk.Schema.parse(EVERY)


METHODS = {
    "marginals": {"soft_rows": 50, "steps": 5, "grid": 16},
    "dp-merf": {"features": 20, "steps": 2, "batch": 8, "hidden": (4,)},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_release_of_every_kind(
    every: tuple[Path, lk.Schema], method: str, tmp_path: Path
) -> None:
    """Made, written, read again, scored and shown; and what was left aside is not in it."""
    path, schema = every
    made = lk.distill(
        lk.read(path, schema),
        lk.METHODS[method](**METHODS[method]),  # type: ignore[arg-type]
        lk.Budget(epsilon=5.0, delta=1e-4),
    )
    made.save(tmp_path / "release")
    release = lk.Release.load(tmp_path / "release")
    pd.testing.assert_frame_equal(release.data, made.data)
    assert list(made.data) == ["id", "seen", "called", "stay", "cost", "ill"]
    assert str(made.data["called"].dt.tz) == "Europe/Berlin"
    assert (made.data["seen"].dt.minute % 15 == 0).all() and set(made.data["ill"]) <= {"no", "yes"}
    again = lk.read(tmp_path / "release" / "data.csv", release.schema)._encoded()
    as_parquet = lk.read(tmp_path / "release" / "data.parquet", release.schema)._encoded()
    np.testing.assert_allclose(again.cells, as_parquet.cells, atol=1e-6)
    page = make_report([release], real=lk.read(path, release.schema))
    assert "2020-12-31T00:00:00+01:00" in page and "300 hours" in page
