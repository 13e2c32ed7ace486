"""Does the file fit its schema? The noisy check of a run, and the owner's own look."""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import ask, table_rows, table_schema

import limbeck as lk
from limbeck.cli import main as cli
from limbeck.data import bare_rows
from limbeck.ledger import Ledger, paid
from limbeck.planning import CHECK
from limbeck.privacy import Private, StateCounts
from limbeck.report import make_report
from limbeck.schema import counted, far_fewer, fits_of

SMALL = lk.Marginals(grid=8, groups=2, soft_rows=20, steps=1)
NUMBER = lk.Numeric(name="x", min=0, max=10)
DAY = lk.Date(name="x", min=datetime.date(2000, 1, 1), max=datetime.date(2009, 12, 31))
VALUE = lk.Category(name="x", values=("no", "yes"))


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


def misfits(folder: Path) -> None:
    """The silent failures: decimal commas and days, capitals, gaps that are not declared; and words that
    are not, which only a warning is due."""
    rows = range(1000)
    head = 'dataset = "{}"\nrows = 1000\nconfirmed = true\n'
    number = '[[column]]\nname = "amount"\nkind = "float"\nmin = 0.0\nmax = 1000.0\n'
    day = '[[column]]\nname = "opened"\nkind = "date"\nmin = 2000-01-01\nmax = 2009-12-31\n'
    loan = '[[column]]\nname = "loan"\nkind = "label"\nvalues = ["{}", "{}"]\n'
    words = ("no", "yes")
    texts = {
        "comma": "amount;opened\n" + "".join(f"{i},50;0{i % 9 + 1}.02.2001\n" for i in rows),
        "case": "amount,loan\n" + "".join(f"{i},{words[i % 2]}\n" for i in rows),
        "words": "amount,loan\n"
        + "".join(f"{i},{words[i % 2] if i % 40 > 6 else 'perhaps'}\n" for i in rows),
        "gap": "amount,loan\n"
        + "".join(f"{i % 1000 if i % 40 > 6 else ''},{words[i % 2]}\n" for i in range(3000)),
    }
    columns = {
        "comma": number + day,
        "case": number + loan.format("No", "Yes"),
        "gap": number + loan.format("no", "yes"),
        "words": number + loan.format("no", "yes"),
    }
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
        (folder / f"{name}.toml").write_text(head.format(name) + columns[name])


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("comma", 2, ["'amount'", "decimal commas", "'opened'", "No column fits"]),
        ("case", 2, ["'loan'", "Capitals count", '"No", "Yes"']),
        ("gap", 2, ["'amount'", "over 10 %", "missing = true"]),
        ("words", 0, ["'loan'", "over 10 %", "Capitals count"]),
    ],
)
def test_the_command_names_what_does_not_fit(
    name: str, code: int, told: list[str], tmp_path: Path, run: Any
) -> None:
    misfits(tmp_path)
    ended, out, _ = run("check", tmp_path / f"{name}.csv", "--schema", tmp_path / f"{name}.toml")
    assert ended == code
    for words in [*told, "Internal: not covered by epsilon"]:
        assert words in out
    assert "2001" not in out and ",50" not in out and "17.5" not in out  # neither cells nor counts


def test_a_look_is_noted_and_told_by_later_certificates(tmp_path: Path) -> None:
    misfits(tmp_path)
    data = lk.read(tmp_path / "words.csv", tmp_path / "words.toml")
    book = Ledger(tmp_path / "book.sqlite")
    before = lk.distill(data, SMALL, 1.0, ledger=book, seed=0, check=False).certificate
    assert before["check"]["seen"] == "no"
    look = lk.check(data, ledger=book)
    json.dumps(look.facts())
    assert look.bands["loan"]["unknown"] == "over 10 %" and not look.unusable
    assert len(book.looks()["words"]) == 1 and book.account("words").spent < 1.01  # type: ignore[union-attr]
    with pytest.warns(lk.LimbeckWarning, match="'loan'"):
        after = lk.distill(data, SMALL, 4.0, ledger=book, seed=1, out=tmp_path / "out").certificate
    assert after["check"]["charges"]
    assert "Schema or decision to run seen against the rows" in after["check"]["statement"]
    assert after["check"]["seen"] == "without noise" and "but for" in after["assumptions"][0]
    assert lk.verify(tmp_path / "out").verified
    book.check_entries()


