"""Several files of one `blast send`, sent one after another."""

from __future__ import annotations

import argparse
import os

from blast_client.send.option_values import STREAM
from blast_client.send.target import target_of
from blast_transport.base.errors import WrongInputError


def several(arguments: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the arguments of each. Raises WrongInputError for a conflict, or for a file that cannot be read."""
    files = [arguments.file, *arguments.more]
    if STREAM in files:
        raise WrongInputError("standard input cannot be combined with files: send it by itself")
    if arguments.name:
        raise WrongInputError(f"--as {arguments.name} names one file: send the files one by one, or a directory")
    for file in files:
        if not os.access(file, os.R_OK):
            raise WrongInputError(
                f"cannot read {file}: {'permission denied' if os.path.lexists(file) else 'no such file or directory'}"
            )
    each = [argparse.Namespace(**{**vars(arguments), "file": file}) for file in files]
    names = [target_of(one).name for one in each]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WrongInputError(f"two of the files have the name {twice}: send one of them by itself, with --as")
    return each
