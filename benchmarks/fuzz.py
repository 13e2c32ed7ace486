"""Hostile input: bytes and texts that somebody else chose, for everything that reads.

    python benchmarks/fuzz.py                 go on where it broke off, then benchmarks/fuzz.md
    python benchmarks/fuzz.py --cases 1000    another number of cases of each target

A case is a seed file that is damaged (bytes flipped, cut, doubled, moved, numbers made huge) or a text
put together from hostile pieces, and is a function of its number alone: a failure can be had again by
`--target NAME --only NUMBER`. A target may answer, or refuse with a `LimbeckError` of one line. Wrong are: any
other exception, more than five seconds of the processor, and a gigabyte of memory. Cases run in batches, in forked
children, so that even a crash of the interpreter is seen and counted.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "fuzz.json"
PAGE = HERE / "fuzz.md"
sys.path.insert(0, str(HERE.parent / "tests"))

import helpers  # noqa: E402

import limbeck as lk  # noqa: E402
from limbeck.run.recipe import Recipe  # noqa: E402

BATCH = 250
SECONDS = 5.0
"""Of processor time that a case may take."""
MEMORY = 1 << 30
"""Bytes that a case may take beyond what the process has already."""
WORDS = [
    "\x00", "\ufeff", "\u202e", "\U0001f4a9", "e\u0301", "\x1b[31m", "'; DROP TABLE x; --", "<script>alert(1)</script>",
    "=1+1", "@SUM(A1)", "+1", "-1", "../../etc/passwd", "/etc/passwd", "C:\\x", "%s%n", "{0.__class__}", "nan", "inf",
    "-inf", "1e999", "-1e999", "1" * 400, "9" * 19, "-0", "0x10", "1_000", "true", "null", "none", "NaN", "[]", "{}", "\r", "\n", "\t",
    '"', "'", ",", ";", "a" * 5000, "\ud7ff", "2000-13-45", "0000-00-00", "9999-12-31T23:59:60Z", "P1000000Y", "::", "[person]",
]  # fmt: skip
"""Pieces that once broke some program."""


# ---- making cases ----------------------------------------------------------------------------


def damaged(rng: random.Random, content: bytes) -> bytes:
    """A file with a few wounds."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1) if data else 0
        way = rng.randrange(9)
        if way == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif way == 1 and data:
            data[min(at, len(data) - 1)] = rng.choice((0, 255, 127, 128, 10, 13, 34, 44))
        elif way == 2:
            del data[at:]
        elif way == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 20)))
        elif way == 4:
            end = min(len(data), at + rng.randrange(1, 60))
            data[at:at] = data[at:end]
        elif way == 5:
            del data[at : at + rng.randrange(1, 40)]
        elif way == 6:
            data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)))
        elif way == 7:
            data[at:at] = rng.choice(WORDS).encode("utf-8", "surrogatepass")
        else:
            other = rng.randrange(len(data) + 1)
            data[at : at + 10] = data[other : other + 10]
    return bytes(data)


