"""Puts together what the controller serves by HTTP: health, metrics, and the live page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from starlette.routing import Route

from blast_base.drawing.layout import lay_out
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.observer import Observer
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.ops.http.access import HttpAccess
from blast_controller.ops.http.application import Site, application
from blast_controller.ops.http.health import Health
from blast_controller.ops.http.server import HttpServer
from blast_controller.ops.live.actions import Actions, Now
from blast_controller.ops.live.broadcast import LiveBroadcast
from blast_controller.ops.live.routes import LivePage, live_routes
from blast_controller.ops.live.vitals_publisher import VitalsPublisher
from blast_controller.ops.metering import Metering
from blast_controller.ops.metrics import Metrics
from blast_controller.ops.page.files import page_files
from blast_controller.ops.page.picture import picture
from blast_controller.ops.standing import Sources, StateCollector
from blast_controller.ops.vitals import ConditionQueries, Vitals
from blast_controller.rpc.caller import Caller
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.clients.identity import DEFAULT_TENANT
from blast_controller.rpc.fabric_reading import FabricReading
from blast_controller.rpc.handler import BlastHandler
from blast_controller.runtime.runtime import Runtime
from blast_controller.runtime.standby import standby_message
from blast_controller.serving.tls import ServerTlsSettings

RELEASE = version("blast-controller")
GOODBYE = "The controller is stopping. This page reconnects automatically when it runs again."


class Watchers:
    """The observers of a runtime for HTTP. Created before the runtime: they read from `snapshot`."""

    def __init__(self, tenants: Iterable[str], snapshot: Callable[[], Snapshot]) -> None:
        self.metrics = Metrics()
        self.vitals = Vitals()
        self.broadcast = LiveBroadcast(snapshot, {"release": RELEASE})
        self.metering = Metering(self.metrics, [DEFAULT_TENANT, *tenants])

    @property
    def observers(self) -> list[Observer]:
        """Return all of them."""
        return [self.metering, self.vitals, self.broadcast]


@dataclass(frozen=True, slots=True)
class MetricSources:
    """The daemon's own state.

    `epoch` is that of the leader (0: a standby); `counts` has the counters of its servers by name, and `levels` values
    that also decrease.
    """

    epoch: Callable[[], int]
    counts: Callable[[], Mapping[str, float]]
    levels: Callable[[], Mapping[str, float]]


@dataclass(slots=True)
class _Drawing:
    """The fabric that was drawn last, and its picture."""

    fabric: Fabric | None = None
    text: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpSide:
    """Serves the runtime that decides to those whom the gate knows, by the methods of the handler."""

    runtime: Runtime
    gate: Gate
    handler: BlastHandler
    watchers: Watchers
    sources: MetricSources
    recording: Path | None = None
    _reading: FabricReading = field(default_factory=FabricReading)
    _drawing: _Drawing = field(default_factory=_Drawing)

    def server(self, tls: ServerTlsSettings | None, share: Callable[[int], int] = lambda bound: bound) -> HttpServer:
        """Return the server, not started. Raises TlsFileError."""
        runtime, registry = self.runtime, self.watchers.metrics.registry
        sources = Sources(
            snapshot=self._snapshot,
            epoch=self.sources.epoch,
            store_fault=lambda: runtime.store_fault,
            safe_mode=lambda: runtime.safe_mode,
            counts=self.sources.counts,
            levels=self.sources.levels,
        )
        registry.register(StateCollector(sources))
        signs = VitalsPublisher(self.watchers.vitals, self._condition(), self._snapshot)
        page = self._page(signs)

        def more(access: HttpAccess) -> Iterable[Route]:
            return live_routes(page, access)

        health = Health(runtime, lambda: standby_message(runtime.standby))
        site = Site(health, registry, lambda: self.gate.policy, self.sources.epoch, more)
        served = application(site)
        return HttpServer(served, tls, lambda: signs.publish(page.broadcast), share, served.state.access.knows)

    def end(self, server: HttpServer) -> None:
        """Send a last message to every page, and stop."""
        self.watchers.broadcast.end(GOODBYE)
        server.stop()

    def _page(self, signs: VitalsPublisher) -> LivePage:
        actions = Actions(Caller(self.handler, self.gate), lambda: Now(self._snapshot(), self.runtime.core.draining))
        return LivePage(page_files(), self.watchers.broadcast, signs, actions, self._picture, RELEASE, self.recording)

    def _picture(self) -> bytes:
        """Return the picture as JSON, drawn once for each fabric: of 300 racks it takes as long as many grants."""
        snapshot = self._snapshot()
        drawing = self._drawing
        if drawing.fabric is not snapshot.fabric:
            text = json.dumps(picture(lay_out(self._reading.read(snapshot, None))), separators=(",", ":"))
            drawing.text, drawing.fabric = text.encode(), snapshot.fabric
        return drawing.text

    def _snapshot(self) -> Snapshot:
        return self.runtime.snapshot

    def _condition(self) -> ConditionQueries:
        runtime = self.runtime
        return ConditionQueries(
            epoch=self.sources.epoch,
            leader=lambda: None if runtime.standby is None else runtime.standby.leader(),
            stale=lambda: None if runtime.standby is None else runtime.standby.age(),
            safe_mode=lambda: runtime.safe_mode,
            store_fault=lambda: runtime.store_fault,
            draining=lambda: runtime.core.draining,
            drift=self.watchers.metering.drift,
            counts=self.sources.counts,
        )
