"""Plant privacy bugs one at a time in a copy of the tree, and see which test notices each.

    python benchmarks/mutants/run.py              all that are not known yet; then docs/mutants.md
    python benchmarks/mutants/run.py --again      all of them
    python benchmarks/mutants/run.py --fast       the quick dozen, without writing anything
    python benchmarks/mutants/run.py --unharmed   the tests that are named, in a copy without any bug
    python benchmarks/mutants/run.py --minutes 10 no new one after so long; the next run goes on
    python benchmarks/mutants/run.py --part 0/2   every other one, beside another run with --part 1/2
    python benchmarks/mutants/run.py NAME ...     those whose names hold one of the words

A mutant is an exact piece of a file and what stands there instead (`*.toml` beside this file), with the
tests that should notice. Its old text must be in the tree exactly once, or the list itself is wrong.
Each is planted in a copy of the tree; a warm process forks, runs the tests and ends; the file is
restored. What was found is kept in `results.json`, so a run that broke off goes on where it was. It holds for
the mutant, the function it stands in and the names of its tests; another one of these is tried again.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "mutants.md"
TOO_LONG = 420
"""Seconds after which a test that was to notice a mutant is ended: a hang is noticed, too."""
COPIED = ("limbeck", "tests", "docs", "recipes", "benchmarks", "examples")
KINDS = {
    "questions": "What rows add to an answer, and what the answer adds of noise",
    "price": "Charges, calibration, accountants",
    "ledger": "What was spent, and unfinished runs",
    "certificate": "What a release says of itself, and `verify`",
    "written": "What is written into a release",
    "rows": "Reading, encoding, persons",
    "engines": "Rows that are summed elsewhere",
    "audits": "The audits themselves",
}
"""Files of mutants, in the order of the page."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A bug to plant."""

    name: str
    """What the bug is, in words."""
    file: str
    """Below `limbeck/`."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Names of test functions, with [parameters] where one case will do."""
    fast: bool = False
    """Whether it is one of the quick dozen."""
    kind: str = ""

    @property
    def digest(self) -> str:
        """Of the mutant and of the class or function it is planted in: another one is another trial."""
        text = (ROOT / "limbeck" / self.file).read_text(encoding="utf-8")
        words = [self.old, self.new, *self.tests, around(text, self.old)]
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]

    def planted(self, tree: Path) -> str:
        """The text of its file with the bug in it."""
        text = (tree / "limbeck" / self.file).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise SystemExit(
                f"mutant '{self.name}': its old text is {count} times in limbeck/{self.file}; "
                "expected once. Bring the list up to date."
            )
        return text.replace(self.old, self.new)


def around(text: str, piece: str) -> str:
    """The class or function of a file that holds a piece of its text; else the whole file."""
    lines, first = text.splitlines(), text[: text.find(piece)].count("\n") + 1
    last = first + piece.strip("\n").count("\n")
    for node in ast.parse(text).body:
        begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if begin <= first and last <= (node.end_lineno or begin):
            return "\n".join(lines[begin - 1 : node.end_lineno])
    return text


def mutants() -> list[Mutant]:
    """All of the list."""
    found = []
    for kind in KINDS:
        for facts in tomllib.loads((HERE / f"{kind}.toml").read_text(encoding="utf-8"))["mutant"]:
            tests = tuple(facts.pop("tests"))
            found.append(Mutant(**facts, tests=tests, kind=kind))
    names = [mutant.name for mutant in found]
    if len(set(names)) < len(names):
        raise SystemExit("two mutants have one name")
    return found


