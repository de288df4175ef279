"""The candidate configuration and the locks (RFC 6241 sections 7.5, 7.6 and 8.3); the device has `running`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from optical_switch.emulator.netconf_server.data.schema import Tree, copied
from optical_switch.emulator.netconf_server.messages.rpc_errors import ErrorTag, ServerRpcError

NO_SESSION = 0
"""The session id in a refused lock that no session has (appendix A of RFC 6241)."""


class Datastore(StrEnum):
    """A configuration of the device."""

    RUNNING = "running"
    CANDIDATE = "candidate"


class DatastoreLocks:
    """The candidate configuration, and which session has locked which configuration.

    Parameters
    ----------
    running : Callable[[], Tree]
        Function that returns a copy of the running configuration.
    """

    def __init__(self, running: Callable[[], Tree]) -> None:
        self._running = running
        self._candidate: Tree | None = None
        self._owners: dict[Datastore, int] = {}

    @property
    def candidate(self) -> Tree:
        """A copy of the candidate configuration. Without changes it is the running configuration."""
        return self._running() if self._candidate is None else copied(self._candidate)

    def change_candidate(self, tree: Tree) -> None:
        """Replace the candidate configuration."""
        self._candidate = tree

    def discard(self) -> None:
        """Set the candidate configuration to the running one."""
        self._candidate = None

    def lock(self, session: int, target: Datastore, committing: int | None) -> None:
        """Lock a configuration.

        Parameters
        ----------
        session : int
            The session that asks for the lock.
        target : Datastore
            The configuration.
        committing : int | None
            The session whose confirmed commit waits for its confirmation; None if there is none.

        Raises
        ------
        ServerRpcError
            If the conditions of section 7.5 do not hold.
        """
        if target in self._owners:
            owner = self._owners[target]
            raise _lock_denied(owner, f"Session {owner} has locked {target}.")
        if target is Datastore.CANDIDATE and self._candidate is not None:
            raise _lock_denied(NO_SESSION, "The candidate configuration has changes: commit or discard them first.")
        if target is Datastore.RUNNING and committing not in {None, session}:
            raise _lock_denied(committing or NO_SESSION, "A confirmed commit of another session is pending.")
        self._owners[target] = session

    def unlock(self, session: int, target: Datastore) -> None:
        """Unlock a configuration. Raises `ServerRpcError` if the session has not locked it."""
        if self._owners.get(target) != session:
            raise ServerRpcError(ErrorTag.OPERATION_FAILED, f"This session has not locked {target}.", "protocol")
        self._release(target)

    def check_changeable(self, session: int, *targets: Datastore) -> None:
        """Raise `ServerRpcError` if another session has locked one of these configurations."""
        for target in targets:
            if self._owners.get(target, session) != session:
                message = f"Session {self._owners[target]} has locked {target}: wait until it unlocks it."
                raise ServerRpcError(ErrorTag.IN_USE, message, "protocol")

    def end_session(self, session: int) -> None:
        """Release all locks of a session that has ended."""
        for target in [target for target, owner in self._owners.items() if owner == session]:
            self._release(target)

    def _release(self, target: Datastore) -> None:
        del self._owners[target]
        if target is Datastore.CANDIDATE:
            # Section 8.3.5.2: a client that fails must not leave its changes to the next one.
            self.discard()


def _lock_denied(owner: int, message: str) -> ServerRpcError:
    return ServerRpcError(ErrorTag.LOCK_DENIED, message, "protocol", info={"session-id": str(owner)})
