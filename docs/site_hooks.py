"""What the documentation site adds to the pages of this folder when it is built.

- Pages and pictures of the repository that stand elsewhere (benchmarks, changes, contributing).
- Links: written so that they work in the repository, turned into links of the site.
- The reference of the command line, made from the commands themselves.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from limbeck.cli.main import app

ROOT = Path(__file__).parent.parent
OUTSIDE = ("*.md", "benchmarks/**/*.md", "benchmarks/*.png")
COMMANDS = "<!-- every command -->"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, *, config: Any) -> Files:
    """Add what stands outside docs/, under its path in the repository."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if (
                name not in ("README.md", "benchmarks/reproduce")
                and files.get_file_from_path(name) is None
            ):
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Turn links and fill in the commands."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, command_reference())
    own = page.file.src_uri
    in_repository = f"docs/{own}" if (ROOT / "docs" / own).exists() else own

    def turned(found: re.Match[str]) -> str:
        link, anchor = found[2], found[3] or ""
        if ":" in link:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), link))
        if not (ROOT / target).exists():
            return found[0]  # the strict build refuses it
        on_site = target.removeprefix("docs/")
        if files.get_file_from_path(on_site) is None:
            return f"](#not-on-the-site:{target})"
        return f"]({posixpath.relpath(on_site, posixpath.dirname(own) or '.')}{anchor})"

    parts = CODE.split(markdown)
    parts[::2] = [
        # What is in the repository but not on the site (a folder, a script) is named, not linked.
        re.sub(r"\[([^\]]*)\]\(#not-on-the-site:([^)]*)\)", r"\1 (`\2`)", LINK.sub(turned, part))
        for part in parts[::2]
    ]
    return "".join(parts)


def command_reference() -> str:
    """Every command with its arguments and options, from the command line's own description."""
    group: Any = get_command(app)
    lines = [f"{group.help}\n", *_options(group, "limbeck")]
    for name, command in group.commands.items():
        usage = " ".join(command.collect_usage_pieces(_context(command, name)))
        lines += [f"\n## `{name}`\n", f"{command.help}\n", f"```\nlimbeck {name} {usage}\n```\n"]
        lines += _options(command, name)
    return "\n".join(lines)


def _options(command: Any, name: str) -> list[str]:
    found = (p.get_help_record(_context(command, name)) for p in command.params)
    rows = [
        f"| `{option}` | {told.replace('|', chr(92) + '|')} |"
        for option, told in filter(None, found)
    ]
    return ["| argument or option | meaning |", "|---|---|", *rows] if rows else []


def _context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=name)
