"""The agent as a Unix process: signals, service manager, and the log of its start and end."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from blast_base.descriptors import RESERVED, DescriptorLimitError, descriptors, raise_limit
from blast_transport.agent.claims import Claims
from blast_transport.agent.notify import ALIVE, READY, STOPPING, AgentNotifier
from blast_transport.agent.permissions import Permissions
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer, ServerParts
from blast_transport.agent.settings import Settings
from blast_transport.agent.targets import Targets, session_factory
from blast_transport.base.engines import engines_here
from blast_transport.base.errors import SettingsError
from blast_transport.base.report import Failed, Received, ReceiverEvent
from blast_transport.blocks.digests import SUITES
from blast_transport.credentials.admission import Admission
from blast_transport.credentials.material import Credentials
from blast_transport.links.chain_source import node_dialer
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.session.receiver_session import HostResources
from blast_transport.store.targets.command_target import kill_commands
from blast_transport.store.targets.file_target import FileRules

_ALIVE_SECONDS = 1.0
_DESCRIPTORS_OF_SESSION = 8
"""Its connection, sockets of its transport, its file and that file's record, and what waits for them."""
_MIN_CONNECTIONS = 16
_KILLED = 128
"""The exit status of what a signal ended, less the signal's number (as shells count)."""


def parts_of(settings: Settings, credentials: Credentials, reporter: Reporter) -> ServerParts:
    """Return the parts of an agent that a reload may change. Raise SettingsError."""
    access, rate = settings.access, settings.limits.max_rate_mbps
    admission = Admission(credentials, access.client, access.handshake_timeout_ms / 1000)
    rules = FileRules(settings.limits.file_bytes, int(settings.agent.file_mode, 8))
    surroundings = HostResources(
        target_of=Targets(Permissions(settings), rules),
        emit=lambda event: _report(reporter, event),
        interface_address=settings.agent.optical_address,
        fsync=settings.agent.durable,
        max_rate=None if rate is None else rate * 1e6,
        connect=node_dialer(credentials, admission),
        engine=settings.agent.engine,
    )
    claims = Claims([folder.path for folder in settings.folder if folder.claimed])
    measuring = MeasuringLimits(settings.limits.max_measurement_bytes, settings.limits.max_measurement_ms / 1000)
    return ServerParts(admission, session_factory(surroundings), surroundings.connect, claims, measuring)


def within_descriptors(settings: Settings, limit: int) -> Settings:
    """Return the settings with no more connections than find room beside the sessions. Raises SettingsError."""
    limits = settings.limits
    # A session for which no descriptor is left is refused; a connection that is not accepted waits for ever.
    of_sessions = min(_DESCRIPTORS_OF_SESSION * limits.sessions, (limit - RESERVED) // 2)
    try:
        room = descriptors(limit, of_sessions, limits.connections, min(_MIN_CONNECTIONS, limits.connections))
    except DescriptorLimitError as error:
        raise SettingsError(str(error)) from error
    connections = min(limits.connections, room.available)
    unauthenticated = min(limits.unauthenticated, max(2, connections // 4))
    of_host = min(limits.unauthenticated_per_host, max(1, unauthenticated // 2))
    if connections == limits.connections:
        return settings
    bounded = replace(
        limits, connections=connections, unauthenticated=unauthenticated, unauthenticated_per_host=of_host
    )
    return replace(settings, limits=bounded)


def make_server(settings: Settings, credentials: Credentials, reporter: Reporter) -> AgentServer:
    """Create an agent that listens. Raise CannotListenError, SettingsError."""
    settings = within_descriptors(settings, raise_limit())
    parts = parts_of(settings, credentials, reporter)
    server = AgentServer(settings, parts.admission, parts.factory, reporter, parts.dialer)
    server.renew(parts)
    return server


def serve(
    server: AgentServer,
    reporter: Reporter,
    tick: Callable[[], None] = lambda: None,
    reload: Callable[[], None] | None = None,
    may: str | None = None,
) -> None:
    """Run the server in the main thread until a signal or a call of `stop` ends it. SIGHUP calls `reload`, if given.

    A second signal ends the process without waiting for sessions. `may`: permissions of an on-demand agent, which are
    reported to its sender.
    """
    hangups: list[int] = []

    def end(number: int, _: object) -> None:
        if server.reason:
            kill_commands()
            os._exit(_KILLED + number)
        server.stop(f"the agent is ending ({signal.Signals(number).name})")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    if reload is not None:
        signal.signal(signal.SIGHUP, lambda number, _: hangups.append(number))
    notifier = AgentNotifier()
    heartbeat = _ServiceHeartbeat(notifier, server)
    host, port = server.endpoint
    notifier.send(READY, f"STATUS={server.status}")
    reporter.report(
        "ready",
        f"listening on {server.endpoint} (engines: {engines_here()})",
        host=host,
        port=port,
        suites=sorted(SUITES),
        engines=engines_here(),
        may=may,
    )

    def on_tick() -> None:
        if hangups and reload is not None:
            hangups.clear()
            notifier.reloading()
            reload()
            notifier.send(READY)
        heartbeat.beat()
        tick()

    server.run(on_tick)
    kill_commands()
    notifier.send(STOPPING)
    refused = {kind.value: count for kind, count in server.refusals.totals.items()}
    reporter.report("ended", f"ended: {server.reason}", reason=server.reason, refused=refused)


class _ServiceHeartbeat:
    """Heartbeat of the service manager: reports that the loop runs, and the load."""

    def __init__(self, notifier: AgentNotifier, server: AgentServer) -> None:
        self._notifier, self._server = notifier, server
        self._next = 0.0

    def beat(self) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _ALIVE_SECONDS
            self._notifier.send(ALIVE, f"STATUS={self._server.status}")


def _report(reporter: Reporter, event: ReceiverEvent) -> None:
    match event:
        case Received():
            message = f"received {event.file}: {event.bytes} bytes in {event.seconds:.3f} s from {event.sender}"
            reporter.report("received", message, logging.INFO, **event.as_dict())
        case Failed():
            message = f"{event.name} from {event.sender} failed: {event.reason}"
            reporter.report("failed", message, logging.INFO, **event.as_dict())
