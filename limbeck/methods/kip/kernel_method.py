"""What KIP and DP-KIP have in common: learned rows, a kernel, a ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...errors import LimbeckError, positive, unless_auto
from ...schema import Schema
from ..base import AbstractMethod
from ..part import Auto, check_part, part_field
from .kernel import AbstractKernel, View
from .kernels import KERNELS, FullyConnectedKernel

USUAL_ROWS = 10
"""Rows to learn for each class, unless another number is set."""


@dataclass(frozen=True, kw_only=True)
class AbstractKernelMethod(AbstractMethod):
    """A few rows per class (the support), learned so that kernel ridge regression on them does well."""

    fixed_size: ClassVar[bool] = True
    takes_targets: ClassVar[bool] = False

    kernel: AbstractKernel = part_field(KERNELS, FullyConnectedKernel())
    """The kernel, with settings of its own: fc-ntk, conv-ntk, e-ntk, scattering or perceptual."""
    per_class: int | Auto = "auto"
    """Rows to learn for each class; auto: 10, but 100 where DP-KIP draws a table's rows with spreads."""
    ridge: float = 1e-6
    """Of the kernel regression, in units of the mean of the kernel's diagonal."""
    centre: tuple[float, ...] | Auto = "auto"
    """What is subtracted from slots in [0, 1] before the kernel sees them: one number, or one per
    channel; auto: 0 for images, 0.5 for tables."""
    spread: tuple[float, ...] | Auto = "auto"
    """What they are then divided by; auto: 1 for images, 0.5 for tables."""

    def __post_init__(self) -> None:
        check_part("kernel", AbstractKernel, self.kernel)
        positive(ridge=self.ridge)
        if self.per_class != "auto":
            positive(per_class=unless_auto(per_class=self.per_class) or 0)
        if self.spread != "auto":
            positive(**{f"spread[{i}]": s for i, s in enumerate(self.spread)})

    def assumptions(self) -> tuple[str, ...]:
        return self.kernel.assumptions()

    def public_files(self) -> list[dict[str, str]]:
        return self.kernel.public_files()

    # ---- what follows from the settings and the schema ----------------------------------------

    def support_size(self, schema: Schema) -> int:
        """Number of rows to learn; refuses a schema that the kernel cannot serve."""
        classes = len(schema.classes)
        if classes < 2:
            raise LimbeckError(f"{self.name} learns rows of classes; the schema declares no label.")
        if not (schema.image or self.kernel.for_tables):
            raise LimbeckError(
                f"The kernel {self.kernel.name} is for images; for tables use fc-ntk."
            )
        per_class = self.rows_of_class(schema)
        size = per_class * classes
        if schema.rows is not None and size > schema.rows:
            raise LimbeckError(
                f"{size} rows to learn ({per_class} per class) are more than the "
                f"{schema.rows} that the schema declares; choose a smaller per_class."
            )
        return size

    def rows_of_class(self, schema: Schema) -> int:
        """Rows to learn for each class."""
        return USUAL_ROWS if self.per_class == "auto" else self.per_class

    def balanced_labels(self, schema: Schema) -> np.ndarray:
        """Label codes of the learned rows, the same number of each class."""
        return np.arange(self.support_size(schema)) % len(schema.classes)

    def view(self, schema: Schema) -> View:
        """What the kernel sees of a row's slots."""
        centre, spread = ((0.0,), (1.0,)) if schema.image else ((0.5,), (0.5,))
        return View(
            _per_slot("centre", centre if self.centre == "auto" else self.centre, schema),
            _per_slot("spread", spread if self.spread == "auto" else self.spread, schema),
        )


def _per_slot(name: str, values: tuple[float, ...], schema: Schema) -> np.ndarray:
    channels = schema.image.channels if schema.image else 1
    if len(values) not in (1, channels):
        raise LimbeckError(
            f"Expected {name} to be one number or one per channel ({channels}), got {len(values)}."
        )
    return np.resize(np.asarray(values, np.float64), schema.slots)
