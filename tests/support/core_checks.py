"""Looking at a whole core, or at what it and its devices have come to."""

from __future__ import annotations

from collections.abc import Sequence

from blast_controller.core.auditor import AuditReport
from blast_controller.core.controller import Core
from blast_controller.core.light.layout import everything
from blast_controller.core.model.events import AuditAsked
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Part, Request, RequestEvent
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.core import World
from tests.support.core_free import Free


def image(core: Core) -> str:
    """All that can be seen of a core, and that an event may change."""
    view = core.view
    return repr(
        (
            core.requests,
            list(core.reservations),
            # The order in which a journal is read is no difference.
            *map(sorted, (view.holders.items(), view.group_addresses, view.quarantined.items(), view.leases_over)),
            (dict(view.occupied), dict(view.without_link), dict(view.away)),
            (view.waiting, view.kept_free_for, core.draining, core.settings),
            # To ask for the next deadline makes the core forget those that no longer count.
            (core.next_timer(), view.deadlines),
            (view.is_auditing, core.audit_number, core.audit_waits_for),
            (view.fibre_check, view.is_checking_fibres, core.fibre_topic, sorted(view.probe_circuits.items())),
            (view.warm_counts, sorted(view.trusted), view.alone_since),
            *(sorted(item for item in counts.items() if item[1]) for counts in (view.idle, view.dark)),
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
    requests = world.core.requests.values()
    waiting = [(request, part) for request in requests for part in request.parts if part.state is PartState.PENDING]
    if not waiting:
        return
    free, kept_free_for = Free(world), world.core.view.kept_free_for
    for request, part in waiting:
        group = free.group(request.current, part.receivers)
        assert not free.could_be_served_aside(group), f"{part} waits needlessly"
        if kept_free_for in (None, (request.current.id, part.slot)):
            assert not free.could_have_a_tree(group), f"{part} waits needlessly"
