"""Common parts of the commands: parsers, option types, and the reporting of invalid input.

`blast` imports this module at every start, so it imports no numeric libraries.
"""

from __future__ import annotations

import argparse
import errno
import math
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from blast_base.command_line import FAILED, WRONG_INPUT
from blast_base.extras import NotInstalledError, require
from blast_sim.base.wrong_input import InputError, PluginFailedError

LIBRARIES = ("highspy", "networkx", "numpy", "pulp", "pydantic")


def new_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    """Add a subcommand whose texts keep their line breaks."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


# ------------------------------------------------------------------------------------------ types of options


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return an option type for whole numbers within bounds."""

    def whole(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or len(text) > 9 or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {minimum} to {maximum}")
        return int(text)

    return whole


def positive(text: str) -> float:
    """Parse a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def within(minimum: float, maximum: float) -> Callable[[str], float]:
    """Return an option type for numbers from `minimum` to `maximum`."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not minimum <= value <= maximum:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {minimum:g} to {maximum:g}")
        return value

    return number


gbps = within(1e-6, 1e6)
"""Option type of a rate in Gbit/s."""
seconds = within(1e-9, 1e9)
"""Option type of a time in seconds."""

INCHES = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54, "pt": 1 / 72}
MIN_WIDTH, MAX_WIDTH = 2.0, 30.0


def length(text: str) -> float:
    """Parse the width of a figure; return inches."""
    unit = next((unit for unit in INCHES if text.endswith(unit)), "")
    try:
        inches = float(text.removesuffix(unit)) * INCHES[unit or "in"]
    except ValueError:
        inches = math.nan
    if not MIN_WIDTH <= inches <= MAX_WIDTH:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a width from {MIN_WIDTH:g} to {MAX_WIDTH:g} inches: write 3.4in, 86mm, 8.6cm or 245pt"
        )
    return inches


def counts(text: str) -> tuple[int, ...]:
    """Parse a list of counts."""
    return tuple(sorted(set(map(whole_number(1, 1000), text.split(",")))))


def add_parquet(parser: argparse._ActionsContainer, rows: str) -> None:
    """Add --parquet for these rows."""
    parser.add_argument("--parquet", metavar="FILE", type=Path, help=f"Parquet output file, {rows}")


def require_drawing() -> None:
    """Raise NotInstalledError if the drawing library is missing."""
    require("figures", "matplotlib")


def reporting_errors(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Report invalid input as one sentence, with the exit status."""

    @wraps(run)
    def wrapped(arguments: argparse.Namespace) -> int:
        try:
            require("sim", *LIBRARIES)
            if getattr(arguments, "figure", None) is not None:
                # Before hours of computation, not after them.
                require_drawing()
            if getattr(arguments, "parquet", None) is not None:
                require("parquet", "pyarrow")
            return run(arguments)
        except (NotInstalledError, PluginFailedError) as error:
            sys.stderr.write(f"blast: {error}\n")
            return FAILED
        except InputError as error:
            sys.stderr.write(f"blast: {error}\n")
            return WRONG_INPUT
        except BrokenPipeError:
            raise
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            advice = "free disk space, or name another file" if error.errno == errno.ENOSPC else "name another file"
            sys.stderr.write(f"blast: {place}{error.strerror or error}: {advice}\n")
            return WRONG_INPUT

    return wrapped
