"""The invariants I1 to I13 that hold after every step of the machine, each a method with its number.

The oracles look at the devices, the journal and the messages to clients first, and only then at the core.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from copy import deepcopy
from functools import lru_cache
from typing import Any

from blast_controller.core.controller import Core
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.journal.bodies import event_body, request_body, request_key, reservation_body
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.commands import CircuitChange, Forward, ForwardingChange, SetCircuits, SetForwarding
from blast_controller.core.model.fabric import CrossConnect, Fabric, Host, OpticalPort
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import MulticastRequest, Part, Request, RequestEvent, RequestKey
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.snapshot.changes import EVERYTHING, Changes
from blast_controller.history.encoder import Encoder, all_rows
from blast_controller.history.moment import Moment
from blast_controller.rpc.fabric_reading import FabricReading
from blast_controller.store.rows import encode
from tests.support.controller.core import World, reached_by
from tests.support.controller.core_checks import (
    audited,
    check_desired,
    check_history,
    check_no_part_waits_needlessly,
    check_reserve,
    image,
    splitters_of,
)
from tests.support.controller.core_light import LightWorld
from tests.support.controller.core_power import is_lit_well
from tests.support.controller.fake_devices import FakeSwitch, FakeTor
from tests.support.controller.journal import Journal
from tests.support.controller.published import rebuilt_snapshot

ENDED = (PartState.DONE, PartState.WITHDRAWN, PartState.EXPIRED, PartState.FAILED)
HELD = (ReservationState.LIT, ReservationState.CHANGING)
Rule = tuple[int, Forward]


class Invariants:
    """The world, and an observer's record of it.

    `harmed` are the devices that have lost a part of a reservation by themselves, `unprocessed` counts the
    reconnections of a device that the core has not processed, `silent` are the devices that were changed behind the
    core's back, `stale` are the rules that a ToR has restored from its past, and `disturbed` is every share that was
    changed since it was last known to be right. `submitted` are the requests of `submit`.
    """

    world: LightWorld

    def __init__(self) -> None:
        self.contents: dict[RequestKey, MulticastRequest] = {}
        self.accepted: set[RequestKey] = set()
        self.submitted: set[RequestKey] = set()
        self.published: dict[RequestKey, dict[int, RequestEvent]] = {}
        self.leases: dict[RequestKey, float] = {}
        self.ended_at: dict[RequestKey, float] = {}
        self.ticked_at = float("-inf")
        self.parts = 0
        self.reading = FabricReading()
        self.encoder = Encoder()
        self.encoded: Core | None = None
        self.harmed: dict[int, set[Device]] = {}
        self.unprocessed: Counter[Device] = Counter()
        self.silent: set[Device] = set()
        self.stale: dict[Device, frozenset[Rule]] = {}
        self.disturbed: set[tuple[int, Device]] = set()
        self.meaning: dict[int, tuple[Any, ...]] = {}
        self.released: set[int] = set()
        self.splitters: Counter[str] = Counter()
        self._converged: set[int] = set()

    @property
    def core(self) -> Core:
        return self.world.core

    def check(self) -> None:
        """Check all invariants."""
        self.adopt_journaled_circuits()
        if self.world.quiet and self.world.running:
            self.forget_settled_disturbances()
        self.i1_one_holder()
        self.i2_marks_are_journaled()
        self.i4_one_end()
        self.i5_answers_stay()
        self.i6_granted_groups_are_served()
        self.i7_foreign_untouched()
        self.i8_journal_is_the_state()
        self.i9_bounded()
        self.decisions_are_bounded()
        self.readings_are_whole()
        self.i10_fenced()
        self.i11_leaves_get_their_light()
        self.indexes_are_whole()
        self.i12_the_reserve_is_dark()
        self.i13_view_matches_devices()
        self.i3_converges()

    def adopt_journaled_circuits(self) -> None:
        """Count foreign circuits between the ports of journaled ones as journaled, because switches store no owners."""
        ours = self.journal.circuits()
        for switch in self.world.switches.values():
            switch.foreign -= ours

    # --------------------------------------------------------------------------------------------- looking

    @property
    def journal(self) -> Journal:
        return Journal(self.world.store, self.world.fabric)

    def reservations(self) -> list[Reservation]:
        """Return the reservations of the core while it runs, otherwise of the journal."""
        return list(self.core.reservations) if self.world.running else self.journal.reservations()

    def is_synchronized(self, name: Device) -> bool:
        return self.world.device(name).up and not self.unprocessed[name] and name not in self.silent

    def holds_all(self, reservation: Reservation, name: Device) -> bool:
        share = reservation.intended.on(name)
        device = self.world.device(name)
        if isinstance(device, FakeSwitch):
            return set(share.circuits) <= device.held - device.foreign
        return all(device.rules.get(f.key) == (f.outputs, reservation.id) for x in share.forwards.values() for f in x)

    def is_harmed(self, reservation: Reservation) -> bool:
        """Return True if it may be broken until the core has processed a device's events and repaired it."""
        for name in list(self.harmed.get(reservation.id, ())):
            if self.holds_all(reservation, name) or (self.is_synchronized(name) and not reservation.busy):
                self.harmed[reservation.id].remove(name)
        return bool(self.harmed.get(reservation.id)) or any(
            f.group == reservation.group_address for rules in self.stale.values() for _, f in rules
        )

    def forget_settled_disturbances(self) -> None:
        """Forget disturbances of shares that have no pending work, for a quiet world."""
        live = {reservation.id: reservation for reservation in self.core.reservations}
        self.disturbed = {
            (number, name)
            for number, name in self.disturbed
            if number in live and (live[number].busy or not self.is_synchronized(name))
        }

    # ------------------------------------------------------------------------------------------ invariants

    def decisions_are_bounded(self) -> None:
        """Check that a part is tried once as it is, and once more after its lease if it does not continue."""
        if self.world.running:
            before, self.parts = self.parts, sum(len(request.parts) for request in self.core.requests.values())
            assert self.core.view.tried <= 2 * max(before, self.parts), "a decision went on and on"

    def readings_are_whole(self) -> None:
        """Check that the incrementally updated view of the fabric equals one that is built from scratch."""
        if self.world.running:
            shown = self.core.snapshot
            assert self.reading.read(shown, None) == FabricReading().read(shown, None)
            assert shown == rebuilt_snapshot(self.core), "a change is missing in the snapshot"
            self.encoder.encode(Moment(shown, self.world.now, self.world.now, self._changes()))
            assert self.encoder.rows == all_rows(shown), "something has changed that is not named as changed"

    def indexes_are_whole(self) -> None:
        """Check that no reservation is missing where it is looked for by device or by request."""
        if not self.world.running:
            return
        known = self.core._reservations
        for reservation in self.core.reservations:
            leaves = (leaf for x in reservation.layouts if x.tree is not None for leaf in x.tree.leaves)
            devices = {*reservation.provisioned.devices, *reservation.rollout.targets}
            devices |= {self.world.fabric.racks[leaf.port.rack].datapath for leaf in leaves}
            assert all(reservation in known.on(device) for device in devices)
        # An idle reservation may outlive its request.
        served = {r.request for r in self.core.reservations}
        assert all(map(known.has_hardware, served))
        assert served.issuperset(filter(known.has_hardware, self.core.requests))
        released = (r.id for r in self.core.reservations if r.state is ReservationState.RELEASING)
        assert known.releasing.keys() == set(released)

    def _changes(self) -> Changes:
        changes = self.core.take_changes()
        if self.encoded is self.core:
            return changes
        self.encoded = self.core
        return EVERYTHING

    def i1_one_holder(self) -> None:
        """Check that no splitter and no port is in two live reservations, in the journal or in the core."""
        found = self.journal.reservations()
        holders = Counter(element for reservation in found for element in reservation.elements)
        assert all(count == 1 for count in holders.values()), holders
        addresses = [reservation.group_address for reservation in found]
        assert len(addresses) == len(set(addresses))
        # The owner of an idle tree may change.
        meaning = {r.id: (r.request[0], r.group_address) for r in found}
        for number, value in meaning.items():
            assert self.meaning.setdefault(number, value) == value, f"the number {number} is used again"
        assert not self.released & set(meaning), "a reservation is back from the dead"
        self.released = set(self.meaning) - set(meaning)
        if self.world.running:
            self.check_holders(found)
            assert self.core.view.group_addresses == set(addresses)
            self.check_shares_of_tenants(found)

    def check_holders(self, found: list[Reservation]) -> None:
        """Check that the reservation that needs it, or a fiber check on its own switch, holds each resource."""
        expected = {element: reservation.id for reservation in found for element in reservation.elements}
        holders = self.core.view.holders
        assert {element: holder for element, holder in holders.items() if holder != PROBER} == expected
        fabric, probing = self.world.fabric, self.core.view.probe_circuits
        for switch in fabric.switches:
            probed = {e for e in pieces_on(fabric, switch) if holders.get(e) == PROBER}
            assert not probed or switch in probing, f"{probed} are held for a check that does not run"
            touched = touched_by(fabric, probing.get(switch, ()))
            assert touched <= holders.keys(), f"{touched - holders.keys()} are free and may have a circuit of a check"

    def check_shares_of_tenants(self, found: list[Reservation]) -> None:
        """Check that no tenant gets more splitters than its limit."""
        now = splitters_of(found)
        for tenant, count in now.items():
            maximum = self.core.settings.limits(tenant).max_splitters
            assert maximum is None or count <= max(maximum, self.splitters[tenant]), f"{tenant} holds {count} splitters"
        self.splitters = now

    def i2_marks_are_journaled(self) -> None:
        """Check that every circuit and rule with Blast's mark belongs to a live reservation of the journal."""
        live = {reservation.id: reservation for reservation in self.journal.reservations()}
        for name, rules in list(self.stale.items()):
            self.stale[name] = rules & self.world.tors[int(name)].held
        for tor in self.world.tors.values():
            for number, forward in tor.held - self.stale.get(tor.datapath, frozenset()):
                assert number in live, f"{forward} of {number} outlives its reservation"
                forwards = [f for x in live[number].layouts for f in x.forwards.get(tor.datapath, ())]
                assert set(forward.outputs) <= {port for f in forwards if f.key == forward.key for port in f.outputs}
        ours = self.journal.circuits()
        for switch in self.world.switches.values():
            assert switch.held - switch.foreign <= ours, (
                f"{switch.held - switch.foreign - ours} belongs to no reservation"
            )

    def i3_converges(self) -> None:
        """Check that the observed state becomes the desired one after a crash without further faults.

        A second audit is empty.
        """
        state = hash((tuple(self.journal.content.items()), self.device_states()))
        if state not in self._converged:
            self._converged.add(state)
            self._check_convergence(self.copy_of_world())

    def device_states(self) -> tuple[Any, ...]:
        switches = ((s.held, frozenset(s.foreign)) for s in self.world.switches.values())
        return (*switches, *((t.held, t.foreign_rules) for t in self.world.tors.values()))

    def copy_of_world(self) -> World:
        """Return a copy of the journal and the devices, without controller, sessions and data in transit."""
        # Its own core comes with its start.
        copy = World(self.world.fabric, core=self.core)
        copy.store.close()
        copy.store._state = dict(self.journal.content)
        copy.store._holdings = deepcopy(self.world.store._holdings)
        copy.running = False
        for name, switch in self.world.switches.items():
            copy.switches[name] = FakeSwitch(name, dict(switch.circuits), set(switch.foreign))
        for name, tor in self.world.tors.items():
            copy.tors[name] = FakeTor(name, dict(tor.rules), tor.foreign_rules)
        return copy

    def _check_convergence(self, copy: World) -> None:
        intact = {
            r.id
            for r in self.journal.reservations()
            if r.state is ReservationState.LIT and all(self.holds_all(r, d) for d in r.layout.device_state.devices)
        } - {number for rules in self.stale.values() for number, _ in rules}
        touched: set[int] = set()
        copy.on_command = lambda command: touched.update(change.reservation for change in command.changes)
        copy.start(now=0.0)
        if len(self._converged) % 4 == 0:
            self.i8_replay_is_deterministic(copy)
        copy.connect_all()
        copy.settle()
        assert not touched & intact, f"{touched & intact} were lit and right, and were touched"
        check_desired(copy)
        report = audited(copy, dry_run=False)
        assert report.commands == (), report
        assert len(report.foreign) == sum(len(s.foreign) for s in copy.switches.values()) + sum(
            tor.foreign_rules > 0 for tor in copy.tors.values()
        )
        check_desired(copy)
        assert self.foreign_of(copy) == self.foreign_of(self.world)
        check_no_part_waits_needlessly(copy)

    def i4_one_end(self) -> None:
        """Check that every request has one history: one grant at a time, and one end."""
        if not self.world.running:
            return
        for request in self.core.requests.values():
            check_history(request)
            for part in request.parts:
                self.check_part(request, part)
        states = ((key, p.index, p.state) for key, request in self.core.requests.items() for p in request.parts)
        waiting = [(key, index) for key, index, state in states if state is PartState.PENDING]
        assert sorted(self.core.view.waiting) == sorted(waiting)
        for key, end in self.leases.items():
            request = self.core.requests[key]
            if request.state is PartState.ACTIVE and not self.core.view.leases_over:
                assert self.ticked_at < end, f"{key} has outlived its lease by {self.ticked_at - end} s"
        if self.world.quiet and not self.core.draining:
            check_no_part_waits_needlessly(self.world)

    def check_part(self, request: Request, part: Part) -> None:
        reservation = self.core.view.reservation(part.reservation or 0)
        state = reservation.state if reservation else None
        assert (part.state is PartState.ACTIVE) == (state in HELD)
        assert (part.state is PartState.CONFIGURING) == (state is ReservationState.CONFIGURING)
        assert part.state in (*ENDED, PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE)
        if part.state is PartState.ACTIVE:
            assert part.grant is not None
            assert part.lease_end is not None
            if (request.current.id, part.slot) in self.core.view.leases_over:
                return
            timer = self.core.next_timer()
            assert timer is not None
            assert timer <= part.lease_end, "no timer fires at the end of the lease"
        if part.state is PartState.PENDING:
            assert str(self.core.reason(request.current, part, self.world.now)).startswith("Waiting")

    def i5_answers_stay(self) -> None:
        """Check that answers to clients stay valid while the request is remembered, also across restarts."""
        if not self.world.running:
            return
        for key, reported in self.published.items():
            request = self.core.requests.get(key)
            for sequence, event in reported.items() if request else ():
                assert request is not None
                kept = request.events[0].sequence if request.events else request.latest_event + 1
                assert sequence < kept or request.events[sequence - kept : sequence - kept + 1] == [event]
                assert sequence >= kept or len(request.events) == self.core.settings.max_events
        for key in [key for key in self.accepted if key not in self.core.requests]:
            over = self.ended_at.get(key)
            assert over is not None, f"{key} is forgotten and has not ended"
            assert self.world.now >= over + self.core.settings.remember_ended, f"{key} is forgotten too early"
            self.accepted.remove(key)
            self.published.pop(key, None)
            del self.ended_at[key]
        self.note_ended()

    def note_ended(self) -> None:
        """Note the end times of requests; actions in which time passes call this method as well."""
        for key in self.accepted & self.core.requests.keys():
            if self.core.requests[key].state.final:
                self.ended_at.setdefault(key, self.world.now)

    def i6_granted_groups_are_served(self) -> None:
        """Check that after every device operation light and packets reach each granted group, and no other group.

        The check at the grant ensures that a grant is sent only when every device holds all of it.
        """
        for reservation in self.reservations():
            tree = reservation.layout.tree
            if tree is not None and not isinstance(tree, StaticLight):
                held = set().union(*(r.elements | r.handed_over for r in self.sharing_with(reservation)))
                seen = {f"port:{rack}/{port}" for rack, port in self.lit_by(tree.root)}
                # A port that only transmits may receive foreign light on its other fiber, but not on this one.
                held = {element.removesuffix("/rx") for element in held if not element.endswith("/tx")}
                assert seen <= held, f"light of {reservation.id} reaches {seen - held}"
            if reservation.state in HELD and not self.is_harmed(reservation):
                self.check_served(reservation)

    def sharing_with(self, reservation: Reservation) -> list[Reservation]:
        """Return a reservation and the ones with which it exchanges pieces."""
        others = (r for r in self.reservations() if r.handed_over & reservation.elements)
        takers = (r for r in self.reservations() if r.elements & reservation.handed_over)
        return [reservation, *others, *takers]

    def lit_by(self, root: OpticalPort) -> set[tuple[str, int]]:
        """Return the ports that receive light from `root` over Blast's circuits."""
        circuits: set[CrossConnect] = set()
        for switch in self.world.switches.values():
            circuits |= switch.held - switch.foreign
        return set(reached_by(self.world.fabric, frozenset(circuits), root))

    def check_served(self, reservation: Reservation) -> None:
        sender = self.world.fabric.hosts[self.contents[reservation.request].sender]
        old = set(reservation.layout.receivers)
        new = set(reservation.layouts[-1].receivers)
        served = self.served(reservation, sender, old | new)
        staying = old if reservation.in_force is reservation.layout else old & new
        moving = racks_being_moved(reservation)
        staying = {name for name in staying if self.world.fabric.hosts[name].rack not in moving}
        assert staying <= served, f"{staying - served} lost service of {reservation.id}"
        assert served <= old | new, f"{served - old - new} are not members of {reservation.id}"
        if reservation.state is ReservationState.LIT and not reservation.busy:
            assert served == old
            tree = reservation.layout.tree
            if tree is not None and not isinstance(tree, StaticLight):
                leaves = {(leaf.port.rack, leaf.port.port) for leaf in tree.leaves}
                root = (tree.root.rack, tree.root.port)
                # A duplex circuit: the root's own receiver is lit by the other end.
                is_duplex = root in leaves and not tree.splitters
                assert self.lit_by(tree.root) == leaves - ({root} if is_duplex else set())
                assert not is_duplex or self.lit_by(tree.leaves[0].port) == {root}

    def served(self, reservation: Reservation, sender: Host, members: set[str]) -> set[str]:
        """Return the hosts that the sender's packets reach; hosts on a splitter drop packets of other groups."""
        served = self.world.receivers_of(sender, reservation.group_address)
        tree = reservation.layout.tree
        if isinstance(tree, StaticLight):
            fixed = self.world.fabric.static_trees[tree.name]
            served |= fixed.leaf_hosts & members
            if fixed.root_host is not None:
                places = self.world.static_places(fixed)
                served |= self.world.arrived_by(places, sender, reservation.group_address)
        return served

    def i7_foreign_untouched(self) -> None:
        """Check that foreign circuits stay until their owners remove them."""
        for switch in self.world.switches.values():
            assert switch.foreign <= switch.held, f"{switch.foreign - switch.held} was not ours to delete"

    @staticmethod
    def foreign_of(world: World) -> list[Any]:
        return [switch.foreign & switch.held for switch in world.switches.values()]

    def i8_journal_is_the_state(self) -> None:
        """Check that the journal has all state that the core needs after a crash.

        Step numbers restart with the process.
        """
        if not self.world.running:
            return
        requests = {request_key(key): encode(request_body(r)) for key, r in self.core.requests.items()}
        assert self.journal.rows("request") == requests
        events = {
            f"{event.sequence}/{request_key(key)}": encode(event_body(key, event))
            for key, request in self.core.requests.items()
            for event in request.events
        }
        assert self.journal.rows("event") == events
        live = {str(r.id): encode({**reservation_body(r), "step": 0}) for r in self.core.reservations}
        assert {key: without_step(text) for key, text in self.journal.rows("reservation").items()} == live
        assert self.journal.quarantined() == self.core.view.quarantined
        late = {c for name in self.world.fabric.switches for c in self.core.view.late_circuits(name)}
        assert self.journal.late_circuits() == late
        journaled = self.journal.probe_circuits()
        for circuits in self.core.view.probe_circuits.values():
            assert circuits <= journaled, "a fiber check uses circuits that a crash would forget"

    def i8_replay_is_deterministic(self, copy: World) -> None:
        """Check that a replay of the journal restores the same core, independent of clock and chance."""
        again = Core(copy.fabric, copy.core.settings)
        again.restore(self.journal.records(), copy.now)
        assert image(again) == image(copy.core)

    def i9_bounded(self) -> None:
        """Check that the deadlines of the core are bounded by its requests, reservations and elements.

        Every event checks that no untyped exception is raised.
        """
        if self.world.running:
            known = len(self.core.requests) + len(list(self.core.reservations)) + 1
            assert self.core.view.deadlines <= 20 * known + len(self.core.view.elements)

    def i10_fenced(self) -> None:
        """Check that no device obeys an epoch older than that of its current controller.

        Every late write checks this, too.
        """
        for name in self.world.devices:
            device = self.world.device(name)
            assert device.fence <= self.world.epoch
            assert not device.up or device.fence == self.world.epoch

    def i11_leaves_get_their_light(self) -> None:
        """Check that the circuits of the switches deliver a power within its budget to every leaf of a lit tree."""
        if not self.world.fabric.optics.passes:
            return
        for reservation in self.reservations():
            tree = reservation.layout.tree
            if reservation.state is ReservationState.LIT and not reservation.busy and not self.is_harmed(reservation):
                held = self.world.switches[tree.switch].held if tree is not None else set()
                for leaf in tree.leaves if tree is not None else ():
                    assert is_lit_well(self.world.fabric, held, leaf.port), f"{leaf} of {reservation.id}"

    def i12_the_reserve_is_dark(self) -> None:
        """Check that the reserve of each kind of pieces is dark, unless no warm tree could be evicted."""
        if self.world.running and not self.world.undecided:
            check_reserve(self.core, self.world.now)

    def i13_view_matches_devices(self) -> None:
        """Check in a quiet world that the core knows which devices are connected.

        It must also know the foreign circuits of each switch that it has read.
        """
        if not self.world.running or not self.world.quiet:
            return
        devices = {name: self.world.device(name) for name in self.world.devices}
        assert self.core.view.away.keys() == {name for name, device in devices.items() if not device.up}
        for name, switch in self.world.switches.items():
            if self.is_synchronized(name):
                occupied = self.core.view.occupied[name].keys()
                assert occupied == touched_by(self.world.fabric, switch.foreign)

    # --------------------------------------------------------------------------------------------- moments

    def check_command(self, command: SetCircuits | SetForwarding) -> None:
        """Check that a command changes nothing of an undisturbed lit reservation."""
        self.adopt_journaled_circuits()
        name = command.switch if isinstance(command, SetCircuits) else command.datapath
        for change in command.changes:
            reservation = self.core.view.reservation(change.reservation)
            if reservation is not None and reservation.state is ReservationState.LIT:
                is_known = (reservation.id, name) in self.disturbed
                assert is_known or not self.has_effect(name, change), f"{change} touches what is lit and right"

    def has_effect(self, name: Device, change: CircuitChange | ForwardingChange) -> bool:
        """Return True if a command changes anything: concurrent events may have made it obsolete."""
        held = self.world.device(name).held
        if isinstance(change, CircuitChange):
            return bool(held.intersection(change.disconnect)) or not held.issuperset(change.connect)
        rules = {forward for number, forward in held if number == change.reservation}
        return bool({f.key for f in rules} & {f.key for f in change.remove}) or not rules.issuperset(change.add)


