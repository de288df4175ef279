"""Blast: the project's controller core and policies issue grants on a virtual clock; senders transmit under them.

A session is one flow over the sender's link, the tree's optical ports and the receivers' links. A sender that may pause
reports its progress when its lease ends; others request an extension before that. If a request is rejected or its
pending timeout is over, the remaining receivers are served by the fallback method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from blast_controller.core.controller import Core
from blast_controller.core.model.events import ExtendRequested, FinishRequested, ProgressReported, RequestSubmitted
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Extension, Grant, MulticastRequest, RequestEvent, RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_sim.controller.core_driver import Compute, CoreDriver, Delays, EventRefused, Notification
from blast_sim.flow.engine import FlowTransfer
from blast_sim.flow.optics import OpticalResources, host_name, place_of, server_of
from blast_sim.methods.method import Done, Method, Multicast, World

ASK_AT = 0.75
"""Share of a lease after which a sender that may not pause asks for more time."""


@dataclass(frozen=True, slots=True)
class Control:
    """The controller's environment: its optical network, settings, device delays and computation time."""

    optics: OpticalResources
    settings: CoreSettings
    delays: Delays
    compute: Compute


@dataclass(frozen=True, slots=True)
class RequestTerms:
    """The options of requests: see MulticastRequest; `pending_timeout` in seconds, None: unlimited."""

    may_pause: bool = False
    may_split: bool = False
    pending_timeout: float | None = None


class Blast:
    """The controller and its optical network. `servers` are all servers that will ever take part in a multicast.

    `computes` has the computation time of the decision that first granted each multicast; `fell_back` counts the
    multicasts of the fallback method.
    """

    def __init__(
        self, world: World, servers: Iterable[int], control: Control, terms: RequestTerms, fallback: Method
    ) -> None:
        self.world = world
        self.terms = terms
        self.fallback = fallback
        self.computes: dict[str, float] = {}
        self.fell_back = 0
        self._requests: dict[RequestKey, _Request] = {}
        core = Core(control.optics.fabric(world.network, servers), control.settings)
        self.driver = CoreDriver(core, world.simulation.clock, control.delays, control.compute, self._receive)

    def send(self, multicast: Multicast, done: Done) -> None:
        """Submit the request now."""
        request = MulticastRequest(
            multicast.name,
            multicast.tenant,
            host_name(multicast.sender),
            tuple(host_name(receiver) for receiver in multicast.receivers),
            multicast.bytes,
            pending_timeout=self.terms.pending_timeout,
            deadline=multicast.deadline,
            may_pause=self.terms.may_pause,
            may_split=self.terms.may_split,
        )
        self._requests[request.id] = _Request(self, request.id, multicast, done)
        self.driver.submit(RequestSubmitted(request))

    def _receive(self, message: Notification | EventRefused) -> None:
        if isinstance(message, Notification):
            self._requests[message.request].receive(message.event, message.decided)
        elif isinstance(message.event, RequestSubmitted):
            request = self._requests[message.event.request.id]
            request.fall_back(request.without)


@dataclass(slots=True)
class _TransmissionSession:
    """A part that transmits; its lease in seconds counts from its start, and ends at `lease_end`."""

    transfer: FlowTransfer
    first_byte: int
    bytes: int
    lease: float = 0.0
    lease_end: float = 0.0


