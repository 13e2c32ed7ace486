"""`report`: what the page holds, what it refuses, and how a real browser takes it.

With LIMBECK_SCREENSHOTS=docs/images (and LIMBECK_DEMO=demo-release for releases worth looking at), the
browser test leaves the pictures that the documentation shows.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    TINY,
    image_rows,
    image_schema,
    only_what_was_there,
    table_rows,
    table_schema,
    ways_inside,
)
from PIL import Image

import limbeck as lk
from limbeck.cli import main as cli
from limbeck.release import certificate_digest
from limbeck.report import Point, curve, folder_names, histogram, make_report, score_bar
from limbeck.report.compared import together
from limbeck.report.contents import _numbers, shares, whole_numbers
from limbeck.report.report import _code
from limbeck.scores import Score

pytest.importorskip("jinja2", reason="jinja2 is not installed")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
SECTIONS = ("glance", "guarantee", "spending", "data", "limits", "verify", "papers", "status")


def run(*arguments: str | Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of a table at two epsilons and of images, scores, and real rows."""
    place = tmp_path_factory.mktemp("report")
    book = lk.Ledger(place / "ledger.sqlite")
    method = lk.DPMERF(**TINY)  # type: ignore[arg-type]
    label = lk.Category(name="ill", values=("no", "<b>yes</b>", "unsure"), label=True)
    schema = table_schema(columns=(*table_schema().columns[:-1], label))
    for name, epsilon in (("table", 1.0), ("more", 4.0)):
        data = lk.read(table_rows(200).replace({"ill": {"yes": "<b>yes</b>"}}), schema)
        budget = lk.Budget(epsilon, 1e-5)
        made = lk.distill(data, method, budget, out=place / name, ledger=book)
        _scores(made, 0.7 + epsilon / 50).save(place / f"{name}.json")
    images = lk.read(image_rows(100), image_schema())
    lk.distill(
        images, method, lk.Budget(1.0, 1e-5), out=place / "images", rows=50, seed=0, ledger=book
    )
    table_rows(90, seed=1).to_csv(place / "test.csv", index=False)
    return place


def _scores(release: lk.Release, level: float) -> lk.Scores:
    found = (
        Score(name="logistic regression", figure="accuracy", values=(level, level + 0.02)),
        Score(name="logistic regression", figure="accuracy", values=(0.9,), of="real"),
        Score(name="forest", figure="accuracy", values=(level - 0.1,), note="a note"),
        Score(name="marginals", figure="total variation", values=(0.1,), of="between"),
    )
    return lk.Scores(
        dataset="people", epsilon=1.0, certificate=certificate_digest(release.certificate),
        released_rows=200, test_rows=90, scores=found,
    )  # fmt: skip


