"""A data owner's desk: good files and command lines, in which a test changes one thing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as Picture

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

TOWNS = 'values = ["Ulm", "Trier"]'
ZEROS = np.zeros((3, 4, 4), np.uint8)


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


def filled_folder(desk: Desk) -> Path:
    desk.file("out/diary.txt", "dear diary")
    return desk.out


def spend(desk: Desk) -> None:
    done = desk.run(desk.distill(out=desk.folder / "first"))
    assert done.code == 0, done.err


def overspend(desk: Desk) -> list[str]:
    spend(desk)
    return desk.distill(epsilon=1.4)


def planning(words: list[str]) -> list[str]:
    """The same as a plan, which writes nothing."""
    at = words.index("--out")
    return ["plan", *words[1:at], *words[at + 2 :]]


def command(desk: Desk, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from limbeck.cli.main import main; main()", *words],
        env=os.environ | {"LIMBECK_LEDGER": str(desk.ledger)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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


Builder = Callable[[Desk], list[str]]
Case = tuple[str, Builder, tuple[str, ...]]
"""What is wrong, a command line that says it, and words that the refusal must have."""
