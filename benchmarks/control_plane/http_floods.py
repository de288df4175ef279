"""Claim: an HTTP flood slows grants down by less than half.

The controller also answers health, metrics and operator requests during the flood. Unauthenticated clients and one
viewer flood a controller (300 racks), one flood at a time, while a client submits one request after another:

    unread     254 connections request a file of the page and do not read it
    session    two connections request /session continuously
    pages      a viewer keeps the maximum number of pages open and requests more
    picture    a viewer requests the picture of the fabric over two connections continuously
    origin     one connection sends requests with a malformed Origin continuously

The output has the median and 99th percentile of the time to a grant under each flood, the ratio of its median to that
without a flood (bar 1.5, median of alternating rounds), and the number of correct answers to probes of /livez, /metrics
and the operator's page.

    .venv/bin/python benchmarks/control_plane/http_floods.py --seconds 10
"""

from __future__ import annotations

import hashlib
import http.client
import json
import multiprocessing
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from benchmarks import machine
from benchmarks.control_plane.load import Groups, figures
from benchmarks.control_plane.rig import Rig, Size, await_devices
from blast_client import Client

RACKS, SPLITTERS = 300, 50
MAX_RATIO = 1.5
ROUNDS = 3
UNREAD = 254
PAGES = 80
PROBE_SECONDS = 0.25
PATHS = {"/livez": None, "/metrics": "operator", "/picture": "operator"}
"""The probes, and the role of each; the operator's page draws the picture."""
TOKENS = {role: f"{role}-token-0123456789abcdef" for role in ("operator", "viewer", "user")}


class HttpRig(Rig):
    """A controller whose HTTP server knows an operator, a viewer and a user."""

    def _config(self) -> str:
        digests = {role: hashlib.sha256(token.encode()).hexdigest() for role, token in TOKENS.items()}
        tokens = self.directory / "tokens"
        tokens.touch(mode=0o600)
        tokens.write_text("".join(f"sha256:{digest} lab {role}\n" for role, digest in digests.items()))
        self._addresses.setdefault("http", "127.0.0.1:0")
        access = f"[access]\ntoken_file = {json.dumps(str(tokens))}\n"
        return f'{super()._config()}{access}[[tenant]]\nname = "lab"\n'

    def wait_devices(self) -> float:
        """Wait as an operator."""
        await_devices(Client(self.thrift, token=TOKENS["operator"]))
        return time.monotonic()

    @property
    def http(self) -> str:
        """The address of its HTTP server."""
        return self._addresses["http"]


def asked(address: str, path: str, role: str | None = None, **headers: str) -> int:
    """Send one request; return the status, 0 without an answer."""
    connection = http.client.HTTPConnection(address, timeout=2.0)
    if role is not None:
        headers["Authorization"] = f"Bearer {TOKENS[role]}"
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


