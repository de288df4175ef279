"""The check of the fibers among requests, lost devices and crashes: no circuit is doubled, left or misreported."""

import json
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blast_controller.core.fiber_check import FiberReport
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import AuditRequested, FinishRequested, RequestSubmitted, VerifyRequested
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.core_light import NONCE, FiberWorld

RACKS = 5
ACTIONS = ("verify", "request", "finish", "audit", "work", "work", "deliver", "settle", "tick", "lose", "back", "crash")


class Driver:
    """A driver that applies actions to a world and checks it after each one."""

    def __init__(self) -> None:
        self.world = FiberWorld(make_fabric(RACKS, (4,)), CoreSettings(lease_minimum=1e6))
        self.world.connect_all()
        self.world.after_operation = self.look
        self.keys = 0

    def do(self, action: str, number: int) -> None:
        world = self.world
        match action:
            case "verify":
                world.handle(VerifyRequested(NONCE))
            case "request":
                self.keys += 1
                sender, *others = [f"r{(number + n) % RACKS + 1}h1" for n in range(2 + number % 3)]
                self.attempt(RequestSubmitted(multicast(str(self.keys), sender, others)))
            case "finish" if self.keys:
                self.attempt(FinishRequested(key_of(str(number % self.keys + 1)), 0))
            case "audit":
                self.attempt(AuditRequested(dry_run=bool(number % 2)))
            case "work":
                world.work_once()
            case "deliver":
                world.deliver(1 + number % 3)
            case "settle":
                world.settle()
            case "tick":
                # Time passes only when no event is left, since a late device counts as disconnected.
                world.settle()
                if world.core.next_timer() is not None and world.core.next_timer() < 1e5:
                    world.tick()
            case "lose" | "back":
                self.change_session(world.devices[number % len(world.devices)], action, forgets=number % 7 == 0)
            case "crash":
                world.restart()
        self.look()

    def change_session(self, name: Device, action: str, forgets: bool) -> None:
        up = self.world.device(name).up
        if up and action == "lose":
            self.world.lose(name)
        elif not up and action == "back":
            self.world.come_back(name, forgets=lambda item: forgets)

    def attempt(self, event: object) -> None:
        with suppress(RequestError):
            self.world.handle(event)

    def look(self) -> None:
        world = self.world
        rows = {(kind, key): json.loads(text) for (kind, key), text in world.store._state.items()}
        allowed = {
            CrossConnect(key, *pair)
            for (kind, key), body in rows.items()
            if kind == "probe"
            for pair in body["circuits"]
        }
        allowed |= {c for r in world.core.reservations for layout in r.layouts for c in layout.circuits}
        assert {c for switch in world.switches.values() for c in switch.held} <= allowed
        mine = {e for e, holder in world.core.view.holders.items() if holder == 0}
        theirs = {e for reservation in world.core.reservations for e in reservation.elements}
        assert not mine & theirs
        assert world.core.view.occupied.get("ocs1", {}) == {}, "our own circuits are taken for foreign ones"
        for report in world.announced.values():
            if isinstance(report, FiberReport):
                assert report.faults == (), "a right fiber is called wrong"

    def come_to_rest(self) -> None:
        world = self.world
        world.connect_all()
        world.settle()
        while (due := world.core.next_timer()) is not None and due < 1e5:
            world.tick()
            world.settle()
        self.look()
        assert 0 not in world.core.view.holders.values()
        assert not [key for kind, key in world.store._state if kind == "probe"]
        lit = {c for r in world.core.reservations for c in r.layout.circuits}
        assert {c for switch in world.switches.values() for c in switch.held} == lit


STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 41)), min_size=5, max_size=60)


@given(STEPS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_fiber_check_survives_concurrent_events(steps):
    driver = Driver()
    driver.do("verify", 0)
    for action, number in steps:
        driver.do(action, number)
    driver.come_to_rest()
