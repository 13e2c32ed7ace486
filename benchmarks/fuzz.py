"""Hostile input: bytes and texts that somebody else chose, for everything that reads.

    python benchmarks/fuzz.py                 go on where it broke off, then benchmarks/fuzz.md
    python benchmarks/fuzz.py --cases 1000    another number of cases of each target

A case is a seed file that is damaged (bytes flipped, cut, doubled, moved, numbers made huge) or a text
put together from hostile pieces, and is a function of its number alone: a failure can be had again by
`--target NAME --only NUMBER`. Cases of older code do not count: they begin anew. A target may answer, or refuse with a `LimbeckError` of one line. Wrong are: any
other exception, more than five seconds of the processor, and a gigabyte of memory. Cases run in batches, in forked
children, so that even a crash of the interpreter is seen and counted.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import hashlib
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
from limbeck.audits.result import Finding  # noqa: E402
from limbeck.run.recipe import Recipe  # noqa: E402

BATCH = 1000
DAYS = (datetime.date(2000, 1, 1), datetime.date(2009, 12, 31))
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
    model: Path
    certificate: dict[str, Any]
    seal: str
    """The last digest of the whole ledger's chain."""
    spent: float
    audit: dict[str, Any]


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
    folder = _wounded(world, rng, world.release)
    try:
        lk.verify(folder, questions=False)
    finally:
        lk.Release.load(folder)


def model(world: World, rng: random.Random) -> None:
    """A damaged model: refused, or read and asked for predictions."""
    folder = _wounded(world, rng, world.model)
    if rng.random() < 0.3:  # facts from which a network is built before its numbers are read
        facts = json.loads((world.model / "model.json").read_text())
        # It may be a link by now, and what is written to a link is written elsewhere.
        (folder / "model.json").unlink(missing_ok=True)
        (folder / "model.json").write_text(json.dumps(rejsoned(rng, facts)))
    try:
        lk.verify(folder, questions=False)
    finally:
        lk.Model.load(folder)


def _wounded(world: World, rng: random.Random, whole: Path) -> Path:
    """A copy of a release, of which a file is damaged, gone, too many or a link, mostly sealed again."""
    from limbeck.release.seal import write_sums

    folder = world.folder / "release"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
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
        elsewhere = world.folder / "elsewhere"  # never a file of the machine's
        elsewhere.write_text("nobody:x:0:0::/:/bin/false\n")
        chosen.symlink_to(elsewhere)
    else:
        chosen.write_bytes(damaged(rng, chosen.read_bytes()))
    if rng.random() < 0.9 and not any(p.is_symlink() for p in folder.rglob("*")):
        write_sums(folder)
    return folder


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


PIECES = (
    "low", "high", "sum", "first", "last", "took", "city", "land", "'a b'", "nobody", ">=", "<=", ">", "<", "==", "->",
    "+", "-", "if", "then", "never", "and", "in", "not", "=", "!=", "1", "0.5", "-3", "1e400", "2 days", "1 minute",
    "2001-02-03", "north", "[north, south]", "(", ")", ",", "nan", "'", "10 weeks", "",
)  # fmt: skip
"""Words of rules."""
SOUND = (
    "high >= low", "low <= high + 2", "sum == low + high", "last >= first", "last > first + 1 day", "took == last - first",
    "city -> land", "never city = north and low > 3", "if city = south then high <= 50", "sum >= low",
)  # fmt: skip
"""Rules that columns can keep, alone or together with some of the others."""