def test_a_look_alone_opens_no_account(tmp_path: Path) -> None:
    misfits(tmp_path)
    book = Ledger(tmp_path / "book.sqlite")
    lk.check(lk.read(tmp_path / "case.csv", tmp_path / "case.toml"), ledger=book)
    assert book.accounts() == []
    with pytest.raises(lk.DataError, match=r"limbeck\.read"):
        lk.check("case.csv", ledger=book)  # type: ignore[arg-type]


LOAN = '[[column]]\nname = "loan"\nkind = "label"\nvalues = ["no", "yes"]\n'
AMOUNT = '[[column]]\nname = "amount"\nkind = "integer"\nmin = 0\nmax = 99\n'
PERSON = '[person]\ncolumn = "id"\nrows_at_most = 4\npersons = 1500\n'


def hardly_read(folder: Path, name: str) -> tuple[Path, Path]:
    """Files of which nothing, or much less than declared, enters: and why."""
    lines = [f"{i % 99},{'no' if i % 3 else 'yes'}" for i in range(3000)]
    text = {
        "commas": "amount,loan\n" + "\n".join(f"{line},5" for line in lines),
        "some commas": "amount,loan\n" + "\n".join(x + ",5" * (x < "3") for x in lines),
        "names alone": "amount,loan\n",
        "few": "amount,loan\n" + "\n".join(lines[:600]),
        "no ids": "id,amount,loan\n" + "\n".join(f",{line}" for line in lines),
        "text ids": "id,amount,loan\n" + "\n".join(f"A{i},{line}" for i, line in enumerate(lines)),
        "most without id": "id,amount,loan\n"
        + "\n".join(f"{i if i % 9 else ''},{line}" for i, line in enumerate(lines)),
    }[name]
    person = PERSON + 'kind = "integer"\n' * (name == "text ids") if "id" in name else ""
    (folder / "t.csv").write_text(text)
    head = f'dataset = "{name}"\nrows = 3000\nconfirmed = true\n'
    (folder / "t.toml").write_text(head + AMOUNT + LOAN + person)
    return folder / "t.csv", folder / "t.toml"


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("commas", 2, ["no rows could be read", "nearly all of the lines", "without quotes"]),
        ("some commas", 0, ["over 10 % of the lines", "without quotes"]),
        ("names alone", 2, ["no rows could be read", "an empty one"]),
        ("few", 2, ["less than a quarter of the 3,000 rows"]),
        ("no ids", 2, ["no rows could be read", "nearly all of the rows have no id"]),
        ("text ids", 2, ["no rows could be read", "column and kind"]),
        ("most without id", 0, ["over 10 % of the rows have no id"]),
    ],
)
def test_rows_that_do_not_enter_are_named(
    name: str, code: int, told: list[str], tmp_path: Path, run: Any
) -> None:
    rows, schema = hardly_read(tmp_path, name)
    ended, out, _ = run("check", rows, "--schema", schema)
    assert (ended or 0) == code and all(words in out for words in told) and "Fits:" not in out


def test_a_rule_that_many_rows_break_is_doubted(tmp_path: Path, run: Any) -> None:
    rows, schema = hardly_read(tmp_path, "few")
    rule = "rules = ['if loan = no then amount > 90']\n"
    schema.write_text(rule + schema.read_text().replace("rows = 3000", "rows = 600"))
    ended, out, _ = run("check", rows, "--schema", schema)
    assert not ended and "over 10 % of the rows break it" in out and "Fits:" not in out


def test_states_are_counted_per_column() -> None:
    assert counted(np.array([[0, 3], [0, 1]], np.uint8)).tolist() == [[2, 0, 0, 0], [0, 1, 0, 1]]