class Page(HTMLParser):
    """Tags, ids and addresses of a page; refuses tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.tags.append(tag)
        self.ids |= {held["id"]} if held.get("id") else set()  # type: ignore[arg-type]
        self.addresses += [str(held[k]) for k in ("src", "href") if k in held]
        if tag not in ("meta", "img", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def written(place: Path, out: Path, *arguments: str | Path, monkeypatch) -> str:
    assert run("report", *arguments, "--out", out, monkeypatch=monkeypatch) == 0
    return out.read_text()


def test_a_table_alone_may_travel_with_the_release(place, tmp_path, monkeypatch) -> None:
    text = written(place, tmp_path / "r.html", place / "table", monkeypatch=monkeypatch)
    page = Page(text)
    assert set(SECTIONS) <= page.ids
    assert "internal" not in page.ids and "scores" not in page.ids and "compared" not in page.ids
    assert "73.1%" in text and "May be published" in text and "limbeck verify" in text
    assert all(a.startswith("data:image/png;base64,") for a in page.addresses)  # pairs of columns
    assert "script" not in page.tags
    assert not re.search(r"(?:https?:)?//(?!www\.w3\.org)\w", re.sub(r"<li>.*?</li>", "", text))
    assert "&lt;b&gt;yes&lt;/b&gt;" in text and "<b>yes</b>" not in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text


def test_images_are_inside_the_page(place, tmp_path, monkeypatch) -> None:
    text = written(place, tmp_path / "r.html", place / "images", monkeypatch=monkeypatch)
    page = Page(text)
    assert page.tags.count("img") >= 2
    assert all(a.startswith("data:image/png;base64,") for a in page.addresses)
    assert "seeded: reproducible, not for release" in text and "Not for release" in text


def test_scores_and_real_rows_make_it_internal(place, tmp_path, monkeypatch, capsys) -> None:
    more = ("--scores", place / "table.json", "--test", _real(place, tmp_path))
    text = written(place, tmp_path / "r.html", place / "table", *more, monkeypatch=monkeypatch)
    page = Page(text)
    assert {"internal", "scores"} <= page.ids
    assert "May be published" not in text and 'class="badge good"' not in text
    assert "Not for publication: this page" in text
    assert "Internal: not covered by epsilon" in capsys.readouterr().out
    assert "real-line" in text and "real-mark" in text and "whisker" in text and "a note" in text


def test_quoted_words_are_code_and_nothing_else_is_markup() -> None:
    shown = str(_code("the look that `check` states, <b>`a<b`</b>"))
    assert shown == (
        "the look that <code>check</code> states, &lt;b&gt;<code>a&lt;b</code>&lt;/b&gt;"
    )


def test_several_releases_give_a_curve(place, tmp_path, monkeypatch) -> None:
    both = (place / "table", place / "more")
    scored = [a for n in ("table", "more") for a in ("--scores", place / f"{n}.json")]
    text = written(place, tmp_path / "r.html", *both, *scored, monkeypatch=monkeypatch)
    assert "compared" in Page(text).ids and "Scores against epsilon" in text
    plain = written(place, tmp_path / "p.html", *both, monkeypatch=monkeypatch)
    assert "compared" in Page(plain).ids and "Scores against epsilon" not in plain
    assert "internal" not in Page(plain).ids
    sums = re.search(r"all of them together</td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", plain)
    assert sums and sums.groups() == ("5", "2e-5")


def test_sets_of_the_same_measurements_are_added_up_once(place) -> None:
    release = lk.Release.load(place / "table")
    again = lk.redistill(release, {"steps": 1})
    facts = together([release, again, lk.Release.load(place / "more")], [])
    assert facts == {"epsilon": "5", "delta": "2e-5", "shared": True, "measured": False}
    other = copy.deepcopy(release.certificate)
    other["guarantee"]["adjacency"] = "replace-one"
    bare = dataclasses.replace(release, certificate=other, measurements={})
    assert together([again, bare], []) is None
    other["guarantee"] |= {"adjacency": "add-remove", "epsilon": "infinity"}
    assert together([again, bare], [])["epsilon"] == "∞"  # type: ignore[index]


def test_names_tell_folders_apart(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in ("a/out", "b/out", "c"))
    assert folder_names([a, b, c]) == ["a/out/", "b/out/", "c/"]
    assert folder_names([a]) == ["out/"]
    with pytest.raises(lk.LimbeckError, match="out was given twice"):
        folder_names([a, b, tmp_path / "c" / ".." / "a" / "out"])


def test_real_images_stand_beside_released_ones(place, tmp_path, monkeypatch) -> None:
    images, labels = image_rows(40)
    np.savez(tmp_path / "real.npz", images=images, labels=labels)
    more = ("--test", tmp_path / "real.npz")
    text = written(place, tmp_path / "r.html", place / "images", *more, monkeypatch=monkeypatch)
    page = Page(text)
    assert "internal" in page.ids and "May be published" not in text
    alone = written(place, tmp_path / "a.html", place / "images", monkeypatch=monkeypatch)
    classes = len(np.unique(labels))
    assert page.tags.count("img") == Page(alone).tags.count("img") + classes
    assert text.count("Real images of class") == classes


def test_something_is_always_cited_and_nothing_is_promised(place, tmp_path, monkeypatch) -> None:
    text = written(place, tmp_path / "r.html", place / "table", monkeypatch=monkeypatch)
    assert "DP-MERF: Differentially Private" in text and "pip install limbeck" not in text
    release = lk.Release.load(place / "table")
    none = dataclasses.replace(release, certificate={**release.certificate, "papers": []})
    cited = make_report([none]).split("Please cite", 1)[1]
    assert f"limbeck {release.certificate['software']['limbeck']}" in cited
    none.save(tmp_path / "none")
    card = (tmp_path / "none" / "README.md").read_text()
    assert "- limbeck " in card.split("## Please cite", 1)[1]


def test_few_whole_numbers_have_a_bar_each() -> None:
    rooms = lk.Numeric(name="rooms", integer=True, min=1, max=6, missing=True)
    cells = rooms.encode(np.array([1.0, 2.0, 2.0, 6.0, np.nan]))
    assert shares(rooms, cells).tolist() == [0.2, 0.4, 0, 0, 0, 0.2, 0.2]
    assert whole_numbers(lk.Numeric(name="half", integer=True, min=0.5, max=3.5)) == [1, 2, 3]
    assert not whole_numbers(lk.Numeric(name="age", integer=True, min=0, max=100))
    assert not whole_numbers(lk.Numeric(name="share", min=0, max=1))
    named = [_numbers(lk.Numeric(name="n", integer=True, min=low, max=low + 5),
                      np.ones(7) / 7, None)["ticks"] for low in (0, 20_000)]  # fmt: skip
    assert named == [["0", "1", "2", "3", "4", "5"], []]  # wide numbers would run into each other
    for bound in (24, 25):
        column = lk.Numeric(name="n", integer=True, min=1, max=bound)
        assert len(shares(column, np.zeros(3, np.float32))) == (25 if bound == 24 else 21)


def _real(place: Path, folder: Path) -> Path:
    """Real rows whose labels are those of the schema."""
    table_rows(90, seed=1).to_csv(folder / "real.csv", index=False)
    return folder / "real.csv"


def test_what_is_refused(place, tmp_path, monkeypatch, capsys) -> None:
    def says(*arguments: str | Path) -> str:
        out = tmp_path / "r.html"
        assert run("report", *arguments, *(() if "--out" in arguments else ("--out", out)),
                   monkeypatch=monkeypatch) == 2  # fmt: skip
        said = capsys.readouterr().err
        assert not out.exists() and said.startswith("limbeck: error:")
        return said

    assert "is not a release" in says(tmp_path)
    assert "different data sets ('people' and 'pictures')" in says(
        place / "table", place / "images"
    )
    assert "table was given twice" in says(place / "table", place / "more", place / "table")
    assert "another release" in says(place / "table", "--scores", place / "more.json")
    assert "does not hold scores" in says(
        place / "table", "--scores", place / "table" / "certificate.json"
    )
    assert "No file or folder" in says(place / "table", "--test", tmp_path / "none.csv")
    assert "stays as it is" in says(place / "table", "--out", place / "table" / "r.html")
    with only_what_was_there(place / "table"):
        for way in ways_inside(place / "table", tmp_path):
            assert "stays as it is" in says(place / "table", "--out", way)
        # And into a release that the page is not about.
        assert "stays as it is" in says(place / "images", "--out", place / "table" / "r.html")
        (tmp_path / "hard.html").hardlink_to(place / "table" / "README.md")
        forced = ("--out", tmp_path / "hard.html", "--force")
        assert run("report", place / "table", *forced, monkeypatch=monkeypatch) == 0
    (tmp_path / "there.html").write_text("mine")
    assert "exists already" in says(place / "table", "--out", tmp_path / "there.html")
    copy = shutil.copytree(place / "table", tmp_path / "copy")
    certificate = copy / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"epsilon": 1.0', '"epsilon": 0.1', 1))
    assert "was changed after" in says(copy)


def test_a_missing_template_engine_is_named(place, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert (
        run("report", place / "table", "--out", tmp_path / "r.html", monkeypatch=monkeypatch) == 2
    )
    assert "pip install jinja2" in capsys.readouterr().err


def test_charts_hold_their_numbers() -> None:
    assert 'height="98.0"' in histogram(np.array([1.0, 0.5]))
    assert 'width="750.0"' in score_bar(0.75, None) and "whisker" not in score_bar(0.75, None)
    drawn = curve([("a<b", [Point(1.0, 0.5, 0.1), Point(10.0, 0.9, None)])])
    assert drawn.count("<circle") == 2 and "a&lt;b" in drawn
    lone = curve([("x", [Point(1.0, 1.0, None)])])
    assert "nan" not in lone and lone.count("<circle") == 1


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("kind", ["images", "table"])
def test_in_a_browser(kind: str, place, tmp_path, monkeypatch) -> None:
    demo = os.environ.get("LIMBECK_DEMO")
    release = Path(demo) / kind if demo else place / kind
    page = tmp_path / f"report-{kind}.html"
    written(place, page, release, monkeypatch=monkeypatch)
    keep = Path(os.environ.get("LIMBECK_SCREENSHOTS", tmp_path)).absolute()
    tall = {"images": 2300, "table": 3100}[kind] if demo else 1800
    for name, width, height in (("laptop", 1280, tall), ("phone", 420, 1800)):
        picture = keep / f"report-{kind}-{name}.png"
        said = _browse(page, tmp_path, f"--screenshot={picture}", f"--window-size={width},{height}")
        assert "CONSOLE" not in said, said
        pixels = np.asarray(Image.open(picture).convert("L"))
        assert pixels.shape == (height, width) and pixels.std() > 5
    # What the browser made of the page, not what was written.
    dom = _browse(page, tmp_path, "--dump-dom", dump=True)
    assert set(SECTIONS) <= Page(dom).ids


def _browse(page: Path, folder: Path, *options: str, dump: bool = False) -> str:
    done = subprocess.run(
        [
            str(BROWSER), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", *options,
            page.absolute().as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout if dump else done.stderr