def racks_being_moved(reservation: Reservation) -> set[str]:
    """Return the racks whose dark leaf a repair moves to another output; invariants do not cover them until it ends."""
    old, new = (layout.tree for layout in (reservation.layouts[0], reservation.layouts[-1]))
    feeds = {leaf.port: leaf.feed for leaf in old.leaves} if old else {}
    return {leaf.port.rack for leaf in (new.leaves if new else ()) if feeds.get(leaf.port, leaf.feed) != leaf.feed}


def pieces_on(fabric: Fabric, switch: str) -> set[str]:
    """Return the ports and splitters of an optical switch, by name."""
    splitters = {splitter.element for splitter in fabric.splitters.values() if splitter.switch == switch}
    return splitters | {port.element for port in fabric.ports_on(switch)}


def touched_by(fabric: Fabric, circuits: Collection[CrossConnect]) -> set[str]:
    """Return the pieces at which any of these circuits begins or ends."""
    inputs, outputs = {(c.switch, c.input) for c in circuits}, {(c.switch, c.output) for c in circuits}
    ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]
    touched = {p.element for p in ports if (p.switch, p.input) in inputs or (p.switch, p.output) in outputs}
    for splitter in fabric.splitters.values():
        entered = {(splitter.switch, output) for output in splitter.outputs}
        if (splitter.switch, splitter.input) in outputs or entered & inputs:
            touched.add(splitter.element)
    return touched


@lru_cache(maxsize=10_000)
def without_step(text: str) -> str:
    """Return a journaled reservation without the number of its latest step."""
    return encode({**json.loads(text), "step": 0})