def test_the_check_counts_each_cell_once() -> None:
    """At no noise: as by hand, rows without a label too."""
    rows = table_rows(60)
    rows.loc[::7, "ill"] = "who knows"
    rows.loc[::5, "income"] = None
    given = lk.read(rows, table_schema())
    question = StateCounts.of_schema("states", given.schema)
    found = ask(given, question, multiplier=0.0).ask("states").values
    wanted = counted(np.asarray(bare_rows(given).states))
    assert np.allclose(found.reshape(wanted.shape), wanted, atol=1e-4) and (wanted[:, 1:] > 0).any()


# ---- the noisy check of distill -----------------------------------------------------------------


@pytest.fixture
def booked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What is booked, in order: the run, and the names of its charges."""
    found: list[tuple[str, list[str]]] = []
    charge = Ledger.charge

    def note(book: Ledger, lifetime: Any, run: Any, **also: Any) -> None:
        charge(book, lifetime, run, **also)
        found.append((run.id, [c.name for c in run.charges]))

    monkeypatch.setattr(Ledger, "charge", note)
    return found


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("comma", ["'amount'", "'opened'"]),
        ("case", ["'loan'", "Capitals"]),
        ("gap", ["'amount'", "missing = true"]),
    ],
)
def test_a_file_that_does_not_fit_costs_the_check_and_no_more(
    name: str, told: list[str], tmp_path: Path, run: Any, booked: list[tuple[str, list[str]]]
) -> None:
    misfits(tmp_path)
    words = ["distill", tmp_path / f"{name}.csv", "--schema", tmp_path / f"{name}.toml"]
    ended, _, err = run(*words, "--epsilon", "4", "--out", tmp_path / "out")
    assert ended == 2 and len(err.splitlines()) == 1 and "--no-check" in err
    assert all(word in err for word in told) and ",50" not in err and "2001" not in err
    assert [names for _, names in booked] == [[CHECK]] and not (tmp_path / "out").exists()
    account = Ledger().account(name)
    assert account is not None and [r.status for r in account.runs] == ["stopped by its check"]
    assert account.spent < 0.4 and not list(Ledger().jobs.glob("*"))


@pytest.mark.parametrize("name", ["commas", "names alone", "few", "no ids", "text ids"])
def test_a_file_that_is_hardly_read_costs_the_check_and_no_more(
    name: str, tmp_path: Path, run: Any, booked: list[tuple[str, list[str]]]
) -> None:
    rows, schema = hardly_read(tmp_path, name)
    words = ["distill", rows, "--schema", schema, "--epsilon", "8", "--out", tmp_path / "out"]
    ended, _, err = run(*words)
    assert ended == 2 and len(err.splitlines()) == 1 and "--no-check" in err
    noun = "1,500 persons" if "id" in name else "3,000 rows"
    assert f"Less than a quarter of the {noun}" in err
    assert [names for _, names in booked] == [[CHECK]] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("told", ["it fits", "it is empty"])
def test_noise_alone_decides_whether_a_run_stops(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the rows: the noisy answer says the opposite of what is in the file, and is believed."""
    schema = lk.Schema(dataset="d", rows=4000, columns=(NUMBER,))
    fits = told == "it fits"
    frame, ask = pd.DataFrame({"x": [None if fits else 5.0] * 4000}), Private.ask

    def opposite(self: Private, name: str, *given: Any) -> Any:
        answer = ask(self, name, *given)
        values = np.array([[4000.0, 0, 0, 0] if fits else [0, 4000.0, 0, 0]])
        return answer._replace(values=values) if name == CHECK else answer

    monkeypatch.setattr(Private, "ask", opposite)
    ledger = lk.Ledger(tmp_path / "ledger.sqlite")
    if fits:
        assert lk.distill(lk.read(frame, schema), SMALL, 1.0, ledger=ledger).rows == 4000
    else:
        with pytest.raises(lk.DataError, match="Stopped by the noisy check"):
            lk.distill(lk.read(frame, schema), SMALL, 1.0, ledger=ledger)


