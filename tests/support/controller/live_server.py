"""The controller's HTTP server on a runtime whose devices execute commands at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from blast_controller.core.model.events import Event as CoreEvent
from blast_controller.core.model.events import RequestSubmitted
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.history.moment import Moment
from blast_controller.history.recorder import Recorder
from blast_controller.history.retention import Keep
from blast_controller.process.http_services import HttpSide, MetricSources, Watchers
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.methods import ROLES
from blast_controller.serving.tls import ServerTlsSettings
from tests.support.controller.runtime import TIMEOUT, Running, running


class BackdatedRecorder(Recorder):
    """A recorder for which everything happens `ago` seconds before it does."""

    ago = 0.0

    def on_published(self, snapshot: Snapshot, changes: Changes) -> None:
        if self._epoch:
            self._mailbox.put(Moment(snapshot, time.monotonic() - self.ago, time.time() - self.ago, changes))


@dataclass(frozen=True)
class More:
    """Options of a live server; `ago` are seconds by which its recording is backdated at first."""

    tls: ServerTlsSettings | None = None
    recording: Path | None = None
    ago: float = 0.0
    port: int = 0


class LiveServer:
    """A controller in this process, and how to ask it."""

    def __init__(self, lab: Running, watchers: Watchers, recorder: BackdatedRecorder, gate: Gate, more: More) -> None:
        self.lab, self.watchers, self.recorder, self.gate = lab, watchers, recorder, gate
        self.handler = lab.make_handler(self.gate)
        self.epoch = 7
        reported = MetricSources(lambda: self.epoch, lambda: {"rpc_calls": 3}, lambda: {"rpc_connections": 2})
        self.side = HttpSide(lab.runtime, self.gate, self.handler, watchers, reported, more.recording)
        self.server = self.side.server(more.tls)
        host, self.port = self.server.start("127.0.0.1", more.port)
        self.url = f"http{'s' if more.tls else ''}://{host}:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=TIMEOUT, headers={"Accept": "application/json"})

    def handle(self, event: CoreEvent) -> None:
        """Let the controller handle an event, and what that causes."""
        self.lab.runtime.post(event)
        self.lab.settle()

    def submit(self, *requests: MulticastRequest) -> None:
        """Submit requests."""
        for request in requests:
            self.lab.runtime.post(RequestSubmitted(request))
        self.lab.settle()

    def send_raw(self, event: bytes) -> None:
        """Send an event to each page."""
        broadcast = self.watchers.broadcast
        for listener in broadcast._listeners:
            broadcast._loop.call_soon_threadsafe(listener.put, event)

    def log_in(self, token: str) -> str:
        """Begin a session; returns what every write has to repeat."""
        answer = self.client.post("/session", json={"token": token})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["csrf"])


@contextlib.contextmanager
def live(fabric: Fabric, policy: AccessPolicy = OPEN_POLICY, more: More | None = None) -> Iterator[LiveServer]:
    """Serve; all ends with it."""
    more = more or More()
    watchers = Watchers(["one", "two"], lambda: served[0].runtime.snapshot)
    served: list[Running] = []
    recorder = BackdatedRecorder(more.recording or Path("nowhere"), Keep(), "0.1.0", "test")
    recorder.ago = more.ago
    with contextlib.ExitStack() as undo:
        if more.recording is not None:
            recorder.start(7)
            undo.callback(recorder.stop)
        observers = [*watchers.observers, recorder]
        served.append(undo.enter_context(running(fabric, CoreSettings(lease_minimum=3600.0), observers)))
        server = LiveServer(served[0], watchers, recorder, Gate(policy, ROLES), more)
        try:
            yield server
        finally:
            server.client.close()
            server.side.end(server.server)
