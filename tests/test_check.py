"""Does the file fit its schema? The four states of a cell, and the owner's own look at them."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.cli import main as cli
from limbeck.data import bare_rows
from limbeck.ledger import Ledger
from limbeck.schema import STATES, Fit, counted, fits_of

SMALL = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
NUMBER = lk.Numeric(name="x", min=0, max=10)
DAY = lk.Date(name="x", min=datetime.date(2000, 1, 1), max=datetime.date(2009, 12, 31))
VALUE = lk.Category(name="x", values=("no", "yes"))


def states(column: object, cells: object) -> list[str]:
    schema = lk.Schema(dataset="d", rows=9, columns=(column,))  # type: ignore[arg-type]
    found = bare_rows(lk.read(pd.DataFrame({"x": cells}), schema)).states
    assert found is not None
    return [STATES[state] for state in found[:, 0]]


@pytest.mark.parametrize(
    ("column", "usable", "outside", "unknown"),
    [
        (NUMBER, "5", "11", "1,5"),
        (NUMBER, " 1e1 ", "inf", "7 EUR"),
        (DAY, "2001-02-03", "1999-12-31", "03.02.2001"),
        (VALUE, "no", None, "No"),
        (lk.Category(name="x", values=(False, True), boolean=True), "YES", None, "perhaps"),
        (lk.Numeric(name="x", outer=(0, 100)), "50", "101", "many"),
        (lk.Category(name="x", most=3), "anything", None, None),
    ],
)
def test_a_cell_is_in_one_of_four_states(
    column: object, usable: str, outside: str | None, unknown: str | None
) -> None:
    cells = [usable, None, "", " NA ", "nan", outside, unknown]
    wanted = ["usable", *["missing"] * 4, "outside" if outside else "missing"]
    assert states(column, cells) == [*wanted, "unknown" if unknown else "missing"]


def test_states_of_typed_columns() -> None:
    assert states(NUMBER, [1.0, np.nan, -1.0]) == ["usable", "missing", "outside"]
    moments = pd.to_datetime(["2001-01-01", None, "1999-01-01"])
    assert states(DAY, moments) == ["usable", "missing", "outside"]
    coded = pd.Categorical(["5", None, "x", "NA"])
    assert states(NUMBER, coded) == ["usable", "missing", "unknown", "missing"]


def test_a_picture_is_outside_when_most_of_it_is() -> None:
    image = lk.Image(height=1, width=4, min=0.0, max=1.0)
    schema = lk.Schema(dataset="d", rows=3, columns=(image,))
    pixels = np.array([[0, 1, 1, 9], [9, 9, 9, 0], [np.nan, np.nan, np.nan, 0]])
    found = bare_rows(lk.read((pixels.reshape(3, 1, 4), None), schema)).states
    assert found is not None and found[:, 0].tolist() == [0, 2, 2]


def test_missing_is_unusable_where_it_is_not_declared() -> None:
    gaps = (80.0, 20.0, 0.0, 0.0)
    declared = lk.Numeric(name="x", min=0, max=1, missing=True)
    assert Fit(NUMBER, gaps).unusable == 20 and Fit(declared, gaps).unusable == 0
    assert "missing = true" in Fit(NUMBER, gaps).words
    assert Fit(NUMBER, gaps).exceeds(0.05) and not Fit(NUMBER, gaps).mostly_unusable
    assert Fit(NUMBER, (20.0, 80.0, 0.0, 0.0)).mostly_unusable


def test_noise_alone_does_not_condemn_a_column() -> None:
    """Four standard deviations of the difference: on no rows at all, next to never."""
    rng = np.random.default_rng(0)
    drawn = fits_of([NUMBER] * 5000, rng.normal(0, 50, (5000, 4)), noise=50.0)
    assert sum(f.mostly_unusable for f in drawn) <= 2
    assert sum(f.exceeds(0.05) for f in drawn) < 0.04 * 5000
    assert Fit(NUMBER, (0, 0, 0, 500), noise=50.0).mostly_unusable


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command: its exit code, and what it said."""

    def call(*words: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return call


def three_files(folder: Path) -> None:
    """The silent failures: decimal commas and days, capitals, gaps that are not declared."""
    rows = range(200)
    head = 'dataset = "{}"\nrows = 200\nconfirmed = true\n'
    number = '[[column]]\nname = "amount"\nkind = "float"\nmin = 0.0\nmax = 200.0\n'
    day = '[[column]]\nname = "opened"\nkind = "date"\nmin = 2000-01-01\nmax = 2009-12-31\n'
    loan = '[[column]]\nname = "loan"\nkind = "label"\nvalues = ["{}", "{}"]\n'
    words = ("no", "yes")
    texts = {
        "comma": "amount;opened\n" + "".join(f"{i},50;0{i % 9 + 1}.02.2001\n" for i in rows),
        "case": "amount,loan\n" + "".join(f"{i},{words[i % 2]}\n" for i in rows),
        "gap": "amount,loan\n"
        + "".join(f"{i if i % 40 > 6 else ''},{words[i % 2]}\n" for i in rows),
    }
    columns = {
        "comma": number + day,
        "case": number + loan.format("No", "Yes"),
        "gap": number + loan.format("no", "yes"),
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
        (folder / f"{name}.toml").write_text(head.format(name) + columns[name])


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("comma", 2, ["'amount'", "decimal commas", "'opened'", "No column fits"]),
        ("case", 2, ["'loan'", "Capitals count", '"No", "Yes"']),
        ("gap", 0, ["'amount'", "over 10 %", "missing = true"]),
    ],
)
def test_the_command_names_what_does_not_fit(
    name: str, code: int, told: list[str], tmp_path: Path, run: Any
) -> None:
    three_files(tmp_path)
    ended, out, _ = run("check", tmp_path / f"{name}.csv", "--schema", tmp_path / f"{name}.toml")
    assert ended == code
    for words in [*told, "Internal: not covered by epsilon"]:
        assert words in out
    assert "2001" not in out and ",50" not in out and "17.5" not in out  # neither cells nor counts


