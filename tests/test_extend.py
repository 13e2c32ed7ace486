"""docs/extend.md is enough: its code is a package that, once installed, works like limbeck's own.

The package is made of the page's blocks, installed from another folder into a place of its own, and
used from there by other processes; the tests' own process never has it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from helpers import table_rows, table_schema

import limbeck as lk
from limbeck.cli.main import main
from limbeck.methods import METHODS

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "extend.md").read_text()
EXAMPLES = sorted((TESTS.parent / "examples").glob("*.py"))
FILES = {
    name: text
    for text, name in re.findall(
        r"^```(?:python|py|toml)\n(# file: (\S+)\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
}
"""The files that the page shows, by name."""

QUICK = ["--set", "features=24", "--set", "batch=12", "--set", "hidden=[6]"]


# ---- public names --------------------------------------------------------------------------------

CODE = {name: text for name, text in FILES.items() if name.endswith(".py")}
CODE |= {path.name: path.read_text() for path in EXAMPLES}


def test_the_page_shows_a_method_a_kind_and_their_rows() -> None:
    names = {"polynomial", "class_means", "laws"}
    assert FILES.keys() == {"pyproject.toml"} | {f"polynomials/{name}.py" for name in names}


@pytest.mark.parametrize("name", CODE)
def test_only_public_names_are_used(name: str) -> None:
    """Those of `limbeck` itself and of its rooms: nothing from inside a room, nothing private."""
    for node in ast.walk(ast.parse(CODE[name])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("limbeck"):
            _, *room = (node.module or "").split(".")
            assert len(room) <= 1, f"{node.module} is inside a room"
            face = lk if not room else getattr(lk, room[0])
            assert {alias.name for alias in node.names} <= set(dir(face))
        elif isinstance(node, ast.Import):
            assert not [a.name for a in node.names if a.name.startswith("limbeck.")]
        elif isinstance(node, ast.Attribute):
            assert not re.match(r"_[^_]", node.attr), f"{node.attr} is private"


# ---- the package, installed ----------------------------------------------------------------------


def write_wheel(folder: Path) -> Path:
    """What a build backend makes of the page's pyproject.toml; so that none has to be at hand."""
    about = tomllib.loads(FILES["pyproject.toml"])["project"]
    stem = f"{about['name']}-{about['version']}"
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in about["entry-points"].items()
    ]
    files = {name: text for name, text in FILES.items() if name.endswith(".py")}
    files[f"{about['name']}/__init__.py"] = ""
    files |= {
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": "\n".join(points),
    }
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return folder / f"{stem}-py3-none-any.whl"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed: on no path of this process."""
    wheel, place = (
        write_wheel(tmp_path_factory.mktemp("wheel")),
        tmp_path_factory.mktemp("installed"),
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--disable-pip-version-check", "--target", str(place), str(wheel)]
    subprocess.run(pip, check=True)
    assert "dp-polynomial" not in METHODS
    return place


def with_package(place: Path, **more: str) -> dict[str, str]:
    """The environment of a process that has the package, and this limbeck."""
    paths = [str(place), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | more


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    errors: str


RUN = """
import contextlib, io, json, sys
from limbeck.cli.main import main
ended = []
for arguments in json.load(sys.stdin):
    sys.argv = ["limbeck", *arguments]
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            ended.append([end.code, out.getvalue(), errors.getvalue()])
json.dump(ended, sys.stdout)
"""
"""Runs commands one after the other: JAX is loaded once for all."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, their schema and a recipe, and what commands make of them."""
    folder = tmp_path_factory.mktemp("work")
    table_rows(60).to_csv(folder / "rows.csv", index=False)
    table_schema().save(folder / "schema.toml")
    (folder / "means.toml").write_text('method = "class-means"\n[settings]\nlimit = 0.8\n')
    return folder


@pytest.fixture(scope="module")
def ended(place: Path, folder: Path) -> dict[str, Ended]:
    """Every command that has to do with methods, where the package is installed."""
    given = ["rows.csv", "--schema", "schema.toml", "--epsilon", "1"]
    named, recipe = ["--method", "dp-polynomial", *QUICK], ["--recipe", "means.toml"]
    commands = {
        "methods": ["methods", "--json"],
        "plan": ["plan", *given, *named],
        "distill": ["distill", *given, *named, "--set", "steps=2", "--out", "made"],
        "verify": ["verify", "made"],
        "redistill": ["redistill", "made", "--set", "steps=3", "--out", "again"],
        "verify again": ["verify", "again"],
        "report": ["report", "made", "again", "--out", "made.html"],
        "recipe": ["distill", *given, *recipe, "--out", "means"],
        "verify means": ["verify", "means"],
        "redistill means": ["redistill", "means", "--set", "shrink=0.5", "--out", "shrunk"],
        "redistill, another measurement": [
            "redistill",
            "means",
            "--set",
            "limit=1.0",
            "--out",
            "x",
        ],
        "report means": ["report", "means", "--out", "means.html"],
        "a typing error": ["plan", *given, "--method", "dp-polynomal"],
        "a setting that is not there": ["plan", *given, *named, "--set", "degrees=3"],
    }
    environment = with_package(place, LIMBECK_LEDGER=str(folder / "book" / "ledger.sqlite"))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(list(commands.values())),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(commands, (Ended(*e) for e in json.loads(done.stdout)), strict=True))


