"""The schema: everything about a data set that is public before a row is read.

It names the data set (the ledger's key), says about how many rows there are, and declares every
column with its bounds or values. It is a TOML file that the owner edits and confirms.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import SchemaError
from .category import Category
from .columns import Column
from .decoding import collapsed, decoded
from .facts import facts_of
from .fresh_ids import with_fresh_ids
from .image import Image
from .lifetime import Lifetime, is_number
from .numeric import Numeric
from .person import Person
from .raw import Raw, Scalar
from .rules import Learned
from .settling import settled_schema
from .tables import Tables, check_rules, written_tables
from .target import check_one_predicted, target_bins
from .unread import Unread


def dataset_name(written: str) -> str:
    """The one name of a data set, however it is written: the ledger adds up spending under it.

    Capitals, blanks (around it, and how many within) and equal-looking characters make no other.

    >>> dataset_name(" Town  Survey"), dataset_name("town survey")
    ('town survey', 'town survey')
    """
    # Folding can undo the normal form, and the normal form can bring capitals: once more.
    name = unicodedata.normalize("NFKC", written).casefold()
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Public description of a data set.

    >>> schema = Schema(
    ...     dataset="heights",
    ...     rows=1000,
    ...     columns=(
    ...         Numeric(name="height", integer=True, min=50, max=250),
    ...         Category(name="smoker", values=("no", "yes"), label=True),
    ...     ),
    ... )
    >>> schema.slots, schema.classes
    (1, ('no', 'yes'))
    """

    dataset: str
    """Name under which everything ever spent on these people is booked in the ledger; kept as
    `dataset_name` writes it, so that "People " and "people" are one data set."""
    columns: tuple[Column, ...]
    """In the order of the file."""
    rows: int | None = None
    """Public, approximate number of rows; None: a noisy count is bought."""
    unit: str = "one row"
    """What one row stands for: the unit that the guarantee protects."""
    person: Person | None = None
    """Where a person may have several rows: how they are told apart. The unit is then the person."""
    ignore: tuple[str, ...] = ()
    """Columns of the file that are left out."""
    names_are_right: bool = False
    """Whether column names that look like values (numbers, dates) were seen to be names."""
    encoding: str = "utf-8"
    """How texts of a CSV file are written: UTF-8, or an encoding of one byte per character."""
    delimiter: str | None = None
    """What stands between the fields of a CSV file; None: whichever is frequent in its first line."""
    decimal: str = "."
    """What numbers that are written as texts have before their fractions: "." or ","."""
    thousands: str | None = None
    """What they may have between groups of three digits; None: nothing, or dots where `decimal` is a comma."""
    rules: Sequence[str] = ()
    """Rules between columns, such as "discharged >= admitted": public, and kept in every released row."""
    tables: Tables = ()
    """For each rule "a -> b" its public table: {"a -> b": {value of a: value of b}}."""
    unread: tuple[Unread, ...] = ()
    """Texts and ids: columns of the file of which no cell is read."""
    estimate_share: float = 0.1
    """Share of the budget that goes to estimating bounds and values, where that is asked for."""
    lifetime: Lifetime = Lifetime()

    def __post_init__(self) -> None:
        names = [c.name for c in (*self.columns, *self.unread)]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise SchemaError(f"Column '{sorted(twice)[0]}' is declared twice.")
        object.__setattr__(self, "dataset", dataset_name(self.dataset))
        if not self.dataset:
            raise SchemaError('The schema must name the data set: dataset = "...".')
        check_encoding(self.encoding)
        if self.delimiter not in (None, ",", ";", "\t", "|"):
            raise SchemaError(
                f'expected delimiter = ",", ";", "\\t" or "|", got {self.delimiter!r}.'
            )
        if self.decimal not in (".", ","):
            raise SchemaError(f'expected decimal = "." or ",", got {self.decimal!r}.')
        if self.thousands not in (None, ",", ".", " ", "'") or self.thousands == self.decimal:
            raise SchemaError(
                f'expected thousands = ",", ".", " " or "\'", and not what stands before decimals; got {self.thousands!r}.'
            )
        if not isinstance(self.names_are_right, bool):
            raise SchemaError(
                f"expected names_are_right = true or false, got {self.names_are_right!r}."
            )
        if self.rows is not None and self.rows < 1:
            raise SchemaError(f"Expected rows >= 1 (a public, approximate count), got {self.rows}.")
        if not (is_number(self.estimate_share) and 0 < self.estimate_share < 1):
            raise SchemaError(f"Expected 0 < estimate_share < 1, got {self.estimate_share!r}.")
        labels = [c.name for c in self.columns if c.kind == "label"]
        if len(labels) > 1:
            raise SchemaError(
                f"Only one column can be the label, but '{labels[0]}' and '{labels[1]}' both are. "
                'Make the other one kind = "category".'
            )
        targets = [c for c in self.columns if isinstance(c, Numeric) and c.target]
        if targets:
            check_one_predicted(self.label, *targets)
        if self.label and self.label.estimated:
            raise SchemaError(f"Label '{self.label.name}': the label's values must be declared.")
        if self.rules != () or self.tables != ():
            object.__setattr__(self, "rules", check_rules(self.rules))
            object.__setattr__(self, "tables", written_tables(self.tables))
            self.learned.check_target(targets)  # and all rules, which are read here
        if len(self.inputs) == (self.target is not None):
            raise SchemaError("The schema declares no column besides what is to be predicted.")
        if self.image and len(self.inputs) > 1:
            raise SchemaError("An image schema holds one image column and at most a label.")
        if self.person:
            self._check_person(self.person)

    def _check_person(self, person: Person) -> None:
        if self.image:
            raise SchemaError("[person]: images come without a column of ids; they are rows only.")
        if person.column in [c.name for c in self.columns]:
            raise SchemaError(
                f"[person]: column '{person.column}' tells persons apart and is never released: take "
                "its [[column]] section out."
            )
        if self.unit == Schema.unit:
            object.__setattr__(self, "unit", "one person")

    def without_person(self) -> Schema:
        """The same for rows whose ids mean nothing, as those of released ones: each stands for itself."""
        if self.person is None:
            return self
        return replace(self, person=None, ignore=(*self.ignore, self.person.column))

    def without_rules(self) -> Schema:
        """The same with every column by itself, as scores compare them."""
        return replace(self, rules=(), tables=())

    # ---- what methods ask -------------------------------------------------------------------

    @property
    def units(self) -> int | None:
        """Public, approximate number of units of privacy, which a measurement counts: persons where
        they are protected, else rows. None: unknown."""
        return self.person.persons if self.person else self.rows

    @property
    def names_read(self) -> list[str]:
        """Names of the columns that are read: the declared ones, and that of the persons' ids."""
        return [c.name for c in self.columns] + ([self.person.column] if self.person else [])

    @property
    def number_marks(self) -> tuple[str, str]:
        """What numbers of texts have before fractions, and what they may have between thousands."""
        return self.decimal, self.thousands or ("." if self.decimal == "," else "")

    @property
    def label(self) -> Category | None:
        return next((c for c in self.columns if isinstance(c, Category) and c.label), None)

    @property
    def target(self) -> Numeric | None:
        """The number that models will predict. It stays among the inputs; its bins are the classes."""
        return next((c for c in self.inputs if isinstance(c, Numeric) and c.target), None)

    @property
    def classes(self) -> tuple[Scalar, ...]:
        """The label's declared values, or the bins of the target; else one nameless class."""
        if self.target:
            return target_bins(self, self.target)
        return self.label.values if self.label else ("",)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """The columns that methods learn: all but the label; with rules, those that stand for them."""
        if self.rules:
            return self.learned.inputs
        return tuple(c for c in self.columns if c.kind != "label")

    @property
    def learned_by_rules(self) -> bool:
        """Whether methods learn other columns than the schema's own."""
        own = tuple(c for c in self.columns if c.kind != "label")
        return self.inputs != own

    @cached_property
    def learned(self) -> Learned:
        """The columns that methods learn instead of those that rules decide."""
        return Learned(self.columns, self.rules, dict(written_tables(self.tables)))

    @property
    def image(self) -> Image | None:
        return next((c for c in self.columns if isinstance(c, Image)), None)

    @property
    def slots(self) -> int:
        """Width of an expanded row."""
        return sum(c.slots for c in self.inputs)

    def blocks(self) -> list[tuple[Column, slice]]:
        """Each input column with its place in an expanded row."""
        ends = np.cumsum([c.slots for c in self.inputs])
        return [
            (c, slice(int(e) - c.slots, int(e))) for c, e in zip(self.inputs, ends, strict=True)
        ]

    @property
    def estimated(self) -> tuple[Column, ...]:
        """Columns whose bounds or values are to be bought with some of the budget."""
        return tuple(c for c in self.columns if c.estimated)

    @property
    def estimated_names(self) -> tuple[str, ...]:
        """Their names, and that of the persons' ids where rows per person are to be bought."""
        persons = (self.person.column,) if self.person and self.person.estimated else ()
        return tuple(c.name for c in self.estimated) + persons

    # ---- cells, slots and values ------------------------------------------------------------

    def encode(self, raw: Mapping[str, Raw]) -> np.ndarray:
        """Raw columns to compact cells: of images pixels, else of all inputs (rows, columns)."""
        if self.image:
            return self.image.encode(raw[self.image.name])
        if self.rules:
            return self.learned.encode(raw)
        return np.stack([c.encode(raw[c.name]) for c in self.inputs], axis=1)

    def expand(self, cells: np.ndarray) -> np.ndarray:
        """Compact cells (rows, columns) to slots (rows, slots), all within [0, 1]."""
        if self.image:
            return self.image.expand(cells)
        slots = np.zeros((len(cells), self.slots), np.float32)
        for i, (column, at) in enumerate(self.blocks()):
            if isinstance(column, Category):  # many slots, of which one is not zero
                column.mark(cells[:, i], slots[:, at])
            else:
                slots[:, at] = column.expand(cells[:, i])
        return slots

    def collapse(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Slots made by a generator to cells; categories and gaps are drawn from their weights."""
        return collapsed(self, slots, rng)

    def decode(self, cells: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
        """Cells and label codes to a table with the owner's columns, order, kinds and ranges."""
        return decoded(self, cells, labels)

    def table(self, values: Mapping[str, np.ndarray]) -> pd.DataFrame:
        """Values of all columns, as `learned` gives them, as a table."""
        return with_fresh_ids(self.learned.frame(values), self.unread, self.person)

    def resolve(self, settled: Mapping[str, tuple[Any, ...]]) -> Schema:
        """The schema with estimated bounds (low, high) and values filled in."""
        return settled_schema(self, settled)

    # ---- as a file --------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read and check a schema file; unfilled or unconfirmed ones are refused."""
        from .toml import load

        return load(path)

    @classmethod
    def parse(cls, text: str, *, where: str = "the schema") -> Schema:
        """Read a schema from TOML text."""
        from .toml import parse

        return parse(text, where)

    def toml(self) -> str:
        """The schema as a confirmed TOML file.

        >>> schema = Schema(dataset="d", columns=(Numeric(name="x", min=0, max=1),))
        >>> Schema.parse(schema.toml()) == schema
        True
        """
        from .toml import written

        return written(self)

    def save(self, path: str | Path) -> None:
        """Write the schema as a confirmed TOML file, which `Schema.load` reads."""
        try:
            Path(path).write_text(self.toml(), encoding="utf-8")
        except OSError as error:
            raise SchemaError(f"Cannot write {path}: {error.strerror}.") from None

    def facts(self) -> dict[str, object]:
        """Plain data, as written into certificates and hashed."""
        return facts_of(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the schema's facts."""
        text = json.dumps(self.facts(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def check_encoding(encoding: object) -> None:
    """Refuse an encoding in which a byte does not stand for one character, whatever is beside it.

    Only then can no record change how the next one is read. UTF-8 is as good: none of its longer
    characters holds the byte of a line's end.
    """
    if encoding == "utf-8":
        return
    ascii_bytes = bytes(range(128))
    try:
        assert isinstance(encoding, str)
        one_to_one = len(bytes(range(256)).decode(encoding, "replace")) == 256
        if one_to_one and ascii_bytes.decode(encoding) == ascii_bytes.decode("ascii"):
            return
    except (AssertionError, LookupError, ValueError, TypeError):
        pass
    raise SchemaError(
        f'expected encoding = "utf-8" or one with one byte per character, such as "cp1252" or '
        f'"latin-1", got {encoding!r}.'
    )
