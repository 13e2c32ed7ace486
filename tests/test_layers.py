"""The house's order: imports point one way, and heavy libraries have one door."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "limbeck"

ORDER = [
    {
        "arrays",
        "chunks",
        "comparable",
        "draws",
        "errors",
        "memory",
        "lazy",
        "machine",
        "npz",
        "progress",
        "version",
    },
    {"schema", "outside", "accounting"},
    {"data", "nets"},
    {"features", "datasets"},
    {"privacy"},
    {"engines", "methods", "scores"},
    {"planning"},
    {"ledger", "release"},
    {"audits", "evaluation"},
    {"run"},
    {"report", "papers"},
    {"demo", "__init__"},
    {"cli"},
]
"""A module may import from earlier groups, and inside its own package; never from later ones."""

RANK = {name: rank for rank, group in enumerate(ORDER) for name in group}
FORBIDDEN = {
    ("features", "privacy"),
    ("scores", "methods"),
    ("nets", "privacy"),
    ("privacy", "nets"),
}
ONE_DOOR = {
    "pyarrow": {"data", "engines"},
    "PIL": {"data"},
    "typer": {"cli"},
    "rich": {"cli"},
    "dp_accounting": {"accounting", "ledger"},
    "cryptography": {"privacy"},
    "pooch": {"datasets"},
    "jinja2": {"report"},
    "sqlite3": {"ledger"},
}


def _modules() -> list[Path]:
    found = sorted(ROOT.rglob("*.py"))
    assert len(found) > 200
    return found


def _room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    """Absolute names of all modules a file imports, wherever in the file."""
    package = ("limbeck", *path.relative_to(ROOT).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            stem = ".".join((*base, *([node.module] if node.module else [])))
            found |= {stem} if node.module else {f"{stem}.{alias.name}" for alias in node.names}
    return found


def _rooms_used(path: Path) -> set[str]:
    own = {name.split(".")[1] for name in _imports(path) if name.startswith("limbeck.")}
    bare = {"__init__"} if "limbeck" in _imports(path) else set()
    return (own | bare) - {_room(path)}


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    room = _room(path)
    assert room in RANK, f"{room} has no place in the house: add it to ORDER"
    for used in _rooms_used(path):
        assert RANK[used] < RANK[room], f"{path.name} imports {used}"
        assert (room, used) not in FORBIDDEN, f"{path.name} imports {used}"


def test_the_order_is_no_longer_than_imports_demand() -> None:
    """In each group, some room needs one of the group before it."""
    used: dict[str, set[str]] = {_room(path): set() for path in _modules()}
    for path in _modules():
        used[_room(path)] |= _rooms_used(path)
    for before, group in itertools.pairwise(ORDER):
        assert any(used.get(room, set()) & before for room in group), group


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_libraries_have_one_door(path: Path) -> None:
    for name in _imports(path):
        doors = ONE_DOOR.get(name.split(".")[0])
        assert doors is None or _room(path) in doors, f"{path.name} imports {name}"


def test_no_module_changes_jax_for_everyone() -> None:
    for path in _modules():
        assert "config.update" not in path.read_text(), path


def test_no_branch_on_the_name_of_a_data_set() -> None:
    from limbeck import datasets

    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                values = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                assert not set(map(str, values)) & set(datasets.names()), path


def test_no_global_random_generator() -> None:
    """P6: private noise never comes from a library's global state."""
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
                own = ("Generator", "default_rng", "RandomState")
                assert node.attr in own, f"{path.name}: {node.attr}"


def test_no_room_gives_a_name_that_one_of_its_modules_has() -> None:
    """Else `from room import name` is the module or the name, by who was imported first."""
    for init in ROOT.rglob("*/__init__.py"):
        tree = ast.parse(init.read_text())
        froms = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
        given = {alias.asname or alias.name for node in froms for alias in node.names}
        modules = {path.stem for path in init.parent.iterdir()}
        assert not given & modules, init


def test_every_room_is_a_package() -> None:
    """A folder without `__init__.py` imports, but its doctests do not, nor does every packager see it."""
    assert [p for p in _modules() if not (p.parent / "__init__.py").exists()] == []
