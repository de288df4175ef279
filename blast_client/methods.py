"""The table of the interface's methods on this side, and how both clients offer them.

A method that the interface gets takes a line in the table and a method in each class here. What has to wait, or knows
more of its client, stands with that client: `request`, `await_event`, `login`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TypeVar, TypeVarTuple

from blast_api import BlastOperator
from blast_api.BlastOperator import Iface
from blast_api.ttypes import (
    DrainStatus,
    ElementStatus,
    Explanation,
    Extension,
    FabricStatus,
    FiberReport,
    JournalEntry,
    MulticastRequest,
    ReconcileReport,
    RequestStatus,
    TransferReport,
    Version,
)
from blast_client.calls import PAGE, filter_of

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

SAFE_TO_REPEAT: Mapping[str, bool] = {
    "submit": True,
    "awaitEvent": True,
    "request": True,
    # It would add twice.
    "extend": False,
    # They would answer that the request has ended.
    "finish": False,
    "withdraw": False,
    "status": True,
    "listRequests": True,
    "explain": True,
    "fabric": True,
    "version": True,
    "ping": True,
    "login": False,
    "drain": True,
    "reconcile": False,
    "verifyFabric": False,
    "elements": True,
    "quarantine": True,
    "releaseElement": True,
    "resume": False,
    # It would ask the one that has just taken over.
    "stepDown": False,
    "journal": True,
}
"""Whether a call's repetition changes nothing and has the same answer, so that a broken connection may be retried."""


class _Served:
    """Which service is called, and which of its methods may be repeated."""

    _service: type[BlastOperator.Client] = BlastOperator.Client
    _safe_to_repeat: Mapping[str, bool] = SAFE_TO_REPEAT