def test_a_look_is_noted_and_told_by_later_certificates(tmp_path: Path) -> None:
    three_files(tmp_path)
    data = lk.read(tmp_path / "gap.csv", tmp_path / "gap.toml")
    book = Ledger(tmp_path / "book.sqlite")
    before = lk.distill(data, SMALL, 1.0, ledger=book, seed=0).certificate
    assert before["check"]["seen"] == "no"
    look = lk.check(data, ledger=book)
    json.dumps(look.facts())
    assert look.bands["amount"]["missing"] == "over 10 %" and not look.unusable
    assert len(book.looks()["gap"]) == 1 and book.account("gap").spent < 1.01  # type: ignore[union-attr]
    after = lk.distill(data, SMALL, 1.0, ledger=book, seed=1, out=tmp_path / "out").certificate
    assert "Schema or decision to run seen against the rows" in after["check"]["statement"]
    assert after["check"]["seen"] == "without noise" and "but for" in after["assumptions"][0]
    assert lk.verify(tmp_path / "out").verified
    book.check_entries()


def test_a_look_alone_opens_no_account(tmp_path: Path) -> None:
    three_files(tmp_path)
    book = Ledger(tmp_path / "book.sqlite")
    lk.check(lk.read(tmp_path / "case.csv", tmp_path / "case.toml"), ledger=book)
    assert book.accounts() == []
    with pytest.raises(lk.DataError, match=r"limbeck\.read"):
        lk.check("case.csv", ledger=book)  # type: ignore[arg-type]


def test_states_are_counted_per_column() -> None:
    assert counted(np.array([[0, 3], [0, 1]], np.uint8)).tolist() == [[2, 0, 0, 0], [0, 1, 0, 1]]
