"""Light that goes back whatever happens, and requests that nobody waits for any more.

A request outlives the call that made it: given up half-way, by Ctrl-C or a cancelled task, it would get light later,
for nobody. So it is withdrawn, within a bounded time, and where that cannot be done it is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from blast_client.base_error import BlastError, WrongArgument
from blast_client.calls import ConnectionBroken
from blast_client.errors import (
    Denied,
    Ended,
    KeyReused,
    NotLeader,
    Rejected,
    UnknownRequest,
    Unsupported,
)
from blast_client.states import PartState

if TYPE_CHECKING:
    from blast_api.ttypes import Grant, MulticastRequest, RequestStatus
    from blast_client.aio import AsyncClient
    from blast_client.client import Client

SECONDS = 3.0
"""How long giving back may take; then the request is left to the controller, which ends it by lease or patience."""

NEVER_MADE = (Rejected, KeyReused, Unsupported, Denied, NotLeader, Ended, WrongArgument)
"""Answers after which there is nothing of the caller's to withdraw."""

_log = logging.getLogger(__name__)
_withdrawing = set[asyncio.Task[None]]()
"""Kept here while they run: a loop holds its tasks weakly."""


def name_of(request: MulticastRequest) -> str:
    """What a request is called in later calls."""
    return f"{request.tenant}/{request.key}" if request.tenant else str(request.key)


# ------------------------------------------------------------------------------------------------ synchronous


def abandon(client: Client, request: MulticastRequest, error: BaseException) -> None:
    """After `error` nobody waits for this request any more: withdraw it; where that fails it is told."""
    try:
        withdraw_abandoned(client, request)
    except BlastError as failure:
        _tell(request, error, failure)


def withdraw_abandoned(client: Client, request: MulticastRequest) -> None:
    """Withdraw a request within SECONDS, if it was asked for at all and is the one that has its key.

    Raises BlastError when that fails.
    """
    if client._asked:
        with client._hurrying(SECONDS), suppress(Ended, UnknownRequest):
            if _is_same(client.status(name_of(request)), request):
                client.withdraw(name_of(request))


def give_up(client: Client, request: MulticastRequest, error: BaseException) -> None:
    """Withdraw a request that had light, after `error`, which is told if that fails."""
    try:
        withdraw_soon(client, name_of(request))
    except BlastError as failure:
        _tell(request, error, failure)


def withdraw_soon(client: Client, name: str) -> None:
    """Withdraw a request within SECONDS, if it has not ended. Raises BlastError when that fails."""
    with client._hurrying(SECONDS), suppress(Ended, UnknownRequest):
        try:
            client.withdraw(name)
        except ConnectionBroken:
            # A connection that broke while it was not used shows that only now.
            client.withdraw(name)


class Granted:
    """The light of one request, for the length of a `with` block."""

    def __init__(self, client: Client, request: MulticastRequest, timeout: float) -> None:
        self._client, self._request, self._timeout = client, request, timeout
        self._part = 0

    def __enter__(self) -> Grant:
        try:
            grant = self._client.request(self._request, self._timeout)
        except NEVER_MADE:
            raise
        except Exception as error:
            # The call itself sees to what is no Exception.
            abandon(self._client, self._request, error)
            raise
        self._part = grant.part
        return grant

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            give_up(self._client, self._request, error)
            return
        try:
            status = self._finish()
        except Ended:
            raise
        except BaseException as failure:
            give_up(self._client, self._request, failure)
            raise
        if not PartState(status.state).final:
            # What other parts might still get, nobody would use.
            withdraw_soon(self._client, name_of(self._request))

    def _finish(self) -> RequestStatus:
        name = name_of(self._request)
        try:
            return self._client.finish(name, self._part)
        except ConnectionBroken:
            # To finish twice is the same as once.
            return self._client.finish(name, self._part)


# ---------------------------------------------------------------------------------------------------- asyncio


async def abandon_async(client: AsyncClient, request: MulticastRequest, error: BaseException) -> None:
    """As `abandon`."""

    async def withdraw() -> None:
        with suppress(Ended, UnknownRequest):
            if _is_same(await client.status(name_of(request)), request):
                await client.withdraw(name_of(request))

    await _to_the_end(_soon(withdraw()), request, error)


async def give_up_async(client: AsyncClient, request: MulticastRequest, error: BaseException) -> None:
    """As `give_up`."""
    await _to_the_end(withdraw_soon_async(client, name_of(request)), request, error)


async def withdraw_soon_async(client: AsyncClient, name: str) -> None:
    """As `withdraw_soon`."""

    async def withdraw() -> None:
        with suppress(Ended, UnknownRequest):
            try:
                await client.withdraw(name)
            except ConnectionBroken:
                # A connection that broke while it was not used shows that only now.
                await client.withdraw(name)

    await _soon(withdraw())


async def _soon(withdrawal: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            await withdrawal
    except TimeoutError:
        raise BlastError(f"no answer within {SECONDS:g} s") from None


async def _to_the_end(withdrawal: Awaitable[None], request: MulticastRequest, error: BaseException) -> None:
    """Not even a second cancellation stops a withdrawal; what fails is told with `error`."""

    async def telling() -> None:
        try:
            await withdrawal
        except BlastError as failure:
            _tell(request, error, failure)

    task = asyncio.create_task(telling())
    _withdrawing.add(task)
    task.add_done_callback(_withdrawing.discard)
    await asyncio.shield(task)


class AsyncGranted:
    """The light of one request, for the length of an `async with` block."""

    def __init__(self, client: AsyncClient, request: MulticastRequest, timeout: float) -> None:
        self._client, self._request, self._timeout = client, request, timeout
        self._part = 0

    async def __aenter__(self) -> Grant:
        try:
            grant = await self._client.request(self._request, self._timeout)
        except NEVER_MADE:
            raise
        except Exception as error:
            # The call itself sees to what is no Exception.
            await abandon_async(self._client, self._request, error)
            raise
        self._part = grant.part
        return grant

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await give_up_async(self._client, self._request, error)
            return
        try:
            status = await self._finish()
        except Ended:
            raise
        except BaseException as failure:
            await give_up_async(self._client, self._request, failure)
            raise
        if not PartState(status.state).final:
            # What other parts might still get, nobody would use.
            await withdraw_soon_async(self._client, name_of(self._request))

    async def _finish(self) -> RequestStatus:
        name = name_of(self._request)
        try:
            return await self._client.finish(name, self._part)
        except ConnectionBroken:
            # To finish twice is the same as once.
            return await self._client.finish(name, self._part)


# -------------------------------------------------------------------------------------------------------- both


def _is_same(status: RequestStatus, request: MulticastRequest) -> bool:
    """Whether a request is the caller's, and not somebody else's under the same key."""
    return bool(
        status.sender == request.sender
        and status.bytes == request.bytes
        and set(status.receivers) == set(request.receivers)
    )


def _tell(request: MulticastRequest, error: BaseException, failure: BlastError) -> None:
    sentence = (
        f"request {name_of(request)} could not be withdrawn and may get light that nobody uses, "
        f"until its lease is over: {failure}"
    )
    error.add_note(sentence)
    _log.warning("%s", sentence)
