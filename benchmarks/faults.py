"""Kill runs at random moments, and see that nothing is lost, paid twice or left half written.

    python benchmarks/faults.py              go on where it broke off, then benchmarks/faults.md
    python benchmarks/faults.py --kills 5    another number of kills of each verb
    python benchmarks/faults.py --minutes 10 no new one after so long; the next run goes on

Each trial is a world of its own. A warm process forks; the child does the verb and is killed (SIGKILL) at
a random moment; another child does the same again, to its end. Meanwhile every draw of noise is noted in
a file. After the kill and after the end these must hold:

- the ledger can be read, its chain is whole, and what noise was drawn for is booked;
- no measurement was answered with two noises under one charge, and one charge alone was booked for the
  verb, unless the first child had come to its end;
- the place of the result holds nothing, or all of it; nothing half written is left once the second
  child is done, and nothing of the job.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "limbeck-xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

HERE = Path(__file__).parent
RESULTS = HERE / "faults.json"
PAGE = HERE / "faults.md"
sys.path.insert(0, str(HERE.parent / "tests"))

import helpers  # noqa: E402

import limbeck as lk  # noqa: E402
from limbeck.privacy import Noise  # noqa: E402

METHOD: dict[str, Any] = {"grid": 32, "groups": 3, "soft_rows": 60, "steps": 2}
BUDGET = lk.Budget(1.0, 1e-5)
PUBLIC = ("rows of persons", "random stopping")
"""Purposes of randomness that is no measurement's noise."""


def _ledger(world: Path) -> lk.Ledger:
    return lk.Ledger(world / "book" / "ledger.sqlite")


def _rows(world: Path) -> lk.Dataset:
    return lk.read(helpers.table_rows(60), helpers.table_schema())


def distill(world: Path) -> None:
    method = lk.Marginals(**METHOD)
    lk.distill(
        _rows(world), method, BUDGET, out=world / "out" / "r", force=True, ledger=_ledger(world)
    )


def tune(world: Path) -> None:
    several = [lk.Marginals(**METHOD | {"steps": steps}) for steps in (1, 2)]
    lk.tune(
        _rows(world), several, BUDGET, out=world / "out" / "r", force=True, ledger=_ledger(world)
    )


def redistill(world: Path) -> None:
    release = lk.Release.load(world / "given")
    lk.redistill(release, {"soft_rows": 50}, out=world / "out" / "r", force=True)


def evaluate(world: Path) -> None:
    release = lk.Release.load(world / "given")
    test = lk.read(helpers.table_rows(50, seed=5), release.schema)
    (world / "out").mkdir(exist_ok=True)
    lk.measure_scores(release, test, BUDGET, out=world / "out" / "r.json", ledger=_ledger(world))


VERBS: dict[str, Callable[[Path], None]] = {
    "distill": distill,
    "redistill": redistill,
    "tune": tune,
    "evaluate --releasable": evaluate,
}


# ---- children --------------------------------------------------------------------------------


def _note_draws(world: Path) -> None:
    """Note every purpose that is served noise, with a digest of the secret, before it is drawn."""
    stream = Noise.stream

    def noted(self: Noise, purpose: str) -> Any:
        secret = hashlib.sha256(self.secret).hexdigest()[:16]
        with open(world / "drawn", "a", encoding="utf-8") as file:
            file.write(json.dumps([purpose, secret]) + "\n")
        return stream(self, purpose)

    Noise.stream = noted  # type: ignore[method-assign]


def start(verb: str, world: Path) -> int:
    """A child that does a verb, with what it says in a file; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        log = os.open(world / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _note_draws(world)
        VERBS[verb](world)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def until(child: int, seconds: float) -> int | None:
    """Wait for a child's end, and kill it after some time; its exit code, or None if it was killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return None if code == -signal.SIGKILL else code


# ---- what must hold --------------------------------------------------------------------------


