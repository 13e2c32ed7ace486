"""The verb about what can be run: methods, and recipes that come with the package."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..errors import LimbeckError
from . import options as opt
from .show import console, print_json, show_table

if TYPE_CHECKING:
    from ..methods import AbstractMethod
    from ..schema import Schema


def methods(
    name: Annotated[
        str,
        typer.Argument(help="A method: shows its settings, too. All without.", show_default=False),
    ] = "",
    recipes: Annotated[
        bool, typer.Option("--recipes", help="The recipes that come with limbeck, for --recipe.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Say which methods there are: what each is good for, takes and measures, and its paper.

    Methods that installed packages bring are among them.
    """
    if recipes:
        _list_recipes(name, as_json)
        return
    from ..methods import METHODS, method_class

    if name:
        method_class(name)  # an unknown name is said at once
    facts = [method_facts(each) for each in ([name] if name else METHODS)]
    if as_json:
        print_json(facts)
        return
    for fact in facts:
        _show_method(fact)
    if name and "settings" in facts[0]:
        show_table(("setting", "default"), [(k, str(v)) for k, v in facts[0]["settings"].items()])
    if not name:
        console.print(
            "Settings: `limbeck methods NAME`. Without --method, `distill` takes the default for "
            "the kind of data."
        )


def method_facts(name: str) -> dict[str, Any]:
    """What is known of a method without any rows; of one that cannot be loaded, why."""
    from ..methods import METHODS, origin

    try:
        kind = METHODS[name]
        settings = kind().settings()
    except (LimbeckError, TypeError) as error:
        return {"name": name, "cannot_be_used": str(error)}
    return {
        "name": name,
        "what": " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split()),
        "good_for": kind.good_for,
        "family": _family(kind),
        "data_kinds": list(kind.data_kinds),
        "private": not kind.needs_bare_rows,
        "measures": _measures(kind),
        "papers": list(kind.papers),
        "package": origin(kind)["name"],
        "settings": settings,
    }


def _family(kind: type[AbstractMethod]) -> str:
    rooms = kind.__module__.split(".")
    return kind.family or (rooms[2] if rooms[:2] == ["limbeck", "methods"] else rooms[0]).replace(
        "_", " "
    )


def _measures(kind: type[AbstractMethod]) -> list[str]:
    """Names of what it asks about a small table and image set, without their numbers."""
    if kind.needs_bare_rows:
        return []
    names: list[str] = []
    for data_kind in kind.data_kinds:
        try:
            asked = kind().questions(_small(data_kind))
        except LimbeckError:  # it wants other data than these: its documentation must say
            continue
        names += [charge.name for one in asked for charge in one.question.measured()]
    return list(dict.fromkeys(re.sub(r"[ /]\d+$", "", name) for name in names))


def _small(data_kind: str) -> Schema:
    from ..schema import Category, Image, Numeric, Schema

    label = Category(name="label", values=("a", "b"), label=True)
    columns = tuple(Numeric(name=f"column {i}", min=0.0, max=1.0) for i in range(4))
    inputs = (Image(height=28, width=28),) if data_kind == "images" else columns
    return Schema(dataset="small", rows=10_000, columns=(*inputs, label))


def _show_method(fact: dict[str, Any]) -> None:
    console.print(f"[bold]{escape(fact['name'])}[/]")
    if "cannot_be_used" in fact:
        console.print(f"  [yellow]cannot be used:[/] {escape(fact['cannot_be_used'])}")
        return
    measures = ", ".join(fact["measures"]) or "see its documentation"
    lines = {
        "good for": fact["good_for"],
        "what": fact["what"],
        "family": f"{fact['family']}; takes {' and '.join(fact['data_kinds'])}",
        "measures": measures if fact["private"] else "nothing: it reads the bare rows",
        "papers": "\n".join(fact["papers"]) or f"none: a method of {fact['package']}",
    }
    show_table(("", ""), [(f"  {k}", v) for k, v in lines.items() if v], heads_shown=False)


def _list_recipes(name: str, as_json: bool) -> None:
    from ..run import packaged_recipes

    facts = [_recipe_facts(stem, path) for stem, path in packaged_recipes().items()]
    facts = [fact for fact in facts if name in ("", fact["method"])]
    if not facts:
        raise LimbeckError(f"There is no packaged recipe of the method '{name}'.")
    if as_json:
        print_json(facts)
        return
    rows = [(fact["name"], fact["method"], ", ".join(fact["variants"])) for fact in facts]
    show_table(("recipe", "method", "variants"), rows)
    console.print("Use one as --recipe NAME, a variant as --recipe NAME#VARIANT.")


def _recipe_facts(name: str, path: Path) -> dict[str, Any]:
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        "name": name,
        "method": recipe["method"],
        "variants": list(recipe.get("variants", {})),
        "settings_source": recipe.get("settings_source", ""),
    }
