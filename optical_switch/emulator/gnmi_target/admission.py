"""Which RPCs are served: logins in the metadata, injected faults, and the number of subscriptions."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from optical_switch.emulator.faults import Faults
from optical_switch.emulator.gnmi_target.refusals import RpcRefusalError, exhausted

MAX_SUBSCRIPTIONS = 16
"""Subscriptions at a time, unless a fault sets another number: a controller, its standby and some collectors."""

Metadata = Sequence[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class TargetLogin:
    """The user and password that each RPC must have in its metadata (gNMI 3.1)."""

    user: str
    password: str

    def check(self, metadata: Metadata) -> None:
        """Raise `RpcRefusalError` if the metadata do not have them."""
        given = {key: value.encode() if isinstance(value, str) else value for key, value in metadata}
        # Compares all in any case: the time must not show which part is right.
        is_right = [
            hmac.compare_digest(given.get(key, b""), value.encode())
            for key, value in (("username", self.user), ("password", self.password))
        ]
        if not all(is_right):
            text = "unknown user or wrong password: set username and password in the metadata of the call"
            raise RpcRefusalError(grpc.StatusCode.UNAUTHENTICATED, text)


class RpcAdmission:
    """Decides whether an RPC is served.

    Parameters
    ----------
    faults : Faults
        Injected faults.
    login : TargetLogin | None
        Login that is needed. None: none.
    """

    def __init__(self, faults: Faults, login: TargetLogin | None) -> None:
        self._faults = faults
        self._login = login
        self._subscriptions = 0

    async def admit(self, metadata: Metadata) -> None:
        """Return if the RPC is served; with the fault `silent` never.

        Raises
        ------
        RpcRefusalError
            UNAUTHENTICATED without the login; ABORTED with the fault `refuse_all`.
        """
        if self._faults.silent:
            await no_answer()
        if self._login is not None:
            self._login.check(metadata)
        if self._faults.refuse_all:
            raise RpcRefusalError(grpc.StatusCode.ABORTED, "refused by an injected fault")

    @contextmanager
    def subscription(self) -> Iterator[None]:
        """Count a subscription, which is what a session is here. Raises `RpcRefusalError` if there are too many."""
        limit = MAX_SUBSCRIPTIONS if self._faults.max_sessions is None else self._faults.max_sessions
        if self._subscriptions >= limit:
            raise exhausted(f"{self._subscriptions} of {limit} subscriptions are open: try again after one has ended")
        self._subscriptions += 1
        try:
            yield
        finally:
            self._subscriptions -= 1


async def no_answer() -> None:
    """Wait until the client gives up: gRPC cancels the call then."""
    await asyncio.get_running_loop().create_future()
