"""Which code made a figure: a digest of a module and of all of limbeck that it imports."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PACKAGE = __name__.partition(".")[0]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def code_digest(module: str, *, alone: bool = False) -> str:
    """Digest of a module's code and of all limbeck modules that it imports, directly or through others.

    Comments and docstrings do not count: what is only explained differently gives the same figures.

    Args:
        module: Its full name.
        alone: Leave out what it imports.

    >>> code_digest("limbeck.methods.marginals.marginals") == code_digest("limbeck.scores")
    False
    """
    total = hashlib.sha256()
    for name in [module] if alone else sorted(_closure(module)):
        total.update(f"{name} {_own_digest(name)}\n".encode())
    return total.hexdigest()[:24]


@cache
def commit() -> str:
    """The commit that this code was checked out from, with "-dirty" behind it where files differ from it;
    "" where it does not lie in a repository."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--exclude=*",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _closure(module: str) -> set[str]:
    modules, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += [other for other in _imported(name) if other not in modules]
    return modules


@cache
def _imported(module: str) -> tuple[str, ...]:
    """The limbeck modules that a module names in import statements."""
    tree, path = _parsed(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    named = [name for node in ast.walk(tree) for name in _named(node, package)]
    return tuple(n for n in named if n.partition(".")[0] == PACKAGE and _path(n) is not None)


def _named(node: ast.AST, package: str) -> Iterator[str]:
    """Modules that one statement may import: of `from a import b`, both a and a.b."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*parts, *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def _own_digest(module: str) -> str:
    tree, _ = _parsed(module)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED):
            node.body = [line for line in node.body if not _is_text(line)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(line: ast.stmt) -> bool:
    """Whether a statement is a lone text: a docstring, of a module, class, function or setting."""
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _parsed(module: str) -> tuple[ast.Module, Path]:
    path = _path(module)
    if path is None:  # a method from elsewhere, or from a notebook: known by its name alone
        return ast.parse(repr(module)), Path(module)
    return ast.parse(path.read_text(encoding="utf-8")), path


@cache
def _path(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # a name in a module, or one without a file
        return None
    origin = None if spec is None else spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None
