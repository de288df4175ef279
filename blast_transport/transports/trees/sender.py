"""The transport `trees` at the sender: deals blocks to the trees, watches over them, and has them planned anew."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import replace

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Chain, TransportChoice, Trees
from blast_transport.transports.confirmation import Confirmation
from blast_transport.transports.sending import (
    Anew,
    PeerLost,
    Reached,
    SendingContext,
    SendingEvent,
    SendingTransport,
    Sent,
)
from blast_transport.transports.trees.events import Dealt, Drained, Ended, Event, Said
from blast_transport.transports.trees.oversight import Oversight
from blast_transport.transports.trees.parameters import TreesParameters, trees_phase
from blast_transport.transports.trees.plan import NOWHERE
from blast_transport.transports.trees.protocol.words import decode_word
from blast_transport.transports.trees.pruning import pruned
from blast_transport.transports.trees.root import Root
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Phase

_BLOCKS_PER_TURN = 32
_IDLE_SECONDS = 0.1
"""Between two looks at who is silent."""
_STALL_SECONDS = 1.7
"""For which a receiver may get nothing while there is data: longer than `Oversight` needs to find a host or an edge."""


class TreesSender(SendingTransport):
    """The trees of `choice` over those who take part; who is not there is left out, and gets its data in the end."""

    def __init__(self, phase: Phase, choice: Trees, around: SendingContext) -> None:
        super().__init__(phase)
        self._choice, self._around, self._reader = choice, around, around.reader
        addresses = {member.address[0]: member.address for member in around.members}
        trees = [tree for whole in choice.trees if (tree := pruned(whole, addresses, ())) is not None]
        entered = [name for name in addresses if any(name in tree.parents for tree in trees)]
        # The sender connects to the others, and nobody to it.
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
        # What each receiver had written, and since when it has not written more.
        self._progress: dict[str, tuple[int, float]] = {}
        self._stalled = False
        self._confirmation = Confirmation()

    def phase(self, name: str) -> Phase | None:
        """Each host hears its own place; who comes late has none, and the trees are planned anew for it."""
        place = self._places.get(name)
        if place is not None:
            return replace(self._phase, parameters=to_parameters(replace(self._nodes, place=place)))
        known = any(name in tree.parents for tree in self._choice.trees)
        self._late = self._late or (self._root is not None and known and self._reader.source.size is not None)
        return None

    def follow(self, choice: TransportChoice) -> bool:
        """Other trees are another phase."""
        if choice != self._choice:
            return False
        assert isinstance(choice, Trees)
        self._choice = choice
        return True

    def work(self, now: float) -> float:
        """Digest what the trees carry, and watch over them. Raises SourceChangedError, ForgottenError."""
        if self._root is None and not self.over:
            self._begin(now)
        busy = self._reader.digest(_BLOCKS_PER_TURN)
        if busy and self._root is not None and self._reader.source.descriptor is None:
            self._root.wake()
        self._now = now
        self._show(now)
        return 0 if busy else _IDLE_SECONDS

    def events(self) -> Iterator[SendingEvent]:
        """What the trees have told, and what follows from it."""
        while not self._happened.empty():
            yield from self._told(self._happened.get())
        if self._oversight is None or self._stop is not None or self._renewed:
            self.over = self.over or self._drained
            return
        if self._stalled:
            self._renewed = True
            yield Anew(Chain())
            return
        found = self._oversight.tick(self._now)
        yield from (PeerLost(name, reason) for name, reason in found.lost.items())
        if found.anew or self._late:
            self._renewed = True
            # The next transport knows nothing of what this one has seen.
            self._show(self._now)
            unreliable = self._oversight.unreliable(self._choice.broken)
            yield from (PeerLost(name, "its connections to other hosts of the trees break") for name in unreliable)
            yield Anew(self._replanned(unreliable))
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

    def heard(self, name: str, body: bytes, now: float) -> None:
        """A word of one of our hosts. Raises RemoteProtocolError."""
        place = self._places.get(name)
        if place is None:
            raise RemoteProtocolError("a word of a host that stands in no tree")
        word = decode_word(body, len(self._nodes.members))
        # Hosts begin before us.
        if self._oversight is not None:
            self._now = now
            self._oversight.word(place, word, now)

    def gone(self, name: str, reason: str) -> None:
        """The session has lost this one."""
        if self._oversight is not None:
            self._oversight.gone(name, reason)

    def leave(self) -> int | None:
        """What was dealt still goes along the trees; the next transport begins behind it."""
        if self._root is None or self.over:
            return None
        self._stop = self._root.leave()
        return self._stop

    def quit(self, reason: str) -> None:
        """Everybody ends."""
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
        """Tell whoever watches what is seen, if it is time."""
        if self._oversight is None or self._choice.watch is None:
            return
        if (sight := self._oversight.sight(now)) is not None:
            self._choice.watch(sight)

    def _note(self, event: Event) -> None:
        self._happened.put(event)
        self._around.wake()

    def _told(self, event: Event) -> Iterator[SendingEvent]:
        match event:
            case Dealt(stop):
                yield Sent(stop)
            case Said(word) if self._oversight is not None:
                self._oversight.word(0, word, self._now)
            case Drained():
                self._drained = True
            case Ended():
                # What the trees did not bring is asked for in the end, unless they are planned anew before.
                self._drained = True

    def _replanned(self, unreliable: set[str]) -> TransportChoice:
        """The same trees, over edges that there are and without these hosts; a pipeline where no tree is left."""
        assert self._oversight is not None
        choice = self._choice
        broken = choice.broken | frozenset(self._oversight.broken)
        found = [pruned(tree, tree.parents.keys() - unreliable, broken) for tree in choice.trees]
        trees = tuple(tree for tree in found if tree is not None)
        return replace(choice, trees=trees, broken=broken) if trees else Chain()


def _places(members: list[str], parents: dict[str, str]) -> tuple[int, ...]:
    places = {SOURCE: 0} | {name: place for place, name in enumerate(members, 1)}
    return tuple(places[parents[name]] if name in parents else NOWHERE for name in members)
