"""Names that are looked up on first use: `limbeck --help` need not wait for JAX.

A package's table of contents says in which of its modules a name lives (PEP 562). What is said
there under TYPE_CHECKING is the same table for type checkers; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, contents: Mapping[str, str], *, rooms: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    Args:
        package: Its `__name__`.
        contents: Each module of the package with the names it gives, apart by blanks.
        rooms: Packages inside it that are public names themselves.
    """
    home = {name: module for module, names in contents.items() for name in names.split()}
    inner = set(rooms.split())

    def get(name: str) -> Any:
        if name in inner:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(import_module(package), name, value)  # next time it is simply there
        return value

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *home, *inner})

    return get, names
