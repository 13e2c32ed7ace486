"""A number that models predict: its bins are the classes, rows without one enter nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.methods import Wanted
from limbeck.schema import in_bins
from limbeck.scores import regressor_scores
from limbeck.scores.regressors import Regressor


def _schema(**changes: object) -> lk.Schema:
    settings: dict[str, object] = {
        "dataset": "flats",
        "rows": 3000,
        "columns": (
            lk.Numeric(name="size", min=0, max=200, step=1),
            lk.Category(name="town", values=("a", "b")),
            lk.Numeric(name="rent", min=0, max=3000, target=True, bins=6),
        ),
    }
    return lk.Schema(**(settings | changes))  # type: ignore[arg-type]


def _rows(count: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size, town = rng.integers(20, 180, count), rng.integers(0, 2, count)
    rent = 6 * size + 5 * size * town + rng.normal(0, 60, count)
    return pd.DataFrame({"size": size, "town": np.array(["a", "b"])[town], "rent": rent})


def test_automatic_bins_follow_the_units_that_are_protected() -> None:
    columns = tuple(replace(c, bins=None) if c.name == "rent" else c for c in _schema().columns)
    person = lk.Person(column="id", rows_at_most=8, persons=400)

    def bins(**changes: object) -> int:
        return len(_schema(columns=columns, **changes).classes)

    assert bins() == 12 and bins(rows=None) == 8
    assert bins(person=person) == 2
    assert bins(person=replace(person, persons=None)) == 2  # 375 persons at least
    assert bins(person=replace(person, persons=None), rows=None) == 8


def test_bins_are_classes_and_the_target_stays_a_column() -> None:
    schema = _schema()
    assert schema.label is None and schema.target is schema.columns[2]
    assert schema.classes[0] == "0 to 500" and len(schema.classes) == 6
    assert [c.name for c in schema.inputs] == ["size", "town", "rent"]
    assert lk.Schema.parse(schema.toml()) == schema
    rows = _rows(5)
    rows["rent"] = [0, 499, 500, 3000, 9000]
    labels = lk.read(rows, schema)._encoded().labels
    assert labels.tolist() == [0, 0, 1, 5, 5]


def test_bins_follow_the_declared_rows_unless_they_are_declared() -> None:
    target = replace(_schema().columns[2], bins=None)
    columns = (*_schema().columns[:2], target)
    found = [len(_schema(rows=rows, columns=columns).classes) for rows in (100, 500, 10**6, None)]
    assert found == [1, 3, 12, 8]


def test_a_row_without_a_target_enters_nothing(tmp_path: Path) -> None:
    rows = _rows(200)
    rows["rent"] = rows["rent"].round().astype(str)
    rows.loc[:49, "rent"] = ""
    rows.loc[50:59, "rent"] = "dear"
    data = lk.read(rows, _schema())
    assert (data._encoded().labels < 0).tolist() == [True] * 60 + [False] * 140
    # Nor do its values count where those of a category are estimated.
    columns = (lk.Category(name="town", most=5), _schema().columns[2])
    estimating = lk.read(rows, _schema(columns=columns, ignore=("size",)))
    (raw,) = estimating._values("town")
    assert (raw.codes < 0).tolist() == [True] * 60 + [False] * 140  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('kind = "target"', 'kind = "integer" or "float", and target = true'),
        ('kind = "float"\ntarget = "yes"', "expected target = true or false"),
        ('kind = "float"\ntarget = true\nmissing = true', "a target cannot be missing"),
        ('kind = "float"\nbins = 4', "`bins` are of a target"),
        ('kind = "float"\ntarget = true\nbins = 1000', "from 1 to 100"),
        ('kind = "date"\ntarget = true', "a column of kind date has no key 'target'"),
    ],
)
def test_what_is_no_target_is_refused(line: str, words: str) -> None:
    text = f'dataset = "d"\nrows = 100\nconfirmed = true\n[[column]]\nname = "y"\nmin = 0\nmax = 1\n{line}\n'
    text += '[[column]]\nname = "x"\nkind = "float"\nmin = 0\nmax = 1\n'
    with pytest.raises(lk.SchemaError, match="y") as error:
        lk.Schema.parse(text)
    assert words in str(error.value)


def test_only_one_column_is_predicted() -> None:
    label = lk.Category(name="kind", values=("x", "y"), label=True)
    with pytest.raises(lk.SchemaError, match="'kind' and 'rent' both"):
        _schema(columns=(*_schema().columns, label))
    with pytest.raises(lk.SchemaError, match="no column besides"):
        _schema(columns=_schema().columns[2:])


def test_a_method_that_makes_sets_for_classifiers_refuses() -> None:
    with pytest.raises(lk.LimbeckError, match="the target 'rent' is a number. Use marginals"):
        lk.plan(lk.DPKIP(), _schema(), 1.0)


def test_a_small_set_teaches_regressors(tmp_path: Path) -> None:
    """Measure-once takes bins as classes; its teacher sees all columns but the target."""
    method = lk.MeasureOnce(per_class=5, features=200, steps=20, clusters=5)
    seen = method.teacher_map(_schema(), 0)
    assert not np.asarray(seen.frequencies)[3].any()  # type: ignore[union-attr]
    assert (np.asarray(seen.frequencies)[:3] != 0).all()  # type: ignore[union-attr]
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    made = lk.distill(lk.read(_rows(), _schema()), method, 3.0, seed=0, ledger=book).data
    assert len(made) == 30
    x, y = (
        [frame["size"], frame["size"] * (frame["town"] == "b")] for frame in (made, _rows(500, 1))
    )
    slopes = np.linalg.lstsq(np.stack([*x, np.ones(30)], axis=1), made["rent"], rcond=None)[0]
    real, told = _rows(500, 1)["rent"], np.stack([*y, np.ones(500)], axis=1) @ slopes
    assert 1 - ((real - told) ** 2).mean() / real.var() > 0.6
    few = _schema(columns=(*_schema().columns[:2], replace(_schema().columns[2], bins=1)))
    with pytest.raises(lk.LimbeckError, match="two bins of the target 'rent'"):
        lk.plan(method, few, 1.0)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> lk.Release:
    book = lk.Ledger(tmp_path_factory.mktemp("target") / "ledger.sqlite")
    method = lk.Marginals(grid=60, groups=8, soft_rows=300, steps=200)
    return lk.distill(lk.read(_rows(), _schema()), method, 3.0, seed=0, ledger=book)


def test_a_release_teaches_regressors(release: lk.Release) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    made, test = release.data, _rows(500, seed=1)
    assert made["rent"].between(0, 3000).all() and made["rent"].nunique() > 100
    scores = lk.evaluate(release, test, train=_rows(1000, seed=2))
    found = {(s.name, s.figure, s.of): s.mean for s in scores.scores}
    assert found["hist gradient boosting", "R2", "real"] > 0.95
    assert found["hist gradient boosting", "R2", "released"] > 0.8
    assert found["hist gradient boosting", "mean absolute error", "released"] < 150
    assert found["correlations of columns", "mean error", "between"] < 0.1
    (first, *_) = scores.pairs
    assert {first.first, first.second} == {"size", "rent"} and abs(
        first.real - first.released
    ) < 0.1
    assert lk.Scores.from_facts(scores.facts()) == scores
    with pytest.raises(lk.LimbeckError, match="'rent' is a number"):
        lk.measure_scores(release, lk.read(test, release.schema), 1.0)


def test_conditions_on_the_target_and_the_frame_to_complete(release: lk.Release) -> None:
    rows = release.sample(200, where={"rent": (500, 1000)})
    assert rows["rent"].between(500, 1000).all()
    like = pd.DataFrame({"rent": [100.0, 2500.0] * 20})
    full = release.sample(like=like)
    assert full["rent"].to_numpy() == pytest.approx(like["rent"], abs=0.01)
    assert full.loc[1::2, "size"].mean() > full.loc[::2, "size"].mean() + 50
    with pytest.raises(lk.LimbeckError, match="no label"):
        release.sample(10, classes="even")


def test_drawn_targets_lie_in_their_bins(release: lk.Release) -> None:
    cells, labels = release.source.draw(release.schema, 2000, seed=3, wanted=Wanted())
    inside = in_bins(release.schema, cells, labels)
    assert np.abs(cells - inside).max() <= 1 / 60  # but for a cell in which two bins meet
    assert (cells != inside).mean() < 0.05
    moved = in_bins(release.schema, cells, np.zeros_like(labels))
    assert moved[:, 2].max() <= 1 / 6 + 1e-6


@pytest.mark.parametrize("pairs", ["counts", "correlations"])
def test_no_row_is_drawn_from_bins_that_hold_noise_alone(tmp_path: Path, pairs: str) -> None:
    """Of wide bounds most bins are empty, and noise there was released as rents that no one pays."""
    wide = replace(_schema().columns[2], max=24_000, bins=8)
    schema = _schema(rows=600, columns=(*_schema().columns[:2], wide))
    method = lk.Marginals(grid=32, groups=4, soft_rows=100, steps=20, pairs=pairs)
    for seed in range(3):
        book = lk.Ledger(tmp_path / f"{seed}.sqlite")
        made = lk.distill(lk.read(_rows(600), schema), method, 1.0, seed=seed, ledger=book)
        assert (made.measurements["class counts"][1:] > 0).any()  # noise, and published as such
        assert made.data["rent"].max() <= 3000
        assert made.rows == 600


class _Mean:
    def fit(self, x: np.ndarray, y: np.ndarray) -> _Mean:
        self.mean = y.mean()
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.mean)


def test_what_regressors_are_scored_by() -> None:
    y = np.array([0.0, 2.0])
    found = regressor_scores(
        y[:, None], y, y[:, None], y, regressors=(Regressor("mean", lambda seed: _Mean()),)
    )
    assert found == {"mean": {"R2": 0.0, "mean absolute error": 1.0}}
