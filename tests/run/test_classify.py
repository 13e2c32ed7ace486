"""`classify`: what a model costs, what it learns, and that it is released like anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import folder_bytes, image_schema

import limbeck as lk
from limbeck.methods.batches import modest_batch
from limbeck.privacy import Noise

SCHEMA = lk.Schema(
    dataset="people",
    rows=2000,
    columns=(
        lk.Numeric(name="age", min=0.0, max=100.0),
        lk.Category(name="town", values=("north", "south")),
        lk.Category(name="ill", values=("no", "yes"), label=True),
    ),
)
LIFETIME = lk.Lifetime(epsilon=20.0, delta=1e-3, filter="sum")
METHODS = [
    lk.LinearHead(steps=40, features=40),
    lk.DPSGD(steps=60, hidden=(8,), learning_rate=0.05),
]


def rows(count: int = 2000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, count)
    town = rng.choice(["north", "south"], count)
    return pd.DataFrame({"age": age, "town": town, "ill": np.where(age > 50, "yes", "no")})


def model(tmp_path: Path, method: object = METHODS[0], schema: lk.Schema = SCHEMA) -> lk.Model:
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    data = lk.read(rows(), schema)
    return lk.classify(
        data, method, lk.Budget(1.0, 1e-5), ledger=book, seed=0, out=tmp_path / "model"
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_it_learns_is_charged_and_verified(method: object, tmp_path: Path) -> None:
    made = model(tmp_path, method)
    new = rows(500, seed=1)
    told = made.predict(new)
    assert (told["ill"] == new["ill"]).mean() > 0.9
    np.testing.assert_allclose(told[["chance of no", "chance of yes"]].sum(axis=1), 1.0)
    (account,) = lk.Ledger(tmp_path / "ledger.sqlite").accounts()
    assert [run.method for run in account.runs] == [method.name]
    assert 0.999 < account.runs[0].epsilon <= 1.0 + 1e-9
    found = lk.verify(tmp_path / "model")
    assert found.verified and found.epsilon <= 1.0 + 1e-9
    files = set(folder_bytes(tmp_path / "model"))
    assert files == {
        "model.npz", "model.json", "measurements.npz", "schema.toml", "certificate.json", "README.md",
        "SHA256SUMS",
    }  # fmt: skip


def test_defaults_tell_the_smaller_class(tmp_path: Path) -> None:
    """One row in five is ill, above an age of 80: always to say "no" is right on four of five rows."""
    frame = rows(6000)
    frame["ill"] = np.where(frame["age"] > 80, "yes", "no")
    new = rows(1000, seed=1)
    ill = new["age"] > 80
    for method in (lk.LinearHead(), lk.DPSGD()):
        book = lk.Ledger(tmp_path / f"{method.name}.sqlite")
        data = lk.read(frame, replace(SCHEMA, rows=6000))
        told = lk.classify(data, method, lk.Budget(1.0, 1e-5), ledger=book, seed=0).predict(new)
        assert (told["ill"][ill] == "yes").mean() > 0.7, method.name
        assert (told["ill"][~ill] == "no").mean() > 0.9, method.name


def test_columns_that_say_nothing_do_not_hide_those_that_do(tmp_path: Path) -> None:
    """Forty of them, of five values each; steps and clipping that suit a few columns must suit many."""
    rng = np.random.default_rng(2)
    names = [f"other{n}" for n in range(40)]

    def wide(count: int, seed: int) -> pd.DataFrame:
        frame = rows(count, seed)
        frame["ill"] = np.where(frame["age"] > 80, "yes", "no")
        others = {name: rng.integers(0, 5, count).astype(str) for name in names}
        return frame.assign(**others)

    others = tuple(lk.Category(name=name, values=tuple("01234")) for name in names)
    schema = replace(SCHEMA, rows=10_000, columns=(*others, *SCHEMA.columns), lifetime=LIFETIME)
    book, data = lk.Ledger(tmp_path / "ledger.sqlite"), lk.read(wide(10_000, 0), schema)
    made = lk.classify(data, lk.DPSGD(), lk.Budget(3.0, 1e-5), ledger=book, seed=0)
    new = wide(1000, 1)
    ill, told = new["age"] > 80, made.predict(new)["ill"]
    assert (told[ill] == "yes").mean() > 0.6
    assert (told[~ill] == "no").mean() > 0.9


def test_images_are_told_apart(tmp_path: Path) -> None:
    """A ConvNet of noisy gradients: a bright bar at a height of its own for every class."""
    labels = np.arange(3000) % 3
    images = np.random.default_rng(0).integers(0, 50, (3000, 16, 16, 1)).astype(np.uint8)
    for label in range(3):
        images[labels == label, 5 * label : 5 * label + 5] += 200
    schema = replace(image_schema(16), rows=3000, lifetime=LIFETIME)
    method = lk.DPSGD(steps=40, batch=300, filters=4, learning_rate=0.02)
    book = lk.Ledger(tmp_path / "ledger.sqlite")
    data = lk.read((images, labels), schema)
    made = lk.classify(data, method, lk.Budget(4.0, 1e-5), ledger=book, seed=0)
    told = made.predict((images[:300], None))
    assert (told["label"] == labels[:300]).mean() > 0.9


def test_the_label_and_columns_beside_are_not_looked_at(tmp_path: Path) -> None:
    made = model(tmp_path)
    new = rows(50, seed=1)
    told = made.predict(new)
    for other in (new.drop(columns="ill"), new.assign(ill="yes", name="somebody")):
        pd.testing.assert_frame_equal(made.predict(other), told)
    new.to_csv(tmp_path / "new.csv", index=False)
    pd.testing.assert_frame_equal(made.predict(tmp_path / "new.csv"), told)
    with pytest.raises(lk.DataError, match="no column 'town'"):
        made.predict(new.drop(columns="town"))


def test_rows_after_one_another_are_predicted_alone(tmp_path: Path) -> None:
    """A prediction does not depend on which rows stand beside."""
    made = model(tmp_path)
    new = rows(300, seed=1)
    alone = pd.concat([made.predict(new.iloc[[i]]) for i in (0, 150, 299)], ignore_index=True)
    together = made.predict(new).iloc[[0, 150, 299]].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, together, rtol=1e-5)


def test_without_data_the_rows_do_not_matter(tmp_path: Path) -> None:
    for method in METHODS:
        found = []
        for number, frame in enumerate((rows(), rows(17).assign(ill="no", age=np.nan))):
            book = lk.Ledger(tmp_path / f"{method.name}-{number}.sqlite")
            made = lk.classify(
                lk.read(frame, SCHEMA), method, lk.Budget(1.0, 1e-5), ledger=book,
                noise=Noise.from_seed(0, law=True), check=False,
            )  # fmt: skip
            found.append(made.classifier.arrays())
        for name in found[0]:
            np.testing.assert_array_equal(found[0][name], found[1][name])


def test_persons_are_protected_where_they_are_declared(tmp_path: Path) -> None:
    person = lk.Person(column="id", rows_at_most=2, persons=1000, rows_per_person=(0.5, 0.5))
    schema = replace(SCHEMA, person=person, lifetime=LIFETIME)
    data = lk.read(rows().assign(id=[str(i // 2) for i in range(2000)]), schema)
    for method in METHODS:
        book = lk.Ledger(tmp_path / f"{method.name}.sqlite")
        made = lk.classify(data, method, lk.Budget(4.0, 1e-5), ledger=book, seed=0)
        assert made.certificate["unit"]["kind"] == "person"
        told = made.predict(rows(200, seed=1))
        assert (told["ill"] == rows(200, seed=1)["ill"]).mean() > 0.8


def test_rules_are_left_out(tmp_path: Path) -> None:
    """They are about released rows, and a model has none."""
    schema = replace(SCHEMA, rules=("not (town = north and ill = yes)",))
    assert model(tmp_path, schema=schema).schema.rules == ()


def test_scores_of_a_model_are_internal(tmp_path: Path) -> None:
    made = model(tmp_path)
    scores = lk.evaluate(made, rows(500, seed=1))
    assert scores.stamp == "internal: not covered by epsilon" and scores.released_rows == 0
    by_figure = {score.figure: score.mean for score in scores.scores}
    assert by_figure["accuracy"] > 0.9 and by_figure["ROC AUC"] > 0.9
    with pytest.raises(lk.LimbeckError, match="leave train"):
        lk.evaluate(made, rows(500, seed=1), full=True)


def test_every_verb_knows_what_it_is_given(tmp_path: Path) -> None:
    model(tmp_path)
    data, book = lk.read(rows(), SCHEMA), lk.Ledger(tmp_path / "other.sqlite")
    for call, words in (
        (lambda: lk.distill(data, METHODS[0], 1.0, ledger=book), "linear-head makes a model"),
        (lambda: lk.classify(data, "marginals", 1.0, ledger=book), "marginals makes rows"),
        (lambda: lk.tune(data, METHODS[:1] * 2, 1.0, ledger=book), "linear-head makes a model"),
        (lambda: lk.Release.load(tmp_path / "model"), "holds a model, which has no rows"),
        (lambda: lk.classify(data, METHODS[0], float("inf"), ledger=book), "non_private"),
    ):
        with pytest.raises(lk.LimbeckError, match=words):
            call()
    assert book.accounts() == []
    with pytest.raises(lk.ReleaseError, match="holds no model"):
        lk.Model.load(_release(tmp_path))
    deep = lk.verify(tmp_path / "model", deep=True)
    assert any("keeps no measurements" in words for words in deep.open)


def _release(tmp_path: Path) -> Path:
    book = lk.Ledger(tmp_path / "rows.sqlite")
    method = lk.Marginals(grid=32, groups=4, soft_rows=150, steps=2)
    lk.distill(lk.read(rows(), SCHEMA), method, 1.0, ledger=book, out=tmp_path / "rows", seed=0)
    return tmp_path / "rows"


def test_what_cannot_be_learned_is_refused() -> None:
    bare = lk.Schema(dataset="d", rows=9, columns=(lk.Numeric(name="age", min=0.0, max=1.0),))
    for method in METHODS:
        with pytest.raises(lk.LimbeckError, match="at least two classes"):
            lk.plan(method, bare, 1.0)
    with pytest.raises(lk.LimbeckError, match="approximate number of rows"):
        lk.plan(lk.DPSGD(), replace(SCHEMA, rows=None), lk.Budget(1.0, 1e-5))


def test_a_model_without_noise_wants_a_word(tmp_path: Path) -> None:
    ledger, given = lk.Ledger(tmp_path / "ledger.sqlite"), lk.read(rows(50), SCHEMA)
    with pytest.raises(lk.LimbeckError, match="non_private=True"):
        lk.classify(given, METHODS[0], float("inf"), ledger=ledger, out=tmp_path / "model")
    assert not (tmp_path / "model").exists() and ledger.accounts() == []


def test_gradients_are_divided_by_what_is_drawn() -> None:
    """One public number for the rate and for the divisor: a tenth of the declared rows at most."""
    for rows_, wanted in ((60_000, 2000), (2000, 200), (5, 1)):
        schema = replace(SCHEMA, rows=rows_)
        (charge,) = lk.plan(lk.DPSGD(), schema, lk.Budget(1.0, 1e-6)).charges
        assert modest_batch(2000, schema) == wanted and charge.sampling == wanted / rows_


def test_damaged_models_are_refused(tmp_path: Path) -> None:
    model(tmp_path)
    folder = tmp_path / "model"
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | {"features": 2}))
    with pytest.raises(lk.ReleaseError, match="was changed"):
        lk.Model.load(folder)
    with pytest.raises(lk.ReleaseError, match="was changed"):
        lk.verify(folder)
