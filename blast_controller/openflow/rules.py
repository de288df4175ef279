"""The required flow table of a ToR: pure translation of the core's forwards, and of the guards, into rules.

Theory of operation
-------------------
A **forward** (priority `priority`) steers one group from one sender: IPv4 packets from the sender's port *and* address
to the group's address leave by exactly the given ports, marked with a DSCP. A **guard** (lower `guard_priority`) drops
all other packets that could enter the optical network or arrive from it: those to the whole range of group addresses,
from any sender, and those on an optical port. One more guard for every optical port passes probe frames (`probe.py`) to
the controller. Guards exist before the first forward and after the last, so unauthorized packets never reach a host.

Every rule has a cookie: magic 0xb1a5 (16 bit), epoch (16), reservation (32; 0 is a guard). Rules without the magic are
foreign and are never named in a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from blast_controller.core.model.commands import Forward, ForwardingChange

MAGIC = 0xB1A5 << 48
MAGIC_MASK = 0xFFFF << 48
RESERVATION_MASK = 0xFFFF_FFFF
OWNER_MASK = MAGIC_MASK | RESERVATION_MASK
"""The bits of a cookie that identify the rule's owner. The epoch only identifies the run of the controller that wrote
it."""
MAX_PORT = 0xFFFF_FF00
"""OFPP_MAX: the highest number of a physical port (OpenFlow 1.3.5, section A.2.1)."""
CONTROLLER = 0xFFFF_FFFD
"""OFPP_CONTROLLER: an output that is the controller itself."""
PROBE_ETHERTYPE = 0x88B5
"""EtherType of probe frames: IEEE 802 "local experimental 1"."""


class InvalidForwardError(ValueError):
    """A forward that no rule can express, with the reason as message."""


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Where Blast's rules live on a ToR, so that they get along with other rules there.

    Parameters
    ----------
    table : OpenFlow table of all our rules, 0 to 254.
    priority, guard_priority : of forwards and of guards; above whatever the packet network's own rules use.
    dscp : differentiated services code point written into forwarded packets, 0 to 63; None leaves them as they are.
    queue : queue of the output ports for forwarded packets; None leaves the default queue.
    epoch : 16-bit number of this run of the controller, kept in every cookie.

    Raises ValueError for settings out of range.
    """

    table: int = 0
    priority: int = 40_000
    guard_priority: int = 30_000
    dscp: int | None = 46
    queue: int | None = None
    epoch: int = 0

    def __post_init__(self) -> None:
        _check("table", self.table, 0, 254)
        _check("guard_priority", self.guard_priority, 1, 0xFFFE)
        _check("priority", self.priority, self.guard_priority + 1, 0xFFFF)
        _check("epoch", self.epoch, 0, 0xFFFF)
        if self.dscp is not None:
            _check("dscp", self.dscp, 0, 63)
        if self.queue is not None:
            _check("queue", self.queue, 0, 0xFFFF_FFFE)


