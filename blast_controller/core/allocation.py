"""Allocation: which pending parts get light now, and on which ports, splitters and group address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from algorithms.b_matching.residual import Choice
from algorithms.policies import POLICIES
from algorithms.splitter_tree import choose_splitters
from blast_controller.core.admission import group_of
from blast_controller.core.errors import Rejected
from blast_controller.core.fabric import Fabric, Host, OpticalPort, Splitter
from blast_controller.core.forwarding import forwards_for
from blast_controller.core.layout import Layout
from blast_controller.core.ledger import Ledger
from blast_controller.core.light_tree import LightTree, build, good_legs, grow, prune
from blast_controller.core.requests import MulticastRequest, Part, Request
from blast_controller.core.settings import CoreSettings
from blast_controller.core.static_tree import StaticLight, covers, light_of

Candidate = tuple[Request, Part]


@dataclass(frozen=True, slots=True)
class Placement:
    """A pending part and what it is to hold."""

    request: Request
    part: Part
    layout: Layout
    group_address: str


class Allocator:
    """Turns the policy's choices into layouts. Reads the ledger; takes nothing but group addresses from it."""

    def __init__(self, fabric: Fabric, ledger: Ledger, settings: CoreSettings) -> None:
        self._fabric = fabric
        self._ledger = ledger
        self._settings = settings
        self._policy = POLICIES[settings.policy]

    def decide(self, pending: Iterable[Candidate], allowance: Mapping[str, int]) -> Iterator[Placement]:
        """What to serve now. The caller takes each placement's elements before it asks for the next one.

        `allowance` says how many more splitters a tenant may hold, -1 where it may have no light at all.
        """
        present = [c for c in pending if not self._absent_datapaths(c[0].current, c[1].receivers)]
        groups = {}
        for request, part in present:
            has_light = allowance.get(request.current.tenant, 0) >= 0
            static = self._static(request.current, part.receivers) if has_light else None
            if static is not None:
                yield from self._place(request, part, static)
                continue
            group = group_of(request.current, part.receivers, self._fabric, self._settings.loop_leaf)
            if group is None:
                yield from self._place(request, part, None)
            else:
                groups[id(group)] = (group, request, part)
        for group, choice in self._policy([group for group, _, _ in groups.values()], self._ledger.residual(allowance)):
            _, request, part = groups[id(group)]
            yield from self._place(request, part, self._tree(request.current, part.receivers, choice))

    def _place(self, request: Request, part: Part, tree: LightTree | None) -> Iterator[Placement]:
        address = self._ledger.take_address()
        if address is not None:
            yield Placement(request, part, self.layout(request.current, part.receivers, tree, address), address)

    def layout(self, request: MulticastRequest, receivers: Sequence[str], tree: LightTree | None, group: str) -> Layout:
        """A tree with the forwards that these receivers need."""
        hosts = self._fabric.hosts
        forwards = forwards_for(self._fabric, hosts[request.sender], [hosts[name] for name in receivers], tree, group)
        return Layout(tuple(receivers), tree, forwards)

    def _static(self, request: MulticastRequest, receivers: Sequence[str]) -> StaticLight | None:
        """A free static tree that serves them: it costs nobody else any light, so it is taken at once."""
        sender, members = self._hosts(request, receivers)
        tree = next((t for t in self._ledger.free_static() if covers(t, sender, members)), None)
        return None if tree is None else light_of(tree, sender, members)

    def _hosts(self, request: MulticastRequest, receivers: Sequence[str]) -> tuple[Host, list[Host]]:
        return self._fabric.hosts[request.sender], [self._fabric.hosts[name] for name in receivers]

    def _tree(self, request: MulticastRequest, receivers: Sequence[str], choice: Choice) -> LightTree:
        root = self._fabric.hosts[request.sender].rack
        racks = self._other_racks(request, receivers)
        return build(
            self._port(root, choice.switch),
            [self._port(rack, choice.switch) for rack in racks],
            self._splitters(choice),
            self._settings.loop_leaf,
        )

    def _port(self, rack: str, switch: str) -> OpticalPort:
        port = self._ledger.free_port(rack, switch)
        if port is None:
            raise Rejected("no_port", f"The rack {rack} has no free optical port on {switch}.")
        return port

    def _splitters(self, choice: Choice) -> list[Splitter]:
        return self._ledger.free_splitters(choice.switch, choice.ways)

    def _other_racks(self, request: MulticastRequest, receivers: Iterable[str]) -> list[str]:
        root = self._fabric.hosts[request.sender].rack
        return [rack for rack in dict.fromkeys(self._fabric.hosts[host].rack for host in receivers) if rack != root]

    # ------------------------------------------------------------------------------------------ extension

    def extended(self, layout: Layout, request: MulticastRequest, group: str) -> Layout:
        """The layout for `request`'s receivers, grown out of `layout` without moving what is lit.

        Raises Rejected when that cannot be had.
        """
        if self._absent_datapaths(request, request.receivers):
            raise Rejected("device_away", f"{self._absent_datapaths(request, request.receivers)[0]}.")
        racks = self._other_racks(request, request.receivers)
        old = layout.tree
        if isinstance(old, StaticLight):
            return self.layout(request, request.receivers, self._extended_static(old, request), group)
        if old is None:
            tree = self._first_tree(request) if racks else None
        else:
            added = [rack for rack in racks if old.leaf_of(rack) is None]
            grown = self._grown(old, added) if added else old
            gone = {leaf.port.rack for leaf in old.leaves} - set(racks) - {old.root.rack}
            tree = prune(grown, gone) if racks else None
        return self.layout(request, request.receivers, tree, group)

    def _extended_static(self, old: StaticLight, request: MulticastRequest) -> StaticLight:
        tree = self._fabric.static_trees[old.name]
        sender, members = self._hosts(request, request.receivers)
        if not covers(tree, sender, members):
            raise Rejected("no_open_leg", f"The static tree {old.name} does not reach all of these receivers.")
        return light_of(tree, sender, members)

    def _first_tree(self, request: MulticastRequest) -> LightTree:
        group = group_of(request, request.receivers, self._fabric, self._settings.loop_leaf)
        choice = self._ledger.residual().fit(group) if group else None
        if choice is None:
            raise Rejected(
                "no_resources", "There are not enough free optical ports or splitters for this extension now."
            )
        return self._tree(request, request.receivers, choice)

    def _grown(self, tree: LightTree, racks: list[str]) -> LightTree:
        ports = [self._port(rack, tree.switch) for rack in racks]
        most = self._settings.most_splitters
        allowed = None if most is None else most - len(tree.splitters)
        free = self._ledger.free_sizes(tree.switch)
        bad = self._ledger.bad_legs(hung.splitter for hung in tree.splitters)
        ways = choose_splitters(len(ports), free, allowed, len(good_legs(tree, bad)))
        taken = self._splitters(Choice(tree.switch, ways)) if ways else []
        grown = grow(tree, ports, taken, bad)
        if grown is None:
            raise Rejected(
                "no_open_leg",
                "The light tree has no open splitter leg for the new racks, and moving lit receivers would cost them "
                "packets; finish and ask again for the larger group.",
            )
        return grown

    # -------------------------------------------------------------------------------------- why it waits

    def waits_for(self, request: MulticastRequest, receivers: Sequence[str], allowance: Mapping[str, int]) -> str:
        """What keeps a part pending, as one sentence."""
        away = self._absent_datapaths(request, receivers)
        group = group_of(request, receivers, self._fabric, self._settings.loop_leaf)
        if group is not None:
            switches = {p.switch for rack in group.racks for p in self._fabric.racks[rack].optical_ports}
            lost = [switch for switch in sorted(switches) if switch in self._ledger.away]
            if len(lost) == len(switches):
                away += [f"the optical switch {switch} is away ({self._ledger.away[switch]})" for switch in lost]
        if away:
            return f"Waiting: {away[0]}."
        if group is not None and allowance.get(request.tenant, 0) < 0:
            return f"Waiting: the tenant {request.tenant} has used up its light for this hour."
        if group is not None and self._ledger.capacity().fit(group) is None:
            sender, members = self._hosts(request, receivers)
            trees = [tree.name for tree in self._ledger.usable_static() if covers(tree, sender, members)]
            if trees:
                return f"Waiting for the static tree {' or '.join(trees)}."
        busy = [rack for rack in sorted(group.racks if group else ()) if not self._any_port(rack)]
        if busy:
            return f"Waiting for a free optical port of {', '.join(busy)}."
        if request.tenant in allowance and group is not None and self._ledger.residual().fit(group):
            return f"Waiting: the tenant {request.tenant} holds as many splitters as it may."
        return "Waiting for free splitters."

    def _any_port(self, rack: str) -> bool:
        return any(self._ledger.free_port(rack, switch) for switch in self._fabric.switches)

    def _absent_datapaths(self, request: MulticastRequest, receivers: Sequence[str]) -> list[str]:
        racks = dict.fromkeys(self._fabric.hosts[host].rack for host in (request.sender, *receivers))
        away = self._ledger.away
        datapaths = {rack: self._fabric.racks[rack].datapath for rack in racks}
        return [f"the ToR of {rack} is away ({away[d]})" for rack, d in datapaths.items() if d in away]
