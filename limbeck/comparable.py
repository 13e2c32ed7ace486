"""Functions as keys of compiled programs: equal ones are compiled once, not once for each object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any


@dataclass(frozen=True)
class BoundMethod:
    """A method and its owner."""

    function: Callable[..., Any]
    owner: Any

    def __call__(self, *given: Any) -> Any:
        return self.function(self.owner, *given)


def comparable(function: Any) -> Any:
    """The function; a method of a frozen object so that it equals the same method of an equal one, which Python
    compares by identity."""
    if not isinstance(function, MethodType):
        return function
    try:
        hash(function.__self__)
    except TypeError:  # an owner that holds arrays
        return function
    return BoundMethod(function.__func__, function.__self__)
