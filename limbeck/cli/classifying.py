"""The verbs of those who want a model and no rows: classify, predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import LimbeckError
from . import options as opt
from .making import steps_of
from .show import (
    booked,
    console,
    print_json,
    progress_bars,
    say_what_is_open,
    show_blindness,
    show_release,
)


def classify(
    data: opt.DataPlace,
    schema: opt.SchemaPath,
    epsilon: opt.Epsilon,
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    delta: opt.Delta = None,
    method: Annotated[
        str, typer.Option("--method", help="linear-head, or dp-sgd: see `limbeck methods`.")
    ] = "linear-head",
    recipe: opt.RecipePath = None,
    setting: opt.Settings = None,
    seed: opt.Seed = None,
    force: opt.Force = False,
    non_private: opt.NonPrivate = False,
    pay_again: opt.PayAgain = False,
    no_check: opt.NoCheck = False,
    engine: opt.EngineName = "local",
    master: opt.Master = None,
    as_json: opt.AsJson = False,
) -> None:
    """Train a private classifier of the label: a model and no rows. `plan --method` says what it costs."""
    import limbeck as lk

    declared = lk.Schema.load(schema)
    named = None if recipe is not None and method == "linear-head" else method
    chosen = opt.choose_recipe(named, recipe, opt.read_settings(None, setting), declared)
    budget = opt.read_budget(epsilon, delta, chosen.adjacency, declared)
    dataset = lk.read(data, declared, engine=engine, master=master)
    given: dict[str, Any] = {
        "out": out, "seed": seed, "force": force, "non_private": non_private, "pay_again": pay_again,
        "check": not no_check, "settings_source": chosen.settings_source, "unpaid": chosen.unpaid,
    }  # fmt: skip
    steps = {}
    if console.is_terminal:
        steps = steps_of(lk.plan(chosen.method, dataset.schema.without_rules(), budget))
    if not (no_check or as_json or non_private):
        planned = lk.plan(chosen.method, dataset.schema.without_rules(), budget, check=True)
        show_blindness(planned)
    with progress_bars(quiet=as_json, steps=steps, spent=booked(epsilon)) as report:
        model = lk.classify(dataset, chosen.method, budget, progress=report, **given)
    if as_json:
        print_json({"release": str(out), "guarantee": model.certificate["guarantee"]})
    else:
        show_release(model, out)


def predict(
    model: Annotated[Path, typer.Argument(help="Folder of a model.", show_default=False)],
    rows: Annotated[
        Path,
        typer.Argument(
            help="Rows to predict; their label may be left out, and is not looked at.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="File for the predictions (.csv).", show_default=False)
    ],
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Predict rows by a model: it costs those it learned from nothing. The rows predicted are yours to protect."""
    import limbeck as lk

    from ..outside import place_outside, write_outside

    if out.exists() and not force:
        raise LimbeckError(f"{out} exists already. Choose another file, or pass --force.")
    if out.suffix != ".csv":
        raise LimbeckError(f"Expected --out to end in .csv, got {out}.")
    place_outside(out, "the predictions")
    say_what_is_open(model)
    given = lk.Model.load(model)
    predicted = given.predict(rows)
    write_outside(out, predicted.to_csv(index=False), "the predictions")
    if as_json:
        print_json({"rows": len(predicted), "out": str(out), "predicts": given.label})
    else:
        console.print(f"{len(predicted):,} predictions of '{given.label}': {out}", markup=False)
