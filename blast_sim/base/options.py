"""What the commands of this package share: parsers, types of options, and how wrong input is told.

`blast` loads this file at every start, so it loads nothing that calculates.
"""

from __future__ import annotations

import argparse
import errno
import math
import sys
from collections.abc import Callable
from functools import wraps

from blast_sim.base.wrong_input import WrongInput
from blast_transport.base.extras import NotInstalled, require

DONE, FAILED, WRONG_INPUT = 0, 1, 2
LIBRARIES = ("highspy", "networkx", "numpy", "pulp", "pydantic")


def new_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    """A sub-command with its texts as they are written."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


# ------------------------------------------------------------------------------------------ types of options


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """The type of a whole number within bounds."""

    def whole(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return whole


def positive(text: str) -> float:
    """The type of a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def counts(text: str) -> tuple[int, ...]:
    """The type of a list of counts."""
    return tuple(sorted(set(map(whole_number(1, 1000), text.split(",")))))


def require_drawing() -> None:
    """Raise NotInstalled where no picture can be drawn."""
    require("figures", "matplotlib")


def telling(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Turn wrong input into its sentence and exit status."""

    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            require("sim", *LIBRARIES)
            if getattr(arguments, "figure", None) is not None:
                # Before hours of calculation, not after them.
                require_drawing()
            return run(arguments)
        except NotInstalled as error:
            sys.stderr.write(f"blast: {error}\n")
            return FAILED
        except WrongInput as error:
            sys.stderr.write(f"blast: {error}\n")
            return WRONG_INPUT
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            advice = "make room, or name another place" if error.errno == errno.ENOSPC else "name another file"
            sys.stderr.write(f"blast: {place}{error.strerror or error}: {advice}\n")
            return WRONG_INPUT

    return wrapped
