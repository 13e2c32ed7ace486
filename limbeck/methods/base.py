"""What a method is: questions it will ask, and what it makes of the noisy answers."""

from __future__ import annotations

import abc
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import metadata
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import LimbeckError
from ..privacy import Asked, MapSpec, Measurement, Private
from ..progress import Progress
from ..schema import Category, Schema
from .classifiers.trained import TrainedModel
from .part import choices_of, part_from, plain
from .source import RowSource


@dataclass(frozen=True, kw_only=True)
class Product:
    """What a method makes: where rows come from, or a model, and the noisy measurements that it was made from."""

    source: RowSource | TrainedModel
    rows: int = 0
    """How many rows to release: the declared number, the noisy count, or those of a fixed set."""
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def row_source(self) -> RowSource:
        """Where rows come from; a model gives none."""
        assert not isinstance(self.source, TrainedModel)
        return self.source


@dataclass(frozen=True, kw_only=True)
class AbstractInquiry(abc.ABC):
    """Anything that asks planned questions about rows: a method, or a score that is paid for.

    Its settings are its fields; it holds no data and no state.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Of its questions: raised when the same settings ask anything else, so that `limbeck verify`
    does not hold older releases against questions they never asked."""
    papers: ClassVar[tuple[str, ...]]
    """References that whoever uses the answers should cite."""
    only_counts: ClassVar[bool] = False
    """Whether all it asks are counts of cells and of pairs of cells, which a database can give."""
    needs_bare_rows: ClassVar[bool] = False
    """Whether it promises nothing, and so runs at epsilon = infinity only."""

    @abc.abstractmethod
    def questions(self, schema: Schema) -> list[Asked]:
        """Everything that will be asked, with its share of the budget: from public knowledge alone."""

    def map_spec(self, maker: str, seed: int) -> MapSpec:
        """The map that one of its own methods makes of schema, seed and earlier answers; so it can be
        made again by any process that has the settings and can import the class."""
        kind = type(self)
        factory = f"{kind.__module__}:{kind.__qualname__}.{maker}"
        return MapSpec(factory=factory, settings=self.settings(), seed=seed)

    def check_importable(self) -> None:
        """Refuse a class that is not found by its module and name, by which `map_spec` tells of it."""
        kind = type(self)
        imported = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
        if imported is None:
            raise LimbeckError(
                f"The class of {self.name}, {kind.__qualname__}, is not found in {kind.__module__} by "
                "that name. Define it at the top of a module, script or notebook, not in a function."
            )
        if imported is not kind:
            raise LimbeckError(
                f"The class of {self.name}, {kind.__qualname__}, was defined anew in {kind.__module__} "
                "since this one was made of it. Make it again."
            )

    def assumptions(self) -> tuple[str, ...]:
        """What its guarantee takes for granted beyond what every certificate says."""
        return ()

    def public_files(self) -> list[dict[str, str]]:
        """Files that it uses beside the rows: `name`, `sha256` and `purpose` of each."""
        return []

    def settings(self) -> dict[str, Any]:
        """The fields as plain data; a part of its own, such as a kernel, is a table within."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The same with some settings given by name, as recipes give them."""
        known = {f.name: f for f in fields(cls)}
        for name in settings:
            if name not in known:
                raise LimbeckError(
                    f"{cls.name} has no setting '{name}'. It has: {', '.join(sorted(known))}."
                )
        values = {}
        for name, value in settings.items():
            if choices_of(known[name]):
                value = part_from(cls.name, known[name], value)
            values[name] = tuple(value) if isinstance(value, list) else value
        try:
            return cls(**values)
        except TypeError as error:
            raise LimbeckError(
                f"{cls.name}: a setting has the wrong kind of value ({error})."
            ) from None


@dataclass(frozen=True, kw_only=True)
class AbstractMethod(AbstractInquiry):
    """What makes releases."""

    family: ClassVar[str] = ""
    """Its relatives' common name; where empty, the folder or package that it lies in."""
    good_for: ClassVar[str] = ""
    """When to take it, in a line: what `limbeck methods` says."""
    data_kinds: ClassVar[tuple[str, ...]] = ("tables", "images")
    """Kinds of data it takes."""
    takes_targets: ClassVar[bool] = True
    """Whether it takes the bins of a target that is a number as classes. Methods whose maps predict classes from
    all columns do not: the target would be among what they predict from."""
    makes: ClassVar[str] = "rows"
    """What comes out: "rows", as `limbeck distill` releases them, or a "model", as `limbeck classify` does."""
    fixed_size: ClassVar[bool] = False
    """Whether settings say how many rows come out (a distilled set), not the caller."""

    @abc.abstractmethod
    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        """Ask the planned questions and post-process the answers."""


@dataclass(frozen=True, kw_only=True)
class AbstractMeasureOnce(AbstractMethod):
    """A method in two parts: measurements, paid for once, and free work on them.

    Since the second part sees no rows, it can be done again from a release that kept its
    measurements, with other free settings, at no cost of privacy (`limbeck.redistill`).
    """

    free: ClassVar[frozenset[str]]
    """Settings that no measurement depends on: they may differ from those it was made with."""

    @abc.abstractmethod
    def measure(self, private: Private, *, seed: int, progress: Progress) -> dict[str, Measurement]:
        """Ask every planned question; the noisy answers, by name."""

    @abc.abstractmethod
    def distill(
        self,
        schema: Schema,
        measured: Mapping[str, Measurement],
        *,
        seed: int,
        progress: Progress,
    ) -> Product:
        """Make rows or a generator of the noisy answers: post-processing, as often as one likes.

        Args:
            schema: The settled schema.
            measured: The noisy answers by name.
            seed: The public seed that features were drawn with.
            progress: Called with a phase and a fraction done.
        """

    def run(self, private: Private, *, seed: int, progress: Progress) -> Product:
        measured = self.measure(private, seed=seed, progress=progress)
        return self.distill(private.schema, measured, seed=seed, progress=progress)


def values_of(measured: Mapping[str, Measurement]) -> dict[str, np.ndarray]:
    """The numbers of measurements, as a release keeps them."""
    return {name: answer.values for name, answer in measured.items()}


def origin(kind: type) -> dict[str, str | None]:
    """The installed package that a class (a method, a kind of question) comes from, with its version,
    as certificates name it."""
    module = kind.__module__.partition(".")[0]
    try:
        return {"name": module, "version": metadata.version(module)}
    except metadata.PackageNotFoundError:
        packages = metadata.packages_distributions().get(module)
    if not packages:  # not installed: a script, a notebook
        return {"name": module, "version": None}
    return {"name": packages[0], "version": metadata.version(packages[0])}


def check_values_declared(method: str, schema: Schema) -> None:
    """Refuse a schema whose slots are not known before its categories are estimated."""
    for column in schema.estimated:
        if isinstance(column, Category):
            raise LimbeckError(
                f"{method} needs to know the values of '{column.name}' before it measures; declare them "
                "in the schema instead of having them estimated."
            )
