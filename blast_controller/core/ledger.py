"""Who holds what: ports, splitters and group addresses, and which of them cannot be used and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from types import MappingProxyType

from algorithms.b_matching.residual import Residual
from blast_controller.core.dark_pieces import DarkPieces, Kind, kind_of
from blast_controller.core.errors import CoreError
from blast_controller.core.fabric import CrossConnect, Fabric, OpticalPort, Splitter, StaticTree, rack_of
from blast_controller.core.identifiers import (
    DatapathId,
    Device,
    ElementId,
    LinkId,
    SwitchId,
    device_name,
    port_element,
    static_element,
)
from blast_controller.core.offered import Offered
from blast_controller.core.tally import Piece, Tally

NOBODY = 0
"""Holds what is not held, or is only being probed."""


class DoubleBooked(CoreError):
    """Our fault: an element was about to be held by two reservations."""


class Ledger:
    """Exact accounting of the fabric's elements. Changes nothing but itself.

    What can be used is counted as it changes: `_left` is what anyone can have now, `_whole` what there would be if
    nobody held anything and no device were away. `next_group` is where the next group address is looked for first,
    `without_link` since when each port that has lost its link has been without.
    """

    def __init__(self, fabric: Fabric, groups: IPv4Network, most_splitters: int | None) -> None:
        self._fabric = fabric
        self._groups = groups
        self._most_splitters = most_splitters
        self._ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]
        self.next_group = 1
        self._addresses: set[str] = set()
        self.holder: dict[ElementId, int] = {}
        self._lent: set[ElementId] = set()
        self._quarantined: dict[ElementId, str] = {}
        self.occupied: dict[SwitchId, dict[ElementId, str]] = {}
        self.without_link: dict[LinkId, float] = {}
        self._away: dict[Device, str] = dict.fromkeys(fabric.switches, "not connected yet")
        self._away |= {rack.datapath: "not connected yet" for rack in fabric.racks.values()}
        self._pieces: dict[ElementId, Piece] = {port.element: port for port in self._ports}
        self._sides: dict[ElementId, list[ElementId]] = {}
        for port in self._ports:
            self._sides.setdefault(port_element(port.rack, port.port), []).append(port.element)
        self._pieces |= {splitter.element: splitter for splitter in fabric.splitters.values()}
        self._splitter_of = {s.leg_element(leg): s.element for s in fabric.splitters.values() for leg in s.outputs}
        self._needing: defaultdict[Device, list[ElementId]] = defaultdict(list)
        for element, piece in self._pieces.items():
            for device in self._devices_of(piece):
                self._needing[device].append(element)
        order = {name: place for place, name in enumerate(fabric.splitters)}
        self._left, self._whole = Tally(order), Tally(order)
        self._retired: set[int] = set()
        self.offered = Offered()
        self.dark = DarkPieces()
        self._recount(self._pieces)

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """The elements that nobody may use, and why."""
        return MappingProxyType(self._quarantined)

    @property
    def away(self) -> Mapping[Device, str]:
        """The devices that are away, and why."""
        return MappingProxyType(self._away)

    @property
    def elements(self) -> list[ElementId]:
        """Every port, splitter, splitter leg and static tree of the fabric."""
        splitters = self._fabric.splitters.values()
        legs = (s.leg_element(leg) for s in splitters for leg in s.outputs)
        static = map(static_element, self._fabric.static_trees)
        return [*(p.element for p in self._ports), *(s.element for s in splitters), *legs, *static]

    # ------------------------------------------------------------------------------------------- holding

    def take(self, elements: Iterable[ElementId], reservation: int) -> None:
        """Let `reservation` hold `elements`. Raises DoubleBooked, with nothing changed, if another holds one.

        A whole port stands for both of its sides.
        """
        wanted = self._each(elements)
        for element in wanted:
            if self.holder.get(element, reservation) != reservation:
                raise DoubleBooked(f"{element} is held by reservation {self.holder[element]}, wanted by {reservation}")
        self.holder.update(dict.fromkeys(wanted, reservation))
        self._recount(wanted)

    def free(self, elements: Iterable[ElementId]) -> None:
        """Give `elements` back."""
        given = self._each(elements)
        for element in given:
            del self.holder[element]
        self._recount(given)

    def _each(self, elements: Iterable[ElementId]) -> list[ElementId]:
        return [side for element in elements for side in self._sides.get(element, (element,))]

    def lend(self, elements: Iterable[ElementId]) -> None:
        """Count `elements` as free although they are held: their holder gives them up when somebody needs them."""
        lent = list(elements)
        self._lent.update(lent)
        self._recount(lent)

    def call_back(self, elements: Iterable[ElementId]) -> None:
        """Count `elements` as held again."""
        back = list(elements)
        self._lent.difference_update(back)
        self._recount(back)

    def retire(self, reservation: int, elements: Iterable[ElementId]) -> None:
        """A reservation is on its way out: what it holds is neither its part's any longer nor free yet."""
        self._retired.add(reservation)
        self._recount(elements)

    def bury(self, reservation: int) -> None:
        """A reservation is gone."""
        self._retired.discard(reservation)

    def lenders_of(self, elements: Iterable[ElementId]) -> set[int]:
        """The reservations that have lent some of `elements` (or splitters of these legs)."""
        pieces = (self._splitter_of.get(element, element) for element in elements)
        return {self.holder[piece] for piece in pieces if piece in self._lent}

    def take_address(self) -> str | None:
        """A group address that nobody uses, or None. Used ones come round last, so that a late sender hits nobody."""
        size = self._groups.num_addresses - 2
        for offset in range(size):
            index = (self.next_group - 1 + offset) % size + 1
            address = str(IPv4Address(int(self._groups.network_address) + index))
            if address not in self._addresses:
                self.next_group = index + 1
                self._addresses.add(address)
                return address
        return None

    def adopt_address(self, address: str) -> None:
        """Take over a group address of an earlier run."""
        self._addresses.add(address)

    def free_address(self, address: str) -> None:
        """Give a group address back."""
        self._addresses.remove(address)

    # -------------------------------------------------------------------------------------------- usable?

    def unusable(self, element: ElementId) -> str | None:
        """Why an element cannot be used by anyone, or None."""
        return self._quarantined.get(element) or next(
            (found[element] for found in self.occupied.values() if element in found), None
        )

    def quarantine(self, element: ElementId, reason: str) -> None:
        """Let nobody use an element from now on."""
        self._quarantined[element] = reason
        self._recount([element])

    def lift_quarantine(self, element: ElementId) -> bool:
        """Let an element be used again; whether it could not be."""
        lifted = self._quarantined.pop(element, None) is not None
        self._recount([element])
        return lifted

    def note_away(self, device: Device, reason: str) -> None:
        """What needs this device cannot be used while it is away."""
        self._away[device] = reason
        self._recount(self._needing[device])

    def note_back(self, device: Device) -> None:
        """A device is there."""
        self._away.pop(device, None)
        self._recount(self._needing[device])

    def note_foreign(self, switch: SwitchId, circuits: Collection[CrossConnect]) -> None:
        """Remember the cross-connects on `switch` that are not ours: what they touch cannot be used."""
        inputs = {c.input: c for c in circuits}
        outputs = {c.output: c for c in circuits}
        found: dict[ElementId, str] = {}

        def note(element: ElementId, circuit: CrossConnect | None) -> None:
            if circuit:
                found[element] = (
                    f"occupied by the cross-connect {circuit.input} to {circuit.output} on {switch}, "
                    "which Blast did not make"
                )

        for port in self._fabric.ports_on(switch):
            note(port.element, inputs.get(port.input) or outputs.get(port.output))
        for splitter in self._fabric.splitters.values():
            if splitter.switch == switch:
                legs = next((inputs[leg] for leg in splitter.outputs if leg in inputs), None)
                note(splitter.element, outputs.get(splitter.input) or legs)
        before = self.occupied.get(switch, {})
        self.occupied[switch] = found
        self._recount({**before, **found})

    def datapath_of(self, rack: str) -> DatapathId:
        """The datapath of a rack."""
        return self._fabric.racks[rack].datapath

    def link_of(self, port: OpticalPort) -> LinkId:
        """The link of a rack's optical port."""
        return LinkId(self.datapath_of(port.rack), port.port)

    def note_link(self, link: LinkId, up: bool, now: float) -> None:
        """A ToR's port has, or has lost, its link. A dark receiver has none and may be good."""
        if up:
            self.without_link.pop(link, None)
        else:
            self.without_link.setdefault(link, now)

    def bad_legs(self, splitters: Iterable[Splitter]) -> set[int]:
        """The legs of these splitters that should lead nobody any light."""
        return {
            leg for s in splitters for leg in s.outputs if self.unusable(s.element) or self.unusable(s.leg_element(leg))
        }

    def _usable(self, element: ElementId) -> bool:
        return self.unusable(element) is None

    def _free(self, element: ElementId) -> bool:
        return self._to_be_had(element) and self._usable(element)

    def _to_be_had(self, element: ElementId) -> bool:
        return element not in self.holder or element in self._lent

    # ---------------------------------------------------------------------------------------- what is left

    def residual(self, allowance: Mapping[str, int] | None = None) -> Residual:
        """What can be used now; `allowance` limits the splitters of some tenants."""
        return self._left.residual(self._fabric.switches, self._most_splitters, allowance)

    def capacity(self, allowance: Mapping[str, int] | None = None) -> Residual:
        """What could be used if nobody held anything and no device were away; `allowance` as in `residual`."""
        return self._whole.residual(self._fabric.switches, self._most_splitters, allowance)

    def capacity_sizes(self, switch: SwitchId) -> dict[int, int]:
        """How many splitters of each size on `switch` can be used, held or not."""
        return self._whole.sizes(switch)

    def free_sizes(self, switch: SwitchId) -> dict[int, int]:
        """How many splitters of each size are free on `switch`."""
        return self._left.sizes(switch)

    def gained(self, switch: SwitchId) -> int:
        """How often something on `switch` has come free so far."""
        return self._left.gained[switch]

    def all_free_splitters(self, switch: SwitchId) -> list[Splitter]:
        """The free splitters on `switch`, those that somebody would have to give up last."""
        return self._left.all_splitters(switch)

    def all_usable_splitters(self, switch: SwitchId) -> list[Splitter]:
        """The splitters on `switch` that can be used, held or not."""
        return self._whole.all_splitters(switch)

    def free_splitters(self, switch: SwitchId, ways: Sequence[int]) -> list[Splitter]:
        """Free splitters of these sizes on `switch`. Raises LookupError when there are not as many."""
        return self._left.splitters(switch, ways)

    def _recount(self, elements: Iterable[ElementId]) -> None:
        for name in elements:
            element = self._splitter_of.get(name, name)
            if element in self._pieces:
                usable = self._usable_part(element)
                free = usable is not None and self._to_be_had(element) and self._present(usable)
                self._whole.put(element, usable)
                self._left.put(element, usable if free else None, last=element in self._lent)
                self.offered.put(element, self._offer(element, usable, free))
                idle = usable is not None and not self._in_use(element)
                self.dark.put(element, kind_of(usable) if usable and idle else None, element in self._lent)

    def _in_use(self, element: ElementId) -> bool:
        """Whether a transfer has it: what is lent, on its way out or only being probed serves nobody."""
        holder = self.holder.get(element, NOBODY)
        return not (element in self._lent or holder == NOBODY or holder in self._retired)

    def _offer(self, element: ElementId, usable: Piece | None, free: bool) -> Piece | None:
        """What the policy may count on. What it has given to a part stays as it was, whatever becomes of it."""
        if free or not self._in_use(element):
            return usable if free else None
        return self.offered.find(element) or usable or self._pieces[element]

    def kinds_of(self, elements: Iterable[ElementId]) -> frozenset[Kind]:
        """The kinds of these ports and splitters."""
        return frozenset(kind_of(self._usable_part(element) or self._pieces[element]) for element in elements)

    def kinds_used_up(self, elements: Iterable[ElementId]) -> set[Kind]:
        """The kinds of which there is nothing dark besides if these pieces are taken now; who has some keeps those."""
        taken = [element for element in elements if element in self._pieces and not self._in_use(element)]
        left = Counter(kind_of(self._usable_part(element) or self._pieces[element]) for element in taken)
        lent = self.kinds_of(element for element in taken if element in self._lent)
        return {kind for kind, number in left.items() if kind in lent or self.dark.dark[kind] <= number}

    def _usable_part(self, element: ElementId) -> Piece | None:
        """A port, or a splitter with the legs that can be used; None if it cannot be used."""
        piece = self._pieces[element]
        if not self._usable(element):
            return None
        if isinstance(piece, OpticalPort):
            return piece
        left = piece.without(self._quarantined.__contains__) if self._quarantined else piece
        return left if left.ways > 1 else None

    def _present(self, piece: Piece) -> bool:
        return self._away.keys().isdisjoint(self._devices_of(piece))

    def _devices_of(self, piece: Piece) -> tuple[Device, ...]:
        if isinstance(piece, OpticalPort):
            return piece.switch, self._fabric.racks[piece.rack].datapath
        return (piece.switch,)

    def free_pieces(self, switch: SwitchId) -> list[Piece]:
        """The free ports (with both fibres) and splitters on `switch`, splitters with the legs that can be used."""
        found = (self._usable_part(element) for element in self._needing[switch] if element not in self.holder)
        free = {piece.element: piece for piece in found if piece is not None and self._present(piece)}
        whole = (port for port in self._fabric.whole_ports_on(switch) if free.keys() >= set(self._sides[port.element]))
        return [*whole, *(piece for piece in free.values() if not isinstance(piece, OpticalPort))]

    def hindrance(self, element: ElementId) -> str | None:
        """Why nobody could have an element now, or None: it cannot be used, is held, or needs a device that is away."""
        if len(sides := self._sides.get(element, [])) > 1:
            return next((reason for side in sides if (reason := self.hindrance(side))), None)
        if reason := self.unusable(element):
            return reason
        if element in self.holder:
            return f"held by reservation {self.holder[element]}" if self.holder[element] else "being probed"
        needed = self._devices_of(self._pieces[element]) if element in self._pieces else ()
        away = next((device for device in needed if device in self._away), None)
        return None if away is None else f"{away if isinstance(away, str) else device_name(away)} is away"

    def free_static(self) -> list[StaticTree]:
        """The static trees that nobody uses."""
        return [t for t in self._fabric.static_trees.values() if self._free(static_element(t.name))]

    def usable_static(self) -> list[StaticTree]:
        """The static trees that can be used, in use or not."""
        return [t for t in self._fabric.static_trees.values() if self._usable(static_element(t.name))]

    def free_port(self, end: str, switch: SwitchId) -> OpticalPort | None:
        """A free optical port on `switch` for an end of a tree, if possible one that nobody has to give up."""
        return next(iter(self.free_ports(end, switch)), None)

    def free_ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """The free optical ports for an end of a tree; those that somebody would have to give up only if all are."""
        free = [p for p in self._ports_for(end, switch) if self._free(p.element) and self._present(p)]
        return [p for p in free if p.element not in self._lent] or free

    def usable_ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """The optical ports for an end of a tree that can be used, held or not."""
        return [p for p in self._ports_for(end, switch) if self._usable(p.element)]

    def _ports_for(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        ports = self._fabric.racks[rack_of(end)].optical_ports
        return [port for port in ports if (port.end, port.switch) == (end, switch)]