class Methods(_Served, ABC):
    """The methods of `Client`."""

    @abstractmethod
    def _call(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        """Call a method of the interface, and return what it answers."""

    def submit(self, request: MulticastRequest) -> RequestStatus:
        """Ask for a multicast and return at once."""
        return self._call(Iface.submit, request)

    def extend(self, key: str, extension: Extension) -> RequestStatus:
        """Change a request's members, time or size; refused whole or done whole."""
        return self._call(Iface.extend, key, extension)

    def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        """Say that a part's transfer is over; its resources go back."""
        return self._call(Iface.finish, key, part, report or TransferReport())

    def withdraw(self, key: str) -> RequestStatus:
        """Give up a request, pending or active."""
        return self._call(Iface.withdraw, key)

    def status(self, key: str) -> RequestStatus:
        """Return one request's state."""
        return self._call(Iface.status, key)

    def list_requests(self, states: Sequence[int] = (), page: int = PAGE) -> Iterator[RequestStatus]:
        """Iterate over all requests in order of arrival, or over those in the given states (`PartState`)."""
        cursor: str | None = ""
        while cursor is not None:
            answer = self._call(Iface.listRequests, filter_of(states), page, cursor)
            yield from answer.requests
            cursor = answer.nextCursor

    def explain(self, key: str) -> Explanation:
        """Say what blocks a request."""
        return self._call(Iface.explain, key)

    def fabric(self) -> FabricStatus:
        """Return racks, splitters, switches and light trees as the controller sees them."""
        return self._call(Iface.fabric)

    def version(self) -> Version:
        """Return the controller's version and the optional features it serves."""
        return self._call(Iface.version)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self._call(Iface.ping)

    def drain(self, on: bool | None) -> DrainStatus:
        """Take no new requests, or take them again; None only asks."""
        return self._call(Iface.drain, on)

    def reconcile(self, dry_run: bool = True) -> ReconcileReport:
        """Compare what devices hold with what they should, and repair it unless `dry_run`."""
        return self._call(Iface.reconcile, dry_run)

    def verify_fabric(self) -> FiberReport:
        """Check the fibers against the config with probe frames."""
        return self._call(Iface.verifyFabric)

    def elements(self) -> list[ElementStatus]:
        """List every piece of hardware and its state."""
        return self._call(Iface.elements)

    def quarantine(self, element: str, reason: str) -> None:
        """Take an element out of use; what it serves now goes on."""
        self._call(Iface.quarantine, element, reason)

    def release_element(self, element: str) -> None:
        """Put an element back into use."""
        self._call(Iface.releaseElement, element)

    def resume(self) -> None:
        """Let a controller that is holding decide again; `fabric().warnings` says whether and why it is."""
        self._call(Iface.resume)

    def step_down(self) -> None:
        """Let another controller lead; light goes on. Raises `Rejected` ("no_standby") where there is none."""
        self._call(Iface.stepDown)

    def journal(self, after_sequence: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """Read the controller's journal."""
        return self._call(Iface.journal, after_sequence, limit)


class AsyncMethods(_Served, ABC):
    """The methods of `AsyncClient`."""

    @abstractmethod
    async def _call(self, method: Callable[[Iface, *Arguments], T], *arguments: *Arguments) -> T:
        """Call a method of the interface, and return what it answers."""

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        """Ask for a multicast and return at once."""
        return await self._call(Iface.submit, request)

    async def extend(self, key: str, extension: Extension) -> RequestStatus:
        """Change a request's members, time or size; refused whole or done whole."""
        return await self._call(Iface.extend, key, extension)

    async def finish(self, key: str, part: int = 0, report: TransferReport | None = None) -> RequestStatus:
        """Say that a part's transfer is over; its resources go back."""
        return await self._call(Iface.finish, key, part, report or TransferReport())

    async def withdraw(self, key: str) -> RequestStatus:
        """Give up a request, pending or active."""
        return await self._call(Iface.withdraw, key)

    async def status(self, key: str) -> RequestStatus:
        """Return one request's state."""
        return await self._call(Iface.status, key)

    async def list_requests(self, states: Sequence[int] = (), page: int = PAGE) -> AsyncIterator[RequestStatus]:
        """Iterate over all requests in order of arrival, or over those in the given states (`PartState`)."""
        cursor: str | None = ""
        while cursor is not None:
            answer = await self._call(Iface.listRequests, filter_of(states), page, cursor)
            for request in answer.requests:
                yield request
            cursor = answer.nextCursor

    async def explain(self, key: str) -> Explanation:
        """Say what blocks a request."""
        return await self._call(Iface.explain, key)

    async def fabric(self) -> FabricStatus:
        """Return racks, splitters, switches and light trees as the controller sees them."""
        return await self._call(Iface.fabric)

    async def version(self) -> Version:
        """Return the controller's version and the optional features it serves."""
        return await self._call(Iface.version)

    async def ping(self) -> None:
        """Ask for a sign of life."""
        await self._call(Iface.ping)

    async def drain(self, on: bool | None) -> DrainStatus:
        """Take no new requests, or take them again; None only asks."""
        return await self._call(Iface.drain, on)

    async def reconcile(self, dry_run: bool = True) -> ReconcileReport:
        """Compare what devices hold with what they should, and repair it unless `dry_run`."""
        return await self._call(Iface.reconcile, dry_run)

    async def verify_fabric(self) -> FiberReport:
        """Check the fibers against the config with probe frames."""
        return await self._call(Iface.verifyFabric)

    async def elements(self) -> list[ElementStatus]:
        """List every piece of hardware and its state."""
        return await self._call(Iface.elements)

    async def quarantine(self, element: str, reason: str) -> None:
        """Take an element out of use; what it serves now goes on."""
        await self._call(Iface.quarantine, element, reason)

    async def release_element(self, element: str) -> None:
        """Put an element back into use."""
        await self._call(Iface.releaseElement, element)

    async def resume(self) -> None:
        """Let a controller that is holding decide again; `fabric().warnings` says whether and why it is."""
        await self._call(Iface.resume)

    async def step_down(self) -> None:
        """Let another controller lead; light goes on. Raises `Rejected` ("no_standby") where there is none."""
        await self._call(Iface.stepDown)

    async def journal(self, after_sequence: int = 0, limit: int = PAGE) -> list[JournalEntry]:
        """Read the controller's journal."""
        return await self._call(Iface.journal, after_sequence, limit)
