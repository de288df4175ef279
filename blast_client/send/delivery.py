"""Delivery of data to many hosts over the transport that finishes first: optical after a grant, packets otherwise.

The transfer begins at once. The packet network (multicast, a pipeline or trees) carries it while the request is
pending. After a grant the transfer changes to the optical path if it then finishes earlier, and back to packets when
the grant ends or pauses, or the optical transport of the sender fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from thrift.Thrift import TException

from blast_api.ttypes import Event, EventKind, MulticastRequest, PartState, RequestStatus, TimedOut
from blast_client.api.calls import ControllerUnreachableError
from blast_client.cli.failures import explain_failure
from blast_client.send.in_thread import carried
from blast_client.send.part_sending import Carry, Controller, PartSending, PartSent
from blast_client.send.submitted import Submitted
from blast_transport.session.route import Route
from blast_transport.transports.choices import OpticalChoice, TransportChoice

GRANT_SECONDS = 0.1
"""Time to wait for a grant before the transfer begins over packets; a grant on an idle fabric takes a fifth of it."""

_SMALL_BYTES = 1 << 18
"""Up to this size a transfer waits for a grant only as long as the data would take over packets."""

_PACKET_RATE = 1e9
"""Assumed rate of the packet network for such a transfer, in bits/s."""

SWITCH_SECONDS = 0.2
"""Time to change to the optical path."""

_LIGHT_SHARE = 0.94
"""Share of the optical rate that carries data; the rest is headers, and margin for clocks that differ."""

_MIN_MEASURED_SECONDS = 0.2
"""A rate that was measured for a shorter time is not reliable."""


def grant_seconds(size: int) -> float:
    """Return the seconds that a transfer of `size` bytes waits for a grant: a small one ends before any grant.

    >>> grant_seconds(125_000), grant_seconds(10**9)
    (0.001, 0.1)
    """
    return size * 8 / _PACKET_RATE if size <= _SMALL_BYTES else GRANT_SECONDS


def light_is_earlier(remaining: int, light_rate: float, packet_rate: float | None) -> bool:
    """Return True if `remaining` bytes arrive earlier over the optical path than over packets.

    Rates are in bits/s; `packet_rate` None: unknown, and the optical path is preferred.
    """
    if not packet_rate:
        return True
    return SWITCH_SECONDS + remaining * 8 / (light_rate * _LIGHT_SHARE) < remaining * 8 / packet_rate


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a delivery. `refused`: reason why no grant was available, or no more; empty otherwise."""

    sent: PartSent
    refused: str = ""


async def deliver(
    controller: Controller | None, request: MulticastRequest, carry: Carry, packets: TransportChoice
) -> Delivered:
    """Send the data of a request to all of its receivers, over the optical path if that finishes earlier.

    If there is no controller (None), or it does not answer or rejects the request, `packets` (multicast, a chain or
    trees) carries all data. The request must not allow splitting: one transfer serves all receivers. Cancellation stops
    the transfer and withdraws the request. Raises the exceptions of `carry`, and InvalidGrantError.
    """
    return await _Delivery(controller, request, carry, packets).run()


class _Delivery:
    def __init__(
        self, controller: Controller | None, request: MulticastRequest, carry: Carry, packets: TransportChoice
    ) -> None:
        self._controller, self._request, self._carry, self._packets = controller, request, carry, packets
        self._sequence = 0

    async def run(self) -> Delivered:
        if self._controller is None:
            return Delivered(await self._alone())
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(Submitted(self._controller, self._request))
            except (TException, ControllerUnreachableError) as error:
                return Delivered(await self._alone(), explain_failure(error)[1])
            return await self._with(self._controller)

    async def _alone(self) -> PartSent:
        receivers = tuple(self._request.receivers)
        result = await carried(self._carry, receivers, Route(self._packets))
        return PartSent(0, receivers, PartState.WITHDRAWN, "", 0, result)

    async def _with(self, controller: Controller) -> Delivered:
        first = await self._first(controller)
        choice = self._packets
        if first is not None and first.kind == EventKind.GRANTED and first.grant is not None:
            grant = first.grant
            choice = OpticalChoice(grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond, time.monotonic())
        part = _Part(controller, self._request, self._packets, choice)
        if first is not None:
            part.inbox.put_nowait(first)
        listening = asyncio.create_task(self._listen(controller, part))
        try:
            await part.run(self._carry)
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening
        return Delivered(part.outcome(), part.route.broken)

    async def _first(self, controller: Controller) -> Event | None:
        """Return the first event, or None if it does not arrive within `grant_seconds`."""
        try:
            async with asyncio.timeout(grant_seconds(self._request.bytes)):
                return await self._next(controller)
        except TimeoutError:
            return None

    async def _listen(self, controller: Controller, part: _Part) -> None:
        """Forward events until the request ends or the controller does not answer, which counts as its end."""
        try:
            while True:
                event = await self._next(controller)
                part.inbox.put_nowait(event)
                if event.kind == EventKind.ENDED:
                    return
        except (TException, ControllerUnreachableError) as error:
            part.inbox.put_nowait(_away(error))

    async def _next(self, controller: Controller) -> Event:
        while True:
            try:
                event = await controller.await_event(self._request.key, self._sequence)
            except TimedOut:
                continue
            self._sequence = event.sequence
            return event


def _away(error: Exception) -> Event:
    """Return the event by which the transfer continues without a controller."""
    return Event(0, EventKind.ENDED, 0, state=PartState.FAILED, reason=explain_failure(error)[1])


class _Part(PartSending):
    """One part with all receivers, which packets serve while there is no grant."""

    def __init__(
        self, controller: Controller, request: MulticastRequest, packets: TransportChoice, first: TransportChoice
    ) -> None:
        super().__init__(controller, request, 0, request.receivers, Route(first, packets))
        self._begun: tuple[float, int] | None = None if isinstance(first, OpticalChoice) else (time.monotonic(), 0)

    async def start_optical(self, light: OpticalChoice) -> None:
        """Use the optical path unless packets finish earlier."""
        if not self.route.no_more_light and self._is_worth(light):
            self._begun = None
            self.route.start_optical(light)
        else:
            await self.decline()

    async def light_broke(self) -> None:
        """Continue over packets."""
        self._go_by_packets()
        await super().light_broke()

    def stop_optical(self) -> None:
        """Continue over packets until another grant."""
        self._go_by_packets()

    def without_light(self) -> None:
        """Continue over packets."""
        self._go_by_packets()

    async def transferred(self) -> None:
        """Withdraw a pending request: every receiver has the data or has failed."""
        if self.waits:
            await self.withdraw()
        await super().transferred()

    async def _unless_over(self, call: Awaitable[RequestStatus]) -> None:
        """Continue without a grant if the controller does not answer or rejects a call."""
        try:
            await super()._unless_over(call)
        except (TException, ControllerUnreachableError) as error:
            self.inbox.put_nowait(_away(error))

    def _go_by_packets(self) -> None:
        if self._begun is None:
            self._begun = time.monotonic(), self.route.reached
            self.route.go_otherwise()

    def _is_worth(self, light: OpticalChoice) -> bool:
        return self._begun is None or light_is_earlier(self._remaining(), light.rate, self._packet_rate(*self._begun))

    def _remaining(self) -> int:
        remaining: int = self._request.bytes - self.route.reached
        return max(0, remaining)

    def _packet_rate(self, began: float, reached: int) -> float | None:
        seconds = time.monotonic() - began
        return None if seconds < _MIN_MEASURED_SECONDS else (self.route.reached - reached) * 8 / seconds
