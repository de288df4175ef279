"""Records of operators' actions with their identity: events after the action itself, for the journal's history."""

from __future__ import annotations

from functools import singledispatch

from blast_controller.core.model.events import (
    AuditRequested,
    DrainRequested,
    ElementQuarantined,
    ElementReleased,
    OperatorActed,
    WithdrawRequested,
)
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.connections.connection import Connection
from blast_controller.runtime.runtime import CoreContext

TOKEN_CHARACTERS = 8
"""Of a token's digest, in hexadecimal: enough to find its line in the token file."""
LONGEST_REASON = 500
"""Characters in a row of the journal; the reason comes from a client."""


def record(context: CoreContext, gate: Gate, connection: Connection, event: object) -> None:
    """Record an accepted event if it is an action of an operator."""
    did = deed(event)
    if did is not None:
        context.take(OperatorActed(describe_peer(gate, connection), did))


def describe_peer(gate: Gate, connection: Connection) -> str:
    """Describe the peer and its credential. Raises Denied."""
    identity = gate.identity(connection)
    if connection.token is not None:
        return f"{identity}, token sha256:{connection.token.hex()[:TOKEN_CHARACTERS]}, from {connection.peer}"
    if connection.names:
        names = ", ".join(f"{kind} {value}" for kind, value in sorted(connection.names))
        return f"{identity}, certificate of {names}, from {connection.peer}"
    return f"{identity}, not proved, from {connection.peer}"


@singledispatch
def deed(event: object) -> str | None:
    """Describe an operator's action; None for an event that changes nothing."""
    return None


@deed.register
def _(event: ElementQuarantined) -> str:
    return f"quarantine {event.element}: {event.reason[:LONGEST_REASON]}"


@deed.register
def _(event: ElementReleased) -> str:
    return f"release {event.element}"


@deed.register
def _(event: DrainRequested) -> str:
    return "drain: admit nothing new" if event.on else "drain over: admit again"


@deed.register
def _(event: AuditRequested) -> str | None:
    return None if event.dry_run else "reconcile"


@deed.register
def _(event: WithdrawRequested) -> str:
    return f"withdraw {'/'.join(event.request)}"
