"""The `blast` command: finds the sub-commands of all installed packages and runs one.

A package offers a sub-command by an entry point of the group `blast.commands` with its name: a function
`register(subparsers)` that adds parsers, several if it likes, and gives each `set_defaults(run=...)`: a callable that
takes the parsed arguments and returns the exit status. So `blast` needs none of them to be installed, and loads those
alone that are asked for; its own help and version load nothing.
"""

from __future__ import annotations

import argparse
import os
import sys

from blast_client.json_errors import OPTION, ErrorLines, telling_in_json
from blast_client.summaries import SUMMARIES
from blast_client.terminal import columns
from blast_client.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Loading these takes longer than the help does.
    from collections.abc import Callable, Iterable, Sequence
    from importlib.metadata import EntryPoint
    from typing import NoReturn

GROUP = "blast.commands"
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

_FEW = 12

_EXAMPLES = """\
examples:
  blast controller run --config fabric.toml
  blast request --from h1 --to h2,h3 --bytes 300MB
  blast status
  blast fabric show

Exit status: 0 done, 1 failed, 2 wrong use, 3 done for some of several, 130 stopped by Ctrl-C. With --json what would be
a sentence on standard error is a line of JSON: {"note": …}, and at a failure {"error": …, "status": …}.
"""


def _nothing() -> None:
    pass


def main(argv: Sequence[str] | None = None, loaded: Callable[[], None] = _nothing) -> int:
    """Run `blast` with these arguments (default: those of the process) and return the exit status.

    `loaded` is called when the command is there, before it runs.
    """
    words = sys.argv[1:] if argv is None else argv
    return telling_in_json(lambda: _run(words, loaded)) if OPTION in words else _run(words, loaded)


def _run(words: Sequence[str], loaded: Callable[[], None]) -> int:
    try:
        arguments = _parser_for(words).parse_args(words)
        loaded()
        if isinstance(sys.stderr, ErrorLines) and getattr(arguments, "json", None) is not True:
            # It was something else, as the name of a file.
            sys.stderr.as_text()
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
    except OSError as error:
        # A path that no command has a better sentence for: too long, in a folder that may not be read.
        if error.filename is None:
            raise
        sys.stderr.write(f"blast: {error.filename} cannot be used: {error.strerror}\n")
        return FAILED
    return status


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Those that installed packages declare for a group."""
    from importlib.metadata import entry_points as declared

    return declared(group=group)


def _parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """With as few commands loaded as these arguments need: to load all takes longer than most commands do."""
    if not words or words[0].startswith("-"):
        return _outline()
    commands = entry_points(GROUP)
    asked = [command for command in commands if command.name == words[0]]
    # A name that is in no list is mistyped: to know which is nearest, nothing has to be loaded.
    return build_parser(asked or commands) if asked or words[0] in SUMMARIES else _outline()


class _Help(argparse.RawDescriptionHelpFormatter):
    """Texts as they are written, and a column for the longest name of a command."""

    def __init__(self, prog: str) -> None:
        # Left to itself argparse loads shutil, and with it every compressor of files, to learn this width.
        super().__init__(prog, width=columns(sys.stdout, 80) - 2)
        # It forgets that names of commands are indented twice.
        self._action_max_length = max(map(len, SUMMARIES)) + 4


class _Parser(argparse.ArgumentParser):
    """Tells wrong use in one line, in all sub-commands, with what may be meant: a wrapped usage would hide it."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As argparse does it, which tells of unknown options nobody but the parser of `blast` itself."""
        parsed, unknown = super().parse_known_args(args, namespace)
        option = next((word.partition("=")[0] for word in unknown if word.startswith("-")), None)
        if option is not None:
            from blast_client.nearest import did_you_mean

            self.error(f"there is no option {option}{did_you_mean(option, self._option_string_actions)}")
        if unknown:
            self.error(f"there is nothing that {unknown[0]!r} could be")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """As argparse does it, with the nearest choice named."""
        if action.choices is None or value in action.choices:
            return
        from blast_client.nearest import did_you_mean

        known = [str(choice) for choice in action.choices]
        near = did_you_mean(str(value), known)
        # Many are listed by the help.
        others = f" (there are {', '.join(known)})" if not near and len(known) <= _FEW else ""
        what = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
        # Of options argparse names the option itself.
        raise argparse.ArgumentError(
            action if action.option_strings else None,
            f"there is no {what} {value!r}{near or others}",
        )

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USE, f"{self.prog}: {message} (`{self.prog} --help` tells more)\n")


class _TellVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Tell it, and end: what else is installed is looked at only now."""
        from blast_transport.base.engines import engines_here

        sys.stdout.write(f"blast {VERSION}\nengines: {engines_here()}\n")
        parser.exit()


def build_parser(commands: Iterable[EntryPoint]) -> argparse.ArgumentParser:
    """The parser with the sub-commands of these entry points."""
    parser, subparsers = _new_parser()
    add_commands(commands, subparsers)
    return parser


def _outline() -> argparse.ArgumentParser:
    """A parser that knows of the sub-commands only what they are for."""
    parser, subparsers = _new_parser()
    for name, summary in SUMMARIES.items():
        subparsers.add_parser(name, help=summary, add_help=False)
    return parser


def bare_parser() -> argparse.ArgumentParser:
    """The parser without any command."""
    parser: argparse.ArgumentParser = _Parser(
        prog="blast",
        description="Optical multicast: the controller, its clients and the lab.",
        epilog=_EXAMPLES,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_TellVersion, nargs=0, help="the version of Blast and of its engines")
    return parser


def _new_parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    parser = bare_parser()
    return parser, parser.add_subparsers(metavar="COMMAND", required=True)


def add_commands(
    commands: Iterable[EntryPoint], subparsers: argparse._SubParsersAction[argparse.ArgumentParser]
) -> None:
    """Let these entry points add their sub-commands, in the order of their names."""
    registered: set[Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None]] = set()
    for command in sorted(commands, key=lambda command: command.name):
        try:
            register = command.load()
        except ImportError as error:
            # An extra that is not installed must not take the other commands with it.
            _register_absent(command, error, subparsers)
            continue
        if register not in registered:
            registered.add(register)
            register(subparsers)


def _register_absent(
    command: EntryPoint, error: ImportError, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]
) -> None:
    from blast_transport.base.extras import how_to_install

    name, extra = command.name, next(iter(command.extras), command.name)

    def run(_: argparse.Namespace) -> int:
        sys.stderr.write(f"blast: `blast {name}` is not installed here ({error}): {how_to_install(extra)}\n")
        return FAILED

    # With a prefix that nobody types, every argument is accepted: what counts is the sentence.
    parser = subparsers.add_parser(name, prefix_chars="\0", add_help=False, help="(not installed)")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