def test_rows_are_far_fewer_only_beyond_noise() -> None:
    """Four deviations below a quarter of the declared ones; without a declared number, never."""
    rng = np.random.default_rng(2)
    drawn = rng.normal(0, 50, (2000, 2, 4)) + np.array([1000, 0, 0, 0])
    assert not any(far_fewer(fits_of([NUMBER] * 2, counts, 50.0), 4000) for counts in drawn)
    assert all(far_fewer(fits_of([NUMBER] * 2, counts, 50.0), 9000) for counts in drawn)
    assert not far_fewer(fits_of([NUMBER], np.zeros((1, 4)), 50.0), None)


def test_a_run_whose_check_is_blind_says_so_first(tmp_path: Path, run: Any) -> None:
    rows, schema = hardly_read(tmp_path, "few")
    words = ["distill", rows, "--schema", schema, "--epsilon", "1", "--out", tmp_path / "out"]
    small = ["--set", "grid=8", "--set", "groups=2", "--set", "soft_rows=20", "--set", "steps=1"]
    schema.write_text(schema.read_text().replace("rows = 3000", "rows = 200"))
    ended, out, _ = run(*words, *small)
    assert not ended and "cannot tell" in out and "limbeck check" in out
    schema.write_text(schema.read_text().replace("rows = 200", "rows = 900"))
    ended, out, _ = run(*words, *small, "--force")
    assert not ended and "cannot tell" not in out


def test_the_check_is_booked_alone_then_everything_under_one_run(
    tmp_path: Path, booked: list[tuple[str, list[str]]]
) -> None:
    misfits(tmp_path)
    data = lk.read(tmp_path / "words.csv", tmp_path / "words.toml")
    with pytest.warns(lk.LimbeckWarning, match=r"'loan'.*over 10 %"):
        release = lk.distill(data, SMALL, 4.0, out=tmp_path / "out", seed=0)
    (first, alone), (second, everything) = booked
    assert first == second and alone == [CHECK] == everything[:1] and len(everything) > 1
    account = Ledger().account("words")
    assert (
        account is not None and len(account.runs) == 1 and round(account.runs[0].epsilon, 9) == 4.0
    )
    check = lk.Release.load(tmp_path / "out").certificate["check"]
    counts = check["results"]["columns"]["loan"]
    assert abs(counts["unknown"] - 175) < 5 * check["results"]["noise"] and check["epsilon"] < 0.4
    assert CHECK not in release.measurements and check["seen"] == "with noise"
    assert lk.verify(tmp_path / "out").verified
    assert "Did the file fit its schema?" in make_report([release])
    Ledger().check_entries()


@pytest.mark.parametrize("name", ["case", "gap"])
def test_without_a_check_a_run_goes_on(name: str, tmp_path: Path) -> None:
    misfits(tmp_path)
    data = lk.read(tmp_path / f"{name}.csv", tmp_path / f"{name}.toml")
    certificate = lk.distill(data, SMALL, 1.0, check=False).certificate
    assert certificate["check"]["seen"] == "no"
    assert CHECK not in [c["name"] for c in certificate["charges"]]


def test_a_run_killed_after_its_check_resumes_with_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, booked: list[tuple[str, list[str]]]
) -> None:
    misfits(tmp_path)
    (tmp_path / "gap.csv").write_text("amount,loan\n" + "1,no\n2,yes\n" * 500)
    seen = []

    def die(fits: Any, schema: Any) -> None:
        seen.append(fits)
        raise KeyboardInterrupt

    data = lk.read(tmp_path / "gap.csv", tmp_path / "gap.toml")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(paid, "misfits", die)
        lk.distill(data, SMALL, 1.0)
    release = lk.distill(data, SMALL, 1.0)
    assert [names[:1] for _, names in booked] == [[CHECK], [CHECK]]
    found = release.certificate["check"]["results"]["columns"]["amount"]
    assert list(found.values()) == [round(c, 1) for c in seen[0][0].counts]
    account = Ledger().account("gap")
    assert account is not None and [r.status for r in account.runs] == ["done"]


def test_scores_on_misread_rows_say_so(tmp_path: Path) -> None:
    misfits(tmp_path)
    data = lk.read(tmp_path / "gap.csv", tmp_path / "gap.toml")
    release = lk.distill(data, SMALL, 1.0, check=False)
    with pytest.warns(lk.LimbeckWarning, match="The test rows do not fit"):
        lk.evaluate(release, data)
