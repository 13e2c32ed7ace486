"""Bad input at the command line: one clear line, exit code 2, nothing written, nothing charged.

And its counterpart: what rows contain never decides between success and error.
"""

from __future__ import annotations

import errno
import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jax.experimental.compilation_cache import compilation_cache
from PIL import Image as Picture
from typer.main import get_command

import limbeck as lk
from limbeck.cli import main as cli

SCHEMA = """\
dataset = "people"
rows = 200
confirmed = true

[lifetime]
epsilon = 1.5
delta = 1e-4

[[column]]
name = "age"
kind = "integer"
min = 0
max = 99

[[column]]
name = "town"
kind = "category"
values = ["Ulm", "Trier"]

[[column]]
name = "ill"
kind = "label"
values = ["no", "yes"]
"""

IMAGES = """\
dataset = "pictures"
rows = 200
confirmed = true

[[column]]
name = "image"
kind = "image"
height = 4
width = 4

[[column]]
name = "label"
kind = "label"
values = [0, 1]
"""

SETTINGS = "features = 20\nsteps = 2\nbatch = 8\nhidden = [4]\n"
RECIPE = f'method = "dp-merf"\n[settings]\n{SETTINGS}'
CSV = "age,town,ill\n" + "31,Ulm,no\n62,Trier,yes\n45,Ulm,no\n" * 5


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@dataclass
class Desk:
    """A data owner's folder: writes good files, each with one thing changed, and command lines."""

    folder: Path
    ledger: Path
    made: Path
    """A finished release, to be copied."""
    run: Callable[..., Outcome]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def schema(self, old: str = "", new: str = "", text: str = SCHEMA) -> Path:
        assert old in text
        return self.file("schema.toml", text.replace(old, new, 1) if old else text)

    def recipe(self, old: str = "", new: str = "") -> Path:
        assert old in RECIPE
        return self.file("recipe.toml", RECIPE.replace(old, new, 1) if old else RECIPE)

    def distill(
        self,
        *more: object,
        data: Path | None = None,
        schema: Path | None = None,
        recipe: Path | None = None,
        epsilon: object = 1,
        out: Path | None = None,
    ) -> list[str]:
        """A distill command line that would succeed but for what the caller changes."""
        words = [
            "distill",
            data or self.file("people.csv", CSV),
            "--schema",
            schema or self.schema(),
        ]
        words += ["--epsilon", epsilon, "--out", out or self.out]
        words += ["--recipe", recipe or self.recipe()] if "--method" not in more else []
        return [str(word) for word in (*words, *more)]

    def table(self, text: str, *, schema: Path | None = None) -> list[str]:
        return self.distill(data=self.file("people.csv", text), schema=schema)

    def declare(self, old: str, new: str) -> list[str]:
        return self.distill(schema=self.schema(old, new))

    def settle(self, old: str, new: str) -> list[str]:
        return self.distill(recipe=self.recipe(old, new))

    def images(self, data: Path, old: str = "", new: str = "") -> list[str]:
        return self.distill(data=data, schema=self.schema(old, new, IMAGES))

    def picture(self, name: str, size: tuple[int, int] = (4, 4)) -> Path:
        stream = io.BytesIO()
        Picture.new("L", size, 128).save(stream, "png")
        return self.file(name, stream.getvalue())

    def npz(self, **arrays: Any) -> Path:
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        return self.file("pictures.npz", stream.getvalue())

    def parquet(self, frame: pd.DataFrame | pa.Table) -> Path:
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
        path = self.folder / "people.parquet"
        pq.write_table(table, path)
        return path

    def release(self) -> Path:
        return Path(shutil.copytree(self.made, self.folder / "release"))

    def sample(self, out: str = "more.csv", rows: tuple[str, ...] = ("--rows", "3")) -> list[str]:
        return ["sample", str(self.made), *rows, "--out", out]

    def forge(self, change: Callable[[dict[str, Any]], object]) -> list[str]:
        """A release whose certificate was changed and whose sums were put right again."""
        folder = self.release()
        certificate = json.loads((folder / "certificate.json").read_text())
        change(certificate)
        (folder / "certificate.json").write_text(json.dumps(certificate))
        mend_sums(folder)
        return ["verify", str(folder)]

    def accounts(self) -> list[dict[str, Any]]:
        found = self.run(["ledger", "--json"])
        assert found.code == 0, found.err
        return list(json.loads(found.out))


