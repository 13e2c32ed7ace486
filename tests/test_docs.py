"""The documentation is true: its code and commands run, its links lead somewhere."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import limbeck
from limbeck.cli.main import main
from limbeck.methods import KERNELS, METHODS, AbstractKernel, AbstractMethod
from limbeck.run import Recipe

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted(p for p in ROOT.glob("*.md") if p != README)]
PAGES += [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]

QUICK = """\
method = "marginals"
rows = 40
[settings]
soft_rows = 100
steps = 2
"""
"""Stands in for the default settings wherever a page says `--method marginals`: saves a minute."""


# ---- blocks of code and commands ----------------------------------------------------------------


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page: language and content, in order."""
    yield from re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def python_blocks() -> list[Any]:
    found = [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, (language, text) in enumerate(blocks(page))
        if language == "python"
    ]
    assert len(found) >= 2, "README.md and docs/extend.md should each have a Python block"
    return found


@pytest.mark.parametrize("text", python_blocks())
def test_python_blocks_run(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIMBECK_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "block.py").write_text(text)
    runpy.run_path(str(tmp_path / "block.py"), run_name="__main__")
    assert capsys.readouterr().out.strip()


def pages_with_commands() -> list[Path]:
    found = [page for page in PAGES if any(language == "console" for language, _ in blocks(page))]
    shown = {str(page.relative_to(ROOT)) for page in found}
    assert shown >= {"README.md", "docs/first-release.md", "docs/scores.md", "docs/reproduce.md"}
    return found


