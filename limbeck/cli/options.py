"""Options that several verbs share, and what their texts mean: settings, recipes, candidates."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LimbeckError

if TYPE_CHECKING:
    from ..accounting import Budget
    from ..methods import AbstractMethod
    from ..run import Recipe
    from ..schema import Schema

DataPath = Annotated[
    Path, typer.Argument(help="CSV, Parquet, npz or idx file, or folder.", show_default=False)
]
DataPlace = Annotated[
    str,
    typer.Argument(
        help="CSV, Parquet, npz or idx file, or folder; for other engines a path or URL of theirs.",
        show_default=False,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="What sums over rows: local; spark, for Parquet that a cluster can read; sql, for marginals of "
        "duckdb:///FILE#TABLE or postgresql://USER@HOST/BASE#TABLE.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master", help="Of the Spark cluster, such as spark://host:7077.", show_default=False
    ),
]
SchemaPath = Annotated[
    Path, typer.Option("--schema", help="The schema (TOML).", show_default=False)
]
ReleasePath = Annotated[Path, typer.Argument(help="Folder of a release.", show_default=False)]
OutFolder = Annotated[
    Path, typer.Option("--out", help="Folder for the release.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method", help="Method, such as marginals: see `limbeck methods`.", show_default=False
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Privacy budget.", show_default=False)]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Chance that the bound may fail; by default a power of ten below 1/(10 rows), and "
        "1e-5 at most.",
        show_default=False,
    ),
]
RecipePath = Annotated[
    Path | None,
    typer.Option(
        "--recipe",
        help="Method and settings: a TOML file, or a name from `limbeck methods --recipes`.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of the method, as NAME=VALUE; may be repeated.",
        show_default=False,
    ),
]
PerClass = Annotated[
    int | None,
    typer.Option(
        "--per-class", help="Rows per class, for methods that distill a set.", show_default=False
    ),
]
Tune = Annotated[
    list[str] | None,
    typer.Option(
        "--tune",
        help="Choose a setting privately, as NAME=[VALUE, VALUE]; may be repeated.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Reproducible noise: not for release.", show_default=False),
]
NonPrivate = Annotated[bool, typer.Option("--non-private", help="Allow --epsilon inf.")]
PayAgain = Annotated[
    bool,
    typer.Option(
        "--pay-again", help="Give up an unfinished run of the same kind, which stays booked."
    ),
]
NoCheck = Annotated[
    bool,
    typer.Option("--no-check", help="Do not hold the file against its schema first, with noise."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def read_settings(per_class: int | None, given: list[str] | None) -> dict[str, Any]:
    """Settings named on the command line; values are read as TOML, bare words as text."""
    settings: dict[str, Any] = {} if per_class is None else {"per_class": per_class}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise LimbeckError(f"Expected --set NAME=VALUE, got '{text}'.")
        try:
            settings[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name.strip()] = value.strip()
    return settings


def read_budget(epsilon: float, delta: float | None, adjacency: str, schema: Schema) -> Budget:
    """Epsilon and delta; where no delta was named, one that suits the declared rows."""
    from ..accounting import Budget, default_delta

    return Budget(epsilon, default_delta(schema.units) if delta is None else delta, adjacency)


def choose_recipe(
    method: str | None, path: Path | None, settings: dict[str, Any], schema: Schema
) -> Recipe:
    """What to run: the recipe that is named, else the method, else the default for such data."""
    from ..methods import default_method, overlaid
    from ..run import Recipe, make_method

    if path is None:
        chosen = make_method(method or default_method(schema), settings)
        return Recipe(method=chosen, settings_source="command line" if settings else "defaults")
    recipe = Recipe.load(path)
    if method is not None and method != recipe.method.name:
        raise LimbeckError(
            f"--method {method} contradicts the recipe, which says {recipe.method.name}."
        )
    if settings:
        changed = make_method(recipe.method.name, overlaid(recipe.method.settings(), settings))
        source = f"{recipe.settings_source}; {', '.join(settings)} from the command line"
        return replace(recipe, method=changed, settings_source=source)
    return recipe


def read_candidates(method: AbstractMethod, given: list[str] | None) -> list[AbstractMethod]:
    """Every combination of the values that --tune names, each as the method with these settings."""
    from ..methods import overlaid
    from ..run import make_method

    if not given:
        return []
    values = read_settings(None, given)
    for name, several in values.items():
        if not isinstance(several, list) or len(several) < 2:
            raise LimbeckError(
                f"Expected --tune {name}=[VALUE, VALUE, ...] with two values or more, got '{several}'."
            )
    return [
        make_method(
            method.name, overlaid(method.settings(), dict(zip(values, combined, strict=True)))
        )
        for combined in itertools.product(*values.values())
    ]