def mend_sums(folder: Path) -> None:
    sums = folder / "SHA256SUMS"
    names = [line.split("  ", 1)[1] for line in sums.read_text().splitlines()]
    digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names]
    sums.write_text("".join(f"{d}  {n}\n" for d, n in zip(digests, names, strict=True)))


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden files too."""
    found = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in found}


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All these tiny runs are alike: what XLA compiled for one, the others find on disk."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            jax.config.update(name, value)
            patch.setenv(name.upper(), str(value))
        compilation_cache.reset_cache()
        yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, compiled_once: None) -> Path:
    """One release, made by the real command in a process of its own."""
    folder = tmp_path_factory.mktemp("made")
    desk = Desk(folder, folder / "ledger.sqlite", folder, run=lambda words: Outcome(0, "", ""))
    done = subprocess.run(
        [sys.executable, "-c", "from limbeck.cli.main import main; main()", *desk.distill()],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return desk.out


@pytest.fixture
def desk(
    tmp_path: Path,
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    ledger = tmp_path / "state" / "ledger.sqlite"

    def run(words: list[str], **environment: str) -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["limbeck", *words])
            patch.chdir(tmp_path / "desk")
            for name, value in ({"LIMBECK_LEDGER": str(ledger)} | environment).items():
                patch.setenv(name, value)
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                cli.main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, out, err)

    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk", ledger, made, run)


def check_refused(desk: Desk, words: list[str], wanted: tuple[str, ...]) -> str:
    """Run a bad command; returns its message once all that must hold of it does."""
    before, spent = contents(desk.folder), desk.accounts()
    got = desk.run(words, **desk.environment)
    assert got.code == 2, got
    assert got.err.startswith("limbeck: error: ") and "Traceback" not in got.err
    assert got.err.endswith("\n") and got.err.count("\n") == 1, got.err
    for word in wanted:
        assert word in got.err
    assert contents(desk.folder) == before
    assert desk.accounts() == spent
    assert not list(desk.ledger.parent.rglob("secret"))
    return got.err


# ---- files and their structure ------------------------------------------------------------------


def truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def idx(*shape: int) -> bytes:
    head = bytes([0, 0, 8, len(shape)]) + b"".join(s.to_bytes(4, "big") for s in shape)
    return head + bytes(int(np.prod(shape)))


def frame(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ages, towns = rng.integers(0, 99, rows), rng.choice(["Ulm", "Trier"], rows)
    return pd.DataFrame({"age": ages, "town": towns, "ill": "no"})


def damaged_parquet(desk: Desk) -> list[str]:
    """The footer is whole, so the file opens; its pages are not, so it cannot be read."""
    path = desk.parquet(frame())
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    return desk.distill(data=path)


def twice_in_parquet(desk: Desk) -> list[str]:
    columns = [pa.array([1]), pa.array(["Ulm"]), pa.array(["no"]), pa.array([2])]
    return desk.distill(data=desk.parquet(pa.table(columns, names=["age", "town", "ill", "age"])))


def array_as_npz(desk: Desk) -> list[str]:
    stream = io.BytesIO()
    np.save(stream, np.zeros((3, 4, 4)))
    return desk.images(desk.file("pictures.npz", stream.getvalue()))


def corrupt_npz(desk: Desk) -> list[str]:
    noise = np.random.default_rng(0).integers(0, 255, (99, 4, 4), np.uint8)
    path = desk.npz(images=noise)
    content = bytearray(path.read_bytes())
    content[200:900] = bytes(700)
    path.write_bytes(content)
    return desk.images(path)


def mixed_sizes(desk: Desk) -> list[str]:
    desk.picture("pictures/0/a.png")
    desk.picture("pictures/1/b.png", (5, 4))
    return desk.images(desk.folder / "pictures")


def bad_picture(desk: Desk) -> list[str]:
    desk.picture("pictures/0/a.png")
    desk.file("pictures/1/b.png", "no picture")
    return desk.images(desk.folder / "pictures")


def cut_picture(desk: Desk) -> list[str]:
    path = desk.picture("pictures/0/a.png", (4, 4))
    path.write_bytes(truncated(path.read_bytes()))
    return desk.images(desk.folder / "pictures")


def other_folders(desk: Desk) -> list[str]:
    desk.picture("pictures/cats/a.png")
    return desk.images(desk.folder / "pictures")


def empty_folder(desk: Desk) -> list[str]:
    (desk.folder / "nothing").mkdir()
    return desk.distill(data=desk.folder / "nothing")


ZEROS = np.zeros((3, 4, 4), np.uint8)
COLUMNS_4 = "age,town,ill,income\n1,Ulm,no,3\n"

Builder = Callable[[Desk], list[str]]
Case = tuple[str, Builder, tuple[str, ...]]

DATA: list[Case] = [
    ("no data file", lambda d: d.distill(data=d.folder / "none.csv"), ("No file", "none.csv")),
    ("folder of nothing", empty_folder, ("nothing", "neither Parquet", "images per class")),
    ("empty file", lambda d: d.table(""), ("people.csv is empty", "column names")),
    ("blank file", lambda d: d.table("\n\n"), ("people.csv is empty", "column names")),
    (
        "unknown kind of file",
        lambda d: d.distill(data=d.file("a.xlsx", "x")),
        ("a.xlsx", ".csv", ".parquet"),
    ),
    (
        "column lacks",
        lambda d: d.table("age,ill\n1,no\n"),
        ("no column 'town'", "It has: age, ill"),
    ),
    ("column extra", lambda d: d.table(COLUMNS_4), ("'income'", 'ignore = ["income"]')),
    (
        "column twice",
        lambda d: d.table("age,town,age,ill\n"),
        ("columns 1 and 3", "same name", "Rename"),
    ),
    ("column twice, parquet", twice_in_parquet, ("columns 1 and 4", "same name", "Rename")),
    ("endless header", lambda d: d.table("x" * 300_000 + CSV), ("people.csv", "column names")),
    ("binary csv", lambda d: d.table("\x00\x01\x1b[31m" * 90), ("people.csv", "no column 'age'")),
    (
        "cut csv.gz",
        lambda d: d.distill(data=d.file("p.csv.gz", truncated(gzip.compress(CSV.encode() * 999)))),
        ("Cannot read", "p.csv.gz"),
    ),
    (
        "corrupt csv.gz",
        lambda d: d.distill(data=d.file("p.csv.gz", gzip.compress(CSV.encode())[:12] + b"xxxxxxx")),
        ("Cannot read", "p.csv.gz"),
    ),
    (
        "cut parquet",
        lambda d: d.distill(data=d.file("p.parquet", truncated(d.parquet(frame()).read_bytes()))),
        ("p.parquet", "as Parquet"),
    ),
    ("damaged parquet", damaged_parquet, ("people.parquet", "as Parquet")),
    (
        "text as parquet",
        lambda d: d.distill(data=d.file("p.parquet", CSV)),
        ("p.parquet", "Parquet"),
    ),
    ("bad picture", bad_picture, ("Cannot read the image", "b.png")),
    ("cut picture", cut_picture, ("Cannot read the image", "a.png")),
    ("mixed sizes", mixed_sizes, ("b.png", "4x5", "4x4", "one size")),
    ("other folders", other_folders, ("pictures", "label value", "0, 1")),
    ("no images in npz", lambda d: d.images(d.npz(pixels=ZEROS)), ("pictures.npz", "`images`")),
    ("no labels in npz", lambda d: d.images(d.npz(images=ZEROS)), ("no labels", "pictures.npz")),
    (
        "npz of other shape",
        lambda d: d.images(d.npz(images=np.zeros((3, 5, 5)), labels=np.zeros(3))),
        ("(5, 5, 1)", "(4, 4, 1)", "pictures.npz"),
    ),
    (
        "npz with few labels",
        lambda d: d.images(d.npz(images=ZEROS, labels=np.zeros(2))),
        ("as many labels", "pictures.npz"),
    ),
    (
        "npz with a table of labels",
        lambda d: d.images(d.npz(images=ZEROS, labels=np.zeros((3, 2)))),
        ("labels", "2 axes", "pictures.npz"),
    ),
    (
        "npz of texts",
        lambda d: d.images(d.npz(images=np.full((3, 4, 4), "a"))),
        ("expected numbers", "pictures.npz"),
    ),
    (
        "npz of objects",
        lambda d: d.images(d.npz(images=np.asarray([{}, None]))),
        ("Cannot read", "pictures.npz"),
    ),
    (
        "cut npz",
        lambda d: d.images(d.file("a.npz", truncated(d.npz(images=ZEROS).read_bytes()))),
        ("a.npz", "as npz"),
    ),
    ("corrupt npz", corrupt_npz, ("pictures.npz", "as npz")),
    ("npy as npz", array_as_npz, ("pictures.npz", "as npz")),
    ("empty npz", lambda d: d.images(d.file("a.npz", "")), ("a.npz", "as npz")),
    (
        "cut idx",
        lambda d: d.images(d.file("images-idx3-ubyte", truncated(idx(9, 4, 4)))),
        ("images-idx3-ubyte", "cut short"),
    ),
    (
        "empty idx",
        lambda d: d.images(d.file("images-idx3-ubyte", "")),
        ("images-idx3-ubyte", "idx"),
    ),
    (
        "corrupt idx.gz",
        lambda d: d.images(
            d.file("images-idx3-ubyte.gz", gzip.compress(idx(9, 4, 4))[:12] + b"xxxxxxx")
        ),
        ("images-idx3-ubyte.gz", "as idx"),
    ),
    (
        "table, image schema",
        lambda d: d.images(d.file("people.csv", CSV)),
        ("people.csv is a table", "image"),
    ),
    (
        "images, table schema",
        lambda d: d.distill(data=d.npz(images=ZEROS)),
        ("pictures.npz holds images", "no image column"),
    ),
]

# ---- the schema ---------------------------------------------------------------------------------

TOWNS = 'values = ["Ulm", "Trier"]'
ILL = 'kind = "label"\nvalues = ["no", "yes"]'
TOWN_COLUMN = f'[[column]]\nname = "town"\nkind = "category"\n{TOWNS}\n'


SCHEMAS: list[Case] = [
    ("no schema", lambda d: d.distill(schema=d.folder / "no.toml"), ("no.toml", "limbeck schema")),
    ("folder as schema", lambda d: d.distill(schema=d.folder), ("Cannot read the schema",)),
    (
        "binary schema",
        lambda d: d.distill(schema=d.file("s.toml", b"\xff\xfe\x00")),
        ("Cannot read the schema", "s.toml"),
    ),
    ("not TOML", lambda d: d.declare("rows = 200", "rows is 200"), ("not valid TOML", "line 2")),
    ("unknown key", lambda d: d.declare("rows = 200", "row = 200"), ("'row'", "Known:", "rows")),
    ("unknown kind", lambda d: d.declare('"integer"', '"int"'), ("line 11", "'int'", "integer")),
    (
        "kind of kind",
        lambda d: d.declare('"integer"', '["integer"]'),
        ("line 11", "kind", "integer"),
    ),
    ("no kind", lambda d: d.declare('kind = "integer"\n', ""), ("'age'", "kind", "integer")),
    ("no name", lambda d: d.declare('name = "age"\n', ""), ("[[column]]", 'name = "..."')),
    (
        "columns as numbers",
        lambda d: d.distill(
            schema=d.file(
                "schema.toml", 'dataset = "a"\nrows = 9\nconfirmed = true\ncolumn = [1, 2]\n'
            )
        ),
        ("[[column]]",),
    ),
    (
        "unknown column key",
        lambda d: d.declare("max = 99", "maximum = 99"),
        ("line 13", "'age'", "'maximum'", "min, missing"),
    ),
    ("no bound", lambda d: d.declare("max = 99\n", ""), ("'age'", "`max`", "fill in")),
    ("unfilled bound", lambda d: d.declare("max = 99", 'max = "?"'), ("line 13", "'age'", "`max`")),
    (
        "unfilled values",
        lambda d: d.declare(TOWNS, 'values = "?"'),
        ("line 18", "'town'", "`values`"),
    ),
    ("no values", lambda d: d.declare(TOWNS, "values = []"), ("line 18", "'town'", "at least one")),
    ("value twice", lambda d: d.declare('"Trier"', '"Ulm"'), ("'town'", "twice")),
    ("bound is text", lambda d: d.declare("max = 99", 'max = "99"'), ("line 13", "number", "'99'")),
    (
        "unconfirmed",
        lambda d: d.declare("= true", "= false"),
        ("line 3", "draft", "confirmed = true"),
    ),
    (
        "no data set",
        lambda d: d.declare('dataset = "people"\n', ""),
        ("name the data set", "ledger"),
    ),
    ("unfilled name", lambda d: d.declare('"people"', '"?"'), ("line 1", "name the data set")),
    ("blank name", lambda d: d.declare('"people"', '" "'), ("name the data set",)),
    (
        "min > max",
        lambda d: d.declare("min = 0", "min = 100"),
        ("'age'", "min <= max", "100", "99"),
    ),
    (
        "outside missing",
        lambda d: d.declare("max = 99", 'max = 99\noutside = "missing"'),
        ("'age'", "`missing = true`"),
    ),
    (
        "outside elsewhere",
        lambda d: d.declare(TOWNS, f'{TOWNS}\noutside = "Bonn"'),
        ("'town'", '"Bonn"', "declared values"),
    ),
    (
        "missing is text",
        lambda d: d.declare(TOWNS, f'{TOWNS}\nmissing = "no"'),
        ("'town'", "true or false", "'no'"),
    ),
    ("label missing", lambda d: d.declare(ILL, f"{ILL}\nmissing = true"), ("'ill'", "'missing'")),
    (
        "label estimated",
        lambda d: d.declare(ILL, 'kind = "label"\nvalues = "estimate"'),
        ("'ill'", "must be declared"),
    ),
    ("two labels", lambda d: d.declare('"category"', '"label"'), ("one column", "label", "'town'")),
    (
        "only a label",
        lambda d: d.distill(
            schema=d.file(
                "schema.toml",
                f'dataset = "a"\nrows = 9\nconfirmed = true\n[[column]]\nname = "ill"\n{ILL}\n',
            )
        ),
        ("no column besides the label",),
    ),
    ("declared twice", lambda d: d.declare('"town"', '"age"'), ("'age'", "declared twice")),
    ("no rows", lambda d: d.declare("rows = 200\n", ""), ("rows = 10000", '"measure"')),
    ("rows is text", lambda d: d.declare("rows = 200", 'rows = "many"'), ("line 2", '"measure"')),
    ("zero rows", lambda d: d.declare("rows = 200", "rows = 0"), ("line 2", "rows = 10000")),
    (
        "no outer range",
        lambda d: d.declare("min = 0\nmax = 99", 'min = "estimate"\nmax = "estimate"'),
        ("'age'", "outer = [lowest, highest]"),
    ),
    (
        "outer is a number",
        lambda d: d.declare("min = 0\nmax = 99", 'min = "estimate"\nmax = "estimate"\nouter = 5'),
        ("'age'", "outer = [lowest, highest]", "5"),
    ),
    (
        "ignore is text",
        lambda d: d.declare("rows", 'ignore = "id"\nrows'),
        ("ignore", '["', "'id'"),
    ),
    (
        "unit is a number",
        lambda d: d.declare("rows", "unit = 3\nrows"),
        ("unit", "3", "one patient"),
    ),
    (
        "share is text",
        lambda d: d.declare("rows", 'estimate_share = "a"\nrows'),
        ("estimate_share", "'a'"),
    ),
    (
        "lifetime epsilon",
        lambda d: d.declare("epsilon = 1.5", "epsilon = 0"),
        ("[lifetime]", "0 < delta"),
    ),
    (
        "lifetime text",
        lambda d: d.declare("epsilon = 1.5", 'epsilon = "1"'),
        ("[lifetime]", "0 < delta", "'1'"),
    ),
    (
        "lifetime key",
        lambda d: d.declare("epsilon = 1.5", "eps = 1.5"),
        ("[lifetime]", "'eps'", "epsilon"),
    ),
    (
        "lifetime filter",
        lambda d: d.declare("delta = 1e-4", 'filter = "x"'),
        ("[lifetime]", '"x"', "gdp"),
    ),
    (
        "lifetime is a number",
        lambda d: d.distill(
            schema=d.schema("[lifetime]\nepsilon = 1.5\ndelta = 1e-4\n", "lifetime = 3\n")
        ),
        ("[lifetime]", "3"),
    ),
    (
        "image of no size",
        lambda d: d.images(d.npz(images=ZEROS), "height = 4", "height = 0"),
        ("'image'", "positive"),
    ),
    (
        "image of text size",
        lambda d: d.images(d.npz(images=ZEROS), "height = 4", 'height = "4"'),
        ("'image'", "height", "'4'"),
    ),
    (
        "two channels",
        lambda d: d.images(d.npz(images=ZEROS), "width = 4", "width = 4\nchannels = 2"),
        ("'image'", "1 or 3 channels", "2"),
    ),
    (
        "image and table",
        lambda d: d.images(d.npz(images=ZEROS), "[[column]]", f"{TOWN_COLUMN}[[column]]"),
        ("one image column",),
    ),
]

# ---- budget, method, recipe ---------------------------------------------------------------------

SETUP: list[Case] = [
    ("epsilon 0", lambda d: d.distill(epsilon=0), ("epsilon", "got 0")),
    ("epsilon negative", lambda d: d.distill(epsilon=-1), ("epsilon", "got -1")),
    ("epsilon nan", lambda d: d.distill(epsilon="nan"), ("epsilon", "nan")),
    ("epsilon text", lambda d: d.distill(epsilon="one"), ("--epsilon", "'one'", "--help")),
    ("epsilon inf", lambda d: d.distill(epsilon="inf"), ("infinity", "--non-private")),
    ("epsilon huge", lambda d: d.distill(epsilon=1e6), ("epsilon",)),
    ("delta 1", lambda d: d.distill("--delta", 1), ("0 < delta < 1", "got 1")),
    ("delta 0", lambda d: d.distill("--delta", 0), ("0 < delta < 1", "got 0")),
    ("delta large", lambda d: d.distill("--delta", 0.01), ("1/rows = 0.005", "200", "got 0.01")),
    ("unknown method", lambda d: d.distill("--method", "gan"), ("'gan'", "Known: marginals")),
    ("seed text", lambda d: d.distill("--seed", "x"), ("--seed", "'x'")),
    ("no recipe", lambda d: d.distill(recipe=d.folder / "no.toml"), ("recipe", "no.toml")),
    (
        "recipe not TOML",
        lambda d: d.settle("features = 20", "features 20"),
        ("not valid TOML", "line 3"),
    ),
    (
        "recipe key",
        lambda d: d.settle("method", "color = 1\nmethod"),
        ("'color'", "Known:", "settings"),
    ),
    ("recipe nameless", lambda d: d.settle('method = "dp-merf"\n', ""), ("names no method",)),
    (
        "recipe of method",
        lambda d: d.settle('"dp-merf"', '["a"]'),
        ("recipe.toml", "method", "dp-merf"),
    ),
    ("recipe of unknown", lambda d: d.settle('"dp-merf"', '"gan"'), ("'gan'", "dp-merf")),
    (
        "recipe unpaid",
        lambda d: d.settle('method = "dp-merf"\n', 'method = "dp-merf"\nunpaid = true\n'),
        ("recipe.toml", "unpaid", "True"),
    ),
    (
        "recipe rows",
        lambda d: d.settle("[settings]", "rows = 0\n[settings]"),
        ("rows > 0", "got 0"),
    ),
    (
        "recipe adjacency",
        lambda d: d.settle("[settings]", 'adjacency = "next"\n[settings]'),
        ("'next'", "add-remove", "replace-one"),
    ),
    (
        "recipe settings",
        lambda d: d.settle(f"[settings]\n{SETTINGS}", "settings = 3\n"),
        ("recipe.toml", "[settings]"),
    ),
    ("setting unknown", lambda d: d.settle("batch", "bath"), ("'bath'", "dp-merf", "batch")),
    (
        "setting zero",
        lambda d: d.settle("features = 20", "features = 0"),
        ("features > 0", "got 0"),
    ),
    (
        "setting odd",
        lambda d: d.settle("features = 20", "features = 21"),
        ("features", "got 21"),
    ),
    (
        "setting text",
        lambda d: d.settle("features = 20", 'features = "a"'),
        ("features", "whole number", "'a'"),
    ),
    (
        "setting broken",
        lambda d: d.settle("steps = 2", "steps = 2.5"),
        ("steps", "whole number", "2.5"),
    ),
    (
        "setting truth",
        lambda d: d.settle("steps = 2", "steps = true"),
        ("steps", "whole number", "True"),
    ),
    ("setting single", lambda d: d.settle("[4]", "4"), ("hidden", "[200, 200]", "4")),
    ("setting list", lambda d: d.settle("[4]", '["4"]'), ("hidden", "'4'")),
    ("setting empty", lambda d: d.settle("[4]", "[]"), ("hidden",)),
    (
        "setting negative",
        lambda d: d.settle("[4]", "[4]\nlength_scales = [-1.0]"),
        ("length_scales", "-1"),
    ),
    (
        "setting nan",
        lambda d: d.settle("[4]", "[4]\nnumber_weight = nan"),
        ("number_weight", "nan"),
    ),
    (
        "method and recipe",
        lambda d: [*d.distill(recipe=d.recipe()), "--method", "dp-hp"],
        ("--method dp-hp", "dp-merf", "contradicts"),
    ),
]

# ---- places to write, the ledger ----------------------------------------------------------------


def filled_folder(desk: Desk) -> Path:
    desk.file("out/diary.txt", "dear diary")
    return desk.out


def summed_folder(desk: Desk) -> Path:
    """Many folders that are no release have a file of this name."""
    desk.file("out/SHA256SUMS", "0  diary.txt\n")
    return filled_folder(desk)


def spend(desk: Desk) -> None:
    done = desk.run(desk.distill(out=desk.folder / "first"))
    assert done.code == 0, done.err


def overspend(desk: Desk) -> list[str]:
    spend(desk)
    return desk.distill(epsilon=1.4)


def contradict(desk: Desk) -> list[str]:
    spend(desk)
    return desk.declare("epsilon = 1.5", "epsilon = 20")


def at_ledger(make: Callable[[Desk], Path], words: Builder = Desk.distill) -> Builder:
    def build(desk: Desk) -> list[str]:
        desk.environment["LIMBECK_LEDGER"] = str(make(desk))
        return words(desk)

    return build


def other_database(desk: Desk) -> Path:
    path = desk.folder.parent / "elsewhere" / "other.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE datasets (title TEXT)")
    database.close()
    return path


def known_set(*more: str) -> Builder:
    def build(desk: Desk) -> list[str]:
        spend(desk)
        return ["ledger", "--set", "people", *more]

    return build


LEDGER = "Nothing can be spent without it"

PLACES: list[Case] = [
    ("out exists", lambda d: d.distill(out=filled_folder(d)), ("out exists", "--force")),
    ("out is a file", lambda d: d.distill(out=d.file("out", "")), ("out exists", "--force")),
    (
        "force on a folder",
        lambda d: d.distill("--force", out=filled_folder(d)),
        ("not a release", "not replaced"),
    ),
    (
        "force on sums",
        lambda d: d.distill("--force", out=summed_folder(d)),
        ("not a release", "not replaced"),
    ),
    (
        "force on a file",
        lambda d: d.distill("--force", out=d.file("out", "")),
        ("not a release", "not replaced"),
    ),
    (
        "out below a file",
        lambda d: d.distill(out=d.file("notes.txt", "") / "out"),
        ("Cannot write to", "notes.txt", "not a folder"),
    ),
    (
        "out deep below a file",
        lambda d: d.distill(out=d.file("notes.txt", "") / "deep" / "out"),
        ("Cannot write to", "notes.txt", "not a folder"),
    ),
    ("out in /proc", lambda d: d.distill(out=Path("/proc/none/out")), ("Cannot write to", "/proc")),
    (
        "budget spent",
        overspend,
        ("Budget spent", "'people'", "1.5", "is spent", "smaller epsilon"),
    ),
    (
        "lifetime contradicts",
        contradict,
        ("[lifetime]", "epsilon 20", "epsilon 1.5", "limbeck ledger --set people"),
    ),
    (
        "ledger is a folder",
        at_ledger(lambda d: d.folder),
        ("Cannot open the ledger", LEDGER, "LIMBECK_LEDGER"),
    ),
    (
        "ledger is a text",
        at_ledger(lambda d: d.file("ledger.txt", "dear diary\n" * 99)),
        ("Cannot open the ledger", "ledger.txt", LEDGER, "LIMBECK_LEDGER"),
    ),
    (
        "ledger below a file",
        at_ledger(lambda d: d.file("notes.txt", "") / "ledger.sqlite"),
        ("Cannot open the ledger", "notes.txt", "LIMBECK_LEDGER"),
    ),
    ("ledger of others", at_ledger(other_database), ("ledger", "LIMBECK_LEDGER")),
    (
        "ledger of others, shown",
        at_ledger(other_database, lambda d: ["ledger"]),
        ("ledger", "LIMBECK_LEDGER"),
    ),
    (
        "set of nobody",
        lambda d: ["ledger", "--set", "nobody", "--epsilon", "1", "--delta", "1e-5"],
        ("no data set 'nobody'",),
    ),
    ("set to nothing", known_set(), ("--set", "--epsilon and --delta")),
    ("set without delta", known_set("--epsilon", "2"), ("--set", "--epsilon and --delta")),
    ("set below 0", known_set("--epsilon", "-2", "--delta", "0.1"), ("epsilon", "got -2")),
    (
        "set by a filter",
        known_set("--epsilon", "2", "--delta", "0.1", "--filter", "x"),
        ("filter", '"x"', "gdp"),
    ),
    ("ledger of a verb", lambda d: ["ledger", "chek"], ("chek", "limbeck ledger check")),
    ("noted for nothing", lambda d: ["ledger", "--noted", "0a"], ("--noted", "check")),
    (
        "noted wrongly",
        lambda d: ["ledger", "check", "--noted", "0a"],
        ("noted digest", "removed", "backup"),
    ),
    ("lifetime of nobody", lambda d: ["ledger", "--epsilon", "5"], ("--set",)),
]

# ---- releases that are to be verified -----------------------------------------------------------


def verify_changed(desk: Desk) -> list[str]:
    folder = desk.release()
    with open(folder / "data.csv", "a") as file:
        file.write("1,Ulm,no\n")
    return ["verify", str(folder)]


def verify_extra(desk: Desk) -> list[str]:
    desk.release()
    desk.file("release/notes.txt", "")
    return ["verify", str(desk.folder / "release")]


def verify_lacking(desk: Desk) -> list[str]:
    folder = desk.release()
    (folder / "data.parquet").unlink()
    return ["verify", str(folder)]


def verify_schema(desk: Desk) -> list[str]:
    folder = desk.release()
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace("max = 99", "max = 98"))
    mend_sums(folder)
    return ["verify", str(folder)]


def verify_text(text: str) -> Builder:
    def build(desk: Desk) -> list[str]:
        folder = desk.release()
        (folder / "certificate.json").write_text(text)
        mend_sums(folder)
        return ["verify", str(folder)]

    return build


def forged(*road: str | int, to: Any) -> Builder:
    """The certificate with one figure replaced, or (None) left out."""

    def change(certificate: dict[str, Any]) -> None:
        at: Any = certificate
        for step in road[:-1]:
            at = at[step]
        if to is None:
            del at[road[-1]]
        else:
            at[road[-1]] = to

    return lambda desk: desk.forge(change)


CERTIFICATE = "certificate"

RELEASES: list[Case] = [
    ("verify nothing", lambda d: ["verify", "nothing"], ("nothing", "not a release", "SHA256SUMS")),
    ("verify a file", lambda d: ["verify", str(d.file("a.txt", ""))], ("a.txt", "not a release")),
    ("verify a folder", lambda d: ["verify", str(d.folder)], ("not a release", "SHA256SUMS")),
    ("changed data", verify_changed, ("data.csv", "was changed")),
    ("extra file", verify_extra, ("notes.txt", "does not list")),
    ("lacking file", verify_lacking, ("lacks data.parquet", "SHA256SUMS")),
    ("forged schema", verify_schema, ("schema.toml", CERTIFICATE)),
    ("forged claim", forged("guarantee", "epsilon", to=0.5), ("cost epsilon", "0.5 claimed")),
    (
        "forged epsilon",
        forged("accounting", "epsilon", to=0.5),
        ("epsilon = 0.5", "its charges give"),
    ),
    ("forged delta", forged("guarantee", "delta", to=1e-9), (CERTIFICATE, "its charges give")),
    (
        "forged noise",
        forged("charges", 1, "noise_multiplier", to=99.0),
        (CERTIFICATE, "its charges give"),
    ),
    ("forged silence", forged("charges", 1, "noise_multiplier", to=0.0), (CERTIFICATE,)),
    ("forged sign", forged("charges", 1, "noise_multiplier", to=-2.0), (CERTIFICATE,)),
    ("forged kind", forged("charges", 1, "noise_multiplier", to="a"), (CERTIFICATE, "a number")),
    ("forged steps", forged("charges", 1, "steps", to=-1), (CERTIFICATE,)),
    ("forged mechanism", forged("charges", 1, "mechanism", to="magic"), (CERTIFICATE,)),
    ("forged charge", forged("charges", 1, "sensitivity", to=None), (CERTIFICATE, "sensitivity")),
    ("forged charges", forged("charges", to=[]), (CERTIFICATE,)),
    ("forged adjacency", forged("guarantee", "adjacency", to="x"), (CERTIFICATE, "'x'")),
    ("no stamp", forged("releasable", to=None), (CERTIFICATE, "releasable")),
    (
        "no reasons",
        forged("not_releasable_because", to=None),
        (CERTIFICATE, "not_releasable_because"),
    ),
    ("no word on data", forged("data", to=None), (CERTIFICATE, "data")),
    ("no unit", forged("guarantee", "unit_of_privacy", to=None), (CERTIFICATE, "unit_of_privacy")),
    ("no basis", forged("accounting", "basis", to=None), (CERTIFICATE, "basis")),
    ("other version", forged("version", to=99), (CERTIFICATE, "version 1")),
    ("empty certificate", verify_text(""), (CERTIFICATE,)),
    ("list as certificate", verify_text("[]"), (CERTIFICATE,)),
    ("number as certificate", verify_text("3"), (CERTIFICATE,)),
    (
        "words as certificate",
        verify_text("dear diary"),
        (CERTIFICATE,),
    ),
]

# ---- commands and options -----------------------------------------------------------------------

COMMANDS: list[Case] = [
    ("unknown command", lambda d: ["destill"], ("'destill'", "--help")),
    ("unknown option", lambda d: d.distill("--fast"), ("--fast", "--help")),
    ("no epsilon", lambda d: ["distill", "a.csv", "--schema", "s", "--out", "o"], ("--epsilon",)),
    ("no out", lambda d: ["distill", "a.csv", "--schema", "s", "--epsilon", "1"], ("--out",)),
    ("no arguments", lambda d: ["verify"], ("Missing", "--help")),
    ("unknown data", lambda d: ["data", "iris"], ("'iris'", "Known:", "adult")),
    ("unknown data, out", lambda d: ["data", "iris", "--out", "a"], ("'iris'", "Known:", "adult")),
    ("data nowhere", lambda d: ["data", "adult"], ("limbeck data adult --out adult/",)),
    (
        "data on data",
        lambda d: ["data", "adult", "--out", str(filled_folder(d))],
        ("out is not empty", "--force"),
    ),
    (
        "data on a file",
        lambda d: ["data", "adult", "--out", str(d.file("out", ""))],
        ("not a folder",),
    ),
    (
        "data below a file",
        lambda d: ["data", "adult", "--out", str(d.file("notes.txt", "") / "out")],
        ("Cannot write", "notes.txt"),
    ),
    ("draft of nothing", lambda d: ["schema", "none.csv"], ("No file", "none.csv")),
    ("draft of a text", lambda d: ["schema", str(d.file("a.doc", ""))], ("a.doc", ".csv")),
    (
        "draft of twice",
        lambda d: ["schema", str(d.file("a.csv", "a,a\n"))],
        ("columns 1 and 2", "same name"),
    ),
    (
        "plan of a draft",
        lambda d: ["plan", *d.declare("= true", "= false")[1:6]],
        ("draft", "confirmed = true"),
    ),
    (
        "plan of nothing",
        lambda d: ["plan", "none.csv", *d.distill()[2:6]],
        ("No file", "none.csv"),
    ),
    (
        "scores of nothing",
        lambda d: ["evaluate", "none", "--test", str(d.file("rows.csv", CSV))],
        ("none",),
    ),
    ("another set from nothing", lambda d: ["redistill", "none", "--out", "a"], ("none",)),
    ("rows from nothing", lambda d: ["sample", "none", "--rows", "3", "--out", "a.csv"], ("none",)),
    (
        "rows that cannot be",
        lambda d: [*d.sample(), "--where", "age>=40", "--where", "age<30"],
        ("No row can meet age>=40 and age<30.",),
    ),
    (
        "rows of no column",
        lambda d: [*d.sample(), "--where", "ward=A"],
        ("'ward'", "age, town, ill"),
    ),
    ("rows of no value", lambda d: [*d.sample(), "--where", "town=Rome"], ("'Rome'", "Ulm, Trier")),
    ("shares of no class", lambda d: [*d.sample(), "--classes", "yes"], ("VALUE=SHARE", "'yes'")),
    ("no number of rows", lambda d: d.sample(rows=()), ("how many rows",)),
    ("rows as a picture", lambda d: d.sample("rows.png"), (".csv or .parquet", "rows.png")),
    ("rows into a release", lambda d: d.sample(str(d.made / "a.csv")), ("is a release",)),
    ("a page about nothing", lambda d: ["report", "none"], ("none",)),
    ("an unknown method", lambda d: ["methods", "magic"], ("'magic'", "Known: marginals")),
    ("recipes of nothing", lambda d: ["methods", "magic", "--recipes"], ("'magic'", "recipe")),
    ("an unknown table", lambda d: ["reproduce", "a-table"], ("'a-table'",)),
]

CASES = [*DATA, *SCHEMAS, *SETUP, *PLACES, *RELEASES, *COMMANDS]


@pytest.mark.parametrize(
    ("build", "words"), [pytest.param(build, words, id=name) for name, build, words in CASES]
)
def test_refused(desk: Desk, build: Builder, words: tuple[str, ...]) -> None:
    message = check_refused(desk, build(desk), words)
    if "LIMBECK_MESSAGES" in os.environ:  # to read them all as a data owner would
        with open(os.environ["LIMBECK_MESSAGES"], "a") as file:
            file.write(message)


def test_every_command_is_refused_something(desk: Desk) -> None:
    """No command is without a bad use of it in the table, and no case is without words to find."""
    assert len({name for name, _, _ in CASES}) == len(CASES)
    assert [name for name, _, words in CASES if not any(words)] == []
    tried = set()
    for number, (_, build, _) in enumerate(CASES):
        folder, ledger = desk.folder / f"{number}/desk", desk.folder / f"{number}/ledger.sqlite"
        folder.mkdir(parents=True)
        run = functools.partial(desk.run, LIMBECK_LEDGER=str(ledger))
        own = replace(desk, folder=folder, ledger=ledger, run=run, environment={})
        tried.add(build(own)[0])
    assert set(get_command(cli.app).commands) - {"demo"} <= tried  # type: ignore[attr-defined]


def test_no_command_shows_help(desk: Desk) -> None:
    got = desk.run([])
    assert (got.code, got.err) == (2, "")
    assert "distill" in got.out


def test_same_job_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the job's lock, nothing is done and nothing is paid."""

    def taken(handle: int, how: int) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("fcntl.flock", taken)
    check_refused(desk, desk.distill(), ("same job", "already running", "Wait"))


