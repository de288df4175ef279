"""The parsers of all commands that are installed here."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from blast_client.cli.command import GROUP, build_parser, entry_points


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of `blast` with every command whose extra is installed."""
    here = []
    for command in entry_points(GROUP):
        try:
            command.load()
        except ImportError:
            continue
        here.append(command)
    return build_parser(here)


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by name; empty if it has none."""
    found = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(next(found, {}))


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and the parsers of all commands below it."""
    yield parser
    for below in commands_of(parser).values():
        yield from every_parser(below)
