"""`docs/audit.md`: what audits of all methods found. Run as a module, it makes what is missing and writes it.

    python -m limbeck.audits.page docs/audit.md
    python -m limbeck.audits.page docs/audit.md aim mst    # these alone, and no page yet

Each method's findings are kept in `.audit/` under a digest of the code; a run that is cut short goes on there.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import LimbeckError
from ..methods import METHODS, origin
from ..version import __version__
from .auditing import audit
from .bounds import AT_DELTA, CONFIDENCE
from .result import Audit, Finding
from .worst_cases import NOT_BUILT

KEPT = Path(".audit")
TIGHT = 0.9
"""Least part of the claim that a tight bound should reach."""

HEAD = """# Audits of all methods

Every method is attacked by `limbeck audit`, on rows that are made up. Each claims epsilon {epsilon:g} at delta
{delta:g}. Settings are small (few steps, small networks): the code that clips, sums and noises is the same.
This page was made by `make audit` with limbeck {version} on {machine}.

To attack a method yourself, or what a release claims:

```console
$ limbeck audit --method marginals --quick --out audit.json
```

A release is named by its folder (`limbeck audit adult-release`): method, settings, schema and noise are then those of its
certificate. `--recipe` and `--set` choose other settings, `--schema` other columns, `--epsilon` and `--delta` another claim. No row of
yours is read and nothing is spent. In Python, `limbeck.audit("marginals")` gives the same findings. Exit code 2: a claim is broken.

## Many draws

The real mechanisms of all questions that a run asks, at the noise of its plan, in two worlds: one unit is there, moving
every answer as far as is charged, or it is not. All answers together are one trial. Claim and bound are epsilon at
delta {at:g}; the bound holds with confidence 1 - 1e-6. It should be below the claim, and above {tight:g} of it where
the worst case was built for everything that is asked ("tight").

| method | claim | at least | share | tight | trials | seconds |
|---|---:|---:|---:|---|---:|---:|
{draws}

Kinds whose worst case is not composed into whole runs: {left_out}.
Such a run's bound is below the claim by what they cost.

## Replay and noise

Rows and their neighbours (extreme values, gaps, a lone member of a class, an undeclared label, equal records, at the
front, in the middle, at the end), with frozen noise, the same seeds and the same earlier answers: how far the
farthest one moves an answer, in parts of the charged sensitivity. And runs that are answered with noise alone: is it
as large as charged, on its grid, and never used twice?

| method | answers | neighbours | farthest | replay | noise | seconds |
|---|---:|---:|---:|---|---|---:|
{replays}

## One run, and what is released

One run with {canaries} canaries, each there by a coin. What does an attacker guess rightly who sees all noisy answers and
knows all but coins and noise (*answers*), or who sees the released rows alone (*release*: distance to the nearest
row, density ratio; weak attacks, which prove little)? Epsilon at delta {delta:g}, with confidence 0.95.

| method | claim | by answers, at least | told right | by release, at least | told right | seconds |
|---|---:|---:|---:|---:|---:|---:|
{runs}

Together {seconds:,.0f} seconds. {verdict}

## The file `audit.json`

`limbeck audit` writes what it found. A report shows it where it lies beside the release that it is about.

