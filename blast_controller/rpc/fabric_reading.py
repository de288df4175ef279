"""What `fabric` answers: the fabric as it is now, put together anew only where it has changed since the last answer.

It is asked for many times a second by whoever watches, on the thread that decides: with 1,000 racks each answer from
scratch would take it some milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from blast_api import ttypes
from blast_controller.core.controller import Core
from blast_controller.core.model.fabric import OpticalPort, Rack, Splitter, StaticTree
from blast_controller.core.model.identifiers import Device, ElementId, static_element
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.rollout.reservation import Reservation


class FabricReading:
    """The answers of one core after the other. A struct that was given out is never changed afterwards.

    For the thread that decides only.
    """

    def __init__(self) -> None:
        self._core: Core | None = None
        self._hardware: _Hardware
        self._trees: dict[int, tuple[tuple[object, ...], ttypes.LightTreeStatus]] = {}

    def read(self, core: Core, tenant: str | None, warnings: Sequence[str] = ()) -> ttypes.FabricStatus:
        """Racks, splitters, switches, and the light trees and pending requests of `tenant` (None: everybody's)."""
        if core is not self._core:
            self._core, self._hardware, self._trees = core, _Hardware(core), {}
        self._hardware.renew()
        declared, view = core.fabric, core.view
        return ttypes.FabricStatus(
            racks=list(self._hardware.racks.values()),
            splitters=list(self._hardware.splitters.values()),
            opticalSwitches=[
                ttypes.OpticalSwitchStatus(name, name not in view.away, view.away.get(name))
                for name in declared.switches
            ],
            lightTrees=self._light_trees(core, tenant),
            lightRateBitsPerSecond=int(declared.light_rate),
            pendingRequests=core.pending_count if tenant is None else core.pending_count_of(tenant),
            warnings=list(warnings) or None,
            warm=_warm(core) if tenant is None else None,
            staticTrees=_static_trees(core) or None,
        )

    def _light_trees(self, core: Core, tenant: str | None) -> list[ttypes.LightTreeStatus]:
        before, self._trees = self._trees, {}
        found = []
        for reservation in core.reservations:
            told = _facts(reservation)
            known = before.get(reservation.id)
            tree = known[1] if known is not None and known[0] == told else _light_tree(core, reservation)
            self._trees[reservation.id] = told, tree
            if tenant in (None, reservation.request[0]):
                found.append(tree)
        return found


class _Hardware:
    """Racks and splitters by name, in the order in which they were declared."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._away: dict[Device, str] = dict(core.view.away)
        core.view.take_changes()
        self.racks = {rack.name: self._rack(rack) for rack in core.fabric.racks.values()}
        self.splitters = {splitter.name: self._splitter(splitter) for splitter in core.fabric.splitters.values()}
        ports = (port for rack in core.fabric.racks.values() for port in rack.optical_ports)
        self._rack_of = {element: port.rack for port in ports for element in (port.element, port.whole_element)}
        self._splitter_of = {splitter.element: splitter for splitter in core.fabric.splitters.values()}

    def renew(self) -> None:
        """Look again at what has changed."""
        fabric, view = self._core.fabric, self._core.view
        changed = view.take_changes()
        racks = {self._rack_of[element] for element in changed if element in self._rack_of}
        if view.away != self._away:
            moved = view.away.keys() ^ self._away.keys()
            racks |= {rack.name for rack in fabric.racks.values() if rack.datapath in moved}
            self._away = dict(view.away)
        for name in racks:
            self.racks[name] = self._rack(fabric.racks[name])
        for element in changed & self._splitter_of.keys():
            splitter = self._splitter_of[element]
            self.splitters[splitter.name] = self._splitter(splitter)

    def _rack(self, rack: Rack) -> ttypes.RackStatus:
        hosts = self._core.fabric.hosts_by_rack[rack.name]
        limited = {host.name: round(host.access_rate) for host in hosts if host.access_rate is not None}
        return ttypes.RackStatus(
            name=rack.name,
            datapath=f"{rack.datapath:016x}",
            connected=rack.datapath not in self._core.view.away,
            opticalPorts=[self._port(port) for port in rack.optical_ports],
            hosts=[host.name for host in hosts],
            accessBitsPerSecond=limited or None,
            uplinkBitsPerSecond=None if rack.uplink_rate is None else round(rack.uplink_rate),
        )

    def _port(self, port: OpticalPort) -> ttypes.OpticalPortStatus:
        holder, reason = self._standing(port.element)
        return ttypes.OpticalPortStatus(port.port, port.switch, port.input, port.output, holder, reason)

    def _splitter(self, s: Splitter) -> ttypes.SplitterStatus:
        return ttypes.SplitterStatus(s.name, s.ways, s.switch, s.input, list(s.outputs), *self._standing(s.element))

    def _standing(self, element: ElementId) -> tuple[int | None, str | None]:
        """Who has it, and why nobody can use it."""
        return self._core.view.holders.get(element), self._core.view.unusable(element)


def _facts(reservation: Reservation) -> tuple[object, ...]:
    """All that an answer says of a reservation."""
    return (
        reservation.state,
        reservation.request,
        reservation.part,
        reservation.group_address,
        reservation.layout,
    )


def _light_tree(core: Core, reservation: Reservation) -> ttypes.LightTreeStatus:
    tree = reservation.layout.tree
    return ttypes.LightTreeStatus(
        reservation=reservation.id,
        key=reservation.request[1],
        part=reservation.part,
        state=reservation.state.value,
        groupAddress=reservation.group_address,
        # A tree that is kept warm may outlive what is known of its request.
        rootRack=tree.root.rack if tree else _rack_of_sender(core, reservation.request),
        leafRacks=[leaf.port.rack for leaf in tree.leaves] if tree else [],
        splitters=[hung.splitter.name for hung in tree.splitters] if tree else [],
        crossConnects=[ttypes.CrossConnectStatus(c.switch, c.input, c.output) for c in reservation.layout.circuits],
    )


def _rack_of_sender(core: Core, request: RequestKey) -> str:
    return core.fabric.hosts[core.request(request).current.sender].rack


def _warm(core: Core) -> ttypes.WarmStatus | None:
    """What is kept lit, if anything is."""
    view = core.view
    if not (core.settings.keep_warm or view.kept_warm):
        return None
    counts = view.warm_counts
    return ttypes.WarmStatus(
        trees=view.kept_warm,
        pieces=[ttypes.IdlePieces(s.switch, s.ways or None, s.dark, s.lit, s.reserve) for s in view.reserves],
        lightGiven=counts.lit,
        foundLit=counts.hits,
        gaveWay=counts.gave_way,
        takenOver=counts.taken_over,
    )


def _static_trees(core: Core) -> list[ttypes.StaticTreeStatus]:
    return [_static_tree(core, tree) for tree in core.fabric.static_trees.values()]


def _static_tree(core: Core, tree: StaticTree) -> ttypes.StaticTreeStatus:
    element = static_element(tree.name)
    ends = [*tree.leaf_ports, *sorted(tree.leaf_hosts)]
    root = tree.root_rack or tree.root_host or ""
    holder, reason = core.view.holders.get(element), core.view.unusable(element)
    return ttypes.StaticTreeStatus(tree.name, root, ends, holder, reason)
