"""The laws every method keeps. A new method joins by adding one row to `CASES`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from helpers import (
    FEW,
    TEACH,
    TINY,
    TINY_HERMITE,
    TINY_SET,
    TINY_TANGENT,
    folder_bytes,
    image_rows,
    image_schema,
    table_rows,
    table_schema,
)

import limbeck as lk
from limbeck.audits.small import SMALL
from limbeck.methods import AbstractMethod
from limbeck.privacy import Noise


@dataclass(frozen=True)
class Case:
    """A method on a kind of data: how to make rows, and rows as unlike them as can be."""

    name: str
    method: AbstractMethod
    schema: lk.Schema
    rows: Callable[[], object]
    other: Callable[[], object]

    def dataset(self, rows: object) -> lk.Dataset:
        return lk.read(rows, self.schema)


def _unlike_table() -> pd.DataFrame:
    rows = table_rows(31, seed=9)
    rows["ill"] = "unsure"
    rows["income"] = np.nan
    rows["town"] = "nowhere"
    return rows


def _unlike_images() -> tuple[np.ndarray, np.ndarray]:
    images, labels = image_rows(13, seed=9)
    return 255 - images, np.full_like(labels, 2)


def _table(name: str, method: AbstractMethod, **schema: object) -> Case:
    return Case(name, method, table_schema(**schema), lambda: table_rows(150), _unlike_table)


def _images(name: str, method: AbstractMethod) -> Case:
    return Case(name, method, image_schema(), lambda: image_rows(60), _unlike_images)


def _estimating(name: str, method: AbstractMethod) -> Case:
    columns = table_schema().columns
    estimated = (
        lk.Numeric(name="income", outer=(-1e6, 1e6)),
        lk.Category(name="town", most=10, missing=True),
    )
    named = {c.name: c for c in estimated}
    return _table(
        f"{name}, bounds and values estimated",
        method,
        columns=tuple(named.get(c.name, c) for c in columns),
    )


def _unlabelled() -> tuple[lk.Category | lk.Numeric | lk.Date, ...]:
    """The label as a column like any other, so that all rows are of one class."""
    label = table_schema().label
    assert label is not None
    return (*table_schema().inputs, replace(label, label=False))


def _targeted(**more: object) -> tuple[lk.schema.Column, ...]:
    """The label as a column like any other, and a number that models predict."""
    return tuple(
        replace(column, target=True, bins=3, **more) if column.name == "income" else column
        for column in _unlabelled()
    )


RULES = (
    "bill == income + age",
    "left >= seen",
    "left <= seen + 30 days",
    "town -> country",
    "not (town = north and smoker = true)",
    "if ill = unsure then age >= 20",
)
"""A sum, an order with a fixed offset, a table, and forbidden combinations of categories and of the label."""


def _with_rules(name: str, method: AbstractMethod, target: bool = False) -> Case:
    """A case whose rows mostly break its rules, with a label or a number as target."""
    day = datetime.date
    more = (
        lk.Numeric(name="bill", min=-10.0, max=1100.0, missing=True),
        lk.Date(name="left", min=day(2000, 1, 1), max=day(2021, 12, 31)),
        lk.Category(name="country", values=("here", "there"), missing=True),
    )
    countries = {"north": "here", "south": "there", "east": "there"}
    schema = table_schema(
        columns=(*(_targeted() if target else table_schema().columns), *more),
        rules=RULES,
        tables={"town -> country": countries},
    )

    def rows() -> pd.DataFrame:
        return table_rows(150).assign(bill=400.0, left="2010-05-05", country="there")

    def other() -> pd.DataFrame:
        return _unlike_table().assign(bill=-1e9, left=None, country="nowhere")

    return Case(name, method, schema, rows, other)


UNLABELLED_HERMITE = lk.DPHP(**TINY_HERMITE | {"products": 1}, kernel="product", generator="dense")
VOTES = {
    "aggregation": "confident-gnmax", "projection": 5, "clip": 1e-3, "network": "published",
    "teacher_hidden": (4,), "view": "rows",
}  # fmt: skip
PLAY = {
    "steps": 3, "batch": 20, "discriminator_steps": 2, "discriminator_hidden": (4,), "code": 3,
    "hidden": (6,),
}  # fmt: skip
COMPRESSED = {"top": 4, "stochastic": True, "threshold": 0.5, "shards": "mixed", "view": "rows"}
JUDGED = {"student_hidden": (4,), "student_steps": 2, "generator_steps": 1, "remembered": 2}
FEW_GROUPS = {"grid": 8, "groups": 3}
QUICK = lk.Marginals(grid=32, groups=4, soft_rows=150, steps=2)
CORRELATIONS = replace(QUICK, pairs="correlations")

SCATTERING = lk.methods.ScatteringKernel()
PIXELS = {"kernel": SCATTERING, "mechanism": "pixels"}

CASES = [
    _table("dp-merf, table", lk.DPMERF(**TINY)),
    _table("dp-merf, table, rows measured", lk.DPMERF(**TINY), rows=None),
    _table("dp-merf, heterogeneous", lk.DPMERF(**TINY, embedding="heterogeneous")),
    _images("dp-merf, images", lk.DPMERF(**TINY)),
    _estimating("dp-merf", lk.DPMERF(**TINY)),
    _table("dp-hp, table, spreads measured", lk.DPHP(**TINY_HERMITE, spread_share=0.1)),
    _table("dp-hp, no label, products alone", UNLABELLED_HERMITE, columns=_unlabelled()),
    _images("dp-hp, images", lk.DPHP(**TINY_HERMITE)),
    _table("dp-ntk, table", lk.DPNTK(**TINY_TANGENT)),
    _table("dp-ntk, heterogeneous", lk.DPNTK(**TINY_TANGENT, embedding="heterogeneous")),
    _table(
        "dp-ntk, no label, convolution, rows measured",
        lk.DPNTK(**TINY_TANGENT | {"network": "strip", "widths": (3, 4)}),
        rows=None,
        columns=_unlabelled(),
    ),
    _images("dp-ntk, images, two layers", lk.DPNTK(**TINY_TANGENT | {"widths": (5, 4)})),
    _table("pearl, table", lk.PEARL(**TINY)),
    _images("pearl, images, equal weights", lk.PEARL(**TINY, adversary_rate=0.0)),
    _images("dp-mepf, images", lk.DPMEPF(**SMALL["dp-mepf"])),
    _images("measure-once, images", lk.MeasureOnce(**TINY_SET)),
    _images("measure-once, images, views", lk.MeasureOnce(**TINY_SET, views=2, tiles=2)),
    _images("measure-once, images, for ridge", lk.MeasureOnce(**TINY_SET, goal="ridge")),
    _table("measure-once, table", lk.MeasureOnce(**TINY_SET)),
    _table("dp-kip, table", lk.DPKIP(**FEW | {"per_class": 2}, weigh_classes=True)),
    _images("dp-kip, images", lk.DPKIP(**FEW, corrupted=0.2)),
    _images(
        "dp-kip, started at prototypes",
        lk.DPKIP(**FEW | {"start": "prototypes", "per_class": 2}, corrupted=0.2),
    ),
    _table("dp-kip, table, started at means", lk.DPKIP(**FEW | {"start": "means"})),
    _table("dp-kip, table, started at moments", lk.DPKIP(**FEW | {"start": "moments"})),
    _images("dp-kip, scattering", lk.DPKIP(**FEW | PIXELS, ridge=1e-3, optimiser="sgd")),
    _images(
        "dp-kip, noise in feature space",
        lk.DPKIP(**FEW, kernel=SCATTERING, mechanism="features", directions=9, ridge=1e-3),
    ),
    _table("dp-gan, table", lk.DPGAN(**PLAY)),
    _images("dp-cgan, images", lk.DPCGAN(**PLAY)),
    _table("dp-sinkhorn, table", lk.DPSinkhorn(**SMALL["dp-sinkhorn"])),
    _images("dp-sinkhorn, images", lk.DPSinkhorn(**SMALL["dp-sinkhorn"], detail=3)),
    _images("ndpdc, images", lk.NDPDC(per_class=1, tiles=2, views=2, filters=4, steps=2)),
    _table("pate-gan, table", lk.PATEGAN(**TEACH | JUDGED)),
    _images("pate-gan, images", lk.PATEGAN(**TEACH | JUDGED, shards="mixed", verdicts="majority")),
    _table("datalens, table", lk.DataLens(**TEACH)),
    _images("datalens, images", lk.DataLens(**TEACH, **COMPRESSED)),
    _table("gs-wgan, table", lk.GSWGAN(**SMALL["gs-wgan"])),
    _images("gs-wgan, images", lk.GSWGAN(**SMALL["gs-wgan"] | {"stretched": False, "updates": 4})),
    _images("psg, images", lk.PSG(**SMALL["psg"])),
    _images("dpdm, images", lk.DPDM(**SMALL["dpdm"])),
    _images("g-pate, images", lk.GPATE(**TEACH)),
    _table("g-pate, table, the paper's votes", lk.GPATE(**TEACH | VOTES)),
    _table("marginals, table", QUICK),
    _table("marginals, triples", replace(QUICK, triples=2)),
    _estimating("marginals, correlations", CORRELATIONS),
    _table("marginals, correlations, no label", CORRELATIONS, columns=_unlabelled()),
    _table("marginals, no label, rows measured", QUICK, rows=None, columns=_unlabelled()),
    _table(
        "marginals, rules between columns",
        QUICK,
        rules=("income >= age", "not (town = north and smoker = true)"),
    ),
    _estimating("marginals", QUICK),
    _table("marginals, a number as target", QUICK, columns=_targeted()),
    _table("dp-merf, a number as target", lk.DPMERF(**TINY), columns=_targeted()),
    _table("measure-once, a number as target", lk.MeasureOnce(**TINY_SET), columns=_targeted()),
    _table(
        "marginals, bounds of the target estimated",
        QUICK,
        columns=_targeted(min=None, max=None, outer=(-1e6, 1e6)),
    ),
    _table("linear-head, table", lk.LinearHead(features=12, steps=3)),
    _estimating("linear-head", lk.LinearHead(features=12, steps=3)),
    _images("linear-head, images", lk.LinearHead(steps=3)),
    _table("dp-sgd, table", lk.DPSGD(**SMALL["dp-sgd"])),
    _images("dp-sgd, images", lk.DPSGD(**SMALL["dp-sgd"])),
    _table("aim, table", lk.AIM(**FEW_GROUPS, rounds=3, round_steps=2, last_steps=2)),
    _table(
        "mst, no label, rows measured",
        lk.MST(**FEW_GROUPS, last_steps=2),
        rows=None,
        columns=_unlabelled(),
    ),
    _estimating("privbayes", lk.PrivBayes(**FEW_GROUPS)),
    _with_rules("marginals, all kinds of rules, a number as target", QUICK, target=True),
    _with_rules("dp-merf, all kinds of rules", lk.DPMERF(**TINY)),
    _with_rules(
        "aim, all kinds of rules", lk.AIM(**FEW_GROUPS, rounds=3, round_steps=2, last_steps=2)
    ),
]


def verb(method: AbstractMethod) -> Callable[..., Any]:
    """What runs a method: `distill` those that make rows, `classify` those that make a model."""
    return lk.classify if method.makes == "model" else lk.distill


def release_in_law_mode(case: Case, rows: object, folder: Path) -> dict[str, bytes]:
    """A release that must hold nothing of the rows: they are multiplied by zero inside `Private`."""
    verb(case.method)(
        case.dataset(rows),
        case.method,
        lk.Budget(1.0),
        out=folder,
        noise=Noise.from_seed(5, law=True),
        ledger=lk.Ledger(folder.parent / f"{folder.name}.sqlite"),
    )
    return folder_bytes(folder)