def test_out_of_memory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise MemoryError

    monkeypatch.setattr("limbeck.data.csv_files.raw_columns", full)
    check_refused(desk, desk.distill(), ("Out of memory", "fewer features"))


def test_lifetime_set_keeps_its_filter(desk: Desk) -> None:
    filtered = desk.schema("delta = 1e-4", 'delta = 1e-4\nfilter = "sum"')
    assert desk.run(desk.distill(schema=filtered)).code == 0
    assert desk.run(["ledger", "--set", "people", "--epsilon", "3", "--delta", "0.001"]).code == 0
    assert desk.accounts()[0]["lifetime"] == {"epsilon": 3, "delta": 0.001, "filter": "sum"}


def test_names_are_no_markup(desk: Desk) -> None:
    """What the owner writes is printed as it is, not taken for the printer's own signs."""
    words = desk.distill(
        schema=desk.schema('"people"', '"[/red] people"\nunit = "one [/bold] row"'),
        out=desk.folder / "out[a]",
    )
    got = desk.run(words)
    assert got.code == 0 and "out[a]" in got.out and "one [/bold] row" in got.out
    assert "[/red] people" in desk.run(["ledger"]).out
    assert "one [/bold] row" in desk.run(["verify", str(desk.folder / "out[a]")]).out


