"""Whoever stops in the middle leaves no request behind that is lit for nobody."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from thrift.Thrift import TException

from blast_api.ttypes import MulticastRequest, RequestStatus
from blast_client.calls import ControllerUnreachable

_SECONDS = 1.0
"""A controller that takes longer ends the request with its patience or its lease."""


class Withdrawing(Protocol):
    """What is needed of a client."""

    async def submit(self, request: MulticastRequest) -> RequestStatus:
        """As `AsyncClient.submit`."""

    async def withdraw(self, key: str) -> RequestStatus:
        """As `AsyncClient.withdraw`."""


class Submitted:
    """A request for as long as the block goes on; it is withdrawn if that is cancelled or fails.

    What was raised goes on. Entering raises what `submit` does, and gives what it gives.
    """

    def __init__(self, controller: Withdrawing, request: MulticastRequest) -> None:
        self._controller, self._request = controller, request

    async def __aenter__(self) -> RequestStatus:
        try:
            return await self._controller.submit(self._request)
        except asyncio.CancelledError:
            # It may have been heard; what was refused is not ours to withdraw.
            await self._withdraw()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            await self._withdraw()

    async def _withdraw(self) -> None:
        with suppress(TException, ControllerUnreachable, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._controller.withdraw(self._request.key)
