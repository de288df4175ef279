"""Several files of one `blast send`: each as if it were sent alone, one after the other."""

from __future__ import annotations

import argparse
import os

from blast_client.send_target import wanted_of
from blast_client.send_words import STREAM
from blast_transport.base.errors import WrongInputError


def several(arguments: argparse.Namespace) -> list[argparse.Namespace]:
    """The arguments for each. Raises WrongInputError where they contradict each other, or one cannot be read."""
    files = [arguments.file, *arguments.more]
    if STREAM in files:
        raise WrongInputError("standard input is sent alone: leave out -, or the files")
    if arguments.name:
        raise WrongInputError(f"--as {arguments.name} is the name of one: send them one by one, or a folder of them")
    for file in files:
        if not os.access(file, os.R_OK):
            raise WrongInputError(
                f"cannot read {file}: {'permission denied' if os.path.lexists(file) else 'it is not there'}"
            )
    each = [argparse.Namespace(**{**vars(arguments), "file": file}) for file in files]
    names = [wanted_of(one).name for one in each]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WrongInputError(f"two of them would be called {twice}: send one of them under another name, with --as")
    return each
