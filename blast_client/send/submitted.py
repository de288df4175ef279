"""A context manager that withdraws a request if its block is cancelled or fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from thrift.Thrift import TException

from blast_api.ttypes import MulticastRequest, RequestStatus
from blast_client.api.calls import ControllerUnreachableError

_SECONDS = 1.0
"""Limit of the withdrawal; after it the request ends with its pending timeout or its lease."""


class Withdrawing(Protocol):
    """The methods of `AsyncClient` that are needed."""

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        """Submit a request."""

    async def withdraw(self, key: str) -> RequestStatus:
        """Withdraw a request."""


class Submitted:
    """A submitted request for the time of a block; it is withdrawn if the block is cancelled or fails.

    Entering returns the result of `submit`, or raises its exceptions.
    """

    def __init__(self, controller: Withdrawing, request: MulticastRequest) -> None:
        self._controller, self._request = controller, request

    async def __aenter__(self) -> RequestStatus:
        try:
            return await self._controller.submit(self._request)
        except asyncio.CancelledError:
            # The controller may have received the request. After a rejection there is no request to withdraw.
            await self._withdraw()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            await self._withdraw()

    async def _withdraw(self) -> None:
        with suppress(TException, ControllerUnreachableError, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._controller.withdraw(self._request.key)
