"""A controller that serves one request as a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from blast_api.ttypes import (
    Ended,
    Event,
    EventKind,
    Extension,
    Grant,
    MulticastRequest,
    NotYet,
    PartState,
    Rejected,
    RequestStatus,
    TransferReport,
)
from tests.support.waiting import eventually_async

SIZE = 30_000
RATE = 8e5
"""Bits per second: 100 bytes in a millisecond, 0.3 s in all."""


class ScriptedController:
    """Serves one request; the test says when what happens."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.told: list[tuple[int, int]] = []
        self.finished: dict[int, TransferReport] = {}
        self.state = PartState.PENDING
        self.withdrawn = False
        self.busy_finishes = 0
        self._changed = asyncio.Event()

    def say(self, kind: int, part: int = 0, grant: Grant | None = None, state: int | None = None) -> None:
        self.events.append(Event(len(self.events) + 1, kind, part, grant, f"reason of {kind}", state))
        self._changed.set()

    def grant(
        self,
        part: int = 0,
        first_byte: int = 0,
        receivers: Sequence[str] = ("b",),
        lease_ms: int = 100,
        kind: int = EventKind.GRANTED,
        group: str = "239.0.0.1",
    ) -> None:
        grant = Grant("k", part, list(receivers), group, 80, int(RATE), 300, lease_ms, first_byte, [], 1)
        self.say(kind, part, grant)

    async def until(self, number_told: int) -> int:
        """Wait until so much has been told; the last of it."""
        await eventually_async(lambda: len(self.told) >= number_told, "what the sender tells")
        return self.told[-1][1]

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        return self._status()

    async def status(self, key: str) -> RequestStatus:
        return self._status()

    def _status(self) -> RequestStatus:
        return RequestStatus("k", "default", self.state, "a", ["b"], SIZE, 0, [], len(self.events))

    async def await_event(self, key: str, after_sequence: int = 0) -> Event:
        if len(self.events) <= after_sequence:
            self._changed.clear()
            try:
                async with asyncio.timeout(0.05):
                    await self._changed.wait()
            except TimeoutError:
                raise NotYet("nothing") from None
        return self.events[after_sequence]

    async def extend(self, key: str, extension: Extension) -> RequestStatus:
        assert extension.part is not None and extension.reachedByte is not None
        self.told.append((extension.part, extension.reachedByte))
        return self._status()

    async def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        if self.busy_finishes:
            self.busy_finishes -= 1
            raise Rejected("not_active", "it is pending")
        if part in self.finished:
            raise Ended(PartState.DONE, "done")
        assert report is not None
        self.finished[part] = report
        granted = {event.part for event in self.events if event.kind == EventKind.GRANTED}
        self.state = PartState.DONE if granted == set(self.finished) else PartState.ACTIVE
        self.say(EventKind.ENDED, part, state=PartState.DONE)
        return self._status()

    async def withdraw(self, key: str) -> RequestStatus:
        self.withdrawn, self.state = True, PartState.WITHDRAWN
        self.say(EventKind.ENDED, state=PartState.WITHDRAWN)
        return self._status()