def rules(world: World, rng: random.Random) -> None:
    """Rules of any words; those that a schema takes hold for rows of any content."""
    step = rng.choice((1.0, 0.5, None))
    columns = [
        lk.Numeric(name="low", min=0, max=100, step=step, missing=rng.random() < 0.3),
        lk.Numeric(name="high", min=0, max=100, step=step),
        lk.Numeric(name="sum", min=0, max=200, step=step),
        lk.Date(name="first", min=DAYS[0], max=DAYS[1]),
        lk.Date(name="last", min=DAYS[0], max=DAYS[1], missing=rng.random() < 0.3),
        lk.Numeric(name="took", integer=True, min=-4000, max=4000),
        lk.Category(name="city", values=("north", "south", "east"), missing=rng.random() < 0.3),
        lk.Category(name="land", values=("a b", "c")),
        lk.Category(name="ill", values=("no", "yes"), label=True),
    ]
    texts = [
        rng.choice(SOUND)
        if rng.random() < 0.6
        else " ".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 8)))
        for _ in range(rng.randrange(1, 5))
    ]
    if rng.random() < 0.1:
        texts.append(rng.choice(WORDS))
    ends = rng.choice(("c", "c", "c", "d", rng.choice(WORDS)))
    pairs = [("north", "a b"), ("south", "c"), ("east", ends)]
    tables = {"city -> land": pairs} if any("->" in text for text in texts) else {}
    ruled = lk.Schema(
        dataset="ruled", rows=50, columns=tuple(columns), rules=tuple(texts), tables=tables
    )
    ruled.facts(), lk.Schema.parse(ruled.toml())
    odd: list[Any] = [None, "1", "7.5", -3, 1e300, "2005-01-01", "2019-12-31", "north", *WORDS[:40]]
    count = rng.randrange(1, 8)
    cells = {c.name: [rng.choice(odd) for _ in range(count)] for c in columns}
    import pandas as pd

    read = lk.read(pd.DataFrame(cells, dtype=object), ruled)._encoded()
    if not np.isfinite(np.where(np.isnan(read.cells), 0, read.cells)).all():
        raise AssertionError("a cell that is no number")
    values = ruled.learned.values(read.cells, np.zeros(len(read), np.int64))
    tied = {clause.text for tie in ruled.learned.ties for clause in tie.clauses}
    for text, broken in ruled.learned.broken(values).items():
        if broken.any() and text not in tied:
            raise AssertionError("a decoded row breaks a rule")
    ruled.table(values)


def arrow(world: World, rng: random.Random) -> None:
    """Tables of any Arrow types under the declared names."""
    import pyarrow as pa

    count = rng.randrange(0, 6)
    plain: list[Any] = [None, 0, 1, -1, 2**31, 3]
    kinds: list[Callable[[], Any]] = [
        lambda: pa.array([rng.choice((*WORDS[:50], None)) for _ in range(count)], pa.string()),
        lambda: pa.array([rng.choice((*WORDS[:50], None)) for _ in range(count)], pa.large_string()),
        lambda: pa.array([rng.choice((*WORDS[:50], None)) for _ in range(count)]).dictionary_encode(),
        lambda: pa.array([rng.choice((1.5, float("nan"), float("inf"), None)) for _ in range(count)], pa.float64()),
        lambda: pa.array([rng.choice(plain) for _ in range(count)], pa.int64()),
        lambda: pa.array([rng.choice(plain) for _ in range(count)], rng.choice((pa.timestamp("ns"), pa.timestamp("s", "UTC")))),
        lambda: pa.array([rng.choice((None, 0, 9)) for _ in range(count)], rng.choice((pa.date32(), pa.time32("s"), pa.duration("ms")))),
        lambda: pa.array([rng.choice((None, True, False)) for _ in range(count)], pa.bool_()),
        lambda: pa.array([rng.choice((None, b"\xff", b"1")) for _ in range(count)], rng.choice((pa.binary(), pa.large_binary()))),
        lambda: pa.array([rng.choice((None, [1], [])) for _ in range(count)], pa.list_(pa.int64())),
        lambda: pa.array([rng.choice((None, {"a": 1})) for _ in range(count)], pa.struct([("a", pa.int64())])),
        lambda: pa.nulls(count),
        lambda: pa.array([rng.choice((None, 1, 2)) for _ in range(count)], pa.decimal128(20, 3)),
    ]  # fmt: skip
    names = ["age", "income", "town", "smoker", "seen", "ill"]
    lk.read(pa.table({name: rng.choice(kinds)() for name in names}), world.schema)._encoded()


def audit(world: World, rng: random.Random) -> None:
    made = rejsoned(rng, world.audit)
    path = world.folder / "audit.json"
    path.write_text(json.dumps(made))
    lk.Audit.load(path).facts()


def ledger(world: World, rng: random.Random) -> None:
    """A damaged ledger: told of, or read; never taken for one that holds less."""
    folder = world.folder / "book"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "ledger.sqlite"
    path.write_bytes(damaged(rng, world.files["ledger"]))
    book = lk.Ledger(path)
    book.check_entries(world.seal)
    [account] = book.accounts()
    if account.spent < world.spent * (1 - 1e-9):
        raise AssertionError("a damaged ledger holds less")


