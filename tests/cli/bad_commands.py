"""Commands and options that are refused."""

from __future__ import annotations

from desk import CSV, Case, filled_folder

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
    (
        "a model of no rows",
        lambda d: [
            "classify",
            "none.csv",
            "--schema",
            str(d.schema()),
            "--epsilon",
            "1",
            "--out",
            "o",
        ],
        ("No file", "none.csv"),
    ),
    (
        "a model by a method of rows",
        lambda d: [
            "classify",
            str(d.file("people.csv", CSV)),
            "--schema",
            str(d.schema()),
            "--epsilon",
            "1",
            "--method",
            "marginals",
            "--out",
            str(d.out),
        ],
        ("marginals makes rows", "limbeck distill"),
    ),
    (
        "rows by a method of models",
        lambda d: d.distill("--method", "linear-head"),
        ("linear-head makes a model", "limbeck classify"),
    ),
    (
        "predictions by rows",
        lambda d: ["predict", str(d.release()), str(d.file("people.csv", CSV)), "--out", "p.csv"],
        ("holds no model", "limbeck classify"),
    ),
    (
        "predictions of another kind",
        lambda d: ["predict", "model", str(d.file("people.csv", CSV)), "--out", "p.xlsx"],
        (".csv", "p.xlsx"),
    ),
    ("audit of no method", lambda d: ["audit", "--method", "iris"], ("'iris'", "Known:")),
    ("draft of nothing", lambda d: ["schema", "none.csv"], ("No file", "none.csv")),
    ("draft of a text", lambda d: ["schema", str(d.file("a.doc", ""))], ("a.doc", ".csv")),
    (
        "draft of twice",
        lambda d: ["schema", str(d.file("a.csv", "a,a\n"))],
        ("columns 1 and 2", "same name"),
    ),
    (
        "check of nothing",
        lambda d: ["check", "none.csv", "--schema", str(d.schema())],
        ("No file", "none.csv"),
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