class _Request:
    """A multicast on its way: receivers without the data, and sessions by part."""

    def __init__(self, blast: Blast, key: RequestKey, multicast: Multicast, done: Done) -> None:
        self.without = set(multicast.receivers)
        self._blast, self._key, self._multicast, self._done = blast, key, multicast, done
        self._simulation = blast.world.simulation
        self._sessions: dict[int, _TransmissionSession] = {}

    def receive(self, event: RequestEvent, decided: float) -> None:
        """Handle a message of the core to the sender."""
        match event.kind:
            case EventKind.GRANTED if event.grant is not None:
                self._transmit(event.grant)
                self._watch_lease(event.grant, decided)
            case EventKind.CHANGED if event.grant is not None and event.part in self._sessions:
                self._watch_lease(event.grant, decided)
            case EventKind.PAUSED | EventKind.REVOKED:
                self._break_off(event.part)
            case EventKind.ENDED if event.state is not PartState.DONE:
                self._break_off(event.part)
                part = self._blast.driver.core.request(self._key).parts[event.part]
                self.fall_back(self.without.intersection(map(server_of, part.receivers)))

    def fall_back(self, receivers: set[int]) -> None:
        """Send to these by the other method; none are left where the lease ended with the transfer."""
        if not receivers:
            return
        self._blast.fell_back += 1
        rest = replace(self._multicast, name=f"{self._multicast.name}/rest", receivers=tuple(sorted(receivers)))
        self._blast.fallback.send(rest, lambda: self._arrived(receivers))

    def _transmit(self, grant: Grant) -> None:
        self._blast.computes.setdefault(self._multicast.name, grant.timings.compute or 0.0)
        receivers = {server_of(host) for host in grant.receivers}
        network = self._blast.world.network
        paths = network.session(self._multicast.sender, sorted(receivers), self._light(grant))
        left = self._multicast.bytes - grant.first_byte
        transfer = self._simulation.start(paths, 8.0 * left, lambda _: self._sent(grant.part, receivers))
        self._sessions[grant.part] = _TransmissionSession(transfer, grant.first_byte, left)

    def _light(self, grant: Grant) -> list[int]:
        """Return the optical links of the granted tree; none within one rack."""
        tree = next(one for one in self._blast.driver.core.reservations if one.id == grant.reservation).layout.tree
        if tree is None:
            return []
        return self._blast.world.network.light(place_of(tree.root), [place_of(leaf.port) for leaf in tree.leaves])

    def _sent(self, part: int, receivers: set[int]) -> None:
        del self._sessions[part]
        self._blast.driver.submit(FinishRequested(self._key, part))
        self._arrived(receivers)

    def _arrived(self, receivers: set[int]) -> None:
        self.without -= receivers
        if not self.without:
            self._done()

    def _break_off(self, part: int) -> None:
        session = self._sessions.pop(part, None)
        if session is not None:
            self._simulation.stop(session.transfer)

    # --------------------------------------------------------------------------------------------- leases

    def _watch_lease(self, grant: Grant, decided: float) -> None:
        """Record the lease of a grant, and schedule the sender's message at or before its end.

        A sender that may pause receives one lease after another, and reports its progress at the end of each. A sender
        that may not pause has one lease, and requests an extension before the end.
        """
        session, now = self._sessions[grant.part], self._simulation.clock.now
        if self._blast.terms.may_pause or not session.lease:
            session.lease_end = decided + grant.lease
        else:
            session.lease_end += max(0.0, grant.lease - session.lease)
        session.lease = grant.lease
        if self._blast.terms.may_pause:
            when, act = session.lease_end, self._report_progress
        else:
            when, act = now + ASK_AT * (session.lease_end - now), self._ask_for_time
        self._simulation.clock.at(when, partial(self._in_lease, grant.part, session, session.lease_end, act))

    def _in_lease(
        self,
        part: int,
        session: _TransmissionSession,
        lease_end: float,
        act: Callable[[int, _TransmissionSession], None],
    ) -> None:
        if self._sessions.get(part) is session and session.lease_end == lease_end:
            act(part, session)

    def _report_progress(self, part: int, session: _TransmissionSession) -> None:
        reached = session.first_byte + session.bytes - math.ceil(self._simulation.bits_left(session.transfer) / 8)
        self._blast.driver.submit(ProgressReported(self._key, part, reached))

    def _ask_for_time(self, part: int, session: _TransmissionSession) -> None:
        self._blast.driver.submit(ExtendRequested(self._key, Extension(add_seconds=session.lease)))