def test_commands_know_the_methods_of_a_package(ended: dict[str, Ended]) -> None:
    wrong = {"redistill, another measurement", "a typing error", "a setting that is not there"}
    for name, end in ended.items():
        assert end.code == (2 if name in wrong else 0), f"{name}: {end.errors}{end.out}"
    listed = {facts["name"]: facts for facts in json.loads(ended["methods"].out)}
    for name, answer in {"dp-polynomial": "mean embedding", "class-means": "clamped means"}.items():
        assert listed[name]["package"] == "polynomials" and answer in listed[name]["measures"]
    assert "mean embedding" in ended["plan"].out
    assert "Free to change: shrink" in ended["redistill, another measurement"].errors
    known = ended["a typing error"].errors
    assert "dp-polynomial" in known and "class-means" in known
    assert "dp-polynomial has no setting 'degrees'" in ended["a setting that is not there"].errors


def test_certificates_name_the_package_and_the_kind_it_brings(
    ended: dict[str, Ended], folder: Path
) -> None:
    brought = []
    for name, method in {"made": "dp-polynomial", "means": "class-means"}.items():
        certificate = json.loads((folder / name / "certificate.json").read_text())
        assert certificate["method"]["name"] == method
        assert certificate["method"]["package"] == {"name": "polynomials", "version": "0.1.0"}
        brought.append([a for a in certificate["assumptions"] if "polynomials" in a])
    assert brought[0] == []  # it asks limbeck's own questions
    assert "ClampedSum, which polynomials (0.1.0) brings" in brought[1][0]
    assert "ClampedSum" in (folder / "means" / "README.md").read_text()


def test_reports_show_the_releases_of_a_package(ended: dict[str, Ended], folder: Path) -> None:
    assert "dp-polynomial" in (folder / "made.html").read_text()
    assert "class-means" in (folder / "means.html").read_text()


def run_here(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["limbeck", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_without_the_package_the_arithmetic_holds_and_the_method_is_not_known(
    ended: dict[str, Ended],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, method in {"made": "dp-polynomial", "means": "class-means"}.items():
        assert run_here("verify", str(folder / name), monkeypatch=monkeypatch) == 3
        words = f"this method ({method}, version 1, of polynomials) is not known here"
        assert words in capsys.readouterr().out
    out = str(folder / "absent.html")
    assert run_here("report", str(folder / "made"), "--out", out, monkeypatch=monkeypatch) == 0
    assert "is not known here" in capsys.readouterr().err
    out = str(folder / "absent")
    assert run_here("redistill", str(folder / "made"), "--out", out, monkeypatch=monkeypatch) == 2
    assert "Unknown method 'dp-polynomial'" in capsys.readouterr().err


# ---- laws ----------------------------------------------------------------------------------------

LIES = """
from dataclasses import replace
from polynomials.laws import CASES, KINDS, CLAMPED
from polynomials.class_means import ClampedSum

class Lying(ClampedSum):
    '''Charges for one feature, and measures five.'''

    def measured(self):
        (charge,) = super().measured()
        return (replace(charge, sensitivity=self.limit),)

KINDS = [*KINDS, replace(KINDS[0], name="a lie", question=Lying(**vars(CLAMPED)), smaller=None)]
"""


def test_a_package_joins_the_laws_by_a_row(place: Path, tmp_path: Path) -> None:
    """All of them hold, and a kind that charges too little is found out."""
    (tmp_path / "lies.py").write_text(LIES)
    environment = with_package(place, LIMBECK_LAWS="lies")
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    chosen = "polynomial or class-means or clamped or lie or under_the_laws"
    laws = [str(TESTS / "test_laws.py"), str(TESTS / "privacy" / "test_kinds.py")]
    pytest_call = [sys.executable, "-m", "pytest", *laws, "-k", chosen, "-p", "no:cacheprovider"]
    subprocess.run(
        [*pytest_call, f"--junitxml={tmp_path / 'laws.xml'}"],
        cwd=TESTS.parent,
        env={k: v for k, v in environment.items() if not k.startswith("PYTEST_")},
        stdout=subprocess.DEVNULL,
    )
    passed, failed = set(), set()
    for case in ElementTree.parse(tmp_path / "laws.xml").iter("testcase"):
        broken = case.find("failure") is not None or case.find("error") is not None
        (failed if broken else passed).add(case.attrib["name"])
    assert failed and all("[a lie" in name for name in failed), failed
    assert "test_no_row_taken_out_moves_an_answer_beyond_its_sensitivity[a lie]" in failed
    for row, least in {
        "dp-polynomial, table": 11,
        "class-means, table": 10,
        "clamped sum": 12,
    }.items():
        assert len([name for name in passed if f"[{row}" in name or f"-{row}]" in name]) >= least
    assert {"test_every_method_is_under_the_laws", "test_every_kind_is_under_the_laws"} <= passed


# ---- the page ------------------------------------------------------------------------------------


def test_the_layers_are_those_of_the_house() -> None:
    shown = re.search(r"^    errors .*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    assert shown
    small, *groups = (set(re.findall(r"\w+", group)) for group in shown[0].split("<"))
    first, *rooms = import_module("test_layers").ORDER
    assert small - {"and", "other", "small", "modules"} <= first
    assert groups == [group - {"__init__"} for group in rooms]
