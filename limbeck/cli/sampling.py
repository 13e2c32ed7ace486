"""The verb that draws more rows from a finished release: sample."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LimbeckError
from . import options as opt
from .show import console, print_json, say_what_is_open

if TYPE_CHECKING:
    import pandas as pd

    from ..release import Images, Release


def sample(
    release: opt.ReleasePath,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="File for the rows: .csv or .parquet; images .npz.", show_default=False
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", help="How many rows; with --like as many as it has.", show_default=False
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="Which rows: 'ward=Oncology', 'ward=A|B', 'ward!=A', 'age>=40'; may be repeated, all "
            "must hold.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like",
            help="CSV or Parquet file with some of the columns: its rows are completed.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--classes",
            help="'even', or the share of a class as VALUE=SHARE; may be repeated.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws other rows.")] = 0,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Draw more rows from a release: of your choice, and at no cost of privacy."""
    import limbeck as lk

    from ..outside import place_outside

    if out.exists() and not force:
        raise LimbeckError(f"{out} exists already. Choose another file, or pass --force.")
    place = place_outside(out, "the rows")
    say_what_is_open(release)
    given = lk.Release.load(release)
    ends = (".npz",) if given.schema.image else (".csv", ".parquet")
    if place.suffix not in ends:
        raise LimbeckError(f"Expected --out to end in {' or '.join(ends)}, got {out}.")
    drawn = given.sample(rows, where=where, like=like, classes=_shares(classes), seed=seed)
    _write(given, drawn, place)
    count = len(drawn.labels) if isinstance(drawn, lk.Images) else len(drawn)
    guarantee = given.certificate["guarantee"]
    if as_json:
        print_json({"rows": count, "out": str(out), "guarantee": guarantee})
        return
    console.print(f"{count:,} rows: {out}", markup=False)
    console.print(
        f"Drawn from what is released: nothing was measured, and epsilon stays {guarantee['epsilon']}."
    )
    if reasons := given.certificate["not_releasable_because"]:
        why_not = "; ".join(reasons)
        console.print(f"Not for release, as what they come from: {why_not}.", markup=False)


def _shares(given: list[str] | None) -> Any:
    """What --classes says: a word, or shares by the names of classes."""
    if not given or given == ["even"]:
        return "even" if given else None
    shares = {}
    for text in given:
        value, equals, share = text.rpartition("=")
        try:
            shares[value] = float(share)
        except ValueError:
            equals = ""
        if not equals:
            raise LimbeckError(f"Expected --classes even or --classes VALUE=SHARE, got '{text}'.")
    return shares


def _write(release: Release, drawn: pd.DataFrame | Images, place: Path) -> None:
    """Write the rows, whole or not at all."""
    import numpy as np

    import limbeck as lk

    from ..data import save_rows

    try:
        with tempfile.TemporaryDirectory(prefix=f".{place.name[:40]}-", dir=place.parent) as folder:
            partial = Path(folder) / f"rows{place.suffix}"
            if isinstance(drawn, lk.Images):
                arrays = drawn._asdict() if release.schema.label else {"images": drawn.images}
                np.savez_compressed(partial, **arrays)
            else:
                save_rows(drawn, release.schema, partial)
            os.replace(partial, place)
    except OSError as error:
        raise LimbeckError(f"Cannot write {place}: {error.strerror}.") from None
