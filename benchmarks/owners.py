"""Data sets as their owners have them, taken all the way through the command line.

    python benchmarks/owners.py --data FOLDER [--only diamonds,movies]

For each: `limbeck schema`, the owner's edit of the draft, `check`, `plan`, `distill`, `verify`, `evaluate`,
`report` and `sample`, in a fresh folder with a ledger of its own. FOLDER holds CSV files of the package
pydataset (`data("diamonds").to_csv("diamonds.csv", index=False)`, and so on); what is not there is not run. Files
of a bank and of hospital stays are made here; digits and photos are those of `limbeck data`. Results: owners.json
and owners.md, to which runs with --only add.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measure import keep

HERE = Path(__file__).parent
COMMAND = Path(sys.executable).with_name("limbeck")
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Owner:
    """A data set, and what its owner knows of it."""

    frame: Callable[[Path], pd.DataFrame | None] | None
    """Makes it, or reads it from the folder; None: not there. Of pictures there is none."""
    answers: Mapping[str, str]
    """For a column, the lines of its section in the schema; for "*", of all others."""
    rows: int = 1000
    ignore: tuple[str, ...] = ()
    more: str = ""
    """Further lines at the top of the schema, and tables."""
    person: str | None = None
    writing: Mapping[str, Any] = field(default_factory=dict)
    """How the CSV file is written."""
    figures: Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]] = lambda made, test: {}
    """What the trial asks of it beside the scores: of released and real rows."""
    pictures: Callable[[Path], tuple[int, int]] | None = None
    """Writes folders of pictures, train/ and test/, and says how many there are to learn from, and of what size."""
    epsilon: float = 1.0
    note: str = ""
    """What a reader of its figures has to know."""
    stops: bool = False
    """Whether its schema is wrong on purpose, so that `distill` has to stop."""
    split: int = 0
    """Seed by which test rows are held back."""


def number(low: float, high: float, **more: object) -> str:
    lines = [f"min = {low}", f"max = {high}"] + [f"{k} = {json.dumps(v)}" for k, v in more.items()]
    return "\n".join([f'kind = "{more_kind(low, high, more)}"', *lines])


def more_kind(low: float, high: float, more: Mapping[str, object]) -> str:
    return (
        "float"
        if isinstance(low, float) or isinstance(high, float) or "decimals" in more
        else "integer"
    )


def category(*values: object, kind: str = "category", **more: object) -> str:
    lines = [f'kind = "{kind}"', f"values = {json.dumps(list(values))}"]
    return "\n".join(lines + [f"{k} = {json.dumps(v)}" for k, v in more.items()])


def picture(size: int, channels: int) -> str:
    return f'kind = "image"\nheight = {size}\nwidth = {size}\nchannels = {channels}\nmin = 0\nmax = 255'


def of_file(name: str) -> Callable[[Path], pd.DataFrame | None]:
    def read(folder: Path) -> pd.DataFrame | None:
        file = folder / f"{name}.csv"
        return pd.read_csv(file) if file.exists() else None

    return read


def bank(folder: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    count = 8000
    income = np.exp(rng.normal(7.6, 0.6, count)).round(2)
    loan = rng.random(count) < 1 / (1 + np.exp((income - 2500) / 800))
    opened = pd.to_datetime("2005-01-01") + pd.to_timedelta(rng.integers(0, 6900, count), "D")
    return pd.DataFrame(
        {
            "Branche": rng.choice(["Köln", "Zürich", "Genève"], count),
            "Einkommen": income,
            "eröffnet": opened.strftime("%d.%m.%Y"),
            "Kredit": np.where(loan, "ja", "nein"),
        }
    )


def stays(folder: Path) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    count = 9000
    ward = rng.choice(
        ["Surgery", "Maternity", "Oncology", "General"], count, p=[0.3, 0.15, 0.2, 0.35]
    )
    mean = (
        pd.Series(ward).map({"Surgery": 5, "Maternity": 3, "Oncology": 9, "General": 4}).to_numpy()
    )
    days = rng.geometric(1 / mean) - 1
    start = pd.to_datetime("2022-01-01") + pd.to_timedelta(rng.integers(0, 1000, count), "D")
    end = start + pd.to_timedelta(np.minimum(days, 60), "D")
    return pd.DataFrame(
        {
            "ward": ward,
            "age": rng.integers(18, 95, count),
            "admitted": start.strftime("%Y-%m-%d"),
            "discharged": end.strftime("%Y-%m-%d"),
        }
    )


def stay_figures(made: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    found = {}
    for of, rows in (("released", made), ("real", test)):
        days = (pd.to_datetime(rows["discharged"]) - pd.to_datetime(rows["admitted"])).dt.days
        found |= {f"discharge >= admission, {of}": float((days >= 0).mean())}
        found |= {
            f"mean days, {of}": float(days.mean()),
            f"spread of days, {of}": float(days.std()),
        }
    return found


def corr(one: str, two: str) -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    def figures(made: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
        return {
            f"corr({one}, {two}), {of}": float(rows[one].corr(rows[two]))
            for of, rows in (("released", made), ("real", test))
        }

    return figures


def diamond_figures(made: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    top = {f"carat, 99 % quantile, {of}": float(rows["carat"].quantile(0.99))
           for of, rows in (("released", made), ("real", test))}  # fmt: skip
    return corr("y", "z")(made, test) | top


def median(column: str) -> Callable[[pd.DataFrame, pd.DataFrame], dict[str, float]]:
    return lambda made, test: {
        f"median of {column}, {of}": float(rows[column].median())
        for of, rows in (("released", made), ("real", test))
    }


def digits(folder: Path) -> tuple[int, int]:
    from PIL import Image

    from limbeck import datasets

    found = datasets.load("mnist")
    for part, pictures, count in (("train", found.train, 2000), ("test", found.test, 1000)):
        for i in range(count):
            file = folder / part / str(pictures.labels[i]) / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pictures.images[i].squeeze()).save(file)
    return 2000, 28


def photos(folder: Path) -> tuple[int, int]:
    """Colour, grey, with transparency, of few colours; PNG and JPEG: as such folders grow."""
    from PIL import Image

    from limbeck import datasets

    found = datasets.load("cifar10")
    ways = (("RGB", "png"), ("RGB", "jpg"), ("L", "png"), ("RGBA", "png"), ("P", "png"))
    kinds = sorted(set(found.train.labels.tolist()))[:2]
    for part, pictures, count in (("train", found.train, 1000), ("test", found.test, 500)):
        for i in np.flatnonzero(np.isin(pictures.labels, kinds))[:count]:
            mode, ending = ways[i % len(ways)]
            file = folder / part / str(pictures.labels[i]) / f"{i}.{ending}"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pictures.images[i]).convert(mode).save(file)
    return 1000, 32


CUTS = category("Fair", "Good", "Very Good", "Premium", "Ideal")
YES = 'kind = "boolean"\nvalues = [0, 1]'
BANK = {
    "Branche": category("Köln", "Zürich", "Genève"),
    "Einkommen": number(1.0, 100000.0, scale="log", decimals=2),
    "eröffnet": 'kind = "date"\nmin = 2000-01-01\nmax = 2025-12-31\nformat = "%d.%m.%Y"',
    "Kredit": category("nein", "ja", kind="label"),
}
STAYS = Owner(
    stays,
    {
        "ward": category("Surgery", "Maternity", "Oncology", "General"),
        "age": number(18, 100),
        "admitted": 'kind = "date"\nmin = 2022-01-01\nmax = 2025-03-31',
        "discharged": 'kind = "date"\nmin = 2022-01-01\nmax = 2025-03-31',
    },
    rows=7200,
    figures=stay_figures,
    more='rules = ["discharged >= admitted"]\n',
)
DIAMONDS = Owner(
    of_file("diamonds"),
    {
        "carat": number(0, 6, decimals=2),
        "cut": CUTS,
        "color": category(*"DEFGHIJ"),
        "clarity": category("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        "depth": number(40, 80, decimals=1),
        "table": number(40, 100, decimals=1),
        "price": number(300, 20000, target=True, scale="log"),
        "x": number(0, 15, decimals=2),
        "y": number(0, 60, decimals=2),
        "z": number(0, 40, decimals=2),
    },
    rows=43000,
    figures=diamond_figures,
    split=2,
    note="Split with seed 2: no setting of `marginals` was chosen by looking at it (seeds 0 and 1 were looked at).",
)
FLCHAIN = Owner(
    of_file("flchain"),
    {
        "age": number(50, 105),
        "sex": category("F", "M"),
        "sample.yr": number(1995, 2003),
        "kappa": number(0, 30, scale="log", decimals=3),
        "lambda": number(0, 30, scale="log", decimals=3),
        "flc.grp": number(1, 10),
        "creatinine": number(0, 20, decimals=1, scale="log", missing=True),
        "mgus": YES,
        "futime": number(0, 6000),
        "death": category(0, 1, kind="label"),
        "chapter": 'kind = "category"\nvalues = "estimate"\nmissing = true',
    },
    rows=6300,
    note="Only the dead have a `chapter`, their cause of death: that death is always foretold says nothing.",
)
OWNERS = {
    "diamonds": DIAMONDS,
    "movies": Owner(
        of_file("movies"),
        {
            "title": 'kind = "text"',
            "year": number(1890, 2010),
            "length": number(1, 6000, scale="log"),
            "budget": number(0, 200000000, scale="log", missing=True),
            "rating": number(1, 10, decimals=1),
            "votes": number(5, 200000, scale="log"),
            "mpaa": category("PG", "PG-13", "R", "NC-17", missing=True),
            **{f"r{i}": number(0, 100, decimals=1) for i in range(1, 11)},
            "*": YES,
        },
        rows=47000,
        figures=median("votes"),
    ),
    "msq": Owner(
        of_file("msq"),
        {
            **{n: number(0, 33, missing=True) for n in ("EA", "TA", "PA", "NegAff")},
            **{
                n: number(0, 24, decimals=1, missing=True)
                for n in ("Extraversion", "Neuroticism", "Lie", "Sociability", "Impulsivity")
            },
            **{n: number(0, 48, decimals=2, missing=True) for n in ("MSQ_Round", "MSQ_Time", "TOD", "TOD24")},
            "condition": number(1, 5),
            "scale": category("msq", "r", missing=True),
            "exper": 'kind = "category"\nvalues = "estimate"\nmissing = true',
            "*": number(0, 3, missing=True),
        },
        rows=3100,
        ignore=("ID",),
    ),
    "Males": Owner(
        of_file("Males"),
        {
            "year": number(1980, 1987),
            "school": number(0, 20),
            "exper": number(0, 25),
            "union": category("no", "yes"),
            "ethn": category("other", "black", "hisp"),
            "married": category("no", "yes"),
            "health": category("no", "yes"),
            "wage": number(-4, 5, decimals=2, target=True),
            "industry": 'kind = "category"\nvalues = "estimate"',
            "occupation": 'kind = "category"\nvalues = "estimate"',
            "residence": category("rural_area", "north_east", "nothern_central", "south", missing=True),
        },
        rows=3500,
        more='\n[person]\ncolumn = "nr"\nrows_at_most = 8\npersons = 436\n',
        person="nr",
    ),
    "flchain": FLCHAIN,
    "lung": Owner(
        of_file("lung"),
        {
            "inst": number(1, 33, missing=True),
            "time": number(0, 1100),
            "status": category(1, 2, kind="label"),
            "age": number(30, 90),
            "sex": category(1, 2),
            "ph.ecog": number(0, 5, missing=True),
            "ph.karno": number(0, 100, step=10, missing=True),
            "pat.karno": number(0, 100, step=10, missing=True),
            "meal.cal": number(0, 3000, missing=True),
            "wt.loss": number(-50, 100, missing=True),
        },
        rows=180,
    ),
    "stays": STAYS,
    "stays, of 60 days at most": replace(
        STAYS, more='rules = ["discharged >= admitted", "discharged <= admitted + 60 days"]\n'
    ),
    "bank": Owner(
        bank, BANK, rows=6400, more="", writing={"sep": ";", "decimal": ",", "encoding": "latin-1"},
        figures=median("Einkommen"),
    ),
    "bank, read as if its decimals were points": Owner(
        bank, BANK | {"eröffnet": 'kind = "date"\nmin = 2000-01-01\nmax = 2025-12-31'},
        more='decimal = "."\n', rows=6400, stops=True,
        writing={"sep": ";", "decimal": ",", "encoding": "latin-1"},
    ),
    "bank, other words declared": Owner(
        bank, BANK | {"Kredit": category("Nein!", "Ja!", kind="label")}, rows=6400, stops=True,
        writing={"sep": ";", "decimal": ",", "encoding": "latin-1"},
    ),
    "flchain, gaps not declared": replace(
        FLCHAIN, answers={**FLCHAIN.answers, "creatinine": number(0, 20, decimals=1)}, stops=True, note=""
    ),
    "digits": Owner(
        None, {"image": picture(28, 1), "label": category(*range(10), kind="label")},
        rows=2000, pictures=digits, epsilon=8.0,
    ),
    "photos": Owner(
        None, {"image": picture(32, 3), "label": category("airplane", "automobile", kind="label")},
        rows=1000, pictures=photos, epsilon=8.0,
    ),
}  # fmt: skip


@dataclass
class Run:
    """Commands of one owner, in a fresh folder, with what each took."""

    folder: Path
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, *arguments: object) -> tuple[int, str]:
        world = os.environ | {
            "LIMBECK_LEDGER": str(self.folder / "ledger.sqlite"),
            "COLUMNS": "100",
        }
        start = time.perf_counter()
        with tempfile.TemporaryFile("w+") as out:
            command = [str(COMMAND), *map(str, arguments)]
            child = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out, env=world)
            _, status, usage = os.wait4(child.pid, 0)
            out.seek(0)
            said = out.read()
        code = os.waitstatus_to_exitcode(status)
        self.steps.append(
            {
                "command": " ".join(["limbeck", *map(str, arguments)]),
                "code": code,
                "seconds": round(time.perf_counter() - start, 1),
                "megabytes": round(usage.ru_maxrss / 1024),
                "traceback": "Traceback" in said,
            }
        )
        (self.folder / f"{len(self.steps)}-{arguments[0]}.txt").write_text(said)
        return code, said


def edited(draft: str, owner: Owner, name: str) -> str:
    """The draft as the owner fills it in."""
    head, *sections = draft.split("\n# One column may be")[0].split("[[column]]")
    head = re.sub(r'dataset = "\?"[^\n]*', f'dataset = "{name}"', head)
    head = re.sub(r'rows = "measure"[^\n]*', f"rows = {owner.rows}", head)
    head = re.sub(r"ignore = \[[^\n]*", f"ignore = {json.dumps(list(owner.ignore))}", head)
    head = head.replace("confirmed = false", "confirmed = true")
    top, tables = owner.more, ""
    if "\n[" in owner.more:
        top, tables = owner.more.split("\n[", 1)
        tables = "[" + tables
    if top.strip():
        head = re.sub(
            r"^(decimal|delimiter) = .*\n", lambda m: "" if m[1] in top else m[0], head, flags=re.M
        )
        head = head.replace("\n[lifetime]", f"\n{top}\n[lifetime]")
    parts = [head, tables]
    for section in sections:
        column = json.loads(re.search(r"name = (\".*\")", section)[1])  # type: ignore[index]
        if column == owner.person:
            continue
        answer = owner.answers.get(column, owner.answers.get("*"))
        parts.append(
            f"[[column]]\nname = {json.dumps(column, ensure_ascii=False)}\n{answer}\n"
            if answer
            else f"[[column]]{section}"
        )
    return "\n".join(parts)


def split(frame: pd.DataFrame, owner: Owner, folder: Path) -> int:
    """Writes rows.csv and test.csv, no person in both; how many rows the first has."""
    unit = frame[owner.person] if owner.person else pd.Series(np.arange(len(frame)))
    held = set(
        np.random.default_rng(owner.split).permutation(unit.unique())[
            : int(TEST_SHARE * unit.nunique())
        ]
    )
    test = unit.isin(held).to_numpy()
    writing: dict[str, Any] = {"index": False} | dict(owner.writing)
    frame[~test].to_csv(folder / "rows.csv", **writing)
    frame[test].to_csv(folder / "test.csv", **writing)
    return int((~test).sum())


def run_owner(name: str, owner: Owner, data: Path) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="owners-"))
    frame = owner.frame(data) if owner.frame else None
    if owner.pictures:
        rows, columns = owner.pictures(folder)
    elif frame is None:
        return {"name": name, "not run": "its file is not in the folder"}
    else:
        rows, columns = split(frame, owner, folder), frame.shape[1]
    found = {"name": name, "rows": rows, "columns": columns, "epsilon": owner.epsilon}
    found["pictures"] = owner.pictures is not None
    found["measured"] = time.strftime("%Y-%m-%d")
    return found | commands(name, owner, folder)


def commands(name: str, owner: Owner, folder: Path) -> dict[str, Any]:
    """All commands in their order, and what they gave."""
    run = Run(folder)
    real, test = ("train", "test") if owner.pictures else ("rows.csv", "test.csv")
    encoding = ("--encoding", owner.writing["encoding"]) if "encoding" in owner.writing else ()
    print(name, folder, flush=True)
    _, draft = run("schema", real, *encoding)
    (folder / "schema.toml").write_text(edited(draft, owner, name))
    base = (real, "--schema", "schema.toml")
    _, checked = run("check", *base)
    run("plan", *base, "--epsilon", owner.epsilon)
    code, said = run("distill", *base, "--epsilon", owner.epsilon, "--out", "release")
    verdict = [line.strip() for line in checked.splitlines()]
    found: dict[str, Any] = {"check": [v for v in verdict if v], "steps": run.steps}
    if code or owner.stops:
        found["distill said"] = said.strip()[-700:]
        _, ledger = run("ledger")
        found["ledger"] = ledger.strip()[-500:]
    if code:
        return found
    run("verify", "release")
    run("evaluate", "release", "--test", test, "--train", real, "--out", "scores.json")
    run("report", "release", "--scores", "scores.json", "--test", test, "--out", "report.html")
    more = "more.npz" if owner.pictures else "more.csv"
    run("sample", "release", "--rows", 1000, "--out", more)
    reading = {k: v for k, v in owner.writing.items() if k != "index"}
    if (folder / "release/data.csv").exists():
        made, kept = (pd.read_csv(folder / f, **reading) for f in ("release/data.csv", "test.csv"))
        found["figures"] = owner.figures(made, kept)
    if (folder / "scores.json").exists():
        scores = json.loads((folder / "scores.json").read_text())["scores"]
        found["scores"] = [{k: s[k] for k in ("name", "figure", "of", "mean")} for s in scores]
    return found


def of_score(found: Mapping[str, Any]) -> list[str]:
    """A line per score: released against real, or the distance between them."""
    lines: dict[str, dict[str, float]] = {}
    for score in found.get("scores", []):
        lines.setdefault(f"{score['name']}: {score['figure']}", {})[score["of"]] = score["mean"]
    return [
        f"| {name} | {' | '.join(f'{means[of]:.3g}' if of in means else '' for of in ('released', 'real', 'between'))} |"
        for name, means in lines.items()
    ]  # fmt: skip


def table(owners: Sequence[Mapping[str, Any]]) -> str:
    """What was seen, as a page."""
    lines = [
        "Real rows for comparison are as many as were released. MB is a command's peak, and never less than that",
        "of the script which ran it. Other work shared the machine, so seconds are upper bounds.",
        "",
    ]
    for found in owners:
        lines += [f"## {found['name']}", ""]
        if "not run" in found:
            lines += [f"*Not run*: {found['not run']}.", ""]
            continue
        lines += [OWNERS[found["name"]].note, ""]
        of = "pixels wide and high" if found.get("pictures") else "columns"
        lines += [
            f"{found['rows']} rows, {found['columns']} {of}, epsilon {found['epsilon']:g}; {found['measured']}.",
            "",
        ]
        lines += ["| command | code | s | MB |", "|---|---|---|---|"]
        lines += [
            f"| `{s['command']}` | {s['code']} | {s['seconds']} | {s['megabytes']} |"
            for s in found["steps"]
        ]
        lines += ["", "`check` said:", "", "```text", *found["check"], "```", ""]
        for part in ("distill said", "ledger"):
            if part in found:
                lines += [f"{part}:", "", "```text", found[part], "```", ""]
        lines += [f"- {name}: {value:.4g}" for name, value in found.get("figures", {}).items()] + [
            ""
        ]
        if scores := of_score(found):
            head = "| score | released | real, as many rows | between |"
            lines += [head, "|---|---|---|---|", *scores, ""]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="", help="names, with ; between them")
    given = parser.parse_args()
    path = HERE / "owners.json"
    for name in given.only.split(";") if given.only else OWNERS:
        found = run_owner(name, OWNERS[name], given.data)
        kept = json.loads(path.read_text())["owners"] if path.exists() else []  # others add to it
        seen = {one["name"]: one for one in kept} | {name: found}
        waiting = {"not run": "in this run of the script"}
        owners = [seen.get(one, {"name": one} | waiting) for one in OWNERS]
        keep("owners", {"owners": owners}, table(owners))


if __name__ == "__main__":
    main()
