"""Looking at a whole core, or at what it and its devices have come to."""

from __future__ import annotations

from blast_controller.core.admission import group_of
from blast_controller.core.auditor import AuditReport
from blast_controller.core.controller import Core
from blast_controller.core.events import AuditAsked
from blast_controller.core.layout import everything
from blast_controller.core.part_states import PartState
from blast_controller.core.requests import EventKind, Request
from blast_controller.core.reservation_states import ReservationState
from tests.support.core import World


def image(core: Core) -> str:
    """All that an event may change."""
    auditor = core._auditor
    return repr(
        (
            core.requests,
            core._reservations.live,
            core._reservations.last_id,
            core.ledger.__dict__,
            core._book.pending.keys(),
            core._timers,
            core._book.decision_due,
            core.draining,
            (auditor.number, auditor._round),
        )
    )


def check_history(request: Request) -> None:
    """Granted, changed, revoked, granted again, … and in the end ended."""
    assert [e.sequence for e in request.events] == list(range(1, len(request.events) + 1))
    ends = [e for e in request.events if e.kind is EventKind.ENDED]
    assert ends == ([request.events[-1]] if request.state.final else [])
    granted = False
    for event in request.events:
        match event.kind:
            case EventKind.GRANTED:
                assert not granted, f"{request.current.id} was granted twice"
                granted = True
            case EventKind.REVOKED:
                assert granted
                granted = False
    assert request.state.final or granted == (request.state is PartState.ACTIVE)


def check_desired(world: World) -> None:
    """Devices hold what is wanted of them, no less and, but for what is foreign, no more."""
    live = list(world.core.reservations)
    assert all(r.state is ReservationState.LIT and not r.busy for r in live), live
    wanted = everything(r.wanted for r in live)
    for switch in world.switches.values():
        assert switch.held - switch.foreign == {c for c in wanted.circuits if c.switch == switch.name}
    for tor in world.tors.values():
        rules = {(r.id, f) for r in live for f in r.wanted.forwards.get(tor.datapath, ())}
        assert tor.held == rules, (tor.held, rules)


def audited(world: World, dry_run: bool) -> AuditReport:
    """The report of a whole audit without further faults."""
    world.handle(AuditAsked(dry_run))
    number = world.core.audit_number
    world.settle()
    report = world.announced[number]
    assert isinstance(report, AuditReport)
    return report


def check_nobody_waits_needlessly(world: World) -> None:
    """When all is quiet, no part waits although it could have light."""
    core = world.core
    allowance = core._allowance(world.now)
    addresses = core.settings.group_network.num_addresses - 2
    for request, part in core._book.pending.values():
        if core._state.allocator._absent_datapaths(request.current, part.receivers):
            continue
        if len(core.ledger._addresses) >= addresses:
            continue
        group = group_of(request.current, part.receivers, world.fabric, core.settings.loop_leaf)
        assert group is not None and core.ledger.residual(allowance).fit(group) is None, f"{part} waits needlessly"