def planning(words: list[str]) -> list[str]:
    """The same as a plan, which writes nothing."""
    at = words.index("--out")
    return ["plan", *words[1:at], *words[at + 2 :]]


def test_plan_says_that_distill_would_refuse(desk: Desk) -> None:
    words = planning(overspend(desk))
    told, facts = (desk.run([*words, *more]) for more in ((), ("--json",)))
    assert (told.code, facts.code) == (0, 0), told.err + facts.err
    why = json.loads(facts.out)["refused_because"]
    assert "Budget spent" in why and f"`distill` would refuse this run: {why}" in told.out


def test_a_plan_within_the_budget_is_not_refused(desk: Desk) -> None:
    words = planning(desk.distill())
    assert "refuse" not in desk.run(words).out
    assert json.loads(desk.run([*words, "--json"]).out)["refused_because"] is None


def test_a_large_delta_is_warned_of(desk: Desk) -> None:
    words = planning(desk.distill("--delta", "6e-4"))
    done = command(desk, words)
    out, err = done.communicate(timeout=240)
    assert done.returncode == 0 and "Together" in out
    assert err.startswith("limbeck: warning: delta 0.0006 is large") and err.count("\n") == 1


def test_the_ledger_is_checked(desk: Desk) -> None:
    spend(desk)
    whole = desk.run(["ledger", "check"])
    assert whole.code == 0 and "none was edited" in whole.out
    seal = json.loads(desk.run(["ledger", "check", "--json"]).out)
    assert seal["digest"] in whole.out
    assert desk.run(["ledger", "check", "--noted", seal["digest"]]).code == 0
    with sqlite3.connect(desk.ledger) as database:
        database.execute("DROP TRIGGER entries_stay")
        database.execute(
            "UPDATE entries SET content = replace(content, 'dp-', 'dq-') WHERE number = 2"
        )
    check_refused(desk, ["ledger", "check"], ("was edited", "entry 2", "'people'", "backup"))


