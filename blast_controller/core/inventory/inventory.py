"""Inventory of ports and splitters: one account for each piece, updated as its state changes.

The account records whether the piece is usable and its devices are connected (`conditions`); a change of holder
(`holders`) leaves both as they are. All three determine the totals in which the piece counts; totals are updated piece
by piece, never recomputed:

capacity   it is usable, whatever its holder, connected or not
available  it is usable, its devices are connected, and it is free or only kept lit
idle       it is usable and no transfer uses it; `dark` ones of these are not kept lit
offered    the scheduling policy may count on it: it is available, or held by a part that the policy placed, in the
           form in which it was placed

A splitter counts with its usable outputs, and not at all with fewer than two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from algorithms.b_matching.residual import Residual
from blast_controller.core.inventory.conditions import Conditions
from blast_controller.core.inventory.holders import PROBER, Holders, HolderState
from blast_controller.core.inventory.kinds import Piece, PieceKind, kind_of
from blast_controller.core.inventory.splitter_order import Place
from blast_controller.core.inventory.totals import PieceTotals
from blast_controller.core.model.fabric import CrossConnect, Fabric, OpticalPort, Splitter, StaticTree
from blast_controller.core.model.identifiers import Device, ElementId, SwitchId, device_name, static_element


class _Counts(NamedTuple):
    """In which totals a piece counts."""

    capacity: bool = False
    available: bool = False
    idle: bool = False
    dark: bool = False


_UNUSABLE = _Counts()
_IN_USE = _Counts(capacity=True)
_DARK = _Counts(capacity=True, idle=True, dark=True)
_LIT = _Counts(capacity=True, idle=True)
_AVAILABLE = _Counts(capacity=True, available=True, idle=True, dark=True)
_LIT_AVAILABLE = _Counts(capacity=True, available=True, idle=True)


class _PieceForm(NamedTuple):
    """A piece as it counts: a splitter may have lost outputs."""

    piece: Piece
    kind: PieceKind


@dataclass(slots=True)
class _Account:
    """A piece as built, as it is usable (None: not at all), and as it is offered to the policy; where it counts."""

    whole: _PieceForm
    usable: _PieceForm | None = None
    connected: bool = False
    counts: _Counts = _UNUSABLE
    offered: _PieceForm | None = None

    @property
    def kind(self) -> PieceKind:
        """Return the kind of the piece as it is usable, or was built."""
        return (self.usable or self.whole).kind


class InventoryChanges(NamedTuple):
    """Elements of which anything may have changed, kinds whose idle or dark total has, and whether devices changed."""

    elements: set[ElementId]
    kinds: set[PieceKind]
    devices: bool


class Inventory:
    """The holders and the usability of all ports and splitters.

    `capacity`, `available`, `idle`, `dark` and `offered` are totals; `unsettled` has, by switch, the kinds whose
    idle or dark total changed since the last read.
    """

    def __init__(self, fabric: Fabric, max_splitters_per_tree: int | None) -> None:
        self.fabric = fabric
        self._max_splitters_of = max_splitters_per_tree
        self._holders = Holders()
        self._conditions = Conditions(fabric)
        self._ports = [port for rack in fabric.racks.values() for port in rack.optical_ports]
        pieces: list[Piece] = [*self._ports, *fabric.splitters.values()]
        self._accounts = {piece.element: _Account(_form(piece)) for piece in pieces}
        self._order = {name: place for place, name in enumerate(fabric.splitters)}
        self._sides: dict[ElementId, list[ElementId]] = {}
        self._at_end: dict[tuple[str, SwitchId], list[tuple[OpticalPort, _Account]]] = {}
        for port in self._ports:
            self._sides.setdefault(port.whole_element, []).append(port.element)
            self._at_end.setdefault((port.end, port.switch), []).append((port, self._accounts[port.element]))
        self._splitter_of = {
            s.output_element(output): s.element for s in fabric.splitters.values() for output in s.outputs
        }
        self._needing: defaultdict[Device, list[ElementId]] = defaultdict(list)
        for piece in pieces:
            for device in self._devices_of(piece):
                self._needing[device].append(piece.element)
        self.capacity, self.available = PieceTotals(self._in_order), PieceTotals(self._last_if_lit)
        self.idle, self.dark, self.offered = Counter[PieceKind](), Counter[PieceKind](), Counter[PieceKind]()
        self._offers_changed: Counter[PieceKind] = Counter()
        self.unsettled: defaultdict[SwitchId, set[PieceKind]] = defaultdict(set)
        self._changes = InventoryChanges(set(), set(), devices=True)
        self._reassess(self._accounts)

    # ------------------------------------------------------------------------------------------- holding

    @property
    def holders(self) -> Mapping[ElementId, int]:
        """Return the reservation that holds each element, or PROBER."""
        return self._holders.holders

    def take(self, elements: Iterable[ElementId], holder: int) -> None:
        """Assign elements to `holder`; a whole port stands for both of its sides.

        Raises DoubleBookingError, with nothing changed, if another holder has one of them.
        """
        self._change(self._holders.take, elements, holder)

    def free(self, elements: Iterable[ElementId]) -> None:
        """Free elements."""
        self._change(self._holders.free, elements)

    def keep_lit(self, elements: Iterable[ElementId]) -> None:
        """Keep elements lit for their holder, which releases them on demand."""
        self._change(self._holders.keep, elements)

    def reclaim(self, elements: Iterable[ElementId]) -> None:
        """Mark kept elements as held again: their holder uses them, or will release them."""
        self._change(self._holders.reclaim, elements)

    def release(self, holder: int, elements: Collection[ElementId]) -> None:
        """Mark a reservation as leaving: its elements no longer serve its part but are not free yet."""
        self._holders.release(holder, elements)
        self._recount(elements)

    def forget(self, holder: int) -> None:
        """Forget a released reservation."""
        self._holders.forget(holder)

    def _change(self, change: Callable[..., None], elements: Iterable[ElementId], *more: int) -> None:
        each = [side for element in elements for side in self._sides.get(element, (element,))]
        change(each, *more)
        self._recount(each)

    def keepers_of(self, elements: Iterable[ElementId]) -> set[int]:
        """Return the reservations that keep some of these lit (or splitters of these outputs)."""
        pieces = (self._splitter_of.get(element, element) for element in elements)
        return {self.holders[piece] for piece in pieces if self._holders.standing(piece) is HolderState.KEPT_LIT}

    # ---------------------------------------------------------------------------------------- conditions

    @property
    def quarantined(self) -> Mapping[ElementId, str]:
        """Return the quarantined elements with their reasons."""
        return self._conditions.quarantined

    @property
    def occupied(self) -> Mapping[SwitchId, Mapping[ElementId, CrossConnect]]:
        """Return the elements of each switch that circuits touch which are not ours, and which those are."""
        return self._conditions.occupied

    @property
    def away(self) -> Mapping[Device, str]:
        """Return the devices that are away, and why."""
        return self._conditions.away

    def unusable(self, element: ElementId) -> str | None:
        """Return why an element is unusable, or None."""
        return self._conditions.unusable(element)

    def bad_outputs(self, splitters: Iterable[Splitter]) -> set[int]:
        """Return the outputs of these splitters that must not feed a leaf."""
        return self._conditions.bad_outputs(splitters)

    def quarantine(self, element: ElementId, reason: str) -> None:
        """Quarantine an element."""
        self._conditions.quarantine(element, reason)
        self._reassess([element])

    def lift_quarantine(self, element: ElementId) -> bool:
        """Let an element be used again; return true if it was quarantined."""
        lifted = self._conditions.lift_quarantine(element)
        self._reassess([element])
        return lifted

    def note_away(self, device: Device, reason: str) -> None:
        """Note that a device disconnected: elements that need it are unavailable until it returns."""
        self._conditions.note_away(device, reason)
        self._note_device()
        self._reassess(self._needing[device])

    def note_back(self, device: Device) -> None:
        """Note that a device connected."""
        self._conditions.note_back(device)
        self._note_device()
        self._reassess(self._needing[device])

    def note_foreign(self, switch: SwitchId, circuits: Collection[CrossConnect]) -> None:
        """Record the foreign cross-connects on `switch`: elements that they touch are unusable."""
        self._reassess(self._conditions.note_foreign(switch, circuits))

    def hindrance(self, element: ElementId) -> str | None:
        """Return why an element is unavailable (unusable, held, or its device disconnected), or None."""
        if len(sides := self._sides.get(element, [])) > 1:
            return next((reason for side in sides if (reason := self.hindrance(side))), None)
        if reason := self.unusable(element):
            return reason
        if (holder := self.holders.get(element)) is not None:
            return "being probed" if holder == PROBER else f"held by reservation {holder}"
        needed = self._devices_of(self._accounts[element].whole.piece) if element in self._accounts else ()
        away = next((device for device in needed if device in self.away), None)
        return None if away is None else f"{away if isinstance(away, str) else device_name(away)} is disconnected"

    # ------------------------------------------------------------------------------------------ counting

    def take_changes(self) -> InventoryChanges:
        """Return the possible changes since the last call by any caller."""
        changes, self._changes = self._changes, InventoryChanges(set(), set(), devices=False)
        return changes

    def _note_device(self) -> None:
        self._changes = self._changes._replace(devices=True)

    def _reassess(self, elements: Iterable[ElementId]) -> None:
        """Count pieces that may have become usable or unusable, or whose devices may have come or gone."""
        for name in elements:
            self._changes.elements.add(name)
            account = self._accounts.get(element := self._splitter_of.get(name, name))
            if account is not None:
                usable = self._usable(account.whole)
                if usable != account.usable:
                    self._count(account, _UNUSABLE)
                    account.usable = usable
                account.connected = self.away.keys().isdisjoint(self._devices_of(account.whole.piece))
                self._settle(element, account)

    def _recount(self, elements: Collection[ElementId]) -> None:
        """Count pieces whose holder may have changed."""
        self._changes.elements.update(elements)
        for element in elements:
            if (account := self._accounts.get(element)) is not None:
                self._settle(element, account)

    def _settle(self, element: ElementId, account: _Account) -> None:
        standing = self._holders.standing(element)
        counts = _counts(account, standing)
        offered = account.usable if counts.available else None
        if standing is HolderState.HELD:
            offered = account.offered or account.usable or account.whole
        if counts is not account.counts:
            self._count(account, counts)
        if offered is not account.offered:
            self._offer(account, offered)

    def _count(self, account: _Account, counts: _Counts) -> None:
        before, account.counts = account.counts, counts
        if (form := account.usable) is None:
            return
        if before.capacity != counts.capacity:
            (self.capacity.add if counts.capacity else self.capacity.remove)(*form)
        if before.available != counts.available:
            (self.available.add if counts.available else self.available.remove)(*form)
        if (idle := counts.idle - before.idle) | (dark := counts.dark - before.dark):
            kind = form.kind
            self.idle[kind] += idle
            self.dark[kind] += dark
            self.unsettled[kind.switch].add(kind)
            self._changes.kinds.add(kind)

    def _offer(self, account: _Account, form: _PieceForm | None) -> None:
        before, account.offered = account.offered, form
        if before is not None:
            self.offered[before.kind] -= 1
            self._offers_changed[before.kind] -= 1
        if form is not None:
            self.offered[form.kind] += 1
            self._offers_changed[form.kind] += 1

    def _usable(self, whole: _PieceForm) -> _PieceForm | None:
        """Return a port, or a splitter with the outputs that can be used; None if it cannot be used."""
        piece = whole.piece
        if self.unusable(piece.element) is not None:
            return None
        if isinstance(piece, OpticalPort):
            return whole
        left = self._conditions.usable_outputs(piece)
        if left.fan_out < 2:
            return None
        return whole if left == piece else _form(left)

    def _devices_of(self, piece: Piece) -> tuple[Device, ...]:
        if isinstance(piece, OpticalPort):
            return piece.switch, self.fabric.racks[piece.rack].datapath
        return (piece.switch,)

    # ------------------------------------------------------------------------------------ what may be had

    @property
    def elements(self) -> list[ElementId]:
        """Return every port, splitter, splitter output and static tree of the fabric."""
        splitters = self.fabric.splitters.values()
        outputs = (s.output_element(output) for s in splitters for output in s.outputs)
        static = map(static_element, self.fabric.static_trees)
        return [*(p.element for p in self._ports), *(s.element for s in splitters), *outputs, *static]

    def available_now(self, allowance: Mapping[str, int] | None = None) -> Residual:
        """Return the resources that are available now; `allowance` limits the splitters of some tenants."""
        return self.available.residual(self.fabric.switches, self._max_splitters_of, allowance)

    def available_to_one(self, allowance: Mapping[str, int] | None = None) -> Residual:
        """Return the resources without holders and disconnected devices; `allowance` as in `available_now`."""
        return self.capacity.residual(self.fabric.switches, self._max_splitters_of, allowance)

    def available_splitters(self, switch: SwitchId) -> list[Splitter]:
        """Return the available splitters on `switch` in the fabric's order, warm ones last."""
        return sorted(self.available.splitters(switch), key=self._last_if_lit)

    def usable_splitters(self, switch: SwitchId) -> list[Splitter]:
        """Return the usable splitters on `switch`, whatever their holder, in the fabric's order."""
        return sorted(self.capacity.splitters(switch), key=self._in_order)

    def choose_splitters(self, switch: SwitchId, fan_out: Sequence[int]) -> list[Splitter]:
        """Return the first available splitters of these sizes on `switch`.

        Raises LookupError if there are too few.
        """
        first = {size: iter(self._first(switch, size, fan_out.count(size))) for size in set(fan_out)}
        return [next(first[size]) for size in fan_out]

    def _first(self, switch: SwitchId, size: int, count: int) -> list[Splitter]:
        found = self.available.first_splitters(switch, size, count)
        if len(found) < count:
            raise LookupError(f"{len(found)} splitters 1:{size} on {switch}, wanted {count}")
        return found

    def _in_order(self, splitter: Splitter) -> Place:
        return False, self._order[splitter.name]

    def _last_if_lit(self, splitter: Splitter) -> Place:
        # An available element keeps its order key: it goes from free to kept lit only through held.
        return self.is_kept_lit(splitter.element), self._order[splitter.name]

    def available_ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """Return the available ports for an end of a tree; warm ones only if all are warm."""
        ports = self._at_end.get((end, switch), ())
        found = [(port, account.counts) for port, account in ports if account.counts.available]
        return [port for port, counts in found if counts.dark] or [port for port, _ in found]

    def usable_ports(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """Return the usable ports for an end of a tree, whatever their holder."""
        return [port for port, account in self._at_end.get((end, switch), ()) if account.usable is not None]

    def is_available(self, element: ElementId) -> bool:
        """Return true if a port or splitter is available."""
        return self._accounts[element].counts.available

    def is_usable(self, element: ElementId) -> bool:
        """Return true if a port or splitter is usable, whatever its holder."""
        return self._accounts[element].usable is not None

    def is_kept_lit(self, element: ElementId) -> bool:
        """Return true if an element is kept lit by a holder that releases it on demand."""
        return self._holders.standing(element) is HolderState.KEPT_LIT

    def ports_for(self, end: str, switch: SwitchId) -> list[OpticalPort]:
        """Return the ports of a switch that can be this end of a tree, usable or not."""
        return [port for port, _ in self._at_end.get((end, switch), ())]

    def untouched(self, switch: SwitchId) -> list[Piece]:
        """Return the usable ports and splitters on `switch` without a holder, warm or not.

        A port is included if both of its fibers are.
        """
        accounts = (
            (element, self._accounts[element]) for element in self._needing[switch] if element not in self.holders
        )
        free = {
            element: account.usable.piece
            for element, account in accounts
            if account.usable is not None and account.counts.available
        }
        whole = (p for p in self.fabric.whole_ports_on(switch) if free.keys() >= set(self._sides[p.element]))
        return [*whole, *(piece for piece in free.values() if not isinstance(piece, OpticalPort))]

    def available_static(self) -> list[StaticTree]:
        """Return the free static trees."""
        return [tree for tree in self.usable_static() if static_element(tree.name) not in self.holders]

    def usable_static(self) -> list[StaticTree]:
        """Return the static trees that can be used, in use or not."""
        trees = self.fabric.static_trees.values()
        return [tree for tree in trees if self.unusable(static_element(tree.name)) is None]

    # --------------------------------------------------------------------------------- dark, and kept lit

    def kinds_of(self, elements: Iterable[ElementId]) -> frozenset[PieceKind]:
        """Return the kinds of these ports and splitters."""
        return frozenset([self._accounts[element].kind for element in elements])

    def kinds_used_up(self, elements: Iterable[ElementId]) -> set[PieceKind]:
        """Return the kinds of which no dark piece remains if these elements are taken now; holders keep theirs."""
        taken: Counter[PieceKind] = Counter()
        lit: set[PieceKind] = set()
        for element in elements:
            standing = self._holders.standing(element)
            if element in self._accounts and standing is not HolderState.HELD:
                kind = self._accounts[element].kind
                taken[kind] += 1
                if standing is HolderState.KEPT_LIT:
                    lit.add(kind)
        return {kind for kind, number in taken.items() if kind in lit or self.dark[kind] <= number}

    def unsettle(self) -> None:
        """Count every kind as changed."""
        for kind in self.idle:
            self.unsettled[kind.switch].add(kind)

    # ------------------------------------------------------------------------------------------- offered

    def offered_as(self, element: ElementId) -> Piece | None:
        """Return the form in which the policy may count on an element, or None."""
        account = self._accounts.get(element)
        return account.offered.piece if account is not None and account.offered is not None else None

    def reset_offer(self) -> None:
        """Reset the offer changes for a new reader: everything counts as a change."""
        self._offers_changed = self.offered.copy()

    def take_offer_changes(self) -> dict[PieceKind, int]:
        """Return the changes of the offer by kind (negative: less) since the last call."""
        changes = {kind: number for kind, number in self._offers_changed.items() if number}
        self._offers_changed.clear()
        return changes


def _form(piece: Piece) -> _PieceForm:
    return _PieceForm(piece, kind_of(piece))


def _counts(account: _Account, standing: HolderState) -> _Counts:
    """Return in which totals a piece counts that is held like this."""
    if account.usable is None:
        return _UNUSABLE
    if standing is HolderState.HELD:
        return _IN_USE
    if standing is HolderState.KEPT_LIT:
        return _LIT_AVAILABLE if account.connected else _LIT
    return _AVAILABLE if standing is HolderState.FREE and account.connected else _DARK
