"""Faults of controllers, their etcd and the networks between: each fault begins, lasts, and ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from blast_api.ttypes import Rejected
from tests.support.controller.core_faults import phase_of
from tests.support.controller.modeled_etcd import UnansweredError
from tests.support.succession.clients import NOT_LEADING, Client, Histories
from tests.support.succession.room import Controller, Room

Heal = Callable[[], None]
Fault = Callable[[Room], Heal]
TAKEOVER_SECONDS = 1.6
"""Seconds in which another controller becomes leader."""


def victim(room: Room) -> Controller:
    """Return a controller, usually the leader."""
    leading = room.leading
    return room.dice.pick(leading) if leading and not room.dice.rarely() else room.dice.pick(room.controllers)


def kill(room: Room) -> Heal:
    one = victim(room)
    one.end()
    return lambda: one.start() if one.process is None or one.process.ended else None


def pause(room: Room) -> Heal:
    one = victim(room)
    process = one.process
    if process is not None and not process.ended:
        room.scheduler.pause(process)

    def wake() -> None:
        if process is not None and not process.ended:
            room.scheduler.go_on(process)

    return wake


def cut_from_etcd(room: Room) -> Heal:
    one = victim(room)
    one.to_etcd.cut()
    return one.to_etcd.heal


def cut_from_devices(room: Room) -> Heal:
    one = victim(room)
    one.to_devices.cut()
    return one.to_devices.heal


def clock_jump(room: Room) -> Heal:
    victim(room).jump(room.dice.pick([-3600.0, 3600.0, -1.0, 1e6]))
    return lambda: None


def etcd_away(room: Room) -> Heal:
    heal = _set(room.members, "is_away")

    def back() -> None:
        heal()
        room.etcd.elect()

    return back


def etcd_leader_change(room: Room) -> Heal:
    heal = _set(room.members, "has_no_leader")

    def elected() -> None:
        heal()
        room.etcd.elect()
        for one in room.controllers:
            if not one.to_etcd.is_cut:
                one.to_etcd.heal()

    return elected


def lost_answers(room: Room) -> Heal:
    network = victim(room).network
    return _set(network, "loses_answers") if network is not None else lambda: None


def etcd_full(room: Room) -> Heal:
    """Raise the alarm NOSPACE: leases continue, and writes fail."""
    return _set(room.etcd, "is_full")


def slow_disk(room: Room) -> Heal:
    return _set(room.members, "is_slow")


def _set(owner: object, flag: str) -> Heal:
    setattr(owner, flag, True)
    return lambda: setattr(owner, flag, False)


def late_writes(room: Room) -> Heal:
    """Delay writes to optical switches; usually another controller has replaced the writer on arrival."""
    healing: list[Heal] = []

    def replace() -> None:
        room.on_late = lambda: None
        if not room.dice.rarely():
            remove = room.dice.pick([kill, pause, step_down, cut_from_etcd])
            room.scheduler.after(room.dice.number(0, 300) / 1000, lambda: healing.append(remove(room)))

    room.late_writes, room.on_late = True, replace

    def in_time() -> None:
        room.late_writes, room.on_late = False, lambda: None
        # The next leader needs some time for that.
        room.scheduler.after(TAKEOVER_SECONDS, lambda: [heal() for heal in healing])

    return in_time


def step_down(room: Room) -> Heal:
    """Let an operator ask the leader to step down, once."""
    leading = room.leading
    if leading:
        operator = Client(room, Histories(room), "operator")

        def ask() -> None:
            with suppress(UnansweredError, *NOT_LEADING, Rejected):
                operator.ask(leading[0], "stepDown")

        operator.start(ask)
    return lambda: None


FAULTS: tuple[Fault, ...] = (
    kill,
    pause,
    cut_from_etcd,
    cut_from_devices,
    clock_jump,
    etcd_away,
    etcd_leader_change,
    lost_answers,
    etcd_full,
    slow_disk,
    late_writes,
    step_down,
)


def phases(room: Room) -> list[str]:
    """Return the phases of the fabric that a fault meets: those of reservations, and whether there is a leader."""
    leading = room.leading
    if len(leading) != 1:
        return ["no leader"]
    daemon = leading[0].daemon
    assert daemon is not None
    return sorted({phase_of(r) for r in daemon.runtime.core.reservations}) or ["no light"]
