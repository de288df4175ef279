"""Results in a file of JSON lines, so that a measurement of hours can be interrupted and resumed.

The first line has the settings, each further line a result. An unfinished last line is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.transfers.bed.failures import PrerequisiteError

Result = dict[str, Any]


class KeptRounds:
    """A result for each case and round, in `path` or, if it is None, in memory only. Raises PrerequisiteError, OSError.

    A file of other `settings` is refused, because results are comparable only under the same settings.
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
            raise PrerequisiteError(f"{path} is no file that --keep has written: name another file") from None
        if found != json.loads(json.dumps(settings)):
            raise PrerequisiteError(
                f"{path} has results of other settings, {json.dumps(found)}: give these options, or name another file"
            )
        rewritten = path.with_name(f"{path.name}.unfinished")
        rewritten.write_text("".join(f"{line}\n" for line in lines))
        rewritten.rename(path)

    def has(self, number: int, case: str) -> bool:
        """Return whether there is a result."""
        return (number, case) in self._results

    def add(self, number: int, case: str, result: Result) -> None:
        """Keep a result at once."""
        self._results[number, case] = result
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"round": number, "case": case, "result": result}) + "\n")

    def of(self, case: str, rounds: int) -> list[Result]:
        """Return the results of the first rounds, in order."""
        return [self._results[number, case] for number in range(rounds) if self.has(number, case)]

    def missing(self, cases: Iterable[str], rounds: int) -> int:
        """Return the number of missing results."""
        return sum(not self.has(number, case) for case in cases for number in range(rounds))


def _finished_lines(path: Path, first: str) -> list[str]:
    """Return the lines of a file, or `first` if there are none. Raises PrerequisiteError."""
    try:
        *lines, unfinished = path.read_bytes().decode().split("\n")
    except FileNotFoundError:
        return [first]
    except UnicodeDecodeError:
        raise PrerequisiteError(f"{path} is no file that --keep has written: name another file") from None
    return lines or ([first] if first.startswith(unfinished) else [unfinished])