class Flood:
    """Actions that threads repeat until their process exits."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sockets: list[socket.socket] = []

    def again(self, *words: str, **headers: str) -> None:
        """Send requests continuously."""
        while True:
            asked(self.address, *words, **headers)

    def unread(self) -> None:
        """Keep connections open without reading the answers."""
        host, port = self.address.rsplit(":", 1)
        while True:
            time.sleep(0.01)  # between two connections
            with suppress(OSError):
                sock = socket.create_connection((host, int(port)), 2.0)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.sendall(b"GET /static/page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
                self.sockets.append(sock)
            if len(self.sockets) > UNREAD:
                self.sockets.pop(0).close()

    def pages(self) -> None:
        """Keep pages open and request more."""
        host, port = self.address.rsplit(":", 1)
        request = f"GET /stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['viewer']}\r\n\r\n"
        while True:
            time.sleep(0.01)  # between two connections
            with suppress(OSError):
                sock = socket.create_connection((host, int(port)), 2.0)
                sock.sendall(request.encode())
                self.sockets.append(sock)
            if len(self.sockets) > PAGES:
                self.sockets.pop(0).close()


def _floods(flood: Flood) -> dict[str, list[Callable[[], None]]]:
    return {
        "quiet": [],
        "unread": [flood.unread],
        "session": [lambda: flood.again("/session")] * 2,
        "pages": [flood.pages],
        "picture": [lambda: flood.again("/picture", "viewer")] * 2,
        "origin": [lambda: flood.again("/session", Origin="http://[")],
    }


def _run(address: str, name: str) -> None:
    threads = [threading.Thread(target=action, daemon=True) for action in _floods(Flood(address))[name]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def flooded(address: str, name: str) -> Iterator[None]:
    """Flood until the end of the block, in a separate process because this one measures."""
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(address, name), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def grants(rig: Rig, seconds: float, seed: int) -> list[float]:
    """Submit one request after another; return the seconds from each to its grant."""
    found = []
    groups = Groups(range(1, rig.size.racks + 1), seed)
    with Client(rig.thrift, token=TOKENS["user"]) as client:
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            request = groups.next()
            client.request(request, timeout=60.0)
            found.append(time.monotonic() - began)
            client.finish(request.key)
    return found


def probes(address: str, ended: threading.Event, answered: Counter[tuple[str, bool]]) -> None:
    """Request the paths one after another, as a health check does."""
    while not ended.wait(PROBE_SECONDS):
        for path, role in PATHS.items():
            answered[path, asked(address, path, role) == http.client.OK] += 1


def measure(seconds: float) -> dict[str, Any]:
    """Alternate the floods, and return the figures of each."""
    names = list(_floods(Flood("")))
    latencies: dict[str, list[list[float]]] = {name: [] for name in names}
    answered = {name: Counter[tuple[str, bool]]() for name in names}
    with HttpRig(Size(RACKS, SPLITTERS)) as rig:
        address = rig.http
        grants(rig, 2.0, 0)
        for number in range(ROUNDS):
            for place, name in enumerate(names):
                with flooded(address, name), ExitStack() as stack:
                    ended = threading.Event()
                    thread = threading.Thread(target=probes, args=(address, ended, answered[name]))
                    thread.start()
                    stack.callback(thread.join)
                    stack.callback(ended.set)
                    time.sleep(1.0)  # the flood is under way
                    latencies[name].append(grants(rig, seconds, 1 + place + number * len(names)))
    quiet = [statistics.median(found) for found in latencies["quiet"]]
    return {name: _row(latencies[name], quiet, answered[name]) for name in names}


def _row(found: list[list[float]], quiet: list[float], answered: Counter[tuple[str, bool]]) -> dict[str, Any]:
    ratios = [statistics.median(one) / base for one, base in zip(found, quiet, strict=True)]
    shares = {path: [answered[path, True], answered[path, True] + answered[path, False]] for path in PATHS}
    return {
        **figures([seconds for times in found for seconds in times]),
        "ratio": statistics.median(ratios),
        "answered": shares,
    }


def main() -> None:
    """Measure and print a table; exit with status 1 if a probe was not answered."""
    parser = machine.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of each flood in s (default: 10)")
    options = parser.parse_args()
    rows = measure(options.seconds)
    if options.json:
        print(json.dumps(rows))
    for name, row in rows.items() if not options.json else ():
        shares = ", ".join(f"{path} {found} of {of}" for path, (found, of) in row["answered"].items())
        missed = "  MISSED" if row["ratio"] > MAX_RATIO else ""
        times = f"p50 {row['p50']:6.2f} ms  p99 {row['p99']:6.2f} ms  ratio {row['ratio']:.2f}{missed}"
        print(f"{name:8} {times}  {shares}")
    if any(found < of for row in rows.values() for found, of in row["answered"].values()):
        sys.exit("http_floods: a probe was not answered: see the counts in the table")


if __name__ == "__main__":
    main()