@dataclass(frozen=True, slots=True)
class Match:
    """The packets that a rule applies to; None matches anything.

    `source` and `destination` imply IPv4 and go without `ethertype`, which is for everything else.
    """

    in_port: int | None = None
    source: IPv4Address | None = None
    destination: IPv4Network | None = None
    ethertype: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of a flow table: matching packets are marked, queued and sent to `outputs`; none means dropped."""

    table: int
    priority: int
    cookie: int
    match: Match
    outputs: tuple[int, ...] = ()
    dscp: int | None = None
    queue: int | None = None

    @property
    def place(self) -> tuple[int, int, Match]:
        """Return the identity of a rule on a ToR.

        Adding a rule replaces the one with the same identity (OpenFlow 1.3.5, section 6.4).
        """
        return self.table, self.priority, self.match

    @property
    def reservation(self) -> int:
        """Return the reservation; 0 for a guard."""
        return self.cookie & RESERVATION_MASK


@dataclass(frozen=True, slots=True)
class UnknownRule:
    """A rule with our magic on a ToR that `Rule` cannot express, so nothing of ours wrote it.

    `match` is its ofp_match as the ToR sent it (section A.2.3.1), without the padding.
    """

    table: int
    priority: int
    cookie: int
    match: bytes


@dataclass(frozen=True, slots=True)
class AddRule:
    """Add a rule; one with the same table, priority and match is replaced without a gap (OFPFC_ADD)."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class DeleteRule:
    """Delete the rule with exactly this match and priority if it has the same owner (OFPFC_DELETE_STRICT)."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class DeleteStray:
    """Delete exactly this rule (OFPFC_DELETE_STRICT, whole cookie)."""

    stray: UnknownRule


Operation = AddRule | DeleteRule | DeleteStray


def cookie(epoch: int, reservation: int) -> int:
    """Return the cookie of a rule of `reservation` (0: a guard).

    Raises InvalidForwardError if the reservation does not fit in 32 bits.
    """
    if not 0 <= reservation <= RESERVATION_MASK:
        raise InvalidForwardError(f"reservation {reservation} does not fit in the 32 bits of a cookie")
    return MAGIC | epoch << 32 | reservation


def guards(settings: RuleSettings, optical_ports: Sequence[int], group_network: IPv4Network) -> list[Rule]:
    """Return the rules that every ToR holds from connection on: no group without a forward, no light without a forward.

    Probes have the forwards' priority, above the drop; they and forwards never apply to the same packet.
    """
    ours = cookie(settings.epoch, 0)
    drops = [Match(destination=group_network), *(Match(in_port=port) for port in optical_ports)]
    probes = [Match(in_port=port, ethertype=PROBE_ETHERTYPE) for port in optical_ports]
    return [
        *(Rule(settings.table, settings.guard_priority, ours, match) for match in drops),
        *(Rule(settings.table, settings.priority, ours, match, (CONTROLLER,)) for match in probes),
    ]


def forward_rule(settings: RuleSettings, reservation: int, forward: Forward) -> Rule:
    """Return the rule that does `forward` for `reservation`. Raises InvalidForwardError if no rule can."""
    if reservation == 0:
        raise InvalidForwardError("reservation 0 is reserved for the guard rules")
    outputs = _outputs(forward)
    return Rule(
        table=settings.table,
        priority=settings.priority,
        cookie=cookie(settings.epoch, reservation),
        match=_match(forward),
        outputs=outputs,
        dscp=settings.dscp if outputs else None,
        queue=settings.queue if outputs else None,
    )


def forward_of(rule: Rule) -> Forward | None:
    """Return the forward that a rule does; None if its match is not that of a forward."""
    match = rule.match
    if match.in_port is None or match.source is None or match.destination is None or match.destination.prefixlen != 32:
        return None
    return Forward(match.in_port, str(match.source), str(match.destination.network_address), rule.outputs)


def additions(settings: RuleSettings, change: ForwardingChange) -> list[AddRule]:
    """Return the rules that a change adds. Raises InvalidForwardError."""
    return [AddRule(forward_rule(settings, change.reservation, forward)) for forward in change.add]


def removals(settings: RuleSettings, change: ForwardingChange) -> list[DeleteRule]:
    """Return the deletions of a change; a key that is also added is only added, which replaces the rule.

    A deletion names the reservation, so it never deletes a rule that another reservation has added with the same key
    meanwhile. Raises InvalidForwardError.
    """
    added = {forward.key for forward in change.add}
    removed = (forward for forward in change.remove if forward.key not in added)
    return [DeleteRule(forward_rule(settings, change.reservation, forward)) for forward in removed]


def merged(changes: Iterable[ForwardingChange]) -> dict[tuple[int, int], ForwardingChange]:
    """Merge changes by (reservation, step)."""
    result: dict[tuple[int, int], ForwardingChange] = {}
    for change in changes:
        key = change.reservation, change.step
        before = result.get(key)
        result[key] = (
            ForwardingChange(*key, before.remove + change.remove, before.add + change.add) if before else change
        )
    return result


REMEMBERED = 4_096
"""Addresses, half a kilobyte each: hosts come again with every request, but each request has a group of its own."""


@lru_cache(REMEMBERED)
def _address(text: str) -> IPv4Address:
    """Parse and cache an address: parsing took a tenth of a grant's time."""
    return IPv4Address(text)


@lru_cache(REMEMBERED)
def _group(text: str) -> IPv4Network:
    """Parse and cache a group address. Raises ValueError if it is none."""
    group = IPv4Address(text)
    if not group.is_multicast:
        raise ValueError(f"{group} is not a multicast address")
    return IPv4Network(group)


def _match(forward: Forward) -> Match:
    try:
        source, group = _address(forward.source), _group(forward.group)
    except ValueError as error:
        raise InvalidForwardError(f"{forward}: {error}") from error
    if not 1 <= forward.in_port <= MAX_PORT:
        raise InvalidForwardError(f"{forward}: {forward.in_port} is not a port number")
    return Match(forward.in_port, source, group)


def _outputs(forward: Forward) -> tuple[int, ...]:
    if forward.in_port in forward.outputs:
        raise InvalidForwardError(f"{forward}: a switch never sends a packet back by the port that it arrived on")
    if len(set(forward.outputs)) < len(forward.outputs):
        raise InvalidForwardError(f"{forward}: an output named twice would send every packet twice")
    if forward.outputs and not 1 <= min(forward.outputs) <= max(forward.outputs) <= MAX_PORT:
        raise InvalidForwardError(f"{forward}: outputs must be port numbers")
    return forward.outputs


def _check(name: str, value: int, minimum: int, maximum: int) -> None:
    if not minimum <= value <= maximum:
        raise ValueError(f"{name} is {value}, but must be from {minimum} to {maximum}")
