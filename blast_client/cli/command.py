"""The `blast` command: finds the sub-commands of all installed packages and runs one.

A package offers a sub-command by an entry point of the group `blast.commands`: a function `register(subparsers)` that
adds one or more parsers and sets `run` of each to a function that takes the parsed arguments and returns the exit
status. `blast` loads only the entry point of the command that runs; its help and version load none.
"""

from __future__ import annotations

import argparse
import os
import sys

from blast_base.command_line import FAILED, INTERRUPTED, WRONG_INPUT
from blast_client.cli.json_errors import OPTION, ErrorLines, run_with_json_errors
from blast_client.cli.summaries import SUMMARIES
from blast_client.cli.terminal import columns
from blast_client.cli.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Loading these takes longer than the help does.
    from collections.abc import Callable, Iterable, Sequence
    from importlib.metadata import EntryPoint
    from typing import NoReturn

GROUP = "blast.commands"

_WITHOUT_SEARCH = {"send": "blast_client.send.command"}
"""Modules of commands that start without a search for entry points, which takes as long as sending a small file."""
_FEW = 12
"""Names that still fit into a line or two."""

_EXAMPLES = """\
examples:
  blast controller run --config fabric.toml
  blast request --from h1 --to h2,h3 --bytes 300MB
  blast status
  blast fabric show

Exit status: 0 success, 1 failure, 2 wrong use, 3 partial success, 130 stopped by Ctrl-C. With --json each line on
standard error is JSON: {"note": …}, or {"error": …, "status": …} after a failure.
"""


def _nothing() -> None:
    pass


def main(argv: Sequence[str] | None = None, loaded: Callable[[], None] = _nothing) -> int:
    """Run `blast` with these arguments (default: those of the process) and return the exit status.

    `loaded` is called after the command is loaded, before it runs.
    """
    words = sys.argv[1:] if argv is None else argv
    return run_with_json_errors(lambda: _run(words, loaded)) if OPTION in words else _run(words, loaded)


def _run(words: Sequence[str], loaded: Callable[[], None]) -> int:
    try:
        arguments = _parser_for(words).parse_args(words)
        loaded()
        if isinstance(sys.stderr, ErrorLines) and getattr(arguments, "json", None) is not True:
            # "--json" was the value of another option.
            sys.stderr.as_text()
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as end:
        # argparse ends help and wrong use in this way.
        return end.code if isinstance(end.code, int) else WRONG_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed the pipe; Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        # A path for which no command has a better message: too long, or in an unreadable directory.
        if error.filename is None:
            raise
        sys.stderr.write(f"blast: cannot use {error.filename}: {error.strerror}\n")
        return FAILED
    return status


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group that installed packages declare."""
    from importlib.metadata import entry_points as declared

    return declared(group=group)


def _parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with only the commands that these arguments need: loading all is slower than most commands."""
    if not words or words[0].startswith("-"):
        return _outline()
    if (place := _WITHOUT_SEARCH.get(words[0])) is not None:
        from importlib import import_module

        parser, subparsers = _new_parser()
        import_module(place).register(subparsers)
        return parser
    commands = entry_points(GROUP)
    named = [command for command in commands if command.name == words[0]]
    # An unknown name is misspelled; finding the nearest name needs no loaded command.
    return build_parser(named or commands) if named or words[0] in SUMMARIES else _outline()


class _Help(argparse.RawDescriptionHelpFormatter):
    """A formatter that keeps line breaks and has a column for the longest command name."""

    def __init__(self, prog: str) -> None:
        # Without a width argparse imports shutil, and with it all compression modules.
        super().__init__(prog, width=columns(sys.stdout, 80) - 2)
        # argparse ignores that command names are indented twice.
        self._action_max_length = max(map(len, SUMMARIES)) + 4


class _Parser(argparse.ArgumentParser):
    """A parser that reports wrong use in one line with a suggestion; a long usage text would hide the error."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse as argparse does, but report unknown options in the parser of the sub-command."""
        parsed, unknown = super().parse_known_args(args, namespace)
        option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
        if option is not None:
            from blast_client.api.nearest import did_you_mean

            self.error(f"there is no option {option}{did_you_mean(option, self._option_string_actions)}")
        if unknown:
            self.error(f"unexpected argument {unknown[0]!r}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Check a choice as argparse does, and suggest the nearest one."""
        if action.choices is None or value in action.choices:
            return
        from blast_client.api.nearest import did_you_mean

        known = [str(choice) for choice in action.choices]
        near = did_you_mean(str(value), known)
        # The help lists longer sets.
        others = f" (there are {', '.join(known)})" if not near and len(known) <= _FEW else ""
        noun = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
        # argparse adds the name of an option itself.
        raise argparse.ArgumentError(
            action if action.option_strings else None,
            f"there is no {noun} {value!r}{near or others}",
        )

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_INPUT, f"{self.prog}: {message} (see `{self.prog} --help`)\n")


class _VersionAction(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and the installed engines, and exit."""
        from blast_transport.base.engines import engines_here

        sys.stdout.write(f"blast {VERSION}\nengines: {engines_here()}\n")
        parser.exit()


def build_parser(commands: Iterable[EntryPoint]) -> argparse.ArgumentParser:
    """Return the parser with the sub-commands of these entry points."""
    parser, subparsers = _new_parser()
    add_commands(commands, subparsers)
    return parser


def _outline() -> argparse.ArgumentParser:
    """Return a parser that has only the names and summaries of the sub-commands."""
    parser, subparsers = _new_parser()
    for name, summary in SUMMARIES.items():
        subparsers.add_parser(name, help=summary, add_help=False)
    return parser


def bare_parser() -> argparse.ArgumentParser:
    """Return the parser without sub-commands."""
    parser: argparse.ArgumentParser = _Parser(
        prog="blast",
        description="Optical multicast: the controller, its clients and the lab.",
        epilog=_EXAMPLES,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_VersionAction, nargs=0, help="versions of Blast and of its engines")
    return parser


def _new_parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    parser = bare_parser()
    return parser, parser.add_subparsers(metavar="COMMAND", required=True)


def add_commands(
    commands: Iterable[EntryPoint], subparsers: argparse._SubParsersAction[argparse.ArgumentParser]
) -> None:
    """Add the sub-commands of these entry points, in the order of their names."""
    registered: set[Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]] = set()
    for command in sorted(commands, key=lambda command: command.name):
        try:
            register = command.load()
        except ImportError as error:
            # A missing extra must not disable the other commands.
            _register_absent(command, error, subparsers)
            continue
        if register not in registered:
            registered.add(register)
            register(subparsers)


def _register_absent(
    command: EntryPoint, error: ImportError, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]
) -> None:
    from blast_base.extras import how_to_install

    name, extra = command.name, next(iter(command.extras), command.name)

    def run(_: argparse.Namespace) -> int:
        sys.stderr.write(f"blast: `blast {name}` is not installed ({error}): {how_to_install(extra)}\n")
        return FAILED

    # No argument starts with this prefix, so that the parser accepts all and `run` prints the reason.
    parser = subparsers.add_parser(name, prefix_chars="\0", add_help=False, help="(not installed)")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
