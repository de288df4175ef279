"""Looking at a whole core, or at what it and its devices have come to."""

from __future__ import annotations

from collections.abc import Sequence

from blast_controller.core.admission import group_of
from blast_controller.core.auditor import AuditReport
from blast_controller.core.controller import Core
from blast_controller.core.events import AuditAsked
from blast_controller.core.layout import everything
from blast_controller.core.light_tree import LightTree
from blast_controller.core.part_states import PartState
from blast_controller.core.requests import EventKind, Part, Request, RequestEvent
from blast_controller.core.reservation_states import ReservationState
from tests.support.core import World


def image(core: Core) -> str:
    """All that an event may change."""
    auditor, ledger = core._auditor, core.ledger
    return repr(
        (
            core.requests,
            core._reservations.live,
            core._reservations.last_id,
            # The order in which a journal is read is no difference.
            sorted(ledger.holder.items()),
            sorted(ledger._addresses),
            ledger.next_group,
            sorted(ledger.quarantined.items()),
            (ledger.occupied, ledger.without_link, ledger.away),
            core._book.pending.keys(),
            core._timers,
            core.draining,
            (auditor.number, auditor._round),
        )
    )


def check_history(request: Request) -> None:
    """Granted, changed, revoked, granted again, … and in the end ended."""
    assert [e.sequence for e in request.events] == list(range(request.told - len(request.events) + 1, request.told + 1))
    if len(request.events) == request.told:
        for part in request.parts:
            check_part_history(part, [e for e in request.events if e.part == part.index])


def check_part_history(part: Part, events: Sequence[RequestEvent]) -> None:
    """Granted, and paused or revoked before it is granted again, and ended last if at all."""
    ends = [e for e in events if e.kind is EventKind.ENDED]
    assert ends == (list(events[-1:]) if part.state.final else [])
    granted = False
    for event in events:
        match event.kind:
            case EventKind.GRANTED:
                assert not granted, f"part {part.index} was granted twice"
                granted = True
            case EventKind.REVOKED | EventKind.PAUSED:
                assert granted
                granted = False
    assert part.state.final or granted == (part.state is PartState.ACTIVE)


def check_desired(world: World) -> None:
    """Devices hold what is wanted of them, no less and, but for what is foreign, no more."""
    live = list(world.core.reservations)
    at_rest = (ReservationState.LIT, ReservationState.IDLE)
    assert all(r.state in at_rest and not r.at_work for r in live), live
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
    allowance = core._state.splitter_limits.left(world.now)
    addresses = core.settings.group_network.num_addresses - 2
    for request, part in core._book.pending.values():
        if core._state.allocator.absent_datapaths(request.current, part.receivers):
            continue
        if len(core.ledger._addresses) >= addresses:
            continue
        if allowance.get(request.current.tenant, 0) >= 0:
            assert core._state.allocator.static_for(request.current, part.receivers) is None, f"{part} waits needlessly"
        if core._state.dispatcher.kept_free_for not in (None, (request.current.id, part.slot)):
            continue
        if world.fabric.optics.passes:
            most = allowance.get(request.current.tenant)
            found = core._state.allocator.tree_of_any(request.current, part.receivers, most)
            assert not isinstance(found, LightTree), f"{part} waits needlessly"
            continue
        group = group_of(request.current, part.receivers, world.fabric, core.settings.loop_leaf)
        assert group is not None and core.ledger.residual(allowance).fit(group) is None, f"{part} waits needlessly"
