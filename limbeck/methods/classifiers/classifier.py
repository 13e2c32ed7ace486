"""What classifiers that are released themselves have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...errors import LimbeckError
from ...schema import Schema
from ..base import AbstractMethod

GRADIENT = "model's gradient"
"""Name of the question that every step asks."""


@dataclass(frozen=True, kw_only=True)
class AbstractClassifier(AbstractMethod):
    """A model that predicts the label. It gives no rows: `limbeck classify` runs it."""

    family: ClassVar[str] = "classifiers"
    makes: ClassVar[str] = "model"
    takes_targets: ClassVar[bool] = False

    def check_label(self, schema: Schema) -> None:
        """Refuse a schema that says nothing of what is to be predicted."""
        if not schema.label or len(schema.classes) < 2:
            raise LimbeckError(
                "A classifier needs a label with at least two classes; declare one in the schema."
            )