@pytest.mark.parametrize("words", [["--help"], ["ledger"], ["ledger", "--json"]], ids=" ".join)
@pytest.mark.parametrize("stdout", ["closed", "read by nobody"])
def test_nobody_listens(desk: Desk, words: list[str], stdout: str) -> None:
    spend(desk)
    given, wanted = os.pipe()
    os.close(given)
    shell = ["sh", "-c", 'exec "$@" >&-' if stdout == "closed" else 'exec "$@"', "sh"]
    done = subprocess.run(
        [*shell, sys.executable, "-c", "from limbeck.cli.main import main; main()", *words],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        stdout=wanted,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(wanted)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_paid_run_goes_on_when_nobody_listens(desk: Desk) -> None:
    child = command(desk, desk.distill())
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    assert (child.wait(timeout=240), child.stderr.read()) == (0, "")
    child.stderr.close()
    assert desk.run(["verify", str(desk.out)]).code == 0


# ---- interruption, full disks -------------------------------------------------------------------


def command(desk: Desk, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from limbeck.cli.main import main; main()", *words],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_interrupted_then_resumed(desk: Desk) -> None:
    words = desk.distill(recipe=desk.recipe("steps = 2", "steps = 10000000"))
    before = contents(desk.folder)
    child = command(desk, words)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if "mean embedding: done" in line:
                break
        time.sleep(0.5)  # into the fitting of the generator
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=240)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert err.startswith("limbeck: error: Interrupted") and err.count("\n") == 1
    assert "same command resumes" in err
    assert contents(desk.folder) == before
    first = desk.accounts()
    assert [run["state"] for run in first[0]["runs"]] == ["interrupted, resumable"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "limbeck.ledger.identity.origin", lambda kind: {"name": "limbeck", "version": "99.1"}
        )
        refused = desk.run(words)
        assert refused.code == 2 and refused.err.count("\n") == 1, refused.err
        for word in ("limbeck 99.1", "--pay-again", "plan "):
            assert word in refused.err
    # Settings are part of a job's identity, so the rest of the very same run is made short.
    resume_short(desk, words)
    last = desk.accounts()
    assert [run["state"] for run in last[0]["runs"]] == ["done"]
    assert last[0]["spent"] == first[0]["spent"]
    assert desk.run(["verify", str(desk.out)]).code == 0
    assert not list(desk.ledger.parent.rglob("secret"))


def resume_short(desk: Desk, words: list[str]) -> None:
    import limbeck.methods.mean_embedding.embedding as embedding

    fit = embedding.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "fit", lambda *a, **k: fit(*a, **(k | {"steps": 2})))
        done = desk.run(words)
    assert done.code == 0, done.err


