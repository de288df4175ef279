"""Methods about the server and its fabric that have code of their own."""

from __future__ import annotations

import secrets
from concurrent.futures import Future
from importlib.metadata import version as version_of

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.events import AuditAsked, DrainAsked, ElementQuarantined, ElementReleased, VerifyAsked
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.wording import listed
from blast_controller.rpc import acting, convert, pages
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.desk import Desk
from blast_controller.rpc.fabric_reading import Freshness
from blast_controller.rpc.kinds import Announcement
from blast_controller.runtime.runtime import Turn

PROTOCOL = 1
LONGEST_READING = 30.0
LONGEST_PROBING = 3600.0
NONCE_BYTES = 32


def version(desk: Desk, connection: Connection) -> ttypes.Version:
    """What this server is and serves."""
    features = sorted({*desk.about.features, *desk.gate.policy.features})
    return ttypes.Version(version_of("blast-controller"), PROTOCOL, features, desk.about.openflow_framework)


def ping(desk: Desk, connection: Connection) -> None:
    """Answer."""


def login(desk: Desk, connection: Connection, token: str | None) -> None:
    """Take a token for who the client is. Whether it is served is up to the policy."""
    if "login" not in desk.gate.policy.features:
        raise ttypes.Unsupported(
            "login", "This server does not serve the feature 'login'; version() lists what it serves."
        )
    desk.gate.login(connection, token or "")


def fabric(desk: Desk, connection: Connection) -> ttypes.FabricStatus:
    """Racks, splitters, switches and light trees."""
    tenant = desk.gate.identity(connection).only_tenant
    look = desk.runtime.look()
    freshness = Freshness(convert.stale(look), look.sequence)
    return desk.fabric.read(look.snapshot, tenant, desk.condition.warnings(), freshness)


def elements(desk: Desk, connection: Connection) -> list[ttypes.ElementStatus]:
    """Every piece of hardware and who holds it."""
    desk.runtime.check_leads()
    return convert.elements(desk.runtime.snapshot)


def to_quarantine(element: str, reason: str) -> ElementQuarantined:
    """Take an element out of use."""
    return ElementQuarantined(ElementId(element), reason)


def to_release(element: str) -> ElementReleased:
    """Bring an element back."""
    return ElementReleased(ElementId(element))


def drain(desk: Desk, connection: Connection, on: bool | None) -> Future[ttypes.DrainStatus]:
    """Admit nothing new, or admit again; left out: only tell. What is active goes on."""

    def work(turn: Turn) -> ttypes.DrainStatus:
        if on is not None:
            asked = DrainAsked(on)
            turn.handle(asked)
            acting.tell(turn, desk.gate, connection, asked)
        return ttypes.DrainStatus(turn.core.draining, turn.core.active_count, turn.core.pending_count)

    return desk.do(connection, work)


def to_audit(dry_run: bool | None) -> AuditAsked:
    """Read every device that is there and repair what differs."""
    return AuditAsked(bool(dry_run))


def _unread(core: Core) -> Rejected:
    return Rejected(
        "device_disconnected",
        f"Not compared, because no answer came within {LONGEST_READING:g} s: {listed(core.audit_waits_for)}. "
        "What was found on the others, the journal tells (`blast journal show`).",
    )


AUDIT = Announcement(lambda core: core.audit_number, convert.reconcile_report, LONGEST_READING, _unread)
"""All devices were read."""


def to_verify() -> VerifyAsked:
    """Probe every free fiber."""
    return VerifyAsked(secrets.token_bytes(NONCE_BYTES))


def _unprobed(core: Core) -> Rejected:
    return Rejected("too_slow", "The fibers are still being probed; ask again for the same report.")


PROBES = Announcement(lambda core: core.fiber_topic, convert.fiber_report, LONGEST_PROBING, _unprobed)
"""All fibers were probed. Who asks while that goes on gets the same report."""


def resume(desk: Desk, connection: Connection) -> None:
    """Let a controller that is holding decide again."""
    desk.condition.resume()


def step_down(desk: Desk, connection: Connection) -> None:
    """Let another controller lead."""
    desk.runtime.check_leads()
    desk.condition.step_down()


def journal(
    desk: Desk, connection: Connection, after_sequence: int | None, limit: int | None
) -> list[ttypes.JournalEntry]:
    """What was written, oldest first."""
    if limit is None or not 1 <= limit <= pages.LARGEST_PAGE:
        raise ttypes.Denied(f"The limit must be between 1 and {pages.LARGEST_PAGE}.")
    return [ttypes.JournalEntry(*entry) for entry in desk.history(after_sequence or 0, limit)]
