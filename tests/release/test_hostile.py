"""Files from somebody else's hands, and places that lead elsewhere: one clear line, nothing done."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forging import reseal
from helpers import TINY, folder_bytes, image_schema, table_rows, table_schema
from PIL import Image as Picture

import limbeck as lk
from limbeck import npz
from limbeck.data.write import save_images
from limbeck.ledger import Job
from limbeck.report import make_report

ROOT = Path(__file__).parents[2]
EVIL = '<script>alert("x")</script>'


# ---- bombs -----------------------------------------------------------------------------------


def _npz_bomb(path: Path) -> None:
    """A few kilobytes that unpack to 30 MiB of zeros."""
    memory = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        memory, {"descr": "|u1", "fortran_order": False, "shape": (30 << 20,)}
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("images.npy", "w", force_zip64=True) as file,
    ):
        file.write(memory.getvalue())
        for _ in range(30):
            file.write(bytes(1 << 20))


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npz, "UNPACKED", 1 << 20)
    _npz_bomb(tmp_path / "x.npz")
    assert (tmp_path / "x.npz").stat().st_size < 1 << 20
    packed = gzip.compress(bytes(30 << 20), 9)
    (tmp_path / "x-images-idx3-ubyte.gz").write_bytes(packed)
    for name in ("x.npz", "x-images-idx3-ubyte.gz"):
        with pytest.raises(lk.LimbeckError, match="far more than its own size"):
            lk.read(tmp_path / name, image_schema())._encoded()


def test_an_array_that_claims_to_be_endless_is_refused(tmp_path: Path) -> None:
    memory = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        memory, {"descr": "<f8", "fortran_order": False, "shape": (1 << 45,)}
    )
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("images.npy", memory.getvalue())
    with pytest.raises(lk.LimbeckError, match="no whole file of arrays"):
        lk.read(tmp_path / "x.npz", image_schema())


@pytest.mark.parametrize("fit", [None, "crop"])
def test_a_huge_picture_is_refused_before_it_is_unpacked(
    fit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0").mkdir()
    Picture.new("1", (10_000, 10_000)).save(tmp_path / "0" / "huge.png")
    monkeypatch.setattr(Picture.Image, "convert", lambda *given: pytest.fail("unpacked"))
    image, label = image_schema().columns
    schema = lk.Schema(dataset="p", rows=100, columns=(replace(image, fit=fit), label))
    with pytest.raises(lk.DataError, match="10000x10000 pixels"):
        lk.read(tmp_path, schema)._encoded()


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "x.npz", images=np.asarray([Trap()], dtype=object))
    with pytest.raises(npz.NotArrays):
        npz.read_arrays(tmp_path / "x.npz")
    with pytest.raises(lk.LimbeckError):
        lk.read(tmp_path / "x.npz", image_schema())
    assert not (tmp_path / "sprung").exists()


# ---- a release from elsewhere ----------------------------------------------------------------


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    data = lk.read(table_rows(60), table_schema())
    book = lk.Ledger(folder / "ledger.sqlite")
    lk.distill(data, lk.DPMERF(**TINY), 1.0, out=folder / "release", ledger=book)
    return folder / "release"


DAMAGE = {
    "a damaged archive": ("generator.npz", lambda c: c[: len(c) // 2]),
    "damaged measurements": ("measurements.npz", lambda c: c.replace(b"PK", b"KP", 3)),
    "numbers of another shape": ("generator.npz", lambda c: c.replace(b"shape", b"shame", 1)),
    "facts that are none": ("generator.json", lambda c: b"[1, 2]"),
    "facts of another network": ("generator.json", lambda c: c.replace(b"6", b"-6")),
    "a schema that is none": ("schema.toml", lambda c: b"\xff\x00"),
    "nested too deeply": ("certificate.json", lambda c: b"[" * 100_000),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_release_is_refused_in_one_line(sealed: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(sealed, tmp_path / "r"))
    file, change = DAMAGE[name]
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    reseal(folder)
    with pytest.raises(lk.LimbeckError) as refused:
        lk.Release.load(folder)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


# ---- places ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link to a folder", "link to nothing", "a file"])
def test_a_release_is_never_written_through_a_link(sealed: Path, tmp_path: Path, kind: str) -> None:
    """What stands at the place is no release: it stays as it is, with or without force."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("precious")
    out = tmp_path / "out"
    if kind == "a file":
        out.write_text("precious")
    else:
        out.symlink_to(elsewhere if kind == "link to a folder" else tmp_path / "nothing")
    before = folder_bytes(elsewhere)
    release = lk.Release.load(sealed)
    for force in (False, True):
        try:
            release.save(out, force=force)
        except lk.LimbeckError:
            continue
        assert kind == "link to nothing"  # then the link itself gave way
    assert folder_bytes(elsewhere) == before
    if kind != "link to nothing":
        assert out.is_symlink() or out.read_text() == "precious"


