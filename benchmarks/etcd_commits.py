"""What a commit to the journal costs in etcd: beside a bare fenced transaction, and beside SQLite, all in one run.

The bare transaction compares the leader's key and puts one value of 400 bytes: no journal in etcd can cost less. Each
round makes one commit of each kind in turn, so that all meet the same disk. Then how long nobody leads when the leader
resigns, and when it dies. Times are wall time in milliseconds; no figure decides the exit status.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path

import machine
from etcd_members import await_etcd, etcd_members

from blast_controller.core.model.records import Record
from blast_controller.store.etcd.access import Access
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import created_at, put
from blast_controller.store.etcd.store import EtcdStore, Policy
from blast_controller.store.interface import Store
from blast_controller.store.sqlite import SqliteStore

_EXAMPLE = """\
examples:
  .venv/bin/python benchmarks/etcd_commits.py
  .venv/bin/python benchmarks/etcd_commits.py --members 1 --etcd ./etcd-3.7 --rounds 1000
"""
_ROWS = (1, 8, 64)
_VALUE = b"x" * 400
_WARM_UP = 20
_STARTING = 30.0


def _records(kind: int, number: int) -> list[Record]:
    return [Record("request", f"k{number}-{row}", {"filling": "x" * 350}, note="granted") for row in range(kind)]


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _commits(connection: Connection, folder: Path, rounds: int) -> dict[str, list[float]]:
    leadership = Leadership(connection, Keys("/benchmark/"), "here", 5)
    in_etcd, in_sqlite = EtcdStore(leadership), SqliteStore(folder / "journal.db")
    in_etcd.open()
    in_sqlite.open()
    assert leadership.term is not None
    fence = created_at(leadership.keys.leader, leadership.term.revision)
    bare = api.TxnRequest(compare=[fence], success=[put(b"/bare/", _VALUE)])
    stores: dict[str, Store] = {"etcd": in_etcd, "SQLite": in_sqlite}
    found: dict[str, list[float]] = {}
    for number in range(rounds + _WARM_UP):
        taken = {"bare": _milliseconds(partial(connection.call, TXN, bare))}
        for name, store in stores.items():
            for rows in _ROWS:
                made = _records(rows, number)
                taken[f"{name} {rows}"] = _milliseconds(partial(store.commit, made, time.time()))
        if number >= _WARM_UP:
            for name, one in taken.items():
                found.setdefault(name, []).append(one)
    in_etcd.close()
    in_sqlite.close()
    return found


def _takeovers(endpoints: tuple[str, ...], rounds: int, dies: bool) -> list[float]:
    """From the end of one leader to the first commit of the next, which has waited for it."""
    found = []
    for number in range(rounds):
        with ExitStack() as undo:
            old, new = (Connection(Access(endpoints)) for _ in range(2))
            undo.callback(new.close)
            undo.callback(old.close)
            keys = Keys(f"/takeover/{dies}/{number}/")
            leadership, waiting = Leadership(old, keys, "old"), Leadership(new, keys, "new")
            leader, standby = EtcdStore(leadership), EtcdStore(waiting, Policy(wait=None))
            leader.open()
            done: list[float] = []

            def take_over(standby: EtcdStore = standby, done: list[float] = done) -> None:
                standby.open()
                standby.commit(_records(1, 0), time.time())
                done.append(time.perf_counter())

            thread = threading.Thread(target=take_over)
            thread.start()
            time.sleep(0.5)
            began = time.perf_counter()
            # Without its connection it keeps no lease and revokes none, as if it were killed.
            (old if dies else leader).close()
            thread.join()
            found.append((done[0] - began) * 1000)
            standby.close()
            leader.close()
    return found


def _told(name: str, values: list[float], bare: float) -> str:
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    median = statistics.median(values)
    return f"{name:<24}{median:8.2f}{p99:9.2f}{median / bare:10.2f}"


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=3, help="of etcd, all on this machine's one disk (3)")
    parser.add_argument("--rounds", type=int, default=400, help="of one commit of each kind (400)")
    parser.add_argument("--takeovers", type=int, default=5, help="of each kind (5)")
    parser.add_argument("--etcd", default=shutil.which("etcd") or "etcd", help="the program (that of Debian)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, etcd_members(options.etcd, options.members, Path(name)) as endpoints:
        connection = Connection(Access(endpoints))
        found_version = await_etcd(connection)
        print(machine.describe())
        print(f"etcd {found_version}, {options.members} members; grpcio {version('grpcio')}, {options.rounds} rounds")
        found = _commits(connection, Path(name), options.rounds)
        connection.close()
        bare = statistics.median(found["bare"])
        print(f"{'ms of a commit':<24}{'median':>8}{'p99':>9}{'x bare':>10}")
        print(_told("bare fenced, 400 bytes", found["bare"], bare))
        for kind in (kind for kind in found if kind != "bare"):
            store, rows = kind.split()
            print(_told(f"{store}, {rows} record{'s' * (rows != '1')}", found[kind], bare))
        for rows in _ROWS:
            more = statistics.median(found[f"etcd {rows}"]) - statistics.median(found[f"SQLite {rows}"])
            print(f"{rows:>2} records: etcd = SQLite + {more / bare:.2f} x bare")
        for dies in (False, True):
            taken = _takeovers(endpoints, options.takeovers, dies)
            how = "died" if dies else "resigned"
            print(f"from a leader that {how} to the next one's commit: {', '.join(f'{one:.0f}' for one in taken)} ms")


if __name__ == "__main__":
    main()