@pytest.mark.parametrize("page", pages_with_commands(), ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIMBECK_LEDGER", str(tmp_path / "book" / "ledger.sqlite"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "quick.toml").write_text(QUICK)
    for language, text in blocks(page):
        declare(language, text, tmp_path)
        if language == "console":
            for command, shown in commands(text):
                run(command, shown, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_shown_are_valid(page: Path, tmp_path: Path) -> None:
    for language, text in blocks(page):
        declare(language, text, tmp_path)


def declare(language: str, text: str, folder: Path) -> None:
    """Write a schema or recipe that a page shows under a name, once it is known to be one."""
    titled = re.match(r"# file: (\S+)\n", text)
    if language == "toml" and titled and titled[1] != "pyproject.toml":
        (folder / titled[1]).write_text(text)
        (Recipe if "method = " in text else limbeck.Schema).load(folder / titled[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_command_escapes_the_tests(page: Path) -> None:
    """A command on a line of its own stands in a console block, where it is run."""
    text = page.read_text()
    for language, block in blocks(page):
        text = text.replace(block, "")
        if language != "console":
            assert not re.findall(r"^(?:\$ )?limbeck .*", block, re.MULTILINE)
    assert not re.findall(r"^(?: {4}|\t)(?:\$ )?limbeck .*", text, re.MULTILINE)


def commands(text: str) -> list[tuple[str, str]]:
    """Each `$ command` of a console block with the output shown below it."""
    parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block begins with `$ `"
    return [(part.partition("\n")[0], part.partition("\n")[2].strip()) for part in parts[1:]]


def run(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command must do what the page shows: succeed, or fail with the error it shows."""
    if not command.startswith("limbeck "):
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
        return
    call, _, target = command.partition(" > ")
    call = call.replace("--method marginals", "--recipe quick.toml")
    call = call.replace("--method linear-head", "--set features=50 --set steps=5")
    monkeypatch.setattr("sys.argv", shlex.split(call))
    out, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    if target:
        Path(target).write_text(out.getvalue())
    if shown.startswith("limbeck: error:"):
        assert ended.value.code == 2, f"`{command}` should fail"
        assert errors.getvalue().startswith(shown.removesuffix(" ..."))
    else:
        assert ended.value.code == 0, f"`{command}` failed: {errors.getvalue()}"
        assert out.getvalue().strip(), f"`{command}` says nothing"


# ---- pages --------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}: no such heading"


def test_readme_has_the_commands_of_the_makefile() -> None:
    plain = [line for language, text in blocks(README) if not language for line in text.split("\n")]
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in plain
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    for target in ("demo", "test", "check", "docs"):
        assert f"make {target}\n" in contributing
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 45


def test_every_bug_of_the_list_has_a_test_that_exists() -> None:
    """Numbered through: P for published code, O for limbeck's own."""
    page = (ROOT / "docs" / "privacy-bugs.md").read_text()
    lines = re.findall(r"^\| ([PO])(\d+) \|.*\| (.*?) \|$", page, re.MULTILINE)
    for kind, least in {"P": 23, "O": 31}.items():
        found = [int(number) for letter, number, _ in lines if letter == kind]
        assert len(found) >= least and found == list(range(1, len(found) + 1))
    for letter, number, tests in lines:
        named = re.findall(r"`(\S+?)::(\S+?)`", tests)
        assert named, f"{letter}{number} names no test"
        for file, test in named:
            path = ROOT / file
            assert path.exists(), f"{letter}{number}: there is no {file}"
            assert f"def {test}(" in path.read_text(), f"{letter}{number}: {file} has no {test}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_speak_of_the_project_alone(page: Path) -> None:
    """Not of the work on it: what was done when, in which sitting, for whom."""
    words = (
        r"\b(sessions? \d+|(in|this|last|next) sessions?|the issue'?s?|issue \d+|docs/state\.md)\b"
    )
    assert not re.findall(words, page.read_text(), re.IGNORECASE)


def test_schema_page_names_every_key() -> None:
    from limbeck.schema.toml import _KEYS, _TOP

    page = (ROOT / "docs" / "schema.md").read_text()
    for key in {*_TOP, *_KEYS, *(key for keys in _KEYS.values() for key in keys)}:
        assert f"`{key}`" in page, f"docs/schema.md lacks {key}"


def test_every_page_is_on_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in listed, f"mkdocs.yml lacks {page.name}"
    for page in (ROOT / "benchmarks").rglob("*.md"):
        place = page.relative_to(ROOT).as_posix()
        of_a_table = (
            page.parent.name == "reproduce" and "-" in page.name
        )  # linked from their summary
        assert of_a_table or place in listed, f"mkdocs.yml lacks {place}"


# ---- examples -----------------------------------------------------------------------------------

EXAMPLES = ("csv_file", "image_folder", "own_method", "verify_in_ci", "redistill", "public_network")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    assert f"examples/{name}.py" in (ROOT / "docs" / "examples.md").read_text()
    try:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    except SystemExit as ended:
        assert not ended.code
    assert capsys.readouterr().out.strip()
    assert limbeck.Ledger().accounts() == []  # practice books nothing in the owner's ledger


# ---- docstrings ---------------------------------------------------------------------------------


def public() -> list[str]:
    machinery = {"TYPE_CHECKING", "lazily"}
    return [name for name in dir(limbeck) if not name.startswith("_") and name not in machinery]


@pytest.mark.parametrize("name", public())
def test_public_names_have_docstrings(name: str) -> None:
    thing = getattr(limbeck, name)
    if inspect.isclass(thing) or inspect.isfunction(thing) or isinstance(thing, ModuleType):
        assert (thing.__doc__ or "").strip(), f"limbeck.{name} has no docstring"
        # A dataclass without one gets its signature as a docstring.
        assert not thing.__doc__.startswith(f"{name}("), f"limbeck.{name} has no docstring"


@pytest.mark.parametrize("name", public())
def test_public_names_are_in_the_reference(name: str) -> None:
    thing = getattr(limbeck, name)
    inner = isinstance(thing, ModuleType) and name not in ("datasets",)
    if not inner:
        listed = re.findall(r"^::: limbeck\.(\w+)$", (ROOT / "docs/api.md").read_text(), re.M)
        assert name in listed, f"docs/api.md lacks limbeck.{name}"


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda m: m.name)
def test_methods_say_what_they_measure(method: type[AbstractMethod]) -> None:
    assert "\n    Privacy:\n" in (method.__doc__ or "")
    text = (ROOT / "docs" / "choose-a-method.md").read_text()
    assert method.name in text
    for setting in method().settings():
        assert f"| `{setting}` |" in text, f"choose-a-method.md does not explain {setting}"


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda k: k.name)
def test_settings_of_kernels_are_explained(kernel: type[AbstractKernel]) -> None:
    text = (ROOT / "docs" / "choose-a-method.md").read_text()
    for setting in set(kernel().settings()) - {"name"}:
        assert re.search(rf"^\| .*{kernel.name}.* \| `kernel.{setting}` \|", text, re.M), setting
