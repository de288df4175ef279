"""What the scripts of single claims share: options, rounds in turn, ending with a sentence."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from mininet_topos.ending import end_in_order
from mininet_topos.errors import LabError
from transport_bed import contents
from transport_bed.bed import Bed, Plan
from transport_bed.failures import CannotRun

DONE, MISSED, WRONG_INPUT, ENDED = 0, 1, 2, 143
_DISCARDED_ROUNDS = 1
_MOST = 1_000_000

Result = TypeVar("Result")


def parser(text: str | None, megabytes: int, repeats: int) -> argparse.ArgumentParser:
    """Options that all have."""
    result = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--megabytes", type=count, default=megabytes, help=f"of the file (default: {megabytes})")
    result.add_argument("--repeats", type=count, default=repeats, help=f"that count, after one (default: {repeats})")
    result.add_argument("--json", action="store_true")
    return result


def count(text: str) -> int:
    """A whole number from 1 on, for an option."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to {_MOST}")
    return int(text)


def counts(text: str) -> list[int]:
    """Such numbers with commas between them."""
    return [count(one) for one in text.split(",")]


def some_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Names with commas between them, for an option; in the order of `names`."""
    known = list(names)

    def some(text: str) -> list[str]:
        if unknown := set(text.split(",")).difference(known):
            raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}: choose of {','.join(known)}")
        return [name for name in known if name in text.split(",")]

    return some


@contextmanager
def bed_and_file(plan: Plan, size: int) -> Iterator[tuple[Bed, Path]]:
    """A bed, and a file for it in a folder of its own in memory. Raises CannotRun, LabError."""
    contents.require_room(size, plan.receivers + 1)
    with contents.workshop() as folder, Bed(plan) as bed:
        source = folder / "source"
        contents.write_random(source, size)
        yield bed, source


def in_turn(
    measures: Mapping[str, Callable[[], Result]], repeats: int, discarded: int = _DISCARDED_ROUNDS
) -> dict[str, list[Result]]:
    """Call all of them in turn, again and again; the results, without those of the first `discarded` rounds.

    Every second round goes backwards: who comes after whom, and what that one left to be written back, is not always
    the same.
    """
    results: dict[str, list[Result]] = {name: [] for name in measures}
    rounds = range(repeats + discarded)
    with tqdm(total=len(rounds) * len(measures), unit="run", disable=None, file=sys.stderr) as bar:
        for number in rounds:
            for name, measure in list(measures.items())[:: -1 if number % 2 else 1]:
                bar.set_postfix_str(f"{name}, round {number}")
                result = measure()
                if number >= discarded:
                    results[name].append(result)
                bar.update()
    return results


def run(main: Callable[[], bool]) -> None:
    """End with the status that says whether it was as it must be, or with a sentence; when told to, in order."""
    end_in_order(ENDED)
    try:
        sys.exit(DONE if main() else MISSED)
    except (CannotRun, LabError) as error:
        sys.stderr.write(f"{Path(sys.argv[0]).stem}: {error}\n")
        sys.exit(WRONG_INPUT)
