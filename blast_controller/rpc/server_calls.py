"""Methods about the server and its fabric that have code of their own."""

from __future__ import annotations

import secrets
from concurrent.futures import Future
from importlib.metadata import version as version_of

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    AuditRequested,
    DrainRequested,
    ElementQuarantined,
    ElementReleased,
    VerifyRequested,
)
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.wording import listed
from blast_controller.rpc import acting, convert, pages
from blast_controller.rpc.call_context import Services
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.fabric_reading import AnswerFreshness
from blast_controller.rpc.kinds import Announcement
from blast_controller.runtime.runtime import CoreContext

PROTOCOL = 1
"""Incremented only for an incompatible change: `features` announce all others."""
LONGEST_READING = 30.0
"""Seconds for reading the tables of all devices."""
LONGEST_PROBING = 3600.0
"""Seconds for a check of all free fibers of a large fabric."""
NONCE_BYTES = 32
"""Unpredictable payload: no host can forge a probe."""


def version(services: Services, connection: Connection) -> ttypes.Version:
    """Return the release and the features of this server."""
    features = sorted({*services.about.features, *services.gate.policy.features})
    return ttypes.Version(version_of("blast-controller"), PROTOCOL, features, services.about.openflow_framework)


def ping(services: Services, connection: Connection) -> None:
    """Answer."""


def login(services: Services, connection: Connection, token: str | None) -> None:
    """Log a client in with a token. The access policy determines whether this is supported."""
    if "login" not in services.gate.policy.features:
        raise ttypes.Unsupported("login", "This server does not support login; version() lists its features.")
    services.gate.login(connection, token or "")


def fabric(services: Services, connection: Connection) -> ttypes.FabricStatus:
    """Return racks, splitters, switches and light trees."""
    tenant = services.gate.identity(connection).only_tenant
    look = services.runtime.look()
    freshness = AnswerFreshness(convert.stale(look), look.sequence)
    return services.fabric.read(look.snapshot, tenant, services.condition.warnings(), freshness)


def elements(services: Services, connection: Connection) -> list[ttypes.ElementStatus]:
    """Return every piece of hardware with its holder."""
    services.runtime.check_leader()
    return convert.elements(services.runtime.snapshot)


def to_quarantine(element: str, reason: str) -> ElementQuarantined:
    """Take an element out of use."""
    return ElementQuarantined(ElementId(element), reason)


def to_release(element: str) -> ElementReleased:
    """Bring an element back."""
    return ElementReleased(ElementId(element))


def drain(services: Services, connection: Connection, on: bool | None) -> Future[ttypes.DrainStatus]:
    """Start or end draining; without an argument, report the state. Active requests continue."""

    def work(context: CoreContext) -> ttypes.DrainStatus:
        if on is not None:
            asked = DrainRequested(on)
            context.handle(asked)
            acting.record(context, services.gate, connection, asked)
        return ttypes.DrainStatus(context.core.draining, context.core.active_count, context.core.pending_count)

    return services.do(connection, work)


def to_audit(dry_run: bool | None) -> AuditRequested:
    """Read every device that is there and repair what differs."""
    return AuditRequested(bool(dry_run))


def _unread(core: Core) -> RejectedError:
    return RejectedError(
        "device_disconnected",
        f"No answer within {LONGEST_READING:g} s from: {listed(core.audit_waits_for)}. The journal has the result "
        "for the other devices (`blast journal show`).",
    )


AUDIT = Announcement(lambda core: core.audit_number, convert.reconcile_report, LONGEST_READING, _unread)
"""All devices were read."""


def to_verify() -> VerifyRequested:
    """Probe every free fiber."""
    return VerifyRequested(secrets.token_bytes(NONCE_BYTES))


def _unprobed(core: Core) -> RejectedError:
    return RejectedError("too_slow", "The fiber probe is still running; repeat the call for its report.")


PROBES = Announcement(lambda core: core.fiber_topic, convert.fiber_report, LONGEST_PROBING, _unprobed)
"""All fibers were probed. Callers during a probe get the same report."""


def resume(services: Services, connection: Connection) -> None:
    """End safe mode."""
    services.condition.resume()


def step_down(services: Services, connection: Connection) -> None:
    """Let another controller lead."""
    services.runtime.check_leader()
    services.condition.step_down()


def journal(
    services: Services, connection: Connection, after_sequence: int | None, limit: int | None
) -> list[ttypes.JournalEntry]:
    """Return entries of the journal, oldest first."""
    if limit is None or not 1 <= limit <= pages.LARGEST_PAGE:
        raise ttypes.Denied(f"The limit must be between 1 and {pages.LARGEST_PAGE}.")
    return [ttypes.JournalEntry(*entry) for entry in services.history(after_sequence or 0, limit)]
