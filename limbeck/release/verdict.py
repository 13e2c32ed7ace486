"""What `verify` answers: a refusal, a yes, or that the arithmetic holds and something is left open.

Arithmetic and checksums come first and need no JAX; whether these are the questions of the method
comes second, where the method's code is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..accounting import Cost
from ..errors import FileMissing, ReleaseError, SchemaError
from ..npz import read_arrays
from .arithmetic import (
    check_measurements,
    check_schema_file,
    read_certificate,
    recompute,
    removable_noise,
)
from .seal import check_sums


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """That a certificate adds up, what it costs, and what could not be vouched for."""

    cost: Cost
    """Recomputed from the charges."""
    certificate: Mapping[str, Any]
    open: tuple[str, ...] = ()
    """What stands against calling the release verified, in words; empty if nothing does."""
    redone: str = ""
    """What was made again from the release's own numbers, in words; empty if nothing was."""

    @property
    def verified(self) -> bool:
        """Whether everything was checked and holds."""
        return not self.open

    @property
    def epsilon(self) -> float:
        return self.cost.epsilon

    @property
    def delta(self) -> float:
        return self.cost.delta


def verify(folder: str | Path, *, questions: bool = True, deep: bool = False) -> Verdict:
    """Recompute epsilon from a release's certificate alone, and check every file against its sum.

    Args:
        folder: The release.
        questions: Also compare the charges with what the named method asks; needs JAX.
        deep: Also make again what is free, from the measurements and public seeds, and compare: takes
            about as long as `limbeck.redistill`.

    Returns:
        What it costs, and in `open` what could not be compared: an unknown method, say.

    Raises:
        ReleaseError: The folder is not a release, a file was changed, or the figures do not add up.
    """
    if not isinstance(folder, str | Path):
        raise ReleaseError(
            "Expected the folder of a release, since its files are what is checked; got "
            f"{type(folder).__name__}. Save a release first: release.save(folder)."
        )
    folder = Path(folder)
    check_sums(folder)
    certificate = read_certificate(folder)
    price = recompute(certificate)
    try:
        check_schema_file(certificate, folder)
        check_measurements(certificate, read_arrays(folder / "measurements.npz"), folder)
        still_open = _weaknesses(certificate)
        if questions:
            still_open += _unasked(certificate, folder)
        else:
            still_open += ["the questions were not compared with the method's, as you wished"]
    except (KeyError, TypeError, AttributeError, OSError, ValueError) as error:
        if isinstance(error, ReleaseError):
            raise
        raise ReleaseError(f"{folder} is incomplete or malformed: {error!r}.") from None
    redone, deeply_open = _redone(folder, certificate) if deep else ("", [])
    still_open += deeply_open
    return Verdict(cost=price, certificate=certificate, open=tuple(still_open), redone=redone)


def _weaknesses(certificate: Mapping[str, Any]) -> list[str]:
    weaknesses = []
    if names := removable_noise(certificate["charges"]):
        weaknesses.append(
            f"made with noise that can be removed ('{names[0]}': Gaussian noise in floating point); "
            "epsilon does not hold for it"
        )
    if certificate.get("signature") is not None:
        weaknesses.append("it is signed, and this version does not check signatures")
    return weaknesses


def _unasked(certificate: Mapping[str, Any], folder: Path) -> list[str]:
    """Why the questions could not be compared with the method's, if so."""
    try:
        import jax  # noqa: F401  first, so that this is what is said to be missing

        from ..schema import Schema
        from .questions import check_questions, known_method
    except ImportError as error:
        missing = "JAX" if error.name in (None, "jax", "jaxlib") else error.name
        return [f"questions not compared: {missing} is not installed"]
    method = known_method(certificate)
    if isinstance(method, str):
        return [method]
    try:
        schema = Schema.load(folder / "schema.toml")
    except SchemaError as error:
        return [f"questions not compared: this version does not read the schema ({error})"]
    try:
        check_questions(certificate, schema, method)
    except FileMissing as error:
        return [f"questions not compared: {error}".rstrip(".")]
    return []


def _redone(folder: Path, certificate: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What was made again, and why more could not be, if so."""
    try:
        import jax  # noqa: F401

        from .deep import redo
        from .questions import known_method
    except ImportError as error:
        missing = "JAX" if error.name in (None, "jax", "jaxlib") else error.name
        return "", [f"cannot be redone: {missing} is not installed"]
    method = known_method(certificate)
    if isinstance(method, str):
        return "", [f"cannot be redone: {method}"]
    redone = redo(folder, method)
    return redone.words, list(redone.open)
