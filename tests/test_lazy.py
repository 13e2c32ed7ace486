"""What needs no JAX does not wait for it, and the lazy tables of contents are whole."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "limbeck"

RUN = """
import sys
sys.argv = ["limbeck", *sys.argv[1:]]
from limbeck.cli.main import main
try:
    main()
finally:
    print("\\nloaded:", *sorted({name.split(".")[0] for name in sys.modules}))
"""


def loaded_by(*arguments: str) -> set[str]:
    """Top-level packages that a command loads; the command itself must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rsplit("\nloaded: ", 1)[1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["verify", "--help"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded_by(*arguments) & {"jax", "numpy", "pandas", "pyarrow", "dp_accounting"}


def test_the_ledger_and_a_drafted_schema_need_no_jax(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,town\n1,north\n2,south\n")
    assert "jax" not in loaded_by("ledger")
    assert "jax" not in loaded_by("schema", str(tmp_path / "rows.csv"))


def test_version_is_the_packages_own() -> None:
    from importlib.metadata import version

    done = subprocess.run(
        [sys.executable, "-c", RUN, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == f"limbeck {version('limbeck')}"


@pytest.mark.parametrize("name", ["limbeck", "limbeck.privacy"])
def test_readers_and_python_are_told_the_same_contents(name: str) -> None:
    """What stands under TYPE_CHECKING is what is looked up, name by name and home by home."""
    package = importlib.import_module(name)
    [branch] = [
        n for n in ast.parse(Path(package.__file__ or "").read_text()).body if isinstance(n, ast.If)
    ]
    declared = {
        (alias.name, statement.module)
        for statement in branch.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    [table] = [ast.literal_eval(n) for n in ast.walk(branch.orelse[0]) if isinstance(n, ast.Dict)]
    rooms = [
        k.value for n in ast.walk(branch.orelse[0]) if isinstance(n, ast.Call) for k in n.keywords
    ]
    looked_up = {(each, home) for home, names in table.items() for each in names.split()}
    looked_up |= {(each, None) for room in rooms for each in ast.literal_eval(room).split()}
    assert declared == looked_up
    for each, home in looked_up:
        assert each in dir(package)
        found = getattr(package, each)
        assert home is None or found is getattr(importlib.import_module(f"{name}.{home}"), each)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import limbeck

    with pytest.raises(AttributeError, match="no attribute 'distillery'"):
        _ = limbeck.distillery  # type: ignore[attr-defined]
