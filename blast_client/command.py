"""The `blast` command: finds the sub-commands of all installed packages and runs one.

A package offers a sub-command by an entry point of the group `blast.commands` with its name: a function
`register(subparsers)` that adds parsers, several if it likes, and gives each `set_defaults(run=...)`: a callable that
takes the parsed arguments and returns the exit status. So `blast` needs none of them to be installed, and loads those
alone that are asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, NoReturn

DISTRIBUTION = "blast-controller"
GROUP = "blast.commands"
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

_EXAMPLES = """\
examples:
  blast controller run --config fabric.toml
  blast request --from h1 --to h2,h3 --bytes 300MB
  blast status
  blast fabric show

Exit status: 0 done, 1 failed, 2 wrong use, 3 done for some of several.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `blast` with these arguments (default: those of the process) and return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    commands = entry_points(group=GROUP)
    try:
        # To load all of them takes longer than most commands do.
        parser = build_parser([command for command in commands if command.name in words[:1]] or commands)
        arguments = parser.parse_args(words)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as end:
        # How argparse ends help and wrong use.
        return end.code if isinstance(end.code, int) else WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing may be flushed into the closed pipe at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return status


class _Parser(argparse.ArgumentParser):
    """Tells wrong use in one line, in all sub-commands: a wrapped usage would hide it."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message} (`{self.prog} --help` tells more)\n")


def build_parser(commands: Iterable[EntryPoint]) -> argparse.ArgumentParser:
    """The parser with the sub-commands of these entry points."""
    parser = _Parser(
        prog="blast",
        description="Optical multicast: the controller, its clients and the lab.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"blast {_version()}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    add_commands(commands, subparsers)
    return parser


def add_commands(commands: Iterable[EntryPoint], subparsers: Any) -> None:
    """Let these entry points add their sub-commands, in the order of their names."""
    registered = set[Callable[[Any], None]]()
    for command in sorted(commands, key=lambda command: command.name):
        try:
            register: Callable[[Any], None] = command.load()
        except ImportError as error:
            # An extra that is not installed must not take the other commands with it.
            _register_absent(command, error, subparsers)
            continue
        if register not in registered:
            registered.add(register)
            register(subparsers)


def _register_absent(command: EntryPoint, error: ImportError, subparsers: Any) -> None:
    name, extra = command.name, next(iter(command.extras), command.name)

    def run(_: argparse.Namespace) -> int:
        sys.stderr.write(
            f"blast: `blast {name}` is not installed here ({error}): pip install '{DISTRIBUTION}[{extra}]'\n"
        )
        return FAILED

    # With a prefix that nobody types, every argument is accepted: what counts is the sentence.
    parser = subparsers.add_parser(name, prefix_chars="\0", add_help=False, help="(not installed)")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