def job(world: World, rng: random.Random) -> None:
    """Damaged files of an unfinished run: it is resumed, told of, or paid for anew."""
    from limbeck.ledger import Job

    root = world.folder / "jobs"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    with Job(root, {"a": 1}) as kept:
        kept.begin("run", b"s" * 32, "digest", {"charges": "c", "measurements": [], "software": ""})
        kept.save("x", np.arange(3.0), digest="d")
        folder = kept.folder
    chosen = rng.choice(sorted(p for p in folder.iterdir() if p.name != "lock"))
    chosen.write_bytes(damaged(rng, chosen.read_bytes()))
    with Job(root, {"a": 1}) as again:
        again.run, again.plan, again.secret(), again.matches("digest")
        again.load("x", digest="d")
        again.clear()


TARGETS: dict[str, tuple[Callable[[World, random.Random], None], int]] = {
    "csv": (csv, 22_000),
    "parquet": (parquet, 9_000),
    "arrow": (arrow, 5_000),
    "npz": (npz, 6_000),
    "idx": (idx, 6_000),
    "pictures": (pictures, 6_000),
    "frame": (frame, 4_000),
    "schema": (schema, 14_000),
    "rules": (rules, 9_000),
    "recipe": (recipe, 6_000),
    "certificate": (certificate, 7_000),
    "release": (release, 4_000),
    "model": (model, 4_000),
    "scores": (scores, 5_000),
    "audit": (audit, 3_000),
    "ledger": (ledger, 4_000),
    "job": (job, 3_000),
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
        small = lk.DPSGD(steps=1, batch=20, hidden=(4,))
        other = lk.Ledger(folder / "other.sqlite")
        lk.classify(given, small, lk.Budget(1.0, 1e-5), out=folder / "model", ledger=other)
        os._exit(0)
    os.waitpid(child, 0)
    certificate = json.loads((folder / "made" / "certificate.json").read_text())
    files["ledger"] = (folder / "ledger.sqlite").read_bytes()
    book = lk.Ledger(folder / "ledger.sqlite")
    seal, spent = book.check_entries().digest, book.accounts()[0].spent
    finding = Finding(part="noise", holds=True, says="all is well", facts={"numbers": 3})
    audited = lk.Audit(
        method="m", settings={"a": 1}, epsilon=1.0, delta=1e-5, adjacency="add-remove", unit="row",
        dataset="d", findings=(finding,),
    ).facts()  # fmt: skip
    told = certificate, seal, spent, audited
    return World(folder, schema, pictured, files, folder / "made", folder / "model", *told)


def digest() -> str:
    """Of the code that reads."""
    found = hashlib.sha256()
    for path in sorted((HERE.parent / "limbeck").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def page(kept: dict[str, Any]) -> str:
    lines = [
        "# Hostile input",
        "",
        "Made by `benchmarks/fuzz.py`, which says what a case is and what counts as wrong: any exception but a",
        "`LimbeckError` of one line, more than five seconds of the processor, a gigabyte of memory, a crash.",
        "",
        "| What reads | Cases | Wrong | Seconds | Code (a digest of `limbeck/`) |",
        "|---|---|---|---|---|",
    ]
    for target, one in kept.items():
        lines.append(
            f"| {target} | {one['cases']:,} | {len(one['wrong'])} | {one['seconds']:.0f} | {one['code']} |"
        )
    total = sum(one["cases"] for one in kept.values())
    wrong = sum(len(one["wrong"]) for one in kept.values())
    lines += ["", f"{total:,} cases, {wrong} wrong.", ""]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="of each target, instead of its own number")
    parser.add_argument("--target", choices=list(TARGETS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no batch later")
    parser.add_argument("--only", type=int, help="one case, in this process, with its traceback")
    given = parser.parse_args()
    until, code = time.monotonic() + 60 * given.minutes, digest()
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
            if kept.get(target, {}).get("code") != code:
                kept[target] = {"cases": 0, "seconds": 0.0, "wrong": {}, "code": code}
            one = kept[target]
            while one["cases"] < (given.cases or count) and time.monotonic() < until:
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
