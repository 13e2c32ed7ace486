"""Correlations of columns: as pandas finds them, missing values and two-valued columns included."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import limbeck as lk
from limbeck.data import bare_rows
from limbeck.report import make_report
from limbeck.report.pairs import correlation_view, matrix_png
from limbeck.scores import correlations, strongest_pairs


def _data() -> tuple[lk.Dataset, pd.DataFrame]:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 400)
    frame = pd.DataFrame({"x": x, "votes": np.exp(x + 5).round(), "same": 1.0})
    frame["y"] = np.where(rng.random(400) < 0.3, np.nan, -x + rng.normal(0, 1, 400))
    frame["ill"] = np.where(x + rng.normal(0, 1, 400) > 0, "yes", "no")
    frame["town"] = rng.choice(["a", "b", "c"], 400)
    schema = lk.Schema(
        dataset="d",
        rows=400,
        columns=(
            lk.Numeric(name="x", min=-9, max=9),
            lk.Numeric(name="votes", integer=True, min=0, max=10**6, scale="log"),
            lk.Numeric(name="same", min=0, max=2),
            lk.Numeric(name="y", min=-9, max=9, missing=True),
            lk.Category(name="town", values=("a", "b", "c")),
            lk.Category(name="ill", values=("no", "yes"), label=True),
        ),
    )
    return lk.read(frame, schema), frame


def test_they_are_those_of_pandas() -> None:
    data, frame = _data()
    rows = bare_rows(data)
    names, found = correlations(data.schema, rows.cells, rows.labels)
    assert names == ("x", "votes", "same", "y", "ill")
    wanted = frame.assign(ill=frame["ill"] == "yes")[list(names)].astype(float).corr()
    assert found == pytest.approx(wanted.fillna(0).to_numpy(), abs=1e-3)


def test_the_strongest_pairs_come_first() -> None:
    real = np.array([[1, 0.2, -0.9], [0.2, 1, 0], [-0.9, 0, 1]])
    pairs = strongest_pairs(("a", "b", "c"), np.eye(3), real, 2)
    assert [(p.first, p.second, p.real, p.released) for p in pairs] == [
        ("a", "c", -0.9, 0), ("a", "b", 0.2, 0),
    ]  # fmt: skip


def test_their_picture_has_a_square_for_each_pair() -> None:
    import base64
    import io

    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(matrix_png(np.array([[1.0, -1], [-1, 1]])))))
    assert picture.size == (480, 480)
    assert picture.getpixel((0, 0)) == (47, 98, 217) and picture.getpixel((479, 0)) == (196, 86, 26)


def test_pictures_of_both_sides(tmp_path) -> None:
    data, frame = _data()
    method = lk.Marginals(grid=16, groups=4, soft_rows=100, steps=2)
    release = lk.distill(data, method, 1.0, seed=0, ledger=lk.Ledger(tmp_path / "l.sqlite"))
    view = correlation_view(release, data)
    assert view is not None and [side["of"] for side in view["sides"]] == ["released", "real"]
    page = make_report([release], real=data)
    assert "Correlations of real columns" in page and "Pairs of columns" in page
    assert "Correlations of real columns" not in make_report([release])
