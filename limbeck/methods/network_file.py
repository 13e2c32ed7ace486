"""A network from a file of the user's, who vouches that it is public; certificates name it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import FileMissing, LimbeckError
from ..npz import NotArrays, read_arrays


@dataclass(frozen=True, kw_only=True)
class NetworkFile:
    """Weights of a network in a file of arrays (.npz), as `limbeck.nets.network_arrays` gives them.

    Args:
        path: Where it lies.
        digest: SHA-256 that it must have; empty: any.
    """

    path: str
    digest: str = ""

    @cached_property
    def sha256(self) -> str:
        """Its digest; a file that is not the one that was named is refused."""
        try:
            found = hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        except OSError as error:
            raise FileMissing(f"Cannot read the network {self.path}: {error.strerror}.") from None
        if self.digest not in ("", found):
            raise LimbeckError(f"{self.path} is not the network that the settings name.")
        return found

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The numbers in it, by name."""
        try:
            return read_arrays(Path(self.path))
        except OSError as error:
            raise FileMissing(f"Cannot read the network {self.path}: {error.strerror}.") from None
        except NotArrays as error:
            raise LimbeckError(f"{self.path} is not a file of arrays (.npz): {error}.") from None

    def assumptions(self) -> tuple[str, ...]:
        """What a guarantee takes for granted where it is used."""
        return (
            f"The network {Path(self.path).name} (SHA-256 {self.sha256}) is public: it was "
            "made without looking at these rows.",
        )

    def public_files(self, purpose: str) -> list[dict[str, str]]:
        """How certificates name it."""
        return [{"name": Path(self.path).name, "sha256": self.sha256, "purpose": purpose}]
