"""Claims about two controllers that share a journal in etcd, on a lab of six racks (real Open vSwitch, emulated
optical switch), one etcd member at 20/200 ms and a leader's lease of 1 s:

    killed, stopped, cut off from etcd
                       from the fault to the answer of a new request: <= 1.5 s
    asked              from `stand-down` to the same: <= 0.1 s after the answer

While one leads a tree stays lit: told is how many of its rules and cross-connects were touched (claim: none).

    sudo .venv/bin/python -m benchmarks.takeover --rounds 10
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import describe
from blast_api.ttypes import MulticastRequest
from blast_client import Client, Rejected
from mininet_topos.lab import Lab
from mininet_topos.plan import LabPlan
from tests.support.controllers_room import Controller, Room
from tests.support.etcd_server import EtcdServer
from tests.support.waiting import eventually

LIVE = MulticastRequest("live", "r1h1", ["r2h1", "r3h1"], 10**12)


def killed(leader: Controller) -> None:
    """As a machine that loses its power."""
    leader.signal(signal.SIGKILL)


def stopped(leader: Controller) -> None:
    """As a machine that hangs."""
    leader.signal(signal.SIGSTOP)


def cut_off(leader: Controller) -> None:
    """Nothing that it says to etcd arrives any more, nor the other way."""
    leader.to_etcd.hold_requests()
    leader.to_etcd.hold_answers()


def asked(leader: Controller) -> None:
    """By an operator, once somebody stands by."""
    with Client(leader.thrift) as client:
        eventually(lambda: _stands_down(client), "somebody to stand by")


def _stands_down(client: Client) -> bool:
    try:
        client.stand_down()
    except Rejected:
        return False
    return True


FAULTS: dict[str, Callable[[Controller], None]] = {
    "killed": killed,
    "stopped": stopped,
    "cut off": cut_off,
    "asked": asked,
}


def one(room: Room, fault: Callable[[Controller], None], number: int) -> tuple[float, int]:
    """Seconds until a new request has light, and how many pieces of the tree that was lit were touched."""
    leader, other = room.leader, room.other
    eventually(lambda: _sees(other, "live"), "the other to follow")
    room.wait_for_tors(other)
    circuits, rules = room.circuits(), room.rules()
    with Client(other.thrift, timeout=60.0) as client:
        fault(leader)
        began = time.monotonic()
        request = MulticastRequest(f"{fault.__name__}-{number}", "r4h1", ["r5h1", "r6h1"], 10**6)
        seconds = eventually(lambda: _granted(client, request) and time.monotonic() - began, "a new grant")
        client.withdraw(request.key)
    eventually(lambda: room.circuits() == circuits, "the new request to be gone")
    after = room.rules()
    touched = sum(rule not in after or after[rule] < age for rule, age in rules.items())
    leader.stop()
    leader.to_etcd.pass_on()
    leader.start()
    return float(seconds), touched


def _sees(controller: Controller, key: str) -> bool:
    with Client(controller.thrift) as client:
        return any(status.key == key for status in client.list_requests())


def _granted(client: Client, request: MulticastRequest) -> bool:
    try:
        client.request(request, timeout=30.0)
    except Exception:  # noqa: BLE001 - it does not lead yet
        return False
    return True


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="of each fault")
    parser.add_argument("--only", choices=FAULTS, action="append")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = {}
    with tempfile.TemporaryDirectory() as folder, EtcdServer(Path(folder) / "etcd").running() as etcd:
        plan = LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2})
        with Lab(plan, controller=None) as lab:
            room = Room(Path(folder), lab, etcd)
            try:
                room.start()
                with room.client() as client:
                    client.request(LIVE)
                for name in args.only or FAULTS:
                    found = [one(room, FAULTS[name], number) for number in range(args.rounds)]
                    seconds = sorted(time_ for time_, _ in found)
                    rows[name] = {
                        "rounds": len(found),
                        "new_grant_s": {
                            "least": round(seconds[0], 2),
                            "median": round(statistics.median(seconds), 2),
                            "most": round(seconds[-1], 2),
                        },
                        "touched": sum(count for _, count in found),
                    }
                    if not args.json:
                        print(f"{name}: {json.dumps(rows[name])}", flush=True)
            finally:
                room.close()
    print(json.dumps({"machine": describe(), "rows": rows}) if args.json else describe())


if __name__ == "__main__":
    main()
