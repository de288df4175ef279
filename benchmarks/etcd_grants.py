"""What a journal in etcd costs a grant: the same requests with it in a file and in three members of etcd, beside a
bare fenced transaction, all in one run and in turns.

Wanted: p50 of a grant with etcd at most that with SQLite plus 2.5 times the p50 of a bare transaction, which compares
the leader's key and puts one value of 400 bytes. One client, one request at a time; the optical switch needs no time.

    .venv/bin/python benchmarks/etcd_grants.py
    .venv/bin/python benchmarks/etcd_grants.py --members 1 --rounds 1 --requests 50
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import machine
from control_plane import load
from control_plane_load import figures
from control_plane_rig import Rig, Size
from etcd_members import await_etcd, etcd_members

from blast_controller.store.etcd.access import Access
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import created_at, put

ROOM = Size(100, 50)
WARM_UP, TRANSACTIONS = 20, 300


def grants(journal: list[str], requests: int) -> list[float]:
    """Seconds from request to grant."""
    with Rig(ROOM, journal=journal) as rig:
        found: list[float] = load(rig, "one", racks=ROOM.racks, requests=requests)["grants"]
    return found


def transactions(endpoints: tuple[str, ...], number: int) -> list[float]:
    """Seconds of bare fenced transactions."""
    connection = Connection(Access(endpoints))
    try:
        leadership = Leadership(connection, Keys(f"/bare/{number}/"), "here", 5)
        leadership.campaign(0.0)
        assert leadership.term is not None
        fence = created_at(leadership.keys.leader, leadership.term.revision)
        asked = api.TxnRequest(compare=[fence], success=[put(b"/bare/value", b"x" * 400)])
        found = []
        for _ in range(WARM_UP + TRANSACTIONS):
            began = time.perf_counter()
            connection.call(TXN, asked)
            found.append(time.perf_counter() - began)
        leadership.resign()
        return found[WARM_UP:]
    finally:
        connection.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--etcd", default=shutil.which("etcd"), help="another program than the one that is installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200, help="of each round (default: 200)")
    args = parser.parse_args()
    if args.etcd is None:
        parser.error("there is no etcd here: scripts/setup test installs it")
    print(machine.describe())
    in_file: list[float] = []
    in_etcd: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as folder, etcd_members(args.etcd, args.members, Path(folder)) as endpoints:
        connection = Connection(Access(endpoints))
        version = await_etcd(connection)
        connection.close()
        print(f"input: {ROOM.words}; etcd {version} of {args.members} members; {args.rounds} rounds of {args.requests}")
        for number in range(args.rounds):
            in_file += grants([], args.requests)
            bare += transactions(endpoints, number)
            named = json.dumps(list(endpoints))
            in_etcd += grants(
                ["[journal.etcd]", f"endpoints = {named}", f'prefix = "/grants/{number}/"'], args.requests
            )
    for name, values in (("SQLite", in_file), ("etcd", in_etcd), ("bare transaction", bare)):
        print(f"{name}: ms {json.dumps(figures(values))}")
    p50 = [statistics.median(values) for values in (in_file, in_etcd, bare)]
    print(f"more than SQLite, in bare transactions: {(p50[1] - p50[0]) / p50[2]:.2f} (wanted: at most 2.5)", flush=True)


if __name__ == "__main__":
    main()