| Field | Meaning |
|---|---|
| `format`, `version` | "limbeck audit", 1 |
| `holds` | whether no part contradicts the claim |
| `method`, `settings`, `dataset`, `unit`, `adjacency` | what was audited |
| `epsilon`, `delta` | the claim |
| `release` | SHA-256 of the certificate, or null |
| `software` | version of limbeck |
| `findings` | a list, one for each part |
| `findings[].part` | "replay", "noise", "draws", "one run" or "release" |
| `findings[].holds`, `.says`, `.broken` | whether it holds, in a line, and what contradicts the claim |
| `findings[].claim`, `.bound`, `.delta`, `.confidence` | epsilon claimed and epsilon certainly spent, at which delta, how surely; null where a part has none |
| `findings[].tight` | whether the worst case was built for everything that is asked |
| `findings[].runs`, `.seconds` | runs that were made, and time |
| `findings[].facts` | figures of the part: how far each measurement moved, the trade-off curve (draws above each threshold with and without the unit), an interval of mu, what was left out and why, guesses and how many were right |
"""


def audited(names: Sequence[str], folder: Path = KEPT) -> list[Audit]:
    """Audits of all methods; those that are kept from this very code are not made again."""
    folder.mkdir(exist_ok=True)
    found = []
    for name in names:
        path = folder / f"{name}-{code_digest()[:16]}.json"
        if not path.exists():
            print(f"{name} ...", flush=True)
            made = audit(name)
            made.save(path)
            for finding in made.findings:
                print(f"  {finding.part}: {finding.says}", flush=True)
        found.append(Audit.load(path))
    return found


def code_digest() -> str:
    """Of everything that an audit runs."""
    found, root = hashlib.sha256(), Path(__file__).parent.parent
    for room in ("audits", "privacy", "methods", "accounting", "schema", "data"):
        for path in sorted((root / room).rglob("*.py")):
            if path.name != "page.py":
                found.update(path.read_bytes())
    return found.hexdigest()


def written(audits: Sequence[Audit]) -> str:
    """The page."""
    draws, replays, runs = [], [], []
    for one in audits:
        drawn, replay, noise = (one.finding(p) for p in ("draws", "replay", "noise"))
        asked, release = one.finding("one run"), one.finding("release")
        assert drawn and replay and noise and asked and release
        assert drawn.claim and drawn.bound is not None and drawn.share is not None
        draws.append(
            f"| {one.method} | {drawn.claim:.3f} | {drawn.bound:.3f} | {drawn.share:.3f} | "
            f"{'yes' if drawn.tight else 'no'} | {drawn.runs // 2:,} | {drawn.seconds:.0f} |"
        )
        farthest = max(replay.facts["moved"].values())
        replays.append(
            f"| {one.method} | {len(replay.facts['moved'])} | {replay.runs - 1} | {farthest:.4f} | "
            f"{_held(replay)} | {_held(noise)} | {replay.seconds + noise.seconds:.0f} |"
        )
        runs.append(
            f"| {one.method} | {asked.claim:g} | {asked.bound:.3f} | {_right(asked)} | "
            f"{release.bound:.3f} | {_right(release)} | {asked.seconds + release.seconds:.0f} |"
        )
    first = audits[0]
    return HEAD.format(
        epsilon=first.epsilon,
        delta=first.delta,
        version=__version__,
        machine=f"{platform.system()}, {platform.machine()}",
        at=AT_DELTA,
        tight=TIGHT,
        draws="\n".join(draws),
        left_out="; ".join(f"`{name}` ({why})" for name, why in NOT_BUILT.items()),
        replays="\n".join(replays),
        runs="\n".join(runs),
        canaries=_canaries(first),
        seconds=sum(one.seconds for one in audits),
        verdict=verdict(audits),
    )


def verdict(audits: Sequence[Audit]) -> str:
    """What all of it comes to, in a line."""
    broken = [one.method for one in audits if not one.holds]
    if broken:
        return f"**Claims that are broken: {', '.join(broken)}.**"
    loose = [one.method for one in audits if _loose(one)]
    told = f" Tight bounds below {TIGHT:g} of the claim: {', '.join(loose)}." if loose else ""
    return f"No claim of the {len(audits)} methods is broken (confidence {CONFIDENCE:.6f}).{told}"


def _loose(one: Audit) -> bool:
    drawn = one.finding("draws")
    return bool(drawn and drawn.tight and (drawn.share or 0.0) < TIGHT)


def _held(finding: Finding) -> str:
    return "holds" if finding.holds else "**broken**"


def _guessed(finding: Finding) -> dict[str, object]:
    facts = dict(finding.facts)
    return facts if "guessed" in facts else dict(next(iter(facts.values())))


def _right(finding: Finding) -> str:
    last = _guessed(finding)["guessed"][-1]  # type: ignore[index]
    return f"{last['right']} of {last['guesses']}"


def _canaries(one: Audit) -> int:
    finding = one.finding("one run")
    return int(finding.facts["canaries"]) if finding else 0


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m limbeck.audits.page PAGE [METHOD ...]")
    names = [name for name, kind in METHODS.items() if not kind.needs_bare_rows]
    own = [name for name in names if origin(METHODS[name])["name"] == "limbeck"]
    wanted = sys.argv[2:] or own
    found = audited([name for name in own if name in wanted])
    if wanted == own:
        try:
            Path(sys.argv[1]).write_text(written(found), encoding="utf-8")
        except OSError as error:
            raise LimbeckError(f"Cannot write {sys.argv[1]}: {error.strerror}.") from None
    print(verdict(found))
    raise SystemExit(0 if all(one.holds for one in found) else 1)


if __name__ == "__main__":
    main()
