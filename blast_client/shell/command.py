"""`blast completion` and `blast man`: what makes a shell complete commands and options, and manual pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from blast_client.failures import DONE, FAILED
from blast_transport.base.extras import NotInstalled, require

SHELLS = ("bash", "zsh", "fish")
_COMPLETION = """\
examples:
  blast completion bash > ~/.local/share/bash-completion/completions/blast
  blast completion zsh > ~/.zfunc/_blast        (a folder of $fpath)
  blast completion fish > ~/.config/fish/completions/blast.fish
  eval "$(blast completion bash)"               in this shell only

Made from the commands that are installed here: run it again after an upgrade.
"""
_MAN = """\
examples:
  blast man ~/.local/share/man/man1
  man blast-send
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add these commands to `blast`."""
    completion = _add(subparsers, "completion", "print what makes a shell complete commands and options", _COMPLETION)
    completion.add_argument("shell", choices=SHELLS, help="which shell")
    completion.set_defaults(run=_completion)
    man = _add(subparsers, "man", "write manual pages, one for each command", _MAN)
    man.add_argument("folder", metavar="FOLDER", type=Path, help="where they are written; made if it is not there")
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


def _told(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Turn what is missing, and what cannot be written, into a sentence and an exit status."""

    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except NotInstalled as error:
            status, sentence = FAILED, str(error)
        except BrokenPipeError:
            raise
        except OSError as error:
            status, sentence = FAILED, f"{error.filename} cannot be written ({error.strerror}): choose another folder"
        sys.stderr.write(f"blast: {sentence}\n")
        return status

    return wrapped


@_told
def _completion(arguments: argparse.Namespace) -> int:
    require("shell", "shtab")
    from blast_client.shell.completion import completion

    sys.stdout.write(completion(arguments.shell))
    return DONE


@_told
def _man(arguments: argparse.Namespace) -> int:
    require("shell", "argparse_manpage")
    from blast_client.shell.man_pages import man_pages

    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    pages = man_pages()
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")
    sys.stdout.write(f"{len(pages)} pages in {folder}, the first of them is blast.1\n")
    return DONE
