"""The sender of one part of a request: connects grants, leases and pauses with the data plane."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from blast_api.ttypes import (
    Ended,
    Event,
    EventKind,
    Extension,
    MulticastRequest,
    PartState,
    Rejected,
    RequestStatus,
    TransferReport,
)
from blast_client.send.in_thread import Carry, in_thread, let_go
from blast_client.send.part_plan import Action, PartPlan, ReportProgress, StartOpticalSending, StopOpticalSending
from blast_transport.base.errors import TransportError
from blast_transport.base.report import TransferResult
from blast_transport.session.route import Route
from blast_transport.transports.choices import OpticalChoice

__all__ = ["FINAL", "Carry", "Controller", "OpticalPathFailed", "PartSending", "PartSent"]

FINAL = (PartState.DONE, PartState.WITHDRAWN, PartState.EXPIRED, PartState.FAILED, PartState.REJECTED)


class Controller(Protocol):
    """The methods of `AsyncClient` that a sender needs."""

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        """Submit a request."""

    async def await_event(self, key: str, after_sequence: int = 0) -> Event:
        """Return the next event of a request."""

    async def extend(self, key: str, extension: Extension) -> RequestStatus:
        """Change a request."""

    async def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        """Finish a part."""

    async def withdraw(self, key: str) -> RequestStatus:
        """Withdraw a request."""

    async def status(self, key: str) -> RequestStatus:
        """Return the state of a request."""


@dataclass(frozen=True, slots=True)
class PartSent:
    """The result of a part that had a grant.

    `state` (`PartState`) and `reason` are the controller's. If the transfer failed, `result` is None and `reason` is
    that of the failure. `pauses` counts the interruptions of the grant.
    """

    part: int
    receivers: tuple[str, ...]
    state: int
    reason: str
    pauses: int
    result: TransferResult | None

    @property
    def complete(self) -> bool:
        """True if every receiver of the part has the data."""
        return self.result is not None and self.result.complete == len(self.receivers)


@dataclass(frozen=True, slots=True)
class OpticalPathFailed:
    """Event: this sender can no longer send over the optical path; the transfer continues without it."""


class PartSending:
    """The transfer of one part. `inbox` receives its events, OpticalPathFailed, and None after the transfer."""

    def __init__(
        self,
        controller: Controller,
        request: MulticastRequest,
        number: int,
        receivers: Sequence[str],
        route: Route,
    ) -> None:
        self.inbox: asyncio.Queue[Event | OpticalPathFailed | None] = asyncio.Queue()
        self.route = route
        self._controller, self._request = controller, request
        self._number, self._receivers = number, tuple(receivers)
        self._plan = PartPlan(request.bytes, may_pause=bool(request.mayPause))
        self._result: TransferResult | None = None
        self._state: int = PartState.PENDING
        self._reason = ""
        self._pauses = 0

    def outcome(self) -> PartSent:
        """Return the result."""
        return PartSent(self._number, self._receivers, self._state, self._reason, self._pauses, self._result)

    async def run(self, carry: Carry) -> None:
        """Serve the part until the controller has ended it and the transfer is complete."""
        loop = asyncio.get_running_loop()
        self.route.on_broken = lambda: loop.call_soon_threadsafe(self.inbox.put_nowait, OpticalPathFailed())
        carrying = in_thread(f"{self._request.key}-{self._number}", carry, self._receivers, self.route)
        carrying.add_done_callback(lambda _: self.inbox.put_nowait(None))
        try:
            while self._state not in FINAL:
                await self._once(carrying)
            if self._state != PartState.DONE:
                self.without_light()
            await self._collect(carrying)
        finally:
            self.route.on_broken = lambda: None
            await let_go(carrying, self.route)

    async def start_optical(self, light: OpticalChoice) -> None:
        """Send over the optical path, for a first, another or a longer lease."""
        self.route.start_optical(light)

    def stop_optical(self) -> None:
        """Stop using the optical path until another grant."""
        self.route.stop_optical()

    def without_light(self) -> None:
        """Handle the end of the part before all data was sent: abort the transfer."""
        self.route.give_up(self._reason)

    async def light_broke(self) -> None:
        """Release the grant, or withdraw the request if there is none: another transport carries the data."""
        if self.waits:
            await self.withdraw()
        else:
            await self.decline()

    async def transferred(self) -> None:
        """Handle the end of the transfer: every receiver has the data or has failed."""
        await self._act(self._plan.confirm())

    @property
    def waits(self) -> bool:
        """True while the part has no grant and has released none."""
        return self._plan.waits

    async def decline(self) -> None:
        """Release the grant: another transport carries the data."""
        await self._act(self._plan.decline())

    async def withdraw(self) -> None:
        """Withdraw the request if it has not ended."""
        if self._state not in FINAL:
            await self._unless_over(self._controller.withdraw(self._request.key))

    async def _once(self, carrying: asyncio.Future[TransferResult]) -> None:
        """Wait for the next event or deadline, and handle it."""
        deadline = self._plan.deadline()
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                event = await self.inbox.get()
        except TimeoutError:
            await self._act(self._plan.tick(self.route.reached, time.monotonic()))
            return
        match event:
            case None:
                await self._collect(carrying)
                await self.transferred()
            case OpticalPathFailed():
                await self.light_broke()
            case _:
                await self._act(self._follow(event))

    def _follow(self, event: Event) -> list[Action]:
        match event.kind:
            case EventKind.GRANTED | EventKind.CHANGED if event.grant is not None:
                return self._plan.grant(event.grant, self.route.reached, time.monotonic())
            case EventKind.PAUSED | EventKind.REVOKED:
                self._pauses += 1
                return self._plan.pause(self.route.reached)
            case EventKind.ENDED:
                self._state, self._reason = event.state or self._state, self._reason or event.reason or ""
        return []

    async def _act(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case StartOpticalSending(light):
                    await self.start_optical(light)
                case StopOpticalSending():
                    self.stop_optical()
                case ReportProgress(reached):
                    progress = Extension(progressBytes=reached, part=self._number)
                    await self._unless_over(self._controller.extend(self._request.key, progress))
                case _:
                    report = self._report()
                    await self._unless_over(self._controller.finish(self._request.key, self._number, report))

    async def _unless_over(self, call: Awaitable[RequestStatus]) -> None:
        """Await a call; ignore that the part has ended or paused meanwhile, since an event reports that."""
        try:
            await call
        except Ended:
            pass
        except Rejected as refusal:
            if refusal.code != "not_active":
                raise

    async def _collect(self, carrying: asyncio.Future[TransferResult]) -> None:
        """Store the result of the transfer; withdraw the request if the transfer failed."""
        try:
            # Cancellation ends only this wait; `let_go` stops the transfer by its route.
            self._result = await asyncio.shield(carrying)
        except TransportError as error:
            self._reason = self._reason or str(error)
            await self.withdraw()

    def _report(self) -> TransferReport:
        result = self._result
        if result is None:
            return TransferReport(bytesSent=self.route.reached)
        return TransferReport(
            bytesSent=self.route.reached,
            durationMs=round(result.seconds * 1000),
            repairedBytes=result.repaired_bytes,
            failedReceivers=[outcome.name for outcome in result.receivers if not outcome.complete],
        )
