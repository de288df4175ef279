"""Data to many hosts by whatever brings it earlier: light when it is granted, packets while it is not.

The transfer begins at once. It goes by packets (a pipeline, or trees) as long as the request waits; over to light when
that comes, if it is then done earlier; and back when the light is withdrawn or paused, or our own side of it fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from thrift.Thrift import TException

from blast_api.ttypes import Event, EventKind, MulticastRequest, PartState, RequestStatus, TimedOut
from blast_client.calls import ControllerUnreachable
from blast_client.failures import explain_failure
from blast_client.in_thread import carried
from blast_client.part_sending import Carry, Controller, PartSending, PartSent
from blast_client.submitted import Submitted
from blast_transport.session.route import Route
from blast_transport.transports.choices import Light, TransportChoice

GRANT_SECONDS = 0.1
"""How long a transfer waits for light before it begins without: a grant on a free fabric takes a fifth of this."""

_SMALL_BYTES = 1 << 18
"""A transfer of at most this size waits for light no longer than its data take by packets."""

_PACKET_RATE = 1e9
"""Bits/s that the packet network is then taken to have."""

SWITCH_SECONDS = 0.2
"""What changing over to light costs."""

_LIGHT_SHARE = 0.94
"""Share of the rate of light that carries data: headers, and room for clocks that differ."""

_MIN_MEASURED_SECONDS = 0.2


def grant_seconds(size: int) -> float:
    """Return how long a transfer of `size` bytes waits for light: small ones are there before any grant.

    >>> grant_seconds(125_000), grant_seconds(10**9)
    (0.001, 0.1)
    """
    return size * 8 / _PACKET_RATE if size <= _SMALL_BYTES else GRANT_SECONDS


def light_is_earlier(remaining: int, light_rate: float, packet_rate: float | None) -> bool:
    """Whether `remaining` bytes are there earlier by light than by packets at so many bits/s (None: not known)."""
    if not packet_rate:
        return True
    return SWITCH_SECONDS + remaining * 8 / (light_rate * _LIGHT_SHARE) < remaining * 8 / packet_rate


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of it. `refused` is why there was no light to be had, or none any more, empty if there could be."""

    sent: PartSent
    refused: str = ""


async def deliver(
    controller: Controller | None, request: MulticastRequest, carry: Carry, packets: TransportChoice
) -> Delivered:
    """Send the data of a request to all of its receivers, by light if that is granted and worth it.

    Without a controller (None), with one that is away or refuses, all goes by `packets`, a chain or trees. The request
    must not be split: one transfer serves all receivers. Cancelled, it is given up and the request withdrawn. Raises
    what `carry` raises, and WrongGrant.
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
            except (TException, ControllerUnreachable) as error:
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
            choice = Light(grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond, time.monotonic())
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
        """The first event, if it comes soon."""
        try:
            async with asyncio.timeout(grant_seconds(self._request.bytes)):
                return await self._next(controller)
        except TimeoutError:
            return None

    async def _listen(self, controller: Controller, part: _Part) -> None:
        """Hand events over until the request has ended, or the controller is away: then there is no light."""
        try:
            while True:
                event = await self._next(controller)
                part.inbox.put_nowait(event)
                if event.kind == EventKind.ENDED:
                    return
        except (TException, ControllerUnreachable) as error:
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
    """There is no light any more, as far as we are concerned."""
    return Event(0, EventKind.ENDED, 0, state=PartState.FAILED, reason=explain_failure(error)[1])


class _Part(PartSending):
    """All receivers; where there is no light, packets go on."""

    def __init__(
        self, controller: Controller, request: MulticastRequest, packets: TransportChoice, first: TransportChoice
    ) -> None:
        super().__init__(controller, request, 0, request.receivers, Route(first, packets))
        self._begun: tuple[float, int] | None = None if isinstance(first, Light) else (time.monotonic(), 0)

    async def shine(self, light: Light) -> None:
        """Go over to light, or stay with it, unless packets are there earlier."""
        if not self.route.no_more_light and self._is_worth(light):
            self._begun = None
            self.route.shine(light)
        else:
            await self.decline()

    async def light_broke(self) -> None:
        """Go on by packets."""
        self._go_by_packets()
        await super().light_broke()

    def darken(self) -> None:
        """Go on by packets until another grant."""
        self._go_by_packets()

    def without_light(self) -> None:
        """Go on by packets."""
        self._go_by_packets()

    async def transferred(self) -> None:
        """Every receiver has the data or has failed: a request that waits is not wanted any more."""
        if self.waits:
            await self.withdraw()
        await super().transferred()

    async def _unless_over(self, call: Awaitable[RequestStatus]) -> None:
        """A controller that is away, or refuses, costs the light and nothing else."""
        try:
            await super()._unless_over(call)
        except (TException, ControllerUnreachable) as error:
            self.inbox.put_nowait(_away(error))

    def _go_by_packets(self) -> None:
        if self._begun is None:
            self._begun = time.monotonic(), self.route.reached
            self.route.go_otherwise()

    def _is_worth(self, light: Light) -> bool:
        return self._begun is None or light_is_earlier(self._remaining(), light.rate, self._packet_rate(*self._begun))

    def _remaining(self) -> int:
        remaining: int = self._request.bytes - self.route.reached
        return max(0, remaining)

    def _packet_rate(self, began: float, reached: int) -> float | None:
        seconds = time.monotonic() - began
        return None if seconds < _MIN_MEASURED_SECONDS else (self.route.reached - reached) * 8 / seconds
