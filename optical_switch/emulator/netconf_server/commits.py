"""Commits of the candidate configuration, confirmed commits among them (RFC 6241 sections 8.3 and 8.4)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from optical_switch.emulator.netconf_server.data.schema import Tree
from optical_switch.emulator.netconf_server.datastores import Datastore, DatastoreLocks
from optical_switch.emulator.netconf_server.device.polatis import PolatisDevice
from optical_switch.emulator.netconf_server.device.timers import RestartableTimer
from optical_switch.emulator.netconf_server.messages.rpc_errors import ErrorTag, ServerRpcError

log = logging.getLogger(__name__)

CONFIRM_SECONDS = 600
"""Seconds until an unconfirmed commit is reverted unless the request has another time: section 8.4.1."""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """The parameters of `commit`: `persist` outlives the session, `persist_id` continues such a commit."""

    confirmed: bool = False
    timeout: float = CONFIRM_SECONDS
    persist: str | None = None
    persist_id: str | None = None


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit that waits for its confirmation, and the configuration before it."""

    session: int
    persist: str | None
    before: Tree


class CommitControl:
    """Sets the running configuration to the candidate one.

    Callers hold `changing`, so that one operation of any session changes the configuration at a time.
    """

    def __init__(self, device: PolatisDevice, locks: DatastoreLocks) -> None:
        self.changing = asyncio.Lock()
        self.pending: PendingCommit | None = None
        self._device = device
        self._locks = locks
        self._timer = RestartableTimer(device.hardware.clock, self._expire)

    async def commit(self, session: int, request: CommitRequest) -> None:
        """Commit the candidate configuration. Raises `ServerRpcError`; then nothing has changed."""
        self._locks.check_changeable(session, Datastore.CANDIDATE, Datastore.RUNNING)
        self._check_continues(session, request.persist_id)
        before = self._device.running()
        await self._device.set_running(self._locks.candidate)
        self._locks.discard()
        if request.confirmed:
            # A further confirmed commit does not move the point to which a cancellation returns.
            before = before if self.pending is None else self.pending.before
            self.pending = PendingCommit(session, request.persist, before)
            self._timer.start(self._device.hardware.clock.now() + request.timeout)
        else:
            self.pending = None
            self._timer.stop()

    async def cancel(self, session: int, persist_id: str | None) -> None:
        """Revert a confirmed commit.

        Raises
        ------
        ServerRpcError
            If there is none, if it is of another client, or if the circuits before it cannot be set again.
        """
        if self.pending is None:
            raise ServerRpcError(ErrorTag.OPERATION_FAILED, "No confirmed commit is pending.", "protocol")
        self._locks.check_changeable(session, Datastore.RUNNING)
        self._check_continues(session, persist_id)
        await self._revert()

    async def end_session(self, session: int) -> None:
        """Revert a confirmed commit that must not outlive its session (section 8.4.1)."""
        if self.pending is not None and self.pending.persist is None and self.pending.session == session:
            await self._try_to_revert()

    async def restart(self) -> None:
        """Revert any confirmed commit, as the device does when it starts (section 8.4.1)."""
        if self.pending is not None:
            await self._try_to_revert()

    async def stop(self) -> None:
        """Stop the timer, and a revert that it has begun."""
        await self._timer.close()

    def _check_continues(self, session: int, persist_id: str | None) -> None:
        """Raise `ServerRpcError` unless a session may confirm, continue or cancel the pending commit."""
        pending = self.pending
        if persist_id is not None and (pending is None or pending.persist != persist_id):
            message = "No confirmed commit with this persist-id is pending."
            raise ServerRpcError(ErrorTag.INVALID_VALUE, message, "protocol", info={"bad-element": "persist-id"})
        if pending is not None and persist_id is None and (pending.persist is not None or pending.session != session):
            message = f"A confirmed commit of session {pending.session} is pending: wait until it is confirmed."
            raise ServerRpcError(ErrorTag.IN_USE, message, "protocol")

    async def _expire(self) -> None:
        async with self.changing:
            await self.restart()

    async def _revert(self) -> None:
        pending, self.pending = self.pending, None
        self._timer.stop()
        assert pending is not None
        await self._device.set_running(pending.before)

    async def _try_to_revert(self) -> None:
        try:
            await self._revert()
        except ServerRpcError as error:
            log.warning("the configuration before a confirmed commit cannot be restored: %s", error)
