"""What may befall controllers, their etcd and the ways between: each fault begins, lasts, and is over."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.core_faults import phase_of
from tests.support.succession.clients import Histories, Operator
from tests.support.succession.controller import Controller
from tests.support.succession.room import Room

Heal = Callable[[], None]
Fault = Callable[[Room], Heal]
ANEW = 1.6
"""Seconds in which somebody else comes to lead."""


def victim(room: Room) -> Controller:
    """Mostly who leads."""
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
    room.jump(victim(room), room.dice.pick([-3600.0, 3600.0, -1.0, 1e6]))
    return lambda: None


def etcd_away(room: Room) -> Heal:
    members = room.members
    members.is_away = True

    def back() -> None:
        members.is_away = False
        room.etcd.elect()

    return back


def etcd_leader_change(room: Room) -> Heal:
    members = room.members
    members.has_no_leader = True

    def elected() -> None:
        members.has_no_leader = False
        room.etcd.elect()
        for one in room.controllers:
            if not one.to_etcd.is_cut:
                one.to_etcd.heal()

    return elected


def lost_answers(room: Room) -> Heal:
    one = victim(room)
    network = one.network
    if network is not None:
        network.loses_answers = True

    def heard() -> None:
        if network is not None:
            network.loses_answers = False

    return heard


def etcd_full(room: Room) -> Heal:
    """The alarm NOSPACE: leases go on, and nothing is written."""
    room.etcd.is_full = True

    def made_room() -> None:
        room.etcd.is_full = False

    return made_room


def slow_disk(room: Room) -> Heal:
    room.members.is_slow = True

    def quick() -> None:
        room.members.is_slow = False

    return quick


def late_writes(room: Room) -> Heal:
    """What is written to optical switches is on its way for long; who has written the first is mostly replaced then."""
    healing: list[Heal] = []

    def replace() -> None:
        room.on_late = lambda: None
        if not room.dice.rarely():
            remove = room.dice.pick([kill, pause, stand_down, cut_from_etcd])
            room.scheduler.after(room.dice.number(0, 300) / 1000, lambda: healing.append(remove(room)))

    room.late_writes, room.on_late = True, replace

    def in_time() -> None:
        room.late_writes, room.on_late = False, lambda: None
        # Whoever succeeds needs some time for that.
        room.scheduler.after(ANEW, lambda: [heal() for heal in healing])

    return in_time


def stand_down(room: Room) -> Heal:
    leading = room.leading
    if leading:
        Operator(room, Histories(room), leading[0], "standDown").start()
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
    stand_down,
)


def phases(room: Room) -> list[str]:
    """In what a fault meets the fabric: the phases of reservations, and whether anybody leads."""
    leading = room.leading
    if len(leading) != 1:
        return ["nobody leads"]
    daemon = leading[0].daemon
    assert daemon is not None
    return sorted({phase_of(r) for r in daemon.runtime.core.reservations}) or ["no light"]

