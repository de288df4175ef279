"""`blast completion` and `blast man`: scripts for shell completion, and manual pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from blast_base.command_line import DONE, FAILED
from blast_base.extras import NotInstalledError, require

SHELLS = ("bash", "zsh", "fish")
_COMPLETION = """\
examples:
  blast completion bash > ~/.local/share/bash-completion/completions/blast
  blast completion zsh > ~/.zfunc/_blast        (a directory of $fpath)
  blast completion fish > ~/.config/fish/completions/blast.fish
  eval "$(blast completion bash)"               in this shell only

The script completes the installed commands: generate it again after an upgrade.
"""
_MAN = """\
examples:
  blast man ~/.local/share/man/man1
  man blast-send
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    completion = _add(subparsers, "completion", "print a script for shell completion", _COMPLETION)
    completion.add_argument("shell", choices=SHELLS, help="shell of the script")
    completion.set_defaults(run=_completion)
    man = _add(subparsers, "man", "write manual pages, one for each command", _MAN)
    man.add_argument("folder", metavar="FOLDER", type=Path, help="directory of the pages, created if it does not exist")
    man.set_defaults(run=_man)


def _add(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _report_errors(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Report a missing package or a file that cannot be written as a message and an exit status."""

    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except NotInstalledError as error:
            status, sentence = FAILED, str(error)
        except BrokenPipeError:
            raise
        except OSError as error:
            status, sentence = FAILED, f"cannot write {error.filename} ({error.strerror}): choose another directory"
        sys.stderr.write(f"blast: {sentence}\n")
        return status

    return wrapped


@_report_errors
def _completion(arguments: argparse.Namespace) -> int:
    require("shell", "shtab")
    from blast_client.cli.shell.completion import completion

    sys.stdout.write(completion(arguments.shell))
    return DONE


@_report_errors
def _man(arguments: argparse.Namespace) -> int:
    require("shell", "argparse_manpage")
    from blast_client.cli.shell.man_pages import man_pages

    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    pages = man_pages()
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")
    sys.stdout.write(f"{len(pages)} pages in {folder}, the first of them is blast.1\n")
    return DONE
