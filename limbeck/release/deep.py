"""`verify --deep`: what is free in a release, made again from its measurements and public seeds.

Rows must follow from what they are said to come from, and that from the noisy measurements. So real rows
that are passed off as a release are found. It does not show that the measurements were noised.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..accounting import Charge
from ..errors import LimbeckError, ReleaseError
from ..methods import AbstractMeasureOnce, AbstractMethod, RowSource
from ..privacy import Measurement
from .certificate import machine_facts, package_versions
from .drawing import draw
from .images import Images
from .release import Release
from .seal import files, sha256
from .write import write

TOLERANCE = 1e-3
"""Part of a column's range by which a number may differ that was made on another kind of machine."""


@dataclass(frozen=True)
class Redone:
    """What was made again, in words, and what could not be."""

    words: str
    open: tuple[str, ...] = ()


def redo(folder: Path, method_class: type[AbstractMethod]) -> Redone:
    """Make a release again from what it carries, and hold it against what lies there.

    Args:
        folder: A release whose certificate adds up.
        method_class: The method that the certificate names, in its version.

    Raises:
        ReleaseError: Files do not follow from the measurements; they are named.
    """
    if method_class.makes == "model":
        words = (
            f"cannot be redone: {method_class.name} keeps no measurements to make its model from"
        )
        return Redone("", (words,))
    release = Release.load(folder)
    stated = release.certificate["method"]
    if stated.get("rows_seed") is None:
        return Redone("", ("cannot be redone: the certificate names no seed of its rows",))
    method = method_class.from_settings(stated["settings"])
    source, still_open = _source(release, method)
    data = draw(release.schema, source, release.rows, seed=stated["rows_seed"])
    again = Release(
        schema=release.schema,
        certificate=release.certificate,
        data=data,
        source=source,
        measurements=release.measurements,
    )
    another = _another_machine(release.certificate)
    if another:
        return _roughly(release, again, another, still_open)
    with tempfile.TemporaryDirectory(prefix="limbeck-deep-") as place:
        write(again, Path(place))
        wrong = [name for name in files(folder) if not _same(name, folder, Path(place))]
    if wrong:
        raise ReleaseError(
            f"{', '.join(wrong)}: does not follow from the measurements and public seeds of the "
            "certificate, which give other contents on this machine."
        )
    what = "rows" if still_open else "rows, and what they come from,"
    return Redone(f"{what} follow from the release's own numbers, in the same bytes", still_open)


def _source(release: Release, method: AbstractMethod) -> tuple[RowSource, tuple[str, ...]]:
    """What rows come from, made again where the method can; and what was left open."""
    if not isinstance(method, AbstractMeasureOnce):
        words = (
            f"cannot be redone: {method.name} keeps no measurements to make its rows' source from"
        )
        return release.source, (words,)
    charges = {facts["name"]: Charge(**facts) for facts in release.certificate["charges"]}
    answers = {
        name: Measurement.under(charges[name], values)
        for name, values in release.measurements.items()
    }
    seed = release.certificate["method"]["public_seed"]
    try:
        product = method.distill(
            release.schema, answers, seed=seed, progress=lambda phase, done: None
        )
    except LimbeckError as error:
        raise ReleaseError(f"The measurements do not make a release: {error}") from None
    return product.row_source, ()


def _another_machine(certificate: Mapping[str, Any]) -> str:
    """In what this machine differs from the one that made the release; empty if in nothing."""
    for name, version in certificate["software"].items():
        installed = package_versions().get(name)
        if installed != version:
            return f"{name} {version} there, {installed} here"
    here = machine_facts()
    for name, value in certificate["machine"].items():
        if here[name] != value:
            return f"another {name.rstrip('s')}"
    return ""


def _same(name: str, folder: Path, again: Path) -> bool:
    """Whether a file was made again as it is; of arrays the numbers count, not how they are packed."""
    one, two = folder / name, again / name
    if not two.exists():
        return False
    if name.endswith(".npz"):
        with np.load(one, allow_pickle=False) as left, np.load(two, allow_pickle=False) as right:
            return set(left) == set(right) and all(
                left[n].dtype == right[n].dtype
                and left[n].shape == right[n].shape
                and left[n].tobytes() == right[n].tobytes()
                for n in left
            )
    return sha256(one) == sha256(two)


def _roughly(release: Release, again: Release, another: str, still_open: tuple[str, ...]) -> Redone:
    """Rows made on another kind of machine, within a tolerance."""
    one, two = _cells(release), _cells(again)
    apart = ~np.isclose(one, two, rtol=0, atol=TOLERANCE, equal_nan=True)
    words = f"on another kind of machine ({another})"
    if not apart.any():
        return Redone(
            f"rows follow from the release's own numbers within {TOLERANCE} {words}", still_open
        )
    return Redone(
        "",
        (
            *still_open,
            f"cannot be redone {words}: {apart.mean():.1%} of the cells come out otherwise; try it "
            "where the certificate's versions and processor are",
        ),
    )


def _cells(release: Release) -> np.ndarray:
    """Released values as numbers in [0, 1], and codes of categories."""
    if isinstance(release.data, Images):
        image = release.schema.image
        assert image is not None
        return image.expand(release.data.images.reshape(len(release.data.images), -1))
    from ..data import bare_rows, read

    rows = bare_rows(read(release.data, release.schema.without_person()))
    return np.column_stack([np.asarray(rows.cells, np.float64), rows.labels])
