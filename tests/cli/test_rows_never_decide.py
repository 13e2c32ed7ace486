"""What rows contain never decides between success and error."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from desk import SCHEMA, TOWNS, Desk

import limbeck as lk

DATED = SCHEMA.replace(
    '[[column]]\nname = "town"',
    '[[column]]\nname = "day"\nkind = "date"\nmin = 1990-01-01\nmax = 2020-12-31\n\n'
    '[[column]]\nname = "town"',
)
HEAD = b"age,day,town,ill\n"
GOOD = b"31,1999-12-31,Ulm,no\n62,2001-02-03,Trier,yes\n" * 5

ROWS = {
    "not a number": b"nan,2000-01-01,Ulm,no\n",
    "infinite": b"inf,2000-01-01,Ulm,no\n-inf,2000-01-01,Ulm,no\n1e999,2000-01-01,Ulm,no\n",
    "text for a number": b"old,2000-01-01,Ulm,no\n",
    "endless number": b"9" * 5000 + b",2000-01-01,Ulm,no\n",
    "text for a date": b"31,yesterday,Ulm,no\n31,2000-02-30,Ulm,no\n",
    "dates at the ends": b"31,9999-12-31,Ulm,no\n31,0001-01-01T00:00:00+14:00,Ulm,no\n",
    "dates beyond": b"31,-9999-01-01,Ulm,no\n31,99999-01-01,Ulm,no\n31,0000-00-00,Ulm,no\n",
    "undeclared category": b"31,2000-01-01,Bonn,no\n",
    "undeclared label": b"31,2000-01-01,Ulm,perhaps\n",
    "all missing": b",,,\n",
    "ragged lines": b"31\n31,2000-01-01,Ulm,no,more,and,more\n\n,\n",
    "invalid UTF-8": b"\xff\xfe,\xff,\xc3(,\xed\xa0\x80\n",
    "ragged and invalid": b"\xff\xfe\n\xff,\xff\n",
    "null bytes": b"\x00,\x00,\x00,\x00\n",
    "quotes": b'"31","2000-01-01","Ulm","no"\n3"1,"",U"lm,"n""o"\n',
    "open quote": b'31,2000-01-01,"Ulm,no\n',
    "spaces": b" 31 , 2000-01-01 , Ulm , no \n\t31\t,\t2000-01-01,Ulm,no\r\n",
    "long line": b"31,2000-01-01," + b"x" * 300_000 + b",no\n",
}
FILES = {name: HEAD + GOOD + row + GOOD for name, row in ROWS.items()} | {
    "no rows": HEAD,
    "no rows, no line end": HEAD[:-1],
    "one row": HEAD + b"31,1999-12-31,Ulm,no\n",
    "one bad row": HEAD + b"x,x,x,x\n",
    "constant columns": HEAD + b"31,1999-12-31,Ulm,no\n" * 20,
    "absent class": HEAD + GOOD.replace(b"yes", b"no"),
    "all rows missing": HEAD + b",,,\n" * 20,
    "all labels undeclared": HEAD + GOOD.replace(b"yes", b"?").replace(b"no", b"?"),
    "byte order mark": b"\xef\xbb\xbf" + HEAD + GOOD,
    "semicolons": (HEAD + GOOD).replace(b",", b";"),
    "packed": gzip.compress(HEAD + GOOD),
}


def check_released(desk: Desk, words: list[str]) -> None:
    done = desk.run(words)
    assert (done.code, done.err) == (0, "")
    verified = desk.run(["verify", str(desk.out)])
    assert verified.code == 0, verified.err


@pytest.mark.parametrize("content", [pytest.param(c, id=name) for name, c in FILES.items()])
def test_rows_never_decide(desk: Desk, content: bytes) -> None:
    data, schema = desk.file("people.csv", content), desk.file("schema.toml", DATED)
    check_released(desk, desk.distill(data=data, schema=schema))
    released = pd.read_csv(desk.out / "data.csv", parse_dates=["day"])
    assert len(released) == 200
    assert released["age"].between(0, 99).all()
    assert released["day"].between(pd.Timestamp("1990-01-01"), pd.Timestamp("2020-12-31")).all()
    assert set(released["town"]) <= {"Ulm", "Trier"} and set(released["ill"]) <= {"no", "yes"}


def test_missing_never_decides(desk: Desk) -> None:
    """Where missing is declared, rows that are all missing are as good as any."""
    text = SCHEMA.replace("max = 99", "max = 99\nmissing = true")
    text = text.replace(TOWNS, f"{TOWNS}\nmissing = true")
    data = desk.file("people.csv", "age,town,ill\n" + ",,no\n" * 20)
    check_released(desk, desk.distill(data=data, schema=desk.file("schema.toml", text)))


def test_parquet_rows_never_decide(desk: Desk) -> None:
    ages = pa.array([np.nan, np.inf, -1e300, None])
    towns = pa.array([b"Ulm", b"\xff\xfe", b"", None], pa.large_binary()).view(pa.large_string())
    labels = pa.array([2**62, -(2**62), 0, None], pa.timestamp("us"))
    data = desk.parquet(pa.table({"age": ages, "town": towns, "ill": labels}))
    check_released(desk, desk.distill(data=data))


ODD = np.stack([np.full((4, 4), value) for value in (np.nan, np.inf, -np.inf, 1e30)])


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        pytest.param(ODD, np.asarray([np.nan, np.inf, -1, 7]), id="odd numbers"),
        pytest.param(np.zeros((3, 4, 4)), np.asarray(["0", "", "x"]), id="labels are texts"),
        pytest.param(np.zeros((0, 4, 4), np.uint8), np.zeros(0), id="no rows"),
    ],
)
def test_pixels_never_decide(desk: Desk, images: np.ndarray, labels: np.ndarray) -> None:
    check_released(desk, desk.images(desk.npz(images=images, labels=labels)))


def test_one_row_does_not_change_how_another_is_read(tmp_path: Path) -> None:
    """A bad text beside good ones leaves their cells as they were, to the last bit."""
    schema = lk.Schema.parse(DATED)
    ends = b"31,1600-02-29,Ulm,no\n31,9999-12-31,Ulm,no\n1e3,2000-1-1, Ulm,no\n 5,2000,Ulm,no\n"

    def cells(content: bytes) -> np.ndarray:
        (tmp_path / "people.csv").write_bytes(content)
        return np.asarray(lk.read(tmp_path / "people.csv", schema)._encoded().cells)

    alone = cells(HEAD + GOOD + ends)
    for name, row in ROWS.items():
        if name != "open quote":  # swallows what follows: there it is one long row
            beside = cells(HEAD + GOOD + ends + row)
            np.testing.assert_array_equal(beside[: len(alone)], alone, err_msg=name)
