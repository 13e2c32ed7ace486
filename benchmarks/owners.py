"""Data sets as their owners have them, taken all the way through the command line.

    python benchmarks/owners.py --data FOLDER [--only diamonds,movies]

For each: `limbeck schema`, the owner's edit of the draft, `check`, `plan`, `distill`, `verify`, `evaluate`,
`report` and `sample`, in a fresh folder with a ledger of its own. FOLDER holds CSV files of the package
pydataset (`data("diamonds").to_csv("diamonds.csv", index=False)`, and so on); what is not there is not run. Files
of a bank and of hospital stays are made here. Results: owners.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
COMMAND = Path(sys.executable).with_name("limbeck")
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Owner:
    """A data set, and what its owner knows of it."""

    frame: Callable[[Path], pd.DataFrame | None]
    """Makes it, or reads it from the folder; None: not there."""
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
    stops: bool = False
    """Whether its schema is wrong on purpose, so that `distill` has to stop or to warn."""


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


CUTS = category("Fair", "Good", "Very Good", "Premium", "Ideal")
YES = 'kind = "boolean"\nvalues = [0, 1]'
BANK = {
    "Branche": category("Köln", "Zürich", "Genève"),
    "Einkommen": number(1.0, 100000.0, scale="log", decimals=2),
    "eröffnet": 'kind = "date"\nmin = 2000-01-01\nmax = 2025-12-31\nformat = "%d.%m.%Y"',
    "Kredit": category("nein", "ja", kind="label"),
}
OWNERS = {
    "diamonds": Owner(
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
    ),
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
    "flchain": Owner(
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
    ),
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
    "stays": Owner(
        stays,
        {
            "ward": category("Surgery", "Maternity", "Oncology", "General"),
            "age": number(18, 100),
            "admitted": 'kind = "date"\nmin = 2022-01-01\nmax = 2025-03-31',
            "discharged": 'kind = "date"\nmin = 2022-01-01\nmax = 2025-03-31',
        },
        rows=7200,
        figures=stay_figures,
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
    "lung, gaps not declared": Owner(
        lambda folder: None if (found := of_file("flchain")(folder)) is None else found[["age", "sex", "creatinine"]],
        {"age": number(50, 105), "sex": category("F", "M"), "creatinine": number(0, 20, decimals=1)},
        rows=6300, stops=True,
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
    if "[" in owner.more:
        top, tables = owner.more.split("[", 1)
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


def run_owner(name: str, owner: Owner, data: Path, epsilon: float) -> dict[str, Any]:
    frame = owner.frame(data)
    if frame is None:
        return {"name": name, "not run": "its file is not in the folder"}
    folder = Path(tempfile.mkdtemp(prefix="owners-"))
    run = Run(folder)
    unit = frame[owner.person] if owner.person else pd.Series(np.arange(len(frame)))
    held = set(
        np.random.default_rng(0).permutation(unit.unique())[: int(TEST_SHARE * unit.nunique())]
    )
    test = unit.isin(held).to_numpy()
    writing: dict[str, Any] = {"index": False} | dict(owner.writing)
    frame[~test].to_csv(folder / "rows.csv", **writing)
    without = frame[test].drop(columns=[owner.person]) if owner.person else frame[test]
    without.to_csv(folder / "test.csv", **writing)
    encoding = ("--encoding", owner.writing["encoding"]) if "encoding" in owner.writing else ()
    _, draft = run("schema", "rows.csv", *encoding)
    (folder / "schema.toml").write_text(edited(draft, owner, name))
    base = ("rows.csv", "--schema", "schema.toml")
    _, checked = run("check", *base)
    run("plan", *base, "--epsilon", epsilon)
    code, said = run("distill", *base, "--epsilon", epsilon, "--out", "release")
    found: dict[str, Any] = {
        "name": name, "rows": int((~test).sum()), "columns": frame.shape[1], "epsilon": epsilon,
        "check": [line.strip() for line in checked.splitlines() if line.strip()][-6:], "steps": run.steps,
    }  # fmt: skip
    if code or owner.stops:
        found["distill said"] = said.strip()[-700:]
        _, ledger = run("ledger")
        found["ledger"] = ledger.strip()[-500:]
    if code:
        return found
    run("verify", "release")
    run("evaluate", "release", "--test", "test.csv", "--train", "test.csv", "--out", "scores.json")
    run(
        "report", "release", "--scores", "scores.json", "--test", "test.csv", "--out", "report.html"
    )
    run("sample", "release", "--rows", 1000, "--out", "more.csv")
    reading = {k: v for k, v in owner.writing.items() if k != "index"}
    made = (
        pd.read_csv(folder / "release/data.csv", **reading)
        if (folder / "release/data.csv").exists()
        else None
    )
    if made is not None:
        found["figures"] = owner.figures(made, pd.read_csv(folder / "test.csv", **reading))
    if (folder / "scores.json").exists():
        scores = json.loads((folder / "scores.json").read_text())["scores"]
        found["scores"] = [{k: s[k] for k in ("name", "figure", "of", "mean")} for s in scores]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    path = HERE / "owners.json"
    kept = json.loads(path.read_text())["owners"] if path.exists() and given.only else []
    wanted = given.only.split(";") if given.only else list(OWNERS)
    for name in wanted:
        found = run_owner(name, OWNERS[name], given.data, given.epsilon)
        kept = [one for one in kept if one["name"] != name] + [found]
        path.write_text(
            json.dumps({"machine": platform.platform(), "owners": kept}, indent=1) + "\n"
        )
        print(
            name,
            json.dumps({k: found.get(k) for k in ("figures", "distill said", "not run")}),
            flush=True,
        )
        for step in found.get("steps", []):
            print(
                "  ",
                step["code"],
                step["seconds"],
                step["megabytes"],
                step["command"],
                "TRACEBACK" if step["traceback"] else "",
                flush=True,
            )


if __name__ == "__main__":
    main()
