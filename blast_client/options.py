"""Options that several commands share, and argument types that explain themselves when they refuse."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, TypeVar

from blast_client.address import DEFAULT_ADDRESS
from blast_client.client import Client

Value = TypeVar("Value")


def controller_options() -> argparse.ArgumentParser:
    """A parent parser with --controller and --json."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--controller",
        metavar="ADDRESS",
        default=os.environ.get("BLAST_CONTROLLER", DEFAULT_ADDRESS),
        help="HOST:PORT of the controller (default: $BLAST_CONTROLLER, else 127.0.0.1:9090)",
    )
    options.add_argument("--json", action="store_true", help="print JSON")
    return options


def add_command(subparsers: Any, name: str, summary: str, example: str) -> argparse.ArgumentParser:
    """Add the parser of a command that talks to the controller."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[controller_options()],
    )
    return parser


def connect(arguments: argparse.Namespace) -> Client:
    """A client of the controller that the arguments name."""
    return Client(arguments.controller)


def checked(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Make a parser that raises ValueError an argument type whose sentence reaches the user."""

    def argument_type(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return argument_type


def names(text: str) -> list[str]:
    """Read a list of names, separated by commas.

    Raises ValueError.
    """
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ValueError(f"{text!r} is no list of names: write them with commas between, for example h2,h3")
    return found