def drawn(world: Path) -> list[tuple[str, str]]:
    """Purposes that were served noise, each with its secret."""
    path = world / "drawn"
    lines = path.read_text().splitlines() if path.exists() else []
    found = []
    for line in lines:
        try:
            purpose, secret = json.loads(line)
        except ValueError:  # killed while it was written: its noise was not drawn
            continue
        if purpose not in PUBLIC:
            found.append((purpose, secret))
    return found


def booked(world: Path) -> list[Any]:
    ledger = _ledger(world)
    ledger.check_entries()
    return [run for account in ledger.accounts() for run in account.runs]


def whole(world: Path) -> bool:
    """Whether the result is there; a result that is not whole is an error."""
    place = world / "out" / "r"
    if place.exists():
        lk.verify(place, questions=False)
        lk.Release.load(place)
    scores = world / "out" / "r.json"
    if scores.exists():
        lk.MeasuredScores.load(scores)
    return place.exists() or scores.exists()


def wrong_after(world: Path, *, ended: bool, finished_before: bool) -> list[str]:
    """What does not hold."""
    wrong = []
    runs = booked(world)
    paid = {charge.name for run in runs for charge in run.charges}
    noised = drawn(world)
    if unpaid := {p for p, _ in noised if p.partition("/")[0] not in paid}:
        wrong.append(f"noise was drawn and not booked: {sorted(unpaid)}")
    allowed = 2 if finished_before else 1
    if len(runs) > allowed:
        wrong.append(f"paid {len(runs)} times")
    secrets: dict[str, set[str]] = {}
    for purpose, secret in noised:
        secrets.setdefault(purpose, set()).add(secret)
    if any(len(found) > max(1, len(runs)) for found in secrets.values()):
        wrong.append("a measurement was answered with two noises")
    there = whole(world)
    if ended:
        if not there:
            wrong.append("no result")
        if any(run.status != "done" for run in runs):
            wrong.append(f"states {[run.status for run in runs]}")
        remains = [p.name for p in (world / "out").iterdir() if p.name not in ("r", "r.json")]
        if remains:
            wrong.append(f"left beside the result: {remains}")
        jobs = _ledger(world).jobs
        if [p for p in jobs.rglob("*") if p.is_file()]:
            wrong.append("a job is left")
    return wrong


def trial(verb: str, template: Path, at: float) -> dict[str, Any]:
    """One kill, and what came of it."""
    world = Path(tempfile.mkdtemp(prefix="limbeck-fault-"))
    try:
        if (template / "given").exists():
            shutil.copytree(template / "given", world / "given")
        code = until(start(verb, world), at)
        finished = code == 0 or (whole(world) and not _unfinished(world))
        wrong = wrong_after(world, ended=False, finished_before=False)
        if until(start(verb, world), 300.0) != 0:
            words = (world / "log").read_text().strip().splitlines()
            wrong.append(f"the next run failed: {words[-1] if words else ''}")
        else:
            wrong += wrong_after(world, ended=True, finished_before=finished)
        return {"at": round(at, 3), "killed": code is None, "finished": finished, "wrong": wrong}
    finally:
        shutil.rmtree(world, ignore_errors=True)


def _unfinished(world: Path) -> bool:
    return any(run.status != "done" for run in booked(world))


# ---- all of it -------------------------------------------------------------------------------


def page(found: dict[str, list[dict[str, Any]]], seconds: float) -> str:
    lines = [
        "# Runs killed at random moments",
        "",
        "Made by `benchmarks/faults.py`, which says what must hold. Each line is a verb, done by a child",
        "process that is killed outright (SIGKILL) at a random moment between its start and its usual end,",
        "and then done again.",
        "",
        "| Verb | Trials | Killed | Was at its end already | Lost | Paid twice | Anything else wrong |",
        "|---|---|---|---|---|---|---|",
    ]
    for verb, trials in found.items():
        told = [word for one in trials for word in one["wrong"]]
        lost = sum("not booked" in w or "no result" in w or "failed" in w for w in told)
        twice = sum("paid" in w or "two noises" in w for w in told)
        rest = len(told) - lost - twice
        killed = sum(one["killed"] for one in trials)
        ended = sum(one["finished"] for one in trials)
        lines.append(
            f"| `{verb}` | {len(trials)} | {killed} | {ended} | {lost} | {twice} | {rest} |"
        )
    all_of_them = [one for trials in found.values() for one in trials]
    lines += [
        "",
        f"{len(all_of_them)} trials in {seconds / 60:.0f} minutes of one process on a busy machine. By the code that was",
        "killed (a digest of `limbeck/`):",
        "",
    ]
    codes = [one.get("code", "before digests were noted") for one in all_of_them]
    lines += [f"- {code}: {codes.count(code)} trials" for code in dict.fromkeys(codes)]
    lines += [""]
    return "\n".join(lines)


