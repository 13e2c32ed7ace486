"""The command line: the app, and what becomes of errors; no mathematics.

Exit codes: 0 done; 2 something the user can mend (one line on standard error, no traceback);
3 from `verify`: the arithmetic holds and something is left open; 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from ..errors import LimbeckError, LimbeckWarning
from .audit import audit
from .classifying import classify, predict
from .ledger import ledger
from .making import check, distill, plan, redistill, schema
from .methods import methods
from .papers import data, demo, reproduce
from .programs import keep_programs
from .releases import evaluate, report, verify
from .sampling import sample
from .show import errors, mute

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Sensitive data in; a small synthetic data set with a privacy certificate out.",
)

VERBS = (
    schema,
    check,
    methods,
    plan,
    distill,
    redistill,
    sample,
    classify,
    predict,
    verify,
    audit,
    evaluate,
    report,
    ledger,
    reproduce,
    data,
    demo,
)
"""In the order in which `limbeck --help` lists them."""

for _verb in VERBS:
    app.command()(_verb)

SWITCHES = re.compile(r"\b(force|non_private|pay_again)=True\b|\bcheck=False\b")
"""Arguments of Python's verbs that errors name, and that are switches here."""

INTERRUPTED = "Interrupted. What was paid for is kept, and the same command resumes it."


def _show_version(wanted: bool) -> None:
    if wanted:
        from ..version import __version__

        sys.stdout.write(f"limbeck {__version__}\n")
        raise typer.Exit()


@app.callback()
def limbeck(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which version."),
    ] = False,
) -> None:
    """Sensitive data in; a small synthetic data set with a privacy certificate out."""


def main() -> NoReturn:
    """Entry point: every mendable error is one line and exit code 2."""
    from typer.main import get_command

    command = get_command(app)
    keep_programs(os.environ)
    _open_streams()
    _show_warnings_as_lines()
    try:
        code = command.main(prog_name="limbeck", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        mute(sys.__stdout__)  # whoever read has seen enough; typer makes an exit of it
        sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        _fail_because(error)
    if code == 130:  # how some versions of typer tell of Ctrl-C
        _fail(INTERRUPTED, 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail_because(error: BaseException) -> NoReturn:
    """One line about an error that the user can mend; any other goes on its way."""
    if isinstance(error, LimbeckError):
        _fail(SWITCHES.sub(_switch, str(error)))
    if isinstance(error, KeyboardInterrupt):
        _fail(INTERRUPTED, 130)
    if isinstance(error, ModuleNotFoundError):
        if (error.name or "limbeck").startswith("limbeck"):
            raise error
        _fail(
            f"{error.name} is not installed here, and only `verify` does without. Install limbeck with "
            "all it needs: `pip install .` in its source."
        )
    if isinstance(error, OSError):
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    if isinstance(error, OverflowError):
        _fail("A number is too large to compute with. Use a smaller epsilon.")
    if isinstance(error, MemoryError):
        _fail("Out of memory. Use fewer features, a smaller batch, or release fewer rows.")
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        _fail_usage(error)
    if type(error).__name__ == "Abort":
        if isinstance(error.__cause__, EOFError):
            _fail("A file ended before it was complete. Get a whole copy of it.")
        _fail(INTERRUPTED, 130)
    raise error


def _switch(option: re.Match[str]) -> str:
    return "--no-check" if option[1] is None else "--" + option[1].replace("_", "-")


def _open_streams() -> None:
    """Streams that were closed before the start lead nowhere; no other file may get their numbers."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _show_warnings_as_lines() -> None:
    """limbeck's own warnings are for the data owner, without the place in the code."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **also: Any) -> None:
        if not issubclass(category, LimbeckWarning):
            usual(message, category, *where, **also)
            return
        errors.print("limbeck: [yellow]warning:[/] ", end="")
        errors.print(str(message), markup=False)

    warnings.showwarning = show


def _fail_usage(error: Any) -> NoReturn:
    """A command line that typer refuses: its words, and what came."""
    message = error.format_message().strip().rstrip(".")
    if not message:  # no command at all: the help was shown instead
        sys.exit(error.exit_code)
    options = getattr(getattr(error, "param", None), "opts", ())
    came = [value for name, value in zip(sys.argv, sys.argv[1:], strict=False) if name in options]
    got = f", got '{came[-1]}'" if came else ""
    end = "" if message.endswith("?") else "."
    _fail(f"{message}{got}{end} See `limbeck --help`.", error.exit_code)


def _fail(message: str, code: int = 2) -> NoReturn:
    errors.print("limbeck: [red]error:[/] ", end="")
    errors.print(message, markup=False)
    sys.exit(code)
