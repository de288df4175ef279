"""Transfers that use only the optical transport, controlled by the grants of a request.

    results = await send(client, request, carry)

`carry` sends the data to some of the receivers while their part has a grant, usually

    def carry(receivers: Sequence[str], route: Route) -> TransferResult:
        with Sender([addresses[name] for name in receivers], SenderSettings(ours)) as sender:
            return sender.send_file(path, route)

`send` calls it in a thread for each part of the request.
"""

from __future__ import annotations

import asyncio
import time

from blast_api.ttypes import Event, EventKind, Grant, MulticastRequest, RequestStatus, TimedOut
from blast_client.send.in_thread import STOPPED
from blast_client.send.part_sending import FINAL, Carry, Controller, PartSending, PartSent
from blast_client.send.submitted import Submitted
from blast_transport.session.route import Route
from blast_transport.transports.choices import OpticalChoice


async def send(controller: Controller, request: MulticastRequest, carry: Carry) -> list[PartSent]:
    """Submit a request, send its data according to the grants of its parts, and return the result of each part.

    The function returns when the request has ended and every receiver has the data or has failed; parts without a grant
    are not in the list. Raises BlastError and InvalidGrantError. An exception or a cancellation stops the transfers and
    withdraws the request.
    """
    async with Submitted(controller, request) as status:
        return await _Sending(controller, request, carry).run(status)


class _Sending:
    """The transfers of one request."""

    def __init__(self, controller: Controller, request: MulticastRequest, carry: Carry) -> None:
        self._controller, self._request, self._carry = controller, request, carry
        self._parts: dict[int, PartSending] = {}

    async def run(self, status: RequestStatus) -> list[PartSent]:
        try:
            async with asyncio.TaskGroup() as tasks:
                sequence = 0
                while status.state not in FINAL or sequence < status.latestSequence:
                    event = await self._next_event(sequence)
                    sequence = event.sequence
                    self._deliver(event, tasks)
                    if event.kind == EventKind.ENDED:
                        status = await self._controller.status(self._request.key)
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several
        finally:
            for part in self._parts.values():
                part.route.give_up(STOPPED)
        return [self._parts[number].outcome() for number in sorted(self._parts)]

    async def _next_event(self, after: int) -> Event:
        while True:
            try:
                return await self._controller.await_event(self._request.key, after)
            except TimedOut:
                continue

    def _deliver(self, event: Event, tasks: asyncio.TaskGroup) -> None:
        if event.part not in self._parts and event.kind == EventKind.GRANTED and event.grant is not None:
            part = self._parts[event.part] = self._part(event.grant)
            tasks.create_task(part.run(self._carry))
        if event.part in self._parts:
            self._parts[event.part].inbox.put_nowait(event)

    def _part(self, grant: Grant) -> PartSending:
        # The expired deadline keeps the route from sending until the part's plan has checked the grant.
        light = OpticalChoice(grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond, time.monotonic())
        return PartSending(self._controller, self._request, grant.part, grant.receivers, Route(light))
