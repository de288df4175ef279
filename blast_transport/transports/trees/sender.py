"""Transport `trees` at the sender: distributes blocks to the trees, monitors them, and requests new plans."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import replace

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Chain, TransportChoice, Trees
from blast_transport.transports.confirmation import Confirmation
from blast_transport.transports.sending import (
    PeerLost,
    PhaseRequested,
    Reached,
    SendingContext,
    SendingEvent,
    SendingTransport,
    Sent,
)
from blast_transport.transports.trees.events import BlocksDistributed, Event, ReportReady, TreesDrained, TreesEnded
from blast_transport.transports.trees.oversight import Oversight
from blast_transport.transports.trees.parameters import TreesParameters, trees_phase
from blast_transport.transports.trees.plan import NOWHERE
from blast_transport.transports.trees.protocol.fields import decode_report
from blast_transport.transports.trees.pruning import pruned
from blast_transport.transports.trees.root import Root
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Phase

_BLOCKS_PER_STEP = 32
_IDLE_SECONDS = 0.1
"""Interval between checks for silent hosts."""
_STALL_SECONDS = 1.7
"""For which a receiver may get nothing while there is data: longer than `Oversight` needs to find a host or an edge."""


class TreesSender(SendingTransport):
    """Trees of `choice` over the present receivers; absent ones are left out, and get their data at the end."""

    def __init__(self, phase: Phase, choice: Trees, around: SendingContext) -> None:
        super().__init__(phase)
        self._choice, self._around, self._reader = choice, around, around.reader
        addresses = {member.address[0]: member.address for member in around.members}
        trees = [tree for whole in choice.trees if (tree := pruned(whole, addresses, ())) is not None]
        entered = [name for name in addresses if any(name in tree.parents for tree in trees)]
        # The sender connects to the others and accepts no connections.
        self._nodes = TreesParameters(
            ((SOURCE, "", 0), *(addresses[name] for name in entered)),
            tuple((tree.rate, _places(entered, dict(tree.parents))) for tree in trees),
            0,
        )
        self._places = {name: place for place, name in enumerate(entered, 1)}
        self._happened: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._root: Root | None = None
        self._oversight: Oversight | None = None
        self._stop: int | None = None
        self._drained = False
        self._late = False
        self._renewed = False
        # Blocks that each receiver has written, and the time of the last change.
        self._progress: dict[str, tuple[int, float]] = {}
        self._stalled = False
        self._confirmation = Confirmation()

    def phase(self, name: str) -> Phase | None:
        """Return the Phase with this host's place; a late host has none, and the trees are planned again for it."""
        place = self._places.get(name)
        if place is not None:
            return replace(self._phase, parameters=to_parameters(replace(self._nodes, place=place)))
        known = any(name in tree.parents for tree in self._choice.trees)
        self._late = self._late or (self._root is not None and known and self._reader.source.size is not None)
        return None

    def follow(self, choice: TransportChoice) -> bool:
        """Return whether the choice has the same trees: others require another phase."""
        if choice != self._choice:
            return False
        assert isinstance(choice, Trees)
        self._choice = choice
        return True

    def work(self, now: float) -> float:
        """Digest what the trees carry, and watch over them. Raises SourceChangedError, ForgottenError."""
        if self._root is None and not self.over:
            self._begin(now)
        busy = self._reader.digest(_BLOCKS_PER_STEP)
        if busy and self._root is not None and self._reader.source.descriptor is None:
            self._root.wake()
        self._now = now
        self._show(now)
        return 0 if busy else _IDLE_SECONDS

    def events(self) -> Iterator[SendingEvent]:
        """Return the events of the trees, and their consequences."""
        while not self._happened.empty():
            yield from self._translate(self._happened.get())
        if self._oversight is None or self._stop is not None or self._renewed:
            self.over = self.over or self._drained
            return
        if self._stalled:
            self._renewed = True
            yield PhaseRequested(Chain())
            return
        found = self._oversight.tick(self._now)
        yield from (PeerLost(name, reason) for name, reason in found.lost.items())
        if found.replan or self._late:
            self._renewed = True
            # The next transport does not have the observations of this one.
            self._show(self._now)
            unreliable = self._oversight.unreliable(self._choice.broken)
            yield from (PeerLost(name, "its connections to other hosts of the trees break") for name in unreliable)
            yield PhaseRequested(self._replanned(unreliable))
        elif self._drained and not self._oversight.suspects:
            self.over = True

    def look(self, reached: Mapping[str, Reached], now: float) -> None:
        """Find out whether some receiver gets nothing, and whether all have everything though no host confirms it.

        Any host before a receiver in a tree may be the cause of either, and reports what it likes.
        """
        size, block_size = self._reader.source.size, self._reader.layout.block_size
        there = self._reader.readable if size is None else -(-size // block_size)
        for name in self._places.keys() & reached.keys():
            written, since = self._progress.get(name, (-1, now))
            if reached[name].written != written or written >= there:
                self._progress[name] = reached[name].written, now
            elif now >= since + _STALL_SECONDS:
                self._stalled = True
        complete = size is not None and all(one.written >= there for one in reached.values())
        self.over = self.over or self._confirmation.is_overdue(complete, now)

    def receive_report(self, name: str, body: bytes, now: float) -> None:
        """Handle a report of a host. Raise RemoteProtocolError."""
        place = self._places.get(name)
        if place is None:
            raise RemoteProtocolError("a report of a host that is in no tree")
        word = decode_report(body, len(self._nodes.members))
        # Hosts begin before the sender.
        if self._oversight is not None:
            self._now = now
            self._oversight.word(place, word, now)

    def receiver_lost(self, name: str, reason: str) -> None:
        """Handle the loss of this host."""
        if self._oversight is not None:
            self._oversight.receiver_lost(name, reason)

    def leave(self) -> int | None:
        """Complete the blocks that are distributed; the next transport begins after them."""
        if self._root is None or self.over:
            return None
        self._stop = self._root.leave()
        return self._stop

    def quit(self, reason: str) -> None:
        """End the trees at all hosts."""
        if self._root is not None:
            self._root.stop(reason)

    def close(self) -> None:
        """End the trees, if they have not ended."""
        if self._root is not None:
            self._root.stop("the sender goes on by another way")

    def _begin(self, now: float) -> None:
        if not self._places:
            self.over = True
            return
        phase = trees_phase(replace(self._phase, parameters=to_parameters(self._nodes)))
        self._now = now
        self._oversight = Oversight(phase, now)
        self._root = Root(phase, self._reader, self._around.held, self._note, self._around.dial)
        self._root.start()

    def _show(self, now: float) -> None:
        """Report the state of the phase to the planner, if a report is due."""
        if self._oversight is None or self._choice.watch is None:
            return
        if (sight := self._oversight.sight(now)) is not None:
            self._choice.watch(sight)

    def _note(self, event: Event) -> None:
        self._happened.put(event)
        self._around.wake()

    def _translate(self, event: Event) -> Iterator[SendingEvent]:
        match event:
            case BlocksDistributed(stop):
                yield Sent(stop)
            case ReportReady(word) if self._oversight is not None:
                self._oversight.word(0, word, self._now)
            case TreesDrained():
                self._drained = True
            case TreesEnded():
                # Receivers request missing blocks at the end, unless another phase follows.
                self._drained = True

    def _replanned(self, unreliable: set[str]) -> TransportChoice:
        """Return the same trees without broken edges and these hosts; a pipeline if no tree is left."""
        assert self._oversight is not None
        choice = self._choice
        broken = choice.broken | frozenset(self._oversight.broken)
        found = [pruned(tree, tree.parents.keys() - unreliable, broken) for tree in choice.trees]
        trees = tuple(tree for tree in found if tree is not None)
        return replace(choice, trees=trees, broken=broken) if trees else Chain()


def _places(members: list[str], parents: dict[str, str]) -> tuple[int, ...]:
    places = {SOURCE: 0} | {name: place for place, name in enumerate(members, 1)}
    return tuple(places[parents[name]] if name in parents else NOWHERE for name in members)
