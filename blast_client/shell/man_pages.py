"""Manual pages (man(7)) of `blast` and of each of its commands, from their parsers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from blast_client.command import bare_parser
from blast_client.shell.parsers import commands_of, whole_parser
from blast_client.summaries import SUMMARIES
from blast_client.version import VERSION

if TYPE_CHECKING:
    from argparse_manpage.manpage import Manpage

_SECTION = 1
_FORMAT = "single-commands-section"
"""One page for a command and those below it."""


def man_pages() -> dict[str, str]:
    """Pages by the names of their files, written by `argparse_manpage`, which is of the extra `shell`."""
    commands = commands_of(whole_parser())
    pages = {f"blast-{name}.{_SECTION}": _command_page(name, parser) for name, parser in commands.items()}
    return {f"blast.{_SECTION}": _first_page(sorted(commands)), **pages}


def _first_page(commands: list[str]) -> str:
    page = _page(bare_parser(), "blast", "optical multicast: the controller, its clients and the lab")
    page.synopsis += ["COMMAND", "..."]
    listed = [f".TP\n\\fBblast {_escaped(name)}\\fR\n{_escaped(SUMMARIES.get(name, ''))}" for name in commands]
    last = ".PP\nEach has a page of its own, as \\fBblast\\-send\\fR(1)."
    page.add_section("commands", "=", "\n".join([*listed, last]))
    return str(page)


def _command_page(name: str, parser: argparse.ArgumentParser) -> str:
    page = _page(parser, f"blast-{name}", SUMMARIES.get(name, ""))
    page.add_section("see also", "=", "\\fBblast\\fR(1)")
    return str(page)


def _page(parser: argparse.ArgumentParser, name: str, summary: str) -> Manpage:
    from argparse_manpage.manpage import Manpage

    epilog, parser.epilog = parser.epilog or "", None
    # That they are examples the heading says.
    examples = epilog.removeprefix("examples:").removeprefix("example:").strip("\n")
    page = Manpage(parser, format=_FORMAT)
    page.prog, page.description, page.section = name, summary, _SECTION
    page.source, page.manual = f"blast {VERSION}", "Blast"
    # As it is written: lines and columns of examples mean something.
    page.add_section("examples", "=", f".nf\n{_escaped(examples)}\n.fi")
    return page


def _escaped(text: str) -> str:
    """A text in which nothing is a request or an escape of roff."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
