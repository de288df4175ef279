"""Options, alternating rounds, and the exit status of the scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from benchmarks import machine
from benchmarks.transfers.bed import contents
from benchmarks.transfers.bed.bed import Bed, Plan
from benchmarks.transfers.bed.failures import PrerequisiteError
from blast_sim.base.options import whole_number
from mininet_topos.kernel.errors import LabError
from mininet_topos.kernel.termination import end_in_order

DONE, MISSED, WRONG_INPUT, ENDED = 0, 1, 2, 143
count = whole_number(1, 1_000_000)
"""Parser of a number in an option."""

Result = TypeVar("Result")


def parser(text: str | None, megabytes: int, repeats: int) -> argparse.ArgumentParser:
    """Return a parser with the options that most scripts with a bed share."""
    result = machine.parser(text)
    result.add_argument(
        "--megabytes", type=count, default=megabytes, help=f"size of the file in MB (default: {megabytes})"
    )
    result.add_argument("--repeats", type=count, default=repeats, help=f"rounds that count (default: {repeats})")
    return result


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a parser of names separated by commas, which returns them in the order of `names`."""
    known = list(names)

    def some(text: str) -> list[str]:
        if unknown := set(text.split(",")).difference(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}: choose from {','.join(known)}")
        return [name for name in known if name in text.split(",")]

    return some


@contextmanager
def bed_and_file(plan: Plan, size: int) -> Iterator[tuple[Bed, Path]]:
    """Build a bed and create a file for it in memory. Raises PrerequisiteError, LabError."""
    contents.require_room(size, plan.receivers + 1)
    with contents.workshop() as folder, Bed(plan) as bed:
        source = folder / "source"
        contents.write_random(source, size)
        yield bed, source


def runs(names: Iterable[str], rounds: int, begin: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the number of each round and each name; every second round is reversed, because order may matter.

    A line on standard error shows the progress, from `begin` on.
    """
    ordered = list(names)
    with tqdm(total=rounds * len(ordered), initial=begin, unit="run", disable=None, file=sys.stderr) as bar:
        for number in range(rounds):
            for name in ordered[:: -1 if number % 2 else 1]:
                bar.set_postfix_str(f"{name}, round {number}")
                yield number, name
                bar.update()


def alternate(
    measures: Mapping[str, Callable[[], Result]], repeats: int, discarded: int = 1
) -> dict[str, list[Result]]:
    """Call all measures in alternating rounds; return the results without the first `discarded` rounds."""
    results: dict[str, list[Result]] = {name: [] for name in measures}
    for number, name in runs(measures, repeats + discarded):
        result = measures[name]()
        if number >= discarded:
            results[name].append(result)
    return results


def report(bar: tqdm[Any], text: str) -> None:
    """Show the next run in a line of progress."""
    bar.set_postfix_str(text)
    bar.update()


def run(main: Callable[[], bool]) -> None:
    """Exit with the status of the result, or print an error and exit; clean up if terminated."""
    end_in_order(ENDED)
    try:
        sys.exit(DONE if main() else MISSED)
    except (PrerequisiteError, LabError) as error:
        sys.stderr.write(f"{Path(sys.argv[0]).stem}: {error}\n")
        sys.exit(WRONG_INPUT)
