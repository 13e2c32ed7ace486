"""The private classifier: what it costs, and that it sees rows only through `Private`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.privacy import Noise
from limbeck.run import PrivateClassifier, train_classifier

SCHEMA = lk.Schema(
    dataset="people",
    rows=2000,
    columns=(
        lk.Numeric(name="age", min=0.0, max=100.0),
        lk.Category(name="ill", values=("no", "yes"), label=True),
    ),
)
SMALL = PrivateClassifier(steps=40, features=40)


def rows(count: int = 2000) -> pd.DataFrame:
    age = np.random.default_rng(0).uniform(0, 100, count)
    return pd.DataFrame({"age": age, "ill": np.where(age > 50, "yes", "no")})


def test_it_learns_and_is_charged(tmp_path: Path) -> None:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    data = lk.read(rows(), SCHEMA)
    made = train_classifier(data, lk.Budget(1.0, 1e-5), classifier=SMALL, ledger=book, seed=0)
    slots = SCHEMA.expand(data._encoded().cells)
    right = made.scores(slots).argmax(axis=1) == data._encoded().labels
    assert right.mean() > 0.9 and made.cost.epsilon == pytest.approx(1.0)
    (account,) = book.accounts()
    assert [r.method for r in account.runs] == ["private-classifier"]
    assert account.runs[0].epsilon == pytest.approx(1.0, rel=1e-6)


def test_without_data_the_rows_do_not_matter(tmp_path: Path) -> None:
    weights = []
    for number, frame in enumerate((rows(), rows(17).assign(ill="no", age=np.nan))):
        book = lk.Ledger(tmp_path / f"{number}.sqlite")
        made = train_classifier(
            lk.read(frame, SCHEMA), lk.Budget(1.0, 1e-5), classifier=SMALL, ledger=book,
            noise=Noise.from_seed(0, law=True),
        )  # fmt: skip
        weights.append(made.weights)
    np.testing.assert_array_equal(*weights)


def test_it_needs_a_label() -> None:
    bare = lk.Schema(dataset="d", rows=9, columns=(lk.Numeric(name="age", min=0.0, max=1.0),))
    with pytest.raises(lk.LimbeckError, match="at least two classes"):
        PrivateClassifier().questions(bare)
