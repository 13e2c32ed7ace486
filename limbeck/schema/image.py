"""Pictures of one size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import SchemaError
from .raw import Numbers, Raw, Values
from .states import OUTSIDE


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture of fixed size with a declared range of pixel values."""

    name: str = "image"
    height: int
    width: int
    channels: int = 1
    min: float = 0.0
    max: float = 255.0
    fit: str | None = None
    """What becomes of picture files of other sizes: "crop" takes the largest part of this shape from their middle
    and brings it to this size; None: they are refused."""
    kind: ClassVar[str] = "image"
    reads: ClassVar[str] = "pixels"
    estimated: ClassVar[bool] = False
    missing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if min(self.height, self.width, self.channels) < 1:
            raise SchemaError(f"Image '{self.name}': height, width and channels must be positive.")
        if self.channels not in (1, 3):
            raise SchemaError(
                f"Image '{self.name}': expected 1 or 3 channels, got {self.channels}."
            )
        if self.fit not in (None, "crop"):
            raise SchemaError(f"Image '{self.name}': expected fit = \"crop\", got {self.fit!r}.")
        if not self.min < self.max:
            raise SchemaError(f"Image '{self.name}': expected min < max.")

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def slots(self) -> int:
        return self.height * self.width * self.channels

    def encode(self, raw: Raw) -> np.ndarray:
        """Flatten; bytes stay bytes (a quarter of the memory), all else becomes float32."""
        flat = self._flat(raw)
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and clipped like it
            return flat if flat.dtype == np.uint8 else flat.astype(np.float32)

    def _flat(self, raw: Raw) -> np.ndarray:
        if isinstance(raw, Numbers | Values):
            raise TypeError("an image is read as pixels")
        return raw.reshape(len(raw), self.slots)

    def states(self, raw: Raw) -> np.ndarray:
        """A picture is outside where most of its pixels are beyond the bounds, or no numbers."""
        flat = self._flat(raw)
        if flat.dtype == np.uint8 and self.min <= 0 and self.max >= 255:
            return np.zeros(len(flat), np.uint8)
        within = ((flat >= self.min) & (flat <= self.max)).mean(axis=1)
        return np.where(within < 0.5, OUTSIDE, 0).astype(np.uint8)

    @property
    def declared(self) -> str:
        """What a picture may hold, in words."""
        return f"pixels from {self.min:g} to {self.max:g}"

    def expand(self, cells: np.ndarray) -> np.ndarray:
        unit = (cells.astype(np.float32) - np.float32(self.min)) / np.float32(self.max - self.min)
        return np.clip(np.nan_to_num(unit, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)

    def decode(self, unit: np.ndarray) -> np.ndarray:
        """Pixels in the declared range, (rows, height, width, channels)."""
        pixels = self.min + np.clip(unit, 0, 1) * (self.max - self.min)
        pixels = pixels.reshape(len(unit), *self.shape)
        if (self.min, self.max) == (0, 255):
            return np.rint(pixels).astype(np.uint8)
        return pixels.astype(np.float32)

    def facts(self) -> dict[str, object]:
        return {
            "height": self.height,
            "width": self.width,
            "channels": self.channels,
            "min": self.min,
            "max": self.max,
            **({} if self.fit is None else {"fit": self.fit}),
        }
