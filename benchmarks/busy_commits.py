"""What the journal costs while another thread of the controller is busy: a commit of many rows, a look at its history.

The other thread does what the I/O thread does under load: it never waits. Both figures are wall time; no figure
decides the exit status. Paired with another checkout by `--before DIRECTORY`, whose own store is measured in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import machine

_HERE = Path(__file__).resolve().parents[1]
_EXAMPLE = """\
examples:
  .venv/bin/python benchmarks/busy_commits.py
  .venv/bin/python benchmarks/busy_commits.py --before ../before --rounds 5
"""


def measure(rows: int, commits: int) -> dict[str, float]:
    """Medians in milliseconds, with this process's store."""
    from blast_controller.core.model.records import Record
    from blast_controller.daemon import THREAD_SWITCH_INTERVAL
    from blast_controller.store.sqlite import SqliteStore

    sys.setswitchinterval(THREAD_SWITCH_INTERVAL)
    busy = threading.Event()
    threading.Thread(target=_work, args=(busy,), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "journal.db"))
        store.open()
        committing, looking = [], []
        for number in range(commits):
            records = [Record("request", f"k{number}-{row}", {"filling": "x" * 300}) for row in range(rows)]
            committing.append(_seconds(partial(store.commit, records, time.time())))
            looking.append(_seconds(lambda: store.compact(time.time())))
        busy.set()
        store.close()
    return {"commit": statistics.median(committing) * 1000, "look": statistics.median(looking) * 1000}


def _work(stop: threading.Event) -> None:
    while not stop.is_set():
        json.dumps([{"number": number} for number in range(200)])


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _of_checkout(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    words = [sys.executable, __file__, "--child", "--rows", str(options.rows), "--commits", str(options.commits)]
    path = os.pathsep.join([str(folder), str(Path(__file__).parent)])
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, cwd=folder, capture_output=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=64, help="of a commit (64)")
    parser.add_argument("--commits", type=int, default=40, help="in each round (40)")
    parser.add_argument("--rounds", type=int, default=3, help="of each checkout in turn (3)")
    parser.add_argument("--before", type=Path, help="another checkout to pair with")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.rows, options.commits)))
        return
    print(machine.describe())
    checkouts = {"this": _HERE} | ({"before": options.before.resolve()} if options.before else {})
    found: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _ in range(options.rounds):
        for name, folder in checkouts.items():
            found[name].append(_of_checkout(folder, options))
    for name, rounds in found.items():
        told = (f"{what} {statistics.median(one[what] for one in rounds):.1f} ms" for what in ("commit", "look"))
        print(f"{name:<8}{options.rows} rows beside a busy thread: {', '.join(told)}")


if __name__ == "__main__":
    main()