def places_of_tests(tree: Path) -> dict[str, Path]:
    """Where each test function stands; tests may move from file to file."""
    found: dict[str, Path] = {}
    for path in sorted((tree / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[node.name] = path
                found[f"{path.name}::{node.name}"] = path
    return found


def node(test: str, places: dict[str, Path]) -> str:
    """The test as pytest names it."""
    name = test.partition("[")[0]
    if name not in places:
        raise SystemExit(f"no test of the tree is called {name}")
    return f"{places[name]}::{test.rpartition('.py::')[2]}"


# ---- trying one ------------------------------------------------------------------------------


class Listener:
    """A plugin of pytest that remembers which test failed first."""

    def __init__(self) -> None:
        self.failed: str | None = None
        self.all_failed: list[str] = []
        self.seen = 0
        self.broken: str | None = None

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken = str(report.longrepr)[-600:]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seen += report.when == "call" and report.passed
        if report.failed:
            self.failed = self.failed or report.nodeid
            self.all_failed.append(report.nodeid)


def _child(tree: Path, tests: Sequence[str], answer: Path, first: bool) -> None:
    """Run tests in a copy of the tree, up to the first that fails if no more is wanted; never returns."""
    code = 1
    try:
        os.setsid()
        log = os.open(answer.with_suffix(".log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree)
        sys.path.insert(0, str(tree))
        import pytest

        listener = Listener()
        words = [*(["-x"] if first else []), "-q", "-p", "no:cacheprovider", "--rootdir", str(tree)]
        words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # jaxtyping is there already
        code = int(pytest.main([*words, *tests], plugins=[listener]))
        answer.write_text(json.dumps(vars(listener) | {"code": code}))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _warm() -> None:
    """Import what every test imports, but for limbeck itself and whatever starts threads."""
    import dp_accounting.pld
    import dp_accounting.rdp  # noqa: F401
    import equinox  # noqa: F401
    import hypothesis  # noqa: F401
    import jax  # noqa: F401
    import optax  # noqa: F401
    import pandas  # noqa: F401
    import PIL.Image  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.special  # noqa: F401

    if any(name == "limbeck" or name.startswith("limbeck.") for name in sys.modules):
        raise SystemExit("limbeck was imported before a mutant was planted")


@dataclass
class Slot:
    """A copy of the tree, in which one mutant at a time is tried."""

    tree: Path
    child: int = 0
    since: float = 0.0
    mutant: Mutant | None = None
    kept: str = ""

    def start(self, mutant: Mutant | None, tests: Sequence[str]) -> None:
        self.mutant, self.since = mutant, time.monotonic()
        answer = self.tree.with_suffix(".json")
        answer.unlink(missing_ok=True)
        if mutant is not None:
            path = self.tree / "limbeck" / mutant.file
            self.kept = path.read_text(encoding="utf-8")
            self._put(path, mutant.planted(self.tree), 1000)
        places = places_of_tests(self.tree)
        named = [node(test, places) for test in tests]
        self.child = os.fork()
        if self.child == 0:
            _child(self.tree, named, answer, first=mutant is not None)

    def _put(self, path: Path, text: str, later: int) -> None:
        """Write a file with a time that no compiled copy of another text has."""
        moment = path.stat().st_mtime
        path.write_text(text, encoding="utf-8")
        os.utime(path, (moment + later, moment + later))

    def end(self, *, killed: bool) -> dict[str, Any]:
        """What was found; the tree is as it was."""
        mutant = self.mutant
        if mutant is not None:
            self._put(self.tree / "limbeck" / mutant.file, self.kept, 0)
            path = self.tree / "limbeck" / mutant.file
            moment = (ROOT / "limbeck" / mutant.file).stat().st_mtime
            os.utime(path, (moment, moment))
        seconds = round(time.monotonic() - self.since, 1)
        answer = self.tree.with_suffix(".json")
        found = json.loads(answer.read_text()) if answer.exists() else {}
        self.child, self.mutant = 0, None
        if killed:
            return {"state": "caught", "by": f"a hang of {TOO_LONG} s", "seconds": seconds}
        if found.get("failed"):
            failed = found["all_failed"][: 1 if mutant is not None else None]
            by = ", ".join(re.sub(r"^.*::", "", name) for name in failed)
            return {"state": "caught", "by": by, "seconds": seconds}
        if found.get("code") == 0 and found["seen"]:
            return {"state": "survived", "by": "", "seconds": seconds}
        log = self.tree.with_suffix(".log")
        told = found.get("broken") or (log.read_text()[-800:] if log.exists() else "")
        return {"state": "broken", "by": told, "seconds": seconds}


def copied_tree(folder: Path) -> Path:
    """What tests need, without compiled files of other texts."""
    folder.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).exists():
            ignored = shutil.ignore_patterns(".compiled", "*.png", "results.json")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored, symlinks=True)
    for path in ROOT.iterdir():
        if (
            path.is_file()
            and path.suffix in (".toml", ".md", ".yml", "")
            and path.stat().st_size < 1e6
        ):
            shutil.copy2(path, folder / path.name)
    return folder


def tried(
    wanted: Sequence[Mutant],
    workers: int,
    *,
    baseline: bool = True,
    until: float = float("inf"),
    unharmed: bool = False,
) -> Iterator[tuple[Mutant | None, dict[str, Any]]]:
    """Each mutant with what was found, as it comes; first, for None, the tree as it is.

    Args:
        wanted: Mutants.
        workers: How many are tried at once.
        baseline: Whether their tests are run on the tree as it is, too.
        until: A moment (`time.monotonic`) after which none is begun.
        unharmed: No mutant is planted; only the tests are run.
    """
    _warm()
    sys.dont_write_bytecode = True
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / "tests" / ".compiled"))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="limbeck-mutants-"))
    slots = [Slot(copied_tree(folder / str(number))) for number in range(workers)]
    waiting: list[tuple[Mutant | None, Sequence[str]]] = [(m, m.tests) for m in wanted]
    if unharmed:
        waiting = []
    if baseline or unharmed:
        waiting.insert(0, (None, sorted({test for m in wanted for test in m.tests})))
    busy: dict[int, tuple[Slot, Mutant | None]] = {}
    try:
        while waiting or busy:
            if time.monotonic() > until:
                waiting.clear()
            for slot in (s for s in slots if not s.child and waiting):
                mutant, tests = waiting.pop(0)
                slot.start(mutant, tests)
                busy[slot.child] = slot, mutant
            time.sleep(0.05)
            for child, (slot, mutant) in list(busy.items()):
                done, _ = os.waitpid(child, os.WNOHANG)
                limit = TOO_LONG if mutant is not None else 3600
                late = time.monotonic() - slot.since > limit
                if not done and late:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                if done or late:
                    del busy[child]
                    yield mutant, slot.end(killed=late and not done)
    finally:
        for child in busy:
            os.killpg(child, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


# ---- what was found --------------------------------------------------------------------------


def known() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def _page(found: dict[str, Any], listed: Sequence[Mutant]) -> str:
    rows = [m for m in listed if m.name in found]
    caught = [m for m in rows if found[m.name]["state"] == "caught"]
    seconds = sum(found[m.name]["seconds"] for m in rows)
    lines = [
        "# Planted bugs",
        "",
        "Each line is a privacy bug that was planted, alone, in a copy of the tree, and the test that",
        "noticed it first. `make mutants` does it again; this page is made by it",
        "(`benchmarks/mutants/`), and a dozen of them are tried by every `make test`. A bug that no",
        "test notices is a gap in the tests: it gets a test, never an excuse.",
        "",
        f"Planted: {len(rows)}. Noticed: {len(caught)}. {seconds / 60:.0f} minutes of one core.",
        "",
    ]
    for kind, words in KINDS.items():
        part = [m for m in rows if m.kind == kind]
        if not part:
            continue
        lines += [f"## {words}", "", "| Bug | File | Noticed by | Seconds |", "|---|---|---|---|"]
        for m in part:
            one = found[m.name]
            by = f"`{one['by']}`" if one["state"] == "caught" else f"**{one['state']}**"
            lines.append(
                f"| {m.name} | `{m.file}` | {by} | {one['seconds']:.0f} |".replace("\n", " ")
            )
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="words of the names of mutants")
    parser.add_argument("--again", action="store_true", help="also those whose outcome is known")
    parser.add_argument("--fast", action="store_true", help="the quick dozen; nothing is written")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-baseline", action="store_true", help="do not run the tests unharmed")
    parser.add_argument("--unharmed", action="store_true", help="run the tests and plant nothing")
    parser.add_argument("--part", default="0/1", help="K/N: one of N parts of the list")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    given = parser.parse_args()
    listed = mutants()
    for mutant in listed:
        mutant.planted(ROOT)
    found = known()
    part, parts = map(int, given.part.split("/"))
    wanted = [m for m in listed if not given.names or any(w in m.name for w in given.names)]
    wanted = [m for m in wanted if zlib.crc32(m.name.encode()) % parts == part]
    if given.fast:
        wanted = [m for m in wanted if m.fast]
    elif not given.again:
        wanted = [
            m
            for m in wanted
            if found.get(m.name, {}).get("digest") != m.digest or found[m.name]["state"] != "caught"
        ]
    wrong, count, places = 0, 0, places_of_tests(ROOT)
    for mutant in listed:
        for test in mutant.tests:
            node(test, places)
    until = time.monotonic() + 60 * given.minutes
    for mutant, one in tried(
        wanted,
        given.workers,
        baseline=not given.no_baseline,
        until=until,
        unharmed=given.unharmed,
    ):
        if mutant is None:
            if one["state"] != "survived":
                print(f"the tests fail without any mutant: {one['by']}", flush=True)
                wrong += 1
            continue
        wrong += one["state"] != "caught"
        count += 1
        print(f"{one['state']:9s} {one['seconds']:6.1f} s  {mutant.name}: {one['by']}", flush=True)
        if not given.fast:
            found = known() | {mutant.name: one | {"digest": mutant.digest}}
            RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    names = {m.name for m in listed}
    if not given.fast:
        found = {name: one for name, one in known().items() if name in names}
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(_page(found, listed), encoding="utf-8")
    print(f"{count} tried, {len(wanted) - count} left, {wrong} not noticed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