LABELS = {
    "places": ("../../evil", "/etc/passwd", "..", "a/b"),
    "long": ("a" * 5000, "b"),
    "alike": ("A", "a", "."),
    "page": (EVIL, "=1+1", "x\ny", "\u202ex"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_names_of_classes_lead_nowhere_else(kind: str, tmp_path: Path) -> None:
    """Folders of released images are named by labels, of which any text may be one."""
    label = lk.Category(name="y", values=LABELS[kind], label=True)
    picture = lk.Image(name="image", height=8, width=8, channels=1)
    schema = lk.Schema(dataset="d", rows=40, columns=(picture, label))
    (tmp_path / "r").mkdir()
    pixels = np.zeros((12, 8, 8, 1), np.uint8)
    save_images(pixels, np.arange(12) % len(LABELS[kind]), schema, tmp_path / "r")
    assert [p.name for p in tmp_path.iterdir()] == ["r"]
    folders = [p.name for p in (tmp_path / "r" / "images").iterdir()]
    assert len({name.lower() for name in folders}) == len(LABELS[kind])
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,83}", n) and n[0] != "." for n in folders)


@pytest.mark.parametrize("kind", ["a pipe", "a text", "links in a ring", "a folder"])
def test_what_is_no_picture_among_pictures_is_named(kind: str, tmp_path: Path) -> None:
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
        Picture.new("L", (8, 8)).save(tmp_path / name / "0.png")
    odd = tmp_path / "1" / "1.png"
    if kind == "a pipe":
        os.mkfifo(odd)  # which would be waited for without end
    elif kind == "a folder":
        odd.mkdir()
    else:
        odd.symlink_to("/etc/hostname" if kind == "a text" else odd)
    with pytest.raises(lk.DataError) as refused:
        lk.read(tmp_path, image_schema())._encoded()
    assert str(odd) in str(refused.value) and "\n" not in str(refused.value)


# ---- remains ---------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from limbeck.release.folder import fill
def write(place):
    (place / "half").write_text("x")
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "look":
        print(sorted(p.name for p in place.parent.iterdir() if p != place))
fill(Path(sys.argv[1]), write, force=True)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / ".out-keepme").write_text("a file of the owner's")
    (tmp_path / ".other-abcdefgh").mkdir()
    for way in ("kill", "look"):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(out), way, str(ROOT)],
            capture_output=True,
            text=True,
            check=way == "look",
        )
        if way == "kill":
            left = [p.name for p in tmp_path.iterdir() if p.is_dir()]
            assert len(left) == 2 and not out.exists()
    assert done.stdout.strip() == "['.other-abcdefgh', '.out-keepme']"
    assert (out / "half").exists()


