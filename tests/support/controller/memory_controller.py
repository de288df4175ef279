# ruff: noqa: N802, N803 - the method and argument names are those of the interface
"""A small controller in memory behind the real Thrift server: for tests of clients, commands and other languages.

It knows a fabric of racks with two hosts each and lights `splitters` groups at a time; there are no devices.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import contextmanager

from blast_api import BlastOperator
from blast_api.ttypes import (
    CrossConnectStatus,
    ElementStatus,
    Ended,
    Event,
    EventKind,
    Explanation,
    FabricStatus,
    Grant,
    KeyReused,
    LightTreeStatus,
    OpticalPortStatus,
    OpticalSwitchStatus,
    PartState,
    PartStatus,
    RackStatus,
    Rejected,
    RequestPage,
    RequestStatus,
    SplitterStatus,
    StepTimings,
    TimedOut,
    UnknownRequest,
    Unsupported,
    Version,
)
from blast_controller.rpc.connections.connection import settle, settle_with_error
from blast_controller.rpc.connections.framed_server import FramedServer, ServerLimits
from blast_controller.rpc.connections.messages import ServiceCodec

LIGHT_RATE = 100_000_000
RACKS = range(1, 5)
FINAL = (PartState.DONE, PartState.WITHDRAWN, PartState.EXPIRED, PartState.FAILED, PartState.REJECTED)


class MemoryController:
    """The public interface, thread-safe; requests are granted in order of arrival while a splitter is free."""

    def __init__(self, splitters: int = 2) -> None:
        self.hosts = {f"h{rack}{index}": f"rack{rack}" for rack in RACKS for index in (1, 2)}
        self.splitters = splitters
        self.requests: dict[str, _Request] = {}
        self.unusable: dict[str, str] = {}
        self.calls: list[str] = []
        self.disconnects: list[int] = []
        self._lock = threading.RLock()

    def __getattr__(self, name):
        """Reject the methods of the interface that this controller lacks, as a server without the feature does."""
        if name not in ServiceCodec(BlastOperator).methods:
            raise AttributeError(name)

        return self._reject

    def submit(self, connection, request):
        with self._lock:
            self.calls.append("submit")
            known = self.requests.get(request.key)
            if known:
                if known.content != request:
                    raise KeyReused(request.key)
                return known.status()
            self._admit(request)
            self.requests[request.key] = _Request(request, len(self.requests))
            self._decide()
            return self.requests[request.key].status()

    def request(self, connection, request, timeoutMs):
        self.submit(connection, request)
        with self._lock:
            return self._find(request.key).wait(0, timeoutMs / 1000, lambda event: event.grant)

    def awaitEvent(self, connection, key, afterSequence, timeoutMs):
        with self._lock:
            self.calls.append("awaitEvent")
            return self._find(key).wait(afterSequence, timeoutMs / 1000)

    def extend(self, connection, key, extension):
        with self._lock:
            self.calls.append("extend")
            request = self._find(key)
            if request.state in FINAL:
                raise Ended(request.state, request.reason)
            unknown = [host for host in extension.addReceivers or () if host not in self.hosts]
            if unknown:
                raise Rejected("unknown_host", f"no host is named {unknown[0]}")
            removed = set(extension.removeReceivers or ())
            request.receivers = [h for h in request.receivers if h not in removed] + (extension.addReceivers or [])
            request.event(EventKind.CHANGED, grant=request.grant())
            return request.status()

    def finish(self, connection, key, part, report):
        return self._end(key, PartState.DONE, "finished")

    def withdraw(self, connection, key):
        return self._end(key, PartState.WITHDRAWN, "withdrawn")

    def status(self, connection, key):
        with self._lock:
            return self._find(key).status()

    def listRequests(self, connection, filter, limit, cursor):  # noqa: A002 - Thrift's name
        with self._lock:
            self.calls.append("listRequests")
            matching = [r for r in self.requests.values() if not (filter and filter.states) or r.state in filter.states]
            start = int(cursor or 0)
            end = start + limit
            return RequestPage([r.status() for r in matching[start:end]], str(end) if end < len(matching) else None)

    def explain(self, connection, key):
        with self._lock:
            request = self._find(key)
            if request.state != PartState.PENDING:
                return Explanation(key, f"The request {key} does not wait.")
            lit = [r for r in self.requests.values() if r.state == PartState.ACTIVE]
            holders = [f"splitter:s{r.splitter} is held by {r.content.key}" for r in lit]
            return Explanation(key, f"The request {key} waits: {request.reason}.", holders, 60_000, "Wait a minute.")

    def fabric(self, connection):
        with self._lock:
            trees = [r.tree() for r in self.requests.values() if r.state == PartState.ACTIVE]
            splitter_owner = {name: tree.reservation for tree in trees for name in tree.splitters}
            return FabricStatus(
                [self._rack(number) for number in RACKS],
                [
                    SplitterStatus(
                        f"s{n}", 4, "ocs", 100 + n, [100 + 4 * n + k for k in range(4)], splitter_owner.get(f"s{n}"),
                        self.unusable.get(f"splitter:s{n}"),
                    )
                    for n in range(1, self.splitters + 1)
                ],
                [OpticalSwitchStatus("ocs", True)],
                trees,
                LIGHT_RATE,
                sum(r.state == PartState.PENDING for r in self.requests.values()),
            )  # fmt: skip

    def version(self, connection):
        self.calls.append("version")
        return Version("memory", 1, ["elements"], None)

    def ping(self, connection):
        self.calls.append("ping")

    def elements(self, connection):
        return [ElementStatus(f"splitter:s{n}", "free") for n in range(1, self.splitters + 1)]

    def _reject(self, connection, *arguments):
        raise Unsupported("operators", "this server only grants requests")

    def disconnected(self, connection):
        self.disconnects.append(connection.id)

    def _admit(self, request):
        unknown = [host for host in (request.sender, *request.receivers) if host not in self.hosts]
        if unknown:
            raise Rejected("unknown_host", f"no host is named {unknown[0]}")
        if not request.receivers:
            raise Rejected("no_receivers", "the request names no receivers")
        if request.bytes <= 0:
            raise Rejected("bad_bytes", "bytes must be positive")
        if request.deadlineMs is not None:
            raise Unsupported("deadlines", "this server knows no deadlines")

    def _find(self, key):
        if key not in self.requests:
            raise UnknownRequest(key)
        return self.requests[key]

    def _decide(self):
        free = self.splitters - sum(r.state == PartState.ACTIVE for r in self.requests.values())
        for request in [r for r in self.requests.values() if r.state == PartState.PENDING][: max(free, 0)]:
            request.state = PartState.ACTIVE
            request.racks = [self.hosts[host] for host in (request.content.sender, *request.receivers)]
            busy = {r.splitter for r in self.requests.values() if r.state == PartState.ACTIVE}
            request.splitter = next(n for n in range(1, self.splitters + 1) if n not in busy)
            request.event(EventKind.GRANTED, grant=request.grant())

    def _end(self, key, state, reason):
        with self._lock:
            request = self._find(key)
            if request.state in FINAL:
                raise Ended(request.state, request.reason)
            request.state, request.reason, request.splitter = state, reason, None
            request.event(EventKind.ENDED, reason=reason, state=state)
            self._decide()
            return request.status()

    def _rack(self, number):
        name = f"rack{number}"
        owner = next(
            (r.number for r in self.requests.values() if r.state == PartState.ACTIVE and name in r.racks), None
        )
        port = OpticalPortStatus(1, "ocs", number, number, owner, self.unusable.get(f"port:{name}/1"))
        hosts = [host for host, rack in self.hosts.items() if rack == name]
        addresses = dict.fromkeys(hosts, "127.0.0.1")
        return RackStatus(name, f"{number:016x}", True, [port], hosts, addresses=addresses)


class _Request:
    def __init__(self, content, number):
        self.content, self.number = content, number
        self.receivers = list(content.receivers)
        self.state, self.reason, self.splitter, self.racks = PartState.PENDING, "no splitter is free", None, []
        self.events, self.waits = [], []

    def event(self, kind, **fields):
        self.events.append(Event(len(self.events) + 1, kind, 0, **fields))
        waits, self.waits = self.waits, []
        for after, future, read in waits:
            settle(future, read(next(e for e in self.events if e.sequence > after)))

    def wait(self, after, seconds, read=lambda event: event):
        """Return `read` of the first event after this one: at once, or as a future with a timeout."""
        ready = next((event for event in self.events if event.sequence > after), None)
        if ready:
            return read(ready)
        if self.state in FINAL:
            raise Ended(self.state, self.reason)
        future: Future[object] = Future()
        timer = threading.Timer(seconds, self._give_up, [future])
        timer.daemon = True
        self.waits.append((after, future, read))
        future.add_done_callback(lambda _: timer.cancel())
        timer.start()
        return future

    def _give_up(self, future):
        self.waits = [wait for wait in self.waits if wait[1] is not future]
        settle_with_error(future, TimedOut(self.reason))

    def grant(self):
        return Grant(
            self.content.key, 0, self.receivers, f"239.1.0.{self.number + 1}", 5007, LIGHT_RATE,
            self.content.bytes * 8000 // LIGHT_RATE, 60_000, 0, [], self.number, StepTimings(0.4, 3.25, 14.2, 16.0),
        )  # fmt: skip

    def status(self):
        active = self.state == PartState.ACTIVE
        part = PartStatus(
            0, self.state, self.receivers, self.grant() if active else None,
            None if active else self.reason, 60_000 if active else None,
        )  # fmt: skip
        return RequestStatus(
            self.content.key, self.content.tenant or "default", self.state, self.content.sender, self.receivers,
            self.content.bytes, 1500, [part], len(self.events),
        )  # fmt: skip

    def tree(self):
        root, *leaves = dict.fromkeys(self.racks)
        numbers = {rack: int(rack.removeprefix("rack")) for rack in (root, *leaves)}
        outputs = [100 + 4 * self.splitter + k for k in range(4)]
        circuits = [CrossConnectStatus("ocs", numbers[root], 100 + self.splitter)]
        circuits += [
            CrossConnectStatus("ocs", output, numbers[leaf]) for output, leaf in zip(outputs, leaves, strict=False)
        ]
        return LightTreeStatus(
            self.number, self.content.key, 0, "lit", f"239.1.0.{self.number + 1}", root, leaves,
            [f"s{self.splitter}"], circuits,
        )  # fmt: skip


@contextmanager
def serving(handler, service=BlastOperator, limits: ServerLimits | None = None, **options):
    """Run a server on a free port of the loopback; yield (server, host, port)."""
    server = FramedServer(service, handler, limits, **options)
    try:
        yield server, *server.start(port=0)
    finally:
        server.stop()