def _warm() -> None:
    """Import all that the verbs need, but start no thread: nothing is computed before the fork."""
    for room in ("methods", "run", "release", "evaluation", "ledger", "privacy", "planning"):
        importlib.import_module(f"limbeck.{room}")
    for name in ("distilling", "tuning"):
        importlib.import_module(f"limbeck.run.{name}")
    for name in ("release.release", "release.certificate", "release.card", "evaluation.measured"):
        importlib.import_module(f"limbeck.{name}")
    for name in ("dp_accounting.pld", "dp_accounting.rdp", "sklearn.linear_model", "optax"):
        importlib.import_module(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of each verb")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verb", choices=list(VERBS), action="append", help="these verbs alone")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    given = parser.parse_args()
    until, verbs, code = time.monotonic() + 60 * given.minutes, given.verb or list(VERBS), digest()
    _warm()
    template = Path(tempfile.mkdtemp(prefix="limbeck-faults-"))
    try:
        child = os.fork()
        if child == 0:  # JAX must not run in the process that forks
            book = lk.Ledger(template / "book" / "ledger.sqlite")
            lk.distill(
                _rows(template), lk.Marginals(**METHOD), BUDGET, out=template / "given", ledger=book
            )
            os._exit(0)
        os.waitpid(child, 0)
        took = {verb: _usual(verb, template) for verb in verbs}
        print("usually", {verb: round(seconds, 2) for verb, seconds in took.items()}, flush=True)
        for number in range(given.kills):
            for verb in verbs:
                if len(known()["verbs"].get(verb, [])) > number or time.monotonic() > until:
                    continue
                rng = random.Random(f"{given.seed} {verb} {number}")
                begun = time.monotonic()
                one = trial(verb, template, rng.uniform(0, took[verb])) | {"code": code}
                if one["wrong"]:
                    print(verb, one, flush=True)
                kept = known()  # another run may try other verbs beside this one
                kept["verbs"].setdefault(verb, []).append(one)
                kept["seconds"] += time.monotonic() - begun
                RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    finally:
        shutil.rmtree(template, ignore_errors=True)
    kept = known()
    PAGE.write_text(page(kept["verbs"], kept["seconds"]), encoding="utf-8")
    return int(any(one["wrong"] for trials in kept["verbs"].values() for one in trials))


def known() -> dict[str, Any]:
    """What was tried so far, by verb."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"seconds": 0.0, "verbs": {}}


def digest() -> str:
    """Of the code that is killed."""
    found = hashlib.sha256()
    for path in sorted((HERE.parent / "limbeck").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _usual(verb: str, template: Path) -> float:
    """Seconds that a verb usually takes, once everything is compiled."""
    took = []
    for _ in range(3):
        world = Path(tempfile.mkdtemp(prefix="limbeck-fault-"))
        if (template / "given").exists():
            shutil.copytree(template / "given", world / "given")
        begun = time.monotonic()
        code = until(start(verb, world), 300.0)
        took.append(time.monotonic() - begun)
        if code != 0:
            raise SystemExit(f"{verb} fails without a kill:\n{(world / 'log').read_text()}")
        shutil.rmtree(world)
    return sorted(took)[1]


if __name__ == "__main__":
    sys.exit(main())