def test_a_running_process_keeps_what_it_works_on(tmp_path: Path) -> None:
    from limbeck.release.folder import fill

    def inner(place: Path) -> None:
        (place / "inner").write_text("x")

    def outer(place: Path) -> None:
        (place / "outer").write_text("x")
        fill(tmp_path / "out", inner, force=True)
        assert (place / "outer").exists()
        shutil.rmtree(tmp_path / "out")

    fill(tmp_path / "out", outer, force=True)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["outer"]


def test_measured_scores_are_written_before_their_job_is_erased(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a kill between the two would lose what was paid for."""
    ledger, seen = lk.Ledger(tmp_path / "l.sqlite"), []
    erase = Job.erase

    def spy(self: Job) -> None:
        seen.append((tmp_path / "scores.json").exists())
        erase(self)

    monkeypatch.setattr(Job, "erase", spy)
    test = lk.read(table_rows(40, seed=5), table_schema())
    release = lk.Release.load(sealed)
    lk.measure_scores(release, test, 1.0, ledger=ledger, out=tmp_path / "scores.json")
    assert seen == [True]


# ---- wide, large and strange -----------------------------------------------------------------


def test_ten_thousand_columns_are_read_or_refused_in_words(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(10_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * 10_000) + "\n")
    columns = tuple(lk.Numeric(name=n, min=0, max=2) for n in names[:3])
    schema = lk.Schema(dataset="w", rows=9, columns=columns, ignore=tuple(names[3:]))
    assert lk.read(tmp_path / "wide.csv", schema)._encoded().cells.shape == (1, 3)
    with pytest.raises(lk.LimbeckError) as refused:
        lk.read(tmp_path / "wide.csv", lk.Schema(dataset="w", rows=9, columns=columns))
    assert len(str(refused.value)) < 600


def test_a_cell_of_a_hundred_megabytes_costs_its_line_alone(tmp_path: Path) -> None:
    with open(tmp_path / "large.csv", "wb") as file:
        file.write(b"x,c\n1,a\n2,")
        for _ in range(100):
            file.write(b"y" * (1 << 20))
        file.write(b"\n3,b\n")
    schema = lk.Schema(
        dataset="l",
        rows=9,
        columns=(
            lk.Numeric(name="x", min=0, max=4),
            lk.Category(name="c", values=("a", "b")),
        ),
    )
    cells = lk.read(tmp_path / "large.csv", schema)._encoded().cells
    assert cells.tolist() == [[0.25, 0.0], [0.75, 1.0]]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_duplicate_columns_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x,x\n1,2\n")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), tmp_path / "x.parquet"
    )
    schema = lk.Schema(dataset="l", rows=9, columns=(lk.Numeric(name="x", min=0, max=4),))
    with pytest.raises(lk.LimbeckError, match="x"):
        lk.read(tmp_path / name, schema)


def test_names_and_values_stay_words_in_pages(tmp_path: Path) -> None:
    """HTML and JavaScript in names of columns and values are shown, never run; cards stay plain."""
    columns = (
        lk.Numeric(name=EVIL, min=0, max=1),
        lk.Category(name="c", values=(EVIL, "=1+1")),
        lk.Category(name="y", values=("a", EVIL), label=True),
    )
    schema = lk.Schema(dataset=EVIL, rows=60, unit=EVIL, columns=columns, names_are_right=True)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            EVIL: rng.random(60),
            "c": rng.choice([EVIL, "=1+1"], 60),
            "y": rng.choice(["a", EVIL], 60),
        }
    )
    out = tmp_path / "r"
    lk.distill(lk.read(rows, schema), lk.DPMERF(**TINY), 1.0, out=out, check=False)
    page = tmp_path / "page.html"
    page.write_text(make_report([lk.Release.load(out)]))
    assert EVIL not in page.read_text()
    json.loads((out / "croissant.json").read_text())
    head, body = (out / "README.md").read_text().split("\n---\n", 1)
    assert "<script" not in body and "&lt;script" in body
    assert json.loads(head.splitlines()[1].partition(": ")[2]).startswith(EVIL)
