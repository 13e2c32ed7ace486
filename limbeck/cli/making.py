"""The verbs that lead to a release: schema, check, plan, distill, redistill."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LimbeckError
from . import options as opt
from .show import (
    booked,
    console,
    finite,
    print_json,
    progress_bars,
    say_what_is_open,
    show_blindness,
    show_look,
    show_plan,
    show_refusal,
    show_release,
    show_spent,
)

if TYPE_CHECKING:
    from ..planning import Plan


def schema(
    data: opt.DataPath,
    names_are_right: Annotated[
        bool,
        typer.Option("--names-are-right", help="Column names that look like values are names."),
    ] = False,
    encoding: Annotated[
        str, typer.Option("--encoding", help="How a CSV file is written, such as cp1252.")
    ] = "utf-8",
) -> None:
    """Draft a schema: names and kinds; bounds and values are left for you to declare."""
    from ..data import draft_schema

    sys.stdout.write(draft_schema(data, names_are_right=names_are_right, encoding=encoding))


def check(data: opt.DataPath, schema: opt.SchemaPath, as_json: opt.AsJson = False) -> None:
    """Look whether the rows fit their schema. For your eyes alone: noted, and told by later certificates.

    Exit code 2: `distill` would stop, since most cells of a column do not fit, or over a tenth of them are empty
    where no gaps are declared, or since hardly any rows could be read.
    """
    import limbeck as lk

    look = lk.check(lk.read(data, schema))
    if as_json:
        print_json(look.facts())
    else:
        show_look(look)
    if look.unusable or look.too_few:
        raise typer.Exit(2)


def plan(
    data: opt.DataPlace,
    schema: opt.SchemaPath,
    epsilon: opt.Epsilon,
    delta: opt.Delta = None,
    method: opt.MethodName = None,
    recipe: opt.RecipePath = None,
    per_class: opt.PerClass = None,
    setting: opt.Settings = None,
    no_check: opt.NoCheck = False,
    engine: opt.EngineName = "local",
    master: opt.Master = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show what would be spent on what. Reads the schema and column names, no rows."""
    import limbeck as lk

    declared = lk.Schema.load(schema)
    settings = opt.read_settings(per_class, setting)
    chosen = opt.choose_recipe(method, recipe, settings, declared)
    dataset = lk.read(data, declared, engine=engine, master=master)
    budget = opt.read_budget(epsilon, delta, chosen.adjacency, declared)
    planned = lk.plan(
        chosen.method, dataset.schema, budget, check=not no_check, engine=dataset.engine_name
    )
    refusal = refusal_of(planned)
    if as_json:
        print_json(
            {
                "charges": [c.facts() for c in planned.charges],
                "epsilon": finite(planned.cost.epsilon),
                "delta": budget.delta,
                "check_epsilon": None if no_check else finite(planned.check_cost.epsilon),
                "refused_because": refusal,
            }
        )
        return
    show_plan(planned)
    if account := lk.Ledger().account(dataset.schema.dataset):
        show_spent(account)
    if refusal:
        show_refusal(refusal)


def refusal_of(planned: Plan) -> str | None:
    """Why the ledger would not admit a run of this plan; None if it would."""
    from ..ledger import Ledger, planned_run

    schema = planned.schema
    try:
        Ledger().check(schema.dataset, schema.lifetime, planned_run(planned))
    except LimbeckError as error:
        return str(error)
    return None


def distill(
    data: opt.DataPlace,
    schema: opt.SchemaPath,
    epsilon: opt.Epsilon,
    out: opt.OutFolder,
    delta: opt.Delta = None,
    method: opt.MethodName = None,
    recipe: opt.RecipePath = None,
    per_class: opt.PerClass = None,
    setting: opt.Settings = None,
    candidates: opt.Tune = None,
    seed: opt.Seed = None,
    force: opt.Force = False,
    non_private: opt.NonPrivate = False,
    pay_again: opt.PayAgain = False,
    no_check: opt.NoCheck = False,
    engine: opt.EngineName = "local",
    master: opt.Master = None,
    as_json: opt.AsJson = False,
) -> None:
    """Make a private release from a data set."""
    import limbeck as lk

    declared = lk.Schema.load(schema)
    settings = opt.read_settings(per_class, setting)
    chosen = opt.choose_recipe(method, recipe, settings, declared)
    tried = opt.read_candidates(chosen.method, candidates)
    if tried and non_private:
        raise LimbeckError("--tune chooses within a budget; leave --non-private out.")
    if tried and chosen.unpaid:
        raise LimbeckError(f"--tune takes no recipe with unpaid settings: {chosen.unpaid}.")
    budget = opt.read_budget(epsilon, delta, chosen.adjacency, declared)
    dataset = lk.read(data, declared, engine=engine, master=master)
    steps = steps_of(lk.plan(chosen.method, dataset.schema, budget)) if console.is_terminal else {}
    if not (no_check or tried or as_json or non_private):
        show_blindness(lk.plan(chosen.method, dataset.schema, budget, check=True))
    common: dict[str, Any] = {
        "out": out, "rows": chosen.rows, "seed": seed, "force": force, "pay_again": pay_again,
        "check": not no_check,
    }  # fmt: skip
    source = chosen.settings_source
    with progress_bars(quiet=as_json, steps=steps, spent=booked(epsilon)) as common["progress"]:
        if tried:
            source += f"; {len(tried)} declared candidates, chosen privately"
            release = lk.tune(dataset, tried, budget, settings_source=source, **common)
        else:
            common |= {"unpaid": chosen.unpaid, "non_private": non_private}
            release = lk.distill(dataset, chosen.method, budget, settings_source=source, **common)
    if as_json:
        print_json({"release": str(out), "guarantee": release.certificate["guarantee"]})
    else:
        show_release(release, out)


def steps_of(planned: Plan) -> dict[str, int]:
    """How often each measurement of a plan is repeated: its progress counts these."""
    steps = {c.name: c.steps for c in planned.charges}
    return steps | {p.question.name: p.question.steps for p in planned.questions}


def redistill(
    release: opt.ReleasePath,
    out: opt.OutFolder,
    per_class: opt.PerClass = None,
    setting: opt.Settings = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Make another set from a release's own measurements: no rows, no cost of privacy."""
    import limbeck as lk

    say_what_is_open(release)
    given = lk.Release.load(release)
    settings = opt.read_settings(per_class, setting)
    with progress_bars(quiet=as_json, spent="nothing is spent") as report:
        another = lk.redistill(given, settings, out=out, force=force, progress=report)
    if as_json:
        print_json({"release": str(out), "guarantee": another.certificate["guarantee"]})
    else:
        show_release(another, out)
        console.print("Nothing was measured and nothing was spent.")
