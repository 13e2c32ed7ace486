"""Tables: from checked bytes to a training and a test frame with the schema's columns."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..schema import Category, Column, Numeric, Schema
from .mixture import Mixture
from .registry import Distribution, Entry


def read_tables(
    entry: Entry, source: Distribution, files: Mapping[str, bytes], schema: Schema
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test part, with exactly the schema's columns in its order."""
    content = next(iter(files.values()), b"")  # what is drawn needs no file
    frame = _READERS[source.format](content, source.options, schema)
    train = _is_train(frame, entry.split)
    columns = {c.name: _typed(_plain(frame[c.name], c, entry), c) for c in schema.columns}
    table = pd.DataFrame(columns)
    return table[train].reset_index(drop=True), table[~train].reset_index(drop=True)


# ---- formats ------------------------------------------------------------------------------------


def _parquet(content: bytes, options: Mapping[str, Any], schema: Schema) -> pd.DataFrame:
    frame = pd.read_parquet(io.BytesIO(content))
    for pattern, divisor in options.get("divide", {}).items():
        for name in frame.columns[frame.columns.str.fullmatch(pattern)]:
            frame[name] = frame[name] / divisor
    return frame


def _csv(content: bytes, options: Mapping[str, Any], schema: Schema) -> pd.DataFrame:
    headed = options.get("header", False)
    frame = pd.read_csv(
        io.BytesIO(content),
        header=0 if headed else None,
        names=None if headed else [c.name for c in schema.columns],
        keep_default_na=False,  # "NA" is a value like any other: the registry says what is null
    )
    for name, ending in options.get("strip", {}).items():
        frame[name] = frame[name].str.removesuffix(ending)
    return frame


def _drawn(content: bytes, options: Mapping[str, Any], schema: Schema) -> pd.DataFrame:
    names = [c.name for c in schema.inputs]
    points, classes = Mixture.from_options(options).draw()
    label = "" if schema.label is None else schema.label.name
    return pd.DataFrame(points, columns=names).assign(**{label: classes})


_READERS: Mapping[str, Callable[[bytes, Mapping[str, Any], Schema], pd.DataFrame]] = {
    "parquet": _parquet,
    "csv": _csv,
    "mixture": _drawn,
}


# ---- rows and values ----------------------------------------------------------------------------


def _is_train(frame: pd.DataFrame, rule: Mapping[str, Any]) -> np.ndarray:
    """Which rows are for training: as published, or by a permutation that never changes."""
    if "column" in rule:
        return (frame[rule["column"]] == "train").to_numpy()
    # Rows of one group (a person's recordings) stay together, or the test part would leak.
    group = (
        pd.factorize(frame[rule["group"]], sort=True)[0]
        if "group" in rule
        else np.arange(len(frame))
    )
    count = int(group.max()) + 1
    # RandomState, for its stream is frozen: newer generators may change between versions.
    order = np.random.RandomState(rule["seed"]).permutation(count)
    return np.isin(group, order[: round(rule["fraction"] * count)])


def _plain(series: pd.Series, column: Column, entry: Entry) -> pd.Series:
    if entry.null is not None and series.dtype == "str":
        series = series.mask(series == entry.null)
    if column.kind == "label" and entry.groups:
        coarse = {value: name for name, values in entry.groups.items() for value in values}
        series = series.map(lambda value: coarse.get(value, entry.rest))
    if column.name in entry.edges:
        bins = np.searchsorted(entry.edges[column.name], series.to_numpy(), side="right")
        series = pd.Series(bins, index=series.index)
    return series


def _typed(series: pd.Series, column: Column) -> pd.Series:
    """The values in the type that the declaration stands for, however narrow they were stored."""
    if isinstance(column, Numeric):
        numbers = series.astype(np.float64)
        if series.dtype == np.float32:
            numbers = numbers.round(6)  # 0.11, not 0.10999999940395355
        return _whole(numbers) if column.integer else numbers
    assert isinstance(column, Category)
    if column.boolean:
        series = series.map({0: False, 1: True})
        return series.astype("boolean" if series.isna().any() else bool)
    if all(isinstance(v, int) for v in column.values):
        return _whole(series)
    return series.astype("str")


def _whole(series: pd.Series) -> pd.Series:
    return series.astype("Int64" if series.isna().any() else np.int64)
