"""The command line and the output of `benchmarks/regress.py`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.regress.comparison import BASE, FAILED, HEAD, MEASURED, Comparison, Result, Side, table
from benchmarks.regress.eras import ROWS
from benchmarks.regress.runs import RunFailedError
from benchmarks.regress.worktrees import Commit, RevisionError, Worktrees, default_cache
from blast_sim.base.options import whole_number
from blast_sim.papers.blast.measuring.machine import describe

REPOSITORY = Path(__file__).resolve().parents[2]
DONE, WORSE, INCOMPLETE, INTERRUPTED = 0, 1, 2, 130
CAPTION = (
    "ratio: HEAD / BASE, inverted for costs, so that above 1 HEAD is better; median of the pairs and its interval, "
    "which covers the true median with the stated probability"
)


def main(description: str) -> int:
    """Compare two commits, print the result, and return the exit status."""
    arguments = _arguments(description)
    if arguments.list:
        print("\n".join(f"{row.name:16}{row.title} [{row.unit}]" for row in ROWS.values()))
        return DONE
    # A shell that starts this in the background ignores SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    machine = describe()
    worktrees = Worktrees(REPOSITORY, arguments.cache, _report)
    try:
        commits = {BASE: worktrees.commit(arguments.base), HEAD: worktrees.commit(arguments.head)}
        base, head = (Side(each.short, each.era, worktrees.prepare(each)) for each in commits.values())
    except (RevisionError, RunFailedError) as error:
        _report(str(error))
        return INCOMPLETE
    except KeyboardInterrupt:
        return INTERRUPTED
    comparison = Comparison(base, head, arguments.only or ROWS, _report)
    try:
        comparison.run(arguments.pairs)
        status = exit_status(comparison.results.values(), bool(arguments.only))
    except KeyboardInterrupt:
        status = INTERRUPTED
    _show(machine, commits, list(comparison.results.values()), arguments.json)
    return status


def exit_status(results: Iterable[Result], named: bool) -> int:
    """Return the exit status. With `named` (--only), every row must have been measured."""
    found = list(results)
    if any(result.state == MEASURED and result.verdict == "worse" for result in found):
        return WORSE
    incomplete = any(result.state == FAILED or (named and result.state != MEASURED) for result in found)
    return INCOMPLETE if incomplete else DONE


def _arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", nargs="?", help="older commit: any revision that git accepts")
    parser.add_argument("head", metavar="HEAD", nargs="?", default="HEAD", help="newer commit (default: HEAD)")
    parser.add_argument(
        "--only", metavar="ROW", action="append", choices=ROWS, help="row, may be repeated (see --list)"
    )
    pairs = "pairs of runs of each row (default: depends on the row, at least 5)"
    parser.add_argument("--pairs", metavar="N", type=whole_number(1, 1000), help=pairs)
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, default=default_cache(), help="folder for worktrees (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON with every reading")
    parser.add_argument("--list", action="store_true", help="list the rows and exit")
    arguments = parser.parse_args()
    if arguments.base is None and not arguments.list:
        parser.error("BASE is missing: name the commit to compare with, for example: regress.py HEAD~1")
    arguments.cache = arguments.cache.absolute()
    return arguments


def _report(line: str) -> None:
    sys.stderr.write(f"regress: {line}\n")
    sys.stderr.flush()


def _show(machine: str, commits: dict[str, Commit], results: list[Result], as_json: bool) -> None:
    if as_json:
        named = {
            name: {"commit": each.sha, "subject": each.subject, "era": each.era.name} for name, each in commits.items()
        }
        print(json.dumps({"machine": machine, **named, "rows": [each.to_json() for each in results]}, indent=2))
        return
    print(machine)
    for name, each in commits.items():
        print(f"{name.upper()} {each.short} {each.subject}")
    print(f"{table(results)}\n{CAPTION}")
