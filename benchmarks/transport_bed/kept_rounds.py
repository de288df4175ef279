"""Results of rounds in a file of JSON lines, so that a measurement of hours goes on where it was ended.

The first line says what was measured, each one after it is a result. A line that was not finished counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transport_bed.failures import CannotRun

Result = dict[str, Any]


class KeptRounds:
    """One result of each case and round, in `path` (None: in memory only). Raises CannotRun, OSError.

    `settings` is what makes results comparable: a file of others is refused.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._results: dict[tuple[int, str], Result] = {}
        if path is None:
            return
        lines = _finished_lines(path, json.dumps({"settings": settings}))
        try:
            head, *rest = map(json.loads, lines)
            found = head["settings"]
            self._results = {(one["round"], one["case"]): one["result"] for one in rest}
        except (ValueError, KeyError, TypeError):
            raise CannotRun(f"{path} is no file that --keep has written: name another file") from None
        if found != json.loads(json.dumps(settings)):
            raise CannotRun(
                f"{path} has results of other settings, {json.dumps(found)}: give these options, or name another file"
            )
        rewritten = path.with_name(f"{path.name}.unfinished")
        rewritten.write_text("".join(f"{line}\n" for line in lines))
        rewritten.rename(path)

    def has(self, number: int, case: str) -> bool:
        """Whether this was measured."""
        return (number, case) in self._results

    def add(self, number: int, case: str, result: Result) -> None:
        """Keep it at once."""
        self._results[number, case] = result
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"round": number, "case": case, "result": result}) + "\n")

    def of(self, case: str, rounds: int) -> list[Result]:
        """What there is of the first `rounds` rounds, in their order."""
        return [self._results[number, case] for number in range(rounds) if self.has(number, case)]


def in_turn(measures: Mapping[str, Callable[[], Result]], rounds: int, kept: KeptRounds, bar: tqdm[Any]) -> None:
    """Measure all that is missing, round by round; every second one goes backwards, as in `script.in_turn`."""
    for number in range(rounds):
        for case in list(measures)[:: -1 if number % 2 else 1]:
            if not kept.has(number, case):
                bar.set_postfix_str(f"{case}, round {number + 1}")
                kept.add(number, case, measures[case]())
                bar.update()


def missing(cases: Mapping[str, object], rounds: int, kept: KeptRounds) -> int:
    """How many are to be measured still."""
    return sum(not kept.has(number, case) for number in range(rounds) for case in cases)


def _finished_lines(path: Path, first: str) -> list[str]:
    """Those of a file, or `first` where there are none. Raises CannotRun for what is no text."""
    try:
        content = path.read_bytes()
        *lines, unfinished = content.decode().split("\n")
    except FileNotFoundError:
        return [first]
    except UnicodeDecodeError:
        raise CannotRun(f"{path} is no file that --keep has written: name another file") from None
    return lines or ([first] if first.startswith(unfinished) else [unfinished])
