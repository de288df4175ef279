"""Claim: Java's client asks `status` (120 receivers) with a p99 of at most 2 pings, and 500 waits take it no threads.

The real server, handler and core over the loopback, in a process of their own, with played devices and a journal in
memory; the client's jar in another (`mvn package` in clients/java makes it). One call of each kind in turn on warm
connections: `ping` and `status` of the client, and both bare: a blocking socket, a frame that was encoded before, an
answer that nobody decodes. What `status` takes beside its bare one is the client's, the rest the controller's. Then
500 calls of `awaitEvent` wait on one connection, beside which it pings.

    .venv/bin/python benchmarks/java_client.py --calls 20000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine

from blast_client import Client, MulticastRequest

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "clients" / "java" / "client" / "target"
CLASSES = (BUILT / "blast-client-0.1.0.jar", BUILT / "test-classes")
SERVER = (sys.executable, "-m", "tests.support.served_controller", "--racks", "6", "--hosts", "30")
LEAVES, HOSTS = (2, 3, 4, 5), range(1, 31)
BAR = 2.0
KEY = "asked-for"
WORDS = {
    "bare_ping": "ping, bare",
    "ping": "ping",
    "bare_status": "status, bare",
    "status": "status",
    "ping_beside_waits": "ping beside waits",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000, help="of each kind (default: 20000)")
    parser.add_argument("--waits", type=int, default=500, help="calls of awaitEvent at once (default: 500)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if missing := [str(path.relative_to(ROOT)) for path in CLASSES if not path.exists()]:
        parser.error(f"there is no {' and no '.join(missing)}: run `mvn -q package` in clients/java")
    described = machine.describe()
    with _controller() as address:
        measured = _measured(address, args.calls, args.waits)
    if args.json:
        print(json.dumps({"machine": described, "calls": args.calls, "microseconds": measured}, indent=2))
    else:
        _print(described, measured)


@contextmanager
def _controller() -> Iterator[str]:
    with subprocess.Popen(SERVER, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        # It ends when its input does, which is at the end of this block.
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["open"]


def _measured(address: str, calls: int, waits: int) -> dict[str, Any]:
    receivers = [f"r{rack}h{host}" for rack in LEAVES for host in HOSTS]
    with Client(address) as client:
        client.submit(MulticastRequest(KEY, "r1h1", receivers, 300_000_000_000))
        client.await_event(KEY)
    classes = ":".join(map(str, CLASSES))
    words = ["java", "-cp", classes, "org.blast.client.Bench", address, KEY, str(calls), str(waits)]
    run = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(run.stdout)
    return measured


def _print(described: str, measured: dict[str, Any]) -> None:
    print(f"{described}\n{'':20}{'p50 µs':>10}{'p99 µs':>10}")
    for name, words in WORDS.items():
        print(f"{words:20}{measured[name]['p50']:10.0f}{measured[name]['p99']:10.0f}")
    for ping in ("ping", "bare_ping"):
        ratio = measured["status"]["p99"] / measured[ping]["p99"]
        print(f"p99 of status is {ratio:.2f} times that of {WORDS[ping]} (bar: {BAR:g})")
    waits, before, after = (measured[name] for name in ("waits", "threads_before", "threads_with_waits"))
    print(f"{waits} calls wait; threads of the JVM: {before} before, {after} with them")


if __name__ == "__main__":
    main()