@pytest.fixture
def small_disk(desk: Desk) -> Iterator[Path]:
    """A disk of 16 kB, in memory; only root may have one."""
    place = desk.folder / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "limbeck", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("cannot mount a small disk here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_full_disk(desk: Desk, small_disk: Path) -> None:
    """The charge is booked by then, but it pays for the same command on a larger disk."""
    got = desk.run(desk.distill(out=small_disk / "out"))
    assert got.code == 2 and got.err.count("\n") == 1, got.err
    for word in ("Cannot write the release", "disk/out", "No space left", "costs nothing more"):
        assert word in got.err
    assert list(small_disk.iterdir()) == []
    first = desk.accounts()
    assert desk.run(desk.distill()).code == 0
    last = desk.accounts()
    assert last[0]["spent"] == first[0]["spent"] and len(last[0]["runs"]) == 1


@pytest.mark.parametrize("name", ["save_table", "_write_text"])
def test_failing_writes(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = contents(desk.folder) | {"people.csv": CSV.encode(), "recipe.toml": RECIPE.encode()}
    before["schema.toml"] = SCHEMA.encode()
    with monkeypatch.context() as patch:
        patch.setattr(f"limbeck.release.write.{name}", fail)
        got = desk.run(desk.distill())
    assert got.code == 2 and "Input/output error" in got.err and got.err.count("\n") == 1
    assert contents(desk.folder) == before
    assert desk.run(desk.distill()).code == 0
    assert len(desk.accounts()[0]["runs"]) == 1


# ---- rows never decide between success and error ------------------------------------------------

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
