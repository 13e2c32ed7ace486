"""Kinds of column: what is declared is read cell by cell, and comes back as it came."""

from __future__ import annotations

import datetime
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.features.cells import Cells
from limbeck.schema import Category, Duration, Moment

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


def moments(**more: object) -> Moment:
    bounds = [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
    return Moment(name="t", min=bounds[0], max=bounds[1], **more)  # type: ignore[arg-type]


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
    assert (back.dropna() / pd.Timedelta("1min")).tolist() == [90, 45] and len(back) == 4
    typed = column.decode(one(column, [pd.Timedelta("36h"), pd.NaT]))
    assert typed[0] == pd.Timedelta("36h") and pd.isna(typed[1])


@pytest.mark.parametrize("pattern", ["%d %B %Y", "%d.%m", "%d.%m.%Y %I %p", "%d.%m.%Y %H"])
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