def reworded(rng: random.Random, text: str) -> bytes:
    """A text of which values, keys and lines are exchanged, lost, or made hostile."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        way = rng.randrange(6)
        key, sep, _ = lines[at].partition("=")
        if way == 0:
            value = rng.choice(
                ("-1", "1e400", "nan", "inf", "0", "[]", "{}", '""', "true", "99999999999999999999",
                 "[1, 'a']", "{ a = 1 }", "1979-05-27", json.dumps(rng.choice(WORDS)))
            )  # fmt: skip
            lines[at] = f"{key}{sep or '='} {value}"
        elif way == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif way == 2 and len(lines) > 1:
            del lines[at]
        elif way == 3:
            lines[at] = lines[at] + rng.choice(WORDS)
        elif way == 4:
            lines.insert(at, f"{json.dumps(rng.choice(WORDS))} = 1")
        else:
            lines[at] = rng.choice(WORDS)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def rejsoned(rng: random.Random, whole: Any) -> Any:
    """JSON of which some places hold something else."""
    whole = json.loads(json.dumps(whole))
    for _ in range(rng.choice((1, 1, 2, 5))):
        place, last = whole, None
        holder: Any = None
        for _ in range(rng.randrange(1, 7)):
            if isinstance(place, dict) and place:
                holder, last = place, rng.choice(list(place))
            elif isinstance(place, list) and place:
                holder, last = place, rng.randrange(len(place))
            else:
                break
            place = holder[last]
        if holder is None:
            continue
        if rng.random() < 0.2 and isinstance(holder, dict):
            del holder[last]
        else:
            holder[last] = rng.choice(
                (None, -1, 0, 1e308, 1e-320, 10**30, True, "", "infinity", [], {}, [[]], {"a": {}},
                 rng.choice(WORDS), float("nan"), float("inf"), place)
            )  # fmt: skip
    return whole


# ---- targets ---------------------------------------------------------------------------------


@dataclass
class World:
    """What all cases share: a folder, a schema, files that are whole, a release."""

    folder: Path
    schema: lk.Schema
    pictured: lk.Schema
    files: dict[str, bytes]
    release: Path
    certificate: dict[str, Any]


def _read(world: World, name: str, content: bytes, schema: lk.Schema) -> None:
    path = world.folder / name
    path.write_bytes(content)
    lk.read(path, schema)._encoded()


def _table(rng: random.Random) -> bytes:
    """A CSV file put together from hostile cells."""
    delimiter = rng.choice((",", ";", "\t", "|"))
    names = ["age", "income", "town", "smoker", "seen", "ill"]
    lines = [delimiter.join(names)]
    for _ in range(rng.randrange(0, 12)):
        cells = [rng.choice((*WORDS, "1", "2.5", "north", "yes", "2001-02-03")) for _ in names]
        if rng.random() < 0.2:
            cells = cells[: rng.randrange(7)]
        lines.append(delimiter.join(cells))
    return rng.choice(("\n", "\r\n")).join(lines).encode("utf-8", "surrogatepass")


def csv(world: World, rng: random.Random) -> None:
    made = _table(rng) if rng.random() < 0.6 else damaged(rng, world.files["rows.csv"])
    name = "rows.csv"
    if rng.random() < 0.2:
        made = gzip.compress(made, 1)
        made = damaged(rng, made) if rng.random() < 0.7 else made
    _read(world, name, made, world.schema)


def parquet(world: World, rng: random.Random) -> None:
    _read(world, "rows.parquet", damaged(rng, world.files["rows.parquet"]), world.schema)


def npz(world: World, rng: random.Random) -> None:
    _read(world, "rows.npz", damaged(rng, world.files["rows.npz"]), world.pictured)


def idx(world: World, rng: random.Random) -> None:
    _read(world, "rows-images-idx3-ubyte", damaged(rng, world.files["idx"]), world.pictured)


def pictures(world: World, rng: random.Random) -> None:
    name = rng.choice(("0.png", "0.jpg"))
    folder = world.folder / "pictures" / "0"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / name).write_bytes(damaged(rng, world.files[name]))
    lk.read(world.folder / "pictures", world.pictured)._encoded()


def frame(world: World, rng: random.Random) -> None:
    import pandas as pd

    odd: list[Any] = [
        *WORDS,
        None,
        1,
        2.5,
        True,
        b"\xff",
        float("nan"),
        10**40,
        (),
        [],
        {},
        object(),
    ]
    names = ["age", "income", "town", "smoker", "seen", "ill"]
    count = rng.randrange(0, 6)
    columns = {n: pd.Series([rng.choice(odd) for _ in range(count)], dtype=object) for n in names}
    lk.read(pd.DataFrame(columns), world.schema)._encoded()


def schema(world: World, rng: random.Random) -> None:
    text = world.files["schema.toml"]
    path = world.folder / "schema.toml"
    path.write_bytes(reworded(rng, text.decode()) if rng.random() < 0.7 else damaged(rng, text))
    read = lk.Schema.load(path)
    read.facts(), read.toml(), read.slots


def recipe(world: World, rng: random.Random) -> None:
    text = world.files["recipe.toml"]
    path = world.folder / "recipe.toml"
    path.write_bytes(reworded(rng, text.decode()) if rng.random() < 0.7 else damaged(rng, text))
    Recipe.load(path)


def certificate(world: World, rng: random.Random) -> None:
    from limbeck.release import recompute

    made = rejsoned(rng, world.certificate)
    path = world.folder / "certificate.json"
    path.write_text(json.dumps(made))
    from limbeck.release.arithmetic import read_certificate

    recompute(read_certificate(world.folder))


def release(world: World, rng: random.Random) -> None:
    from limbeck.release.seal import write_sums

    folder = world.folder / "release"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world.release, folder)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    chosen = rng.choice(files)
    way = rng.randrange(8)
    if way == 0:
        chosen.unlink()
    elif way == 1:
        (folder / rng.choice(("x", "a/b", "ü", "-rf", "SHA256SUMS.bak"))).parent.mkdir(
            exist_ok=True
        )
        (folder / "x").write_bytes(b"x")
    elif way == 2:
        chosen.unlink()
        chosen.symlink_to("/etc/passwd")
    else:
        chosen.write_bytes(damaged(rng, chosen.read_bytes()))
    if rng.random() < 0.9 and not any(p.is_symlink() for p in folder.rglob("*")):
        write_sums(folder)
    try:
        lk.verify(folder, questions=False)
    finally:
        lk.Release.load(folder)


def scores(world: World, rng: random.Random) -> None:
    path = world.folder / "scores.json"
    made = {
        "format": "limbeck measured scores",
        "certificate": world.certificate,
        "answers": {"wrong": 1.0, "right": 2.0},
        "counts": [[1.0, 2.0], [3.0, 4.0]],
        "figures": {},
    }
    path.write_text(json.dumps(rejsoned(rng, made)))
    lk.MeasuredScores.load(path)


def conditions(world: World, rng: random.Random) -> None:
    from limbeck.release.sampling import read_wanted

    names = ["age", "income", "town", "smoker", "seen", "ill", rng.choice(WORDS)]
    signs = ["=", ">=", "<=", "<", ">", "!=", "~", ""]
    values = [*WORDS, "1", "40", "north", "north|south", "yes", "2001-02-03", "1..2"]
    told = [
        rng.choice(names) + rng.choice(signs) + rng.choice(values) for _ in range(rng.randrange(4))
    ]
    classes = rng.choice(
        (None, "even", "yes=0.5,no=0.5", {"yes": rng.choice((-1, 0, 1e300, float("nan")))})
    )
    read_wanted(world.schema, 5, where=told, like=None, classes=classes)


TARGETS: dict[str, tuple[Callable[[World, random.Random], None], int]] = {
    "csv": (csv, 22_000),
    "parquet": (parquet, 9_000),
    "npz": (npz, 6_000),
    "idx": (idx, 6_000),
    "pictures": (pictures, 6_000),
    "frame": (frame, 4_000),
    "schema": (schema, 16_000),
    "recipe": (recipe, 8_000),
    "certificate": (certificate, 9_000),
    "release": (release, 3_000),
    "scores": (scores, 6_000),
    "conditions": (conditions, 8_000),
}
"""What reads, and how many cases it is given."""


# ---- running ---------------------------------------------------------------------------------


class TooLong(BaseException):
    """A case took more than its time: not an `Exception`, which what is tried might swallow."""


def case(world: World, target: str, number: int) -> str | None:
    """What is wrong with a case; None if nothing is."""
    rng = random.Random(f"{target} {number}")
    try:
        TARGETS[target][0](world, rng)
    except lk.LimbeckError as error:
        words = str(error)
        if "\n" in words.strip() or not words.strip():
            return f"an error of several lines: {words[:80]!r}"
    except TooLong:
        return "more than five seconds"
    except BaseException as error:
        trace = traceback.extract_tb(error.__traceback__)
        ours = [f for f in trace if "/limbeck/" in f.filename]
        at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "outside limbeck"
        return f"{type(error).__name__} at {at}: {str(error)[:100]}"
    return None


def batch(world: World, target: str, numbers: range, answer: Path) -> None:
    """Run some cases in this process, which may be killed by one; what is wrong goes to a file."""

    def late(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, late)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    warnings.simplefilter("ignore")
    sys.stderr = io.StringIO()
    with open(answer, "w", encoding="utf-8") as file:
        for number in numbers:
            file.write(json.dumps([number, "begun"]) + "\n")
            file.flush()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            wrong = case(world, target, number)
            signal.setitimer(signal.ITIMER_PROF, 0)
            file.write(json.dumps([number, wrong]) + "\n")
            file.flush()


def in_child(world: World, target: str, numbers: range) -> dict[int, str]:
    """The same in a child; a crash is wrong, and the cases after it are done by another child."""
    wrong: dict[int, str] = {}
    while numbers:
        answer = world.folder / "answer"
        child = os.fork()
        if child == 0:
            try:
                batch(world, target, numbers, answer)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        lines = [json.loads(line) for line in answer.read_text().splitlines()]
        wrong |= {number: told for number, told in lines if told not in (None, "begun")}
        if lines and lines[-1][1] == "begun":
            wrong[lines[-1][0]] = "the process died"
        done = lines[-1][0] if lines else numbers[-1]
        numbers = range(done + 1, numbers.stop)
    return wrong


def make_world(folder: Path) -> World:
    """Whole files of each kind; a release, made in a child, since JAX must not run before a fork."""
    rows, schema = helpers.table_rows(30), helpers.table_schema()
    pictured = helpers.image_schema()
    files: dict[str, bytes] = {}
    rows.to_csv(folder / "whole.csv", index=False)
    rows.to_parquet(folder / "whole.parquet")
    images, labels = helpers.image_rows(5)
    np.savez(folder / "whole.npz", images=images, labels=labels)
    files["rows.csv"] = (folder / "whole.csv").read_bytes()
    files["rows.parquet"] = (folder / "whole.parquet").read_bytes()
    files["rows.npz"] = (folder / "whole.npz").read_bytes()
    files["idx"] = bytes([0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 8]) + images.tobytes()
    from PIL import Image as Picture

    for name in ("0.png", "0.jpg"):
        memory = io.BytesIO()
        Picture.fromarray(images[0, :, :, 0]).save(memory, "PNG" if "png" in name else "JPEG")
        files[name] = memory.getvalue()
    files["schema.toml"] = schema.toml().encode()
    files["recipe.toml"] = (HERE.parent / "recipes" / "dp-hp-images.toml").read_bytes()
    child = os.fork()
    if child == 0:
        method = lk.Marginals(grid=32, groups=3, soft_rows=40, steps=2)
        book = lk.Ledger(folder / "ledger.sqlite")
        given = lk.read(helpers.table_rows(60), schema)
        lk.distill(given, method, lk.Budget(1.0, 1e-5), out=folder / "made", ledger=book)
        os._exit(0)
    os.waitpid(child, 0)
    certificate = json.loads((folder / "made" / "certificate.json").read_text())
    return World(folder, schema, pictured, files, folder / "made", certificate)


def page(kept: dict[str, Any]) -> str:
    lines = [
        "# Hostile input",
        "",
        "Made by `benchmarks/fuzz.py`, which says what a case is and what counts as wrong: any exception but a",
        "`LimbeckError` of one line, more than five seconds of the processor, a gigabyte of memory, a crash.",
        "",
        "| What reads | Cases | Wrong | Seconds |",
        "|---|---|---|---|",
    ]
    for target, one in kept.items():
        lines.append(
            f"| {target} | {one['cases']:,} | {len(one['wrong'])} | {one['seconds']:.0f} |"
        )
    total = sum(one["cases"] for one in kept.values())
    wrong = sum(len(one["wrong"]) for one in kept.values())
    lines += ["", f"{total:,} cases, {wrong} wrong.", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="of each target, instead of its own number")
    parser.add_argument("--target", choices=list(TARGETS))
    parser.add_argument("--only", type=int, help="one case, in this process, with its traceback")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="limbeck-fuzz-"))
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    try:
        world = make_world(folder)
        if given.only is not None:
            TARGETS[given.target][0](world, random.Random(f"{given.target} {given.only}"))
            return 0
        for target, (_, count) in TARGETS.items():
            if given.target not in (None, target):
                continue
            one = kept.setdefault(target, {"cases": 0, "seconds": 0.0, "wrong": {}})
            while one["cases"] < (given.cases or count):
                begun = time.monotonic()
                numbers = range(one["cases"], min(one["cases"] + BATCH, given.cases or count))
                for number, told in in_child(world, target, numbers).items():
                    one["wrong"][str(number)] = told
                    print(f"{target} {number}: {told}", flush=True)
                one["cases"] = numbers.stop
                one["seconds"] += time.monotonic() - begun
                RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"{target}: {one['cases']} cases, {one['seconds']:.0f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    PAGE.write_text(page(kept), encoding="utf-8")
    return int(any(one["wrong"] for one in kept.values()))


if __name__ == "__main__":
    sys.exit(main())
