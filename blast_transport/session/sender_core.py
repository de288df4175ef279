"""What a sender decides in one session with many receivers. No sockets, no files, no clock.

Theory of operation. Every receiver is invited as soon as it is connected, and says what it holds. The data goes by
phases, each of them one transport from some block on; a receiver is told of a phase and answers when it listens, and
who does not answer in time fails. By light a block leaves only when it fits into the window: no more than `window`
blocks may be ahead of what the slowest receiver has dealt with. What a receiver asks for is owed to it: over its own
connection if it alone misses it, by light to all if several do.

A receiver that keeps the others waiting, or shows no progress, is demoted: it leaves the window, keeps what it still
catches, and is served what it misses when the others are done; if it keeps up again for long enough, it counts again.
One whose connection ends may come back until then, and goes on with what it holds. A receiver hears EndOfData when all
was sent once and nothing is owed to it, and ends with Fin. Each has its own state and deadline, so that none waits for
another. Progress of a receiver is a message from it, never bytes that its connection takes: the kernel of a stopped
process takes many.

The caller pulls: `permitted` and `sent` for the light, `take_shared_repair` for it too, `take_repair` for one receiver.
Messages collect in `outbox`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from operator import attrgetter

from blast_transport.blocks.block_map import BlockMap, Range, count_held
from blast_transport.session.peers.peer import LISTENING, OVER, UNANSWERED, Peer, PeerEvent, PeerState
from blast_transport.session.peers.repairs import Repairs
from blast_transport.session.peers.stragglers import Stragglers
from blast_transport.session.peers.timeouts import Timeouts
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.sent_digests import SentDigests
from blast_transport.transports.sending import Reached
from blast_transport.wire.messages import (
    Alive,
    Credit,
    Demoted,
    EndOfData,
    Fin,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Promoted,
    Quit,
    Ready,
    TransportReport,
)
from blast_transport.wire.transports import Traits

_MAX_REPAIRS = 4
"""Times the data that a receiver may ask for again."""

_MAX_UNANSWERED = 3
"""Invitations that a receiver may answer by closing the connection: whoever does so again will not take part."""

_HINT_SECONDS = 0.1
"""How long the light waits for receivers before they are told how far it is, and from then on how often."""

_SLOWEST_SHARE = 0.5
"""Who takes less than this share of the granted rate is served apart, at its own rate."""

_MAX_DEMOTED = 0.5
"""Share of the receivers that may be demoted for being slow: if most are, the sender is too fast."""


_AT_ONCE = 16
"""Blocks for which a transport should have permission when it begins to send."""

_DIGESTS_TOLD = 512
"""After so many blocks their digests are told, where nobody needs them earlier: each message wakes every receiver."""

_TOLD_PER_WINDOW = 4
"""How often where somebody does: a target that must have them early gets no block before, and gives no credit."""

_NOTHING = Traits()

_MAY_ANSWER = (*UNANSWERED, PeerState.ABSENT)
"""Before the first phase: who is on the way here, too."""

_SILENT = (Credit, TransportReport)
"""Such a message alone is no progress."""


def _nobody_hears(_name: str) -> Phase | None:
    return None


class SenderCore:
    """One session at the sender.

    Attributes to read: `peers` by name, `hello`, `layout`, `phase`, `next_block` (of the light), `outbox`, `words` (the
    latest of each receiver's transport, for the caller to take), `early` (some receiver needs a block's digest before
    it may use it).
    """

    def __init__(
        self, hello: Hello, receivers: Iterable[str], now: float, timings: SenderTimings | None = None
    ) -> None:
        self.hello = hello
        self.layout = hello.layout
        self._census = Counter[PeerState]()
        self.peers = {name: Peer(now, census=self._census) for name in receivers}
        self.phase: Phase | None = None
        self.next_block = 0
        self.window = 1
        self.outbox: list[tuple[str, Message]] = []
        self.words: dict[str, TransportReport] = {}
        self.early = False
        self._phase_of: Callable[[str], Phase | None] = _nobody_hears
        self._everywhere: BlockMap | None = None
        self._digests = SentDigests(hello.session)
        self._repairs = Repairs(self.peers.values())
        self._stragglers = Stragglers(now)
        self._end: EndOfData | None = None
        # Of the window: to be found out anew when somebody has dealt with more since; 0: who counts has changed, too.
        self._limit, self._handled_more = 0, False
        self._keeping_up: list[Peer] = []
        self._dark = False
        # Who has been owed something, in the order of asking: among many they are few.
        self._asked: dict[str, None] = {}
        self._timings = timings or SenderTimings()
        self._heartbeat_at = now + self._timings.heartbeat
        self._ticked = self._hinted = self._served = now

    # ------------------------------------------------------------------------------------------ who is there

    @property
    def settling(self) -> bool:
        """Some receiver that the others wait for has neither answered what it was asked, nor failed."""
        if not self._standing(_MAY_ANSWER if self.phase is None else UNANSWERED):
            return False
        timeouts = self._timeouts()
        return any(
            not peer.demoted if peer.state is PeerState.CHANGING_PHASE else self._ticked < timeouts.expected_until(peer)
            for peer in self.peers.values()
        )

    @property
    def attended(self) -> bool:
        """Somebody listens and takes what is sent."""
        return self._census[PeerState.READY] > 0

    @property
    def sending(self) -> bool:
        """Somebody listens, all have answered, and the data has not ended."""
        return self._end is None and self.attended and not self.settling

    @property
    def ended(self) -> bool:
        """All was sent once."""
        return self._end is not None

    @property
    def over(self) -> bool:
        """Every receiver has ended, well or badly."""
        return self._standing(OVER) == len(self.peers)

    @property
    def nobody(self) -> bool:
        """Nobody is connected, and nobody has the data yet."""
        return self._standing((PeerState.ABSENT, PeerState.FAILED)) == len(self.peers)

    def connected(self, name: str, now: float) -> None:
        """A control connection to this receiver is open; invite it."""
        peer = self.peers[name]
        if peer.state is PeerState.ABSENT:
            peer.move(PeerEvent.CONNECTED)
            peer.progressed, peer.reason = now, ""
            self.outbox.append((name, self.hello))

    def gone(self, name: str, reason: str, now: float, patience: float = 0.0) -> None:
        """The connection to this receiver has ended; it may come back while the data goes out.

        Within `patience` seconds it may come back at any time: it did not fail, the way to it did.
        """
        peer = self.peers[name]
        if peer.over:
            return
        peer.awaited = now + patience
        if self._end is not None and now >= peer.awaited:
            self.lose(name, reason)
            return
        if peer.state is PeerState.INVITED and not patience:
            peer.unanswered += 1
            if peer.unanswered >= _MAX_UNANSWERED:
                self.lose(name, reason)
                return
        if peer.state is not PeerState.ABSENT:
            peer.move(PeerEvent.GONE)
        peer.reason, peer.progressed = reason, now
        peer.retransmits.clear()
        self._limit = 0

    def lose(self, name: str, reason: str) -> None:
        """This receiver failed. No effect if it has ended already."""
        peer = self.peers[name]
        if not peer.over:
            peer.move(PeerEvent.FAILURE)
            peer.reason = reason
            self._limit = 0

    def demote(self, name: str, reason: str) -> None:
        """Serve this receiver apart from the others from now on."""
        peer = self.peers[name]
        if not peer.demoted:
            peer.demoted, peer.held_up = reason, 0.0
            peer.readmission.begin()
            self.outbox.append((name, Demoted(self.hello.session)))
        self._limit = 0

    def quit(self, reason: str) -> None:
        """End the session because somebody wanted so."""
        for name, peer in self.peers.items():
            if peer.state in (*UNANSWERED, *LISTENING):
                self.outbox.append((name, Quit(self.hello.session, reason)))
            self.lose(name, reason)

    # ---------------------------------------------------------------------------------------------- transports

    def begin_phase(self, phase: Phase, phase_of: Callable[[str], Phase | None], now: float) -> None:
        """Continue by another transport; `phase_of` returns a receiver's own form, None: it receives no data by it."""
        self.phase, self._phase_of, self._limit, self._dark = phase, phase_of, 0, False
        self.next_block = phase.first
        if phase.traits.windowed:
            self.window = phase.window
        self._repairs.clear()
        if phase.traits.repairs_itself:
            for name, peer in self.peers.items():
                if phase_of(name) is not None:
                    peer.retransmits.cut(phase.first)
        for name, peer in self.peers.items():
            if peer.state in (PeerState.READY, PeerState.CHANGING_PHASE):
                self._tell_phase(name, peer, now)

    def readmit(self) -> None:
        """Another phase is to begin: who was demoted and has caught up, in the dark say, takes part in it."""
        for name, peer in self.peers.items():
            caught_up = peer.state is PeerState.READY and peer.position >= self.next_block - self.window
            if peer.demoted and caught_up and self._end is None and peer.readmission.spared and not self.limited(name):
                self._promote(name, peer)

    def pause(self) -> None:
        """Nothing leaves for now, and nobody is kept waiting by those who are served apart."""
        self._dark = True
        self.tell_sent()

    def resume(self) -> None:
        """The phase goes on."""
        self._dark = False

    def end_phases(self) -> None:
        """Nothing goes out any more, and nobody is told of a phase."""
        self._phase_of = _nobody_hears

    def rate_of(self, granted: float) -> float:
        """Bits/s that all can take, of those that were `granted`; who takes far less is served apart."""
        rate = granted
        for name, peer in self.peers.items():
            highest = peer.ready.max_rate if peer.active and peer.ready is not None else None
            if highest and highest < _SLOWEST_SHARE * granted:
                self.demote(name, f"takes {highest / 1e6:g} Mbit/s at most")
            elif highest:
                rate = min(rate, highest)
        return rate

    def limited(self, name: str) -> bool:
        """This receiver takes no more than a rate of its own."""
        ready = self.peers[name].ready
        return ready is not None and bool(ready.max_rate)

    def permitted(self, now: float) -> int:
        """Blocks before this one may leave: they fit into the window.

        While the next one does not, who keeps the others waiting is found out over time.
        """
        for name, peer in self._stragglers.judge(self.peers, self.window, now):
            if peer.held_up > self._timeouts().hold_up and self._may_demote():
                self.demote(name, "slower than half of the others")
        at_once = min(_AT_ONCE, max(1, self.window // 2))
        fits = self.next_block + at_once <= self._limit or self.next_block < self._renew_limit()
        self._stragglers.blocked = not fits
        if fits:
            self._hinted = now
        elif now >= self._hinted + _HINT_SECONDS:
            # Who has lost a whole window knows of no loss.
            self._hinted = now
            self.tell_sent()
        return min(self._limit, self.next_block + self._told_at_once) if self.early else self._limit

    @property
    def everywhere(self) -> BlockMap:
        """The blocks that every receiver held when the invitation was over."""
        return BlockMap() if self._everywhere is None else self._everywhere

    @property
    def hole_blocks(self) -> int:
        """Blocks in holes that every receiver made itself, so that none was sent."""
        return count_held(self.everywhere, self.hello.holes)

    def sent(self, block: int) -> None:
        """All blocks up to this one have gone out, or need not."""
        self.next_block = max(self.next_block, block + 1)

    def fall_back(self) -> None:
        """What somebody lacks who keeps up has to leave again: the next phase begins with it."""
        self.next_block = min([self.next_block, *(peer.position for peer in self.peers.values() if peer.active)])

    def owe(self, stop: int) -> None:
        """The blocks before this one go to everybody who misses them, over the control connections."""
        if stop > self.next_block:
            for name, peer in self.peers.items():
                if peer.state in LISTENING:
                    self._asked[name] = None
                    peer.retransmits.add_whole(peer.held.missing(self.next_block, stop))
            self.next_block = stop

    @property
    def needed(self) -> int:
        """Blocks before this one are held by everybody who keeps up, or, if nobody does, who is there, and digested."""
        there = [peer for peer in self.peers.values() if peer.state in LISTENING]
        counted = [peer for peer in there if not peer.demoted] or there
        return min([self.digests, *(peer.position for peer in counted)])

    def reached(self) -> dict[str, Reached]:
        """Return how far each receiver is that keeps up."""
        return {name: Reached(peer.position, peer.written) for name, peer in self.peers.items() if peer.active}

    def digest(self, digests: bytes) -> None:
        """The digests of the blocks that come next, one after the other."""
        self._digests.add(digests)

    @property
    def digests(self) -> int:
        """Number of blocks whose digests were told to `digest`."""
        return self._digests.count

    def table(self) -> bytes:
        """All digests so far."""
        return self._digests.table()

    def tell_due_digests(self, dry: bool) -> None:
        """Tell those that are new, if it is time; `dry`: no more will come for now."""
        untold = self._digests.count - self._digests.told
        if untold and (dry or untold >= self._told_at_once or (self.early and self._stragglers.blocked)):
            self.tell_digests()

    def tell_digests(self) -> None:
        """Tell everybody who listens the digests that are new."""
        first, self._digests.told = self._digests.told, self._digests.count
        for name, peer in self.peers.items():
            if peer.state in LISTENING:
                self._tell_digests(name, first)

    def end_of_data(self, size: int, digest: bytes, now: float) -> None:
        """All was sent once: `size` bytes with this digest of the whole."""
        self.tell_digests()
        self._end = EndOfData(self.hello.session, size, digest)
        self._repairs.clear()
        self.layout = self.layout.closed(size)
        for name, peer in self.peers.items():
            peer.progressed = now
            peer.retransmits.cut(self.layout.blocks)
            if peer.state is PeerState.ABSENT and now >= peer.awaited:
                self.lose(name, peer.reason)

    # ----------------------------------------------------------------------------------------------- repairs

    def take_shared_repair(self, now: float, gather: float) -> tuple[int, int] | None:
        """(block, mask of segments) that several receivers miss, `gather` seconds after the first asked for it.

        They are not owed any more. None: there is nothing such yet.
        """
        return self._repairs.take_shared(self.layout, now, gather)

    @property
    def shared_repairs(self) -> int:
        """Number of segments that were repaired by light for several."""
        return self._repairs.shared

    @property
    def owed(self) -> list[str]:
        """Receivers for which `take_repair` may have something."""
        self._asked = {name: None for name in self._asked if self.peers[name].retransmits}
        if self._end is None:
            return list(self._asked)
        return [name for name, peer in self.peers.items() if peer.retransmits or peer.state is PeerState.READY]

    def take_repair(self, name: str, now: float) -> list[Range]:
        """Segments owed to this receiver alone, in runs within blocks; about as much as one block. Empty: none is due.

        Who is owed nothing is told of the end of the data, if it has ended.
        """
        peer = self.peers[name]
        if peer.state not in (PeerState.READY, PeerState.ENDING) or now < peer.repair_at:
            return []
        # Of a stream nothing may be left to be served later.
        later = self.layout.known and not self._by.apart and self._end is None and not self._dark
        if peer.demoted and later and self._others(peer):
            return []
        repair = self._repairs.take(peer, self.layout, now)
        if not repair and not peer.retransmits and peer.state is PeerState.READY and self._end is not None:
            peer.move(PeerEvent.END_OF_DATA)
            self.outbox.append((name, self._end))
        return repair

    # ------------------------------------------------------------------------------------------------ events

    def receive(self, name: str, message: Message, now: float) -> None:
        """A message from this receiver. One of another session is late and is ignored."""
        peer = self.peers[name]
        if peer.over or peer.state is PeerState.ABSENT or message.session != self.hello.session:
            return
        silent = isinstance(message, _SILENT) or peer.state is PeerState.CHANGING_PHASE
        if isinstance(message, PhaseReady) or not silent:
            peer.progressed = now
        match message:
            case Credit() if peer.state in LISTENING:
                self._credit(name, peer, message, now)
            case Nack() if peer.state in LISTENING:
                self._nack(name, peer, message, now)
            case Ready() if peer.state is PeerState.INVITED:
                self._ready(name, peer, message, now)
            case PhaseReady():
                self._phase_ready(name, peer, message)
            case Alive():
                pass
            case TransportReport():
                self.words[name] = message
            case Fin():
                self._fin(name, peer, message)
            case Quit():
                self.lose(name, message.reason or "was stopped")
            case _:
                self.lose(name, f"broke the protocol: {type(message).__name__} in state {peer.state.name}")

    def handled_by(self, session: int, blocks: Mapping[str, int], now: float) -> None:
        """Each of these receivers has dealt with all blocks before the one that stands with it."""
        if session != self.hello.session:
            return
        for name, handled in blocks.items():
            peer = self.peers[name]
            if handled > peer.handled and peer.active:
                peer.handled, peer.progressed, self._handled_more = handled, now, True

    def tell_sent(self) -> None:
        """Tell everybody how far the light is: a loss at an end shows by no gap."""
        alive = Alive(self.hello.session, self.next_block)
        self.outbox += [(name, alive) for name, peer in self.peers.items() if peer.state in LISTENING]

    def deadline(self) -> float | None:
        """When `tick` has something to do at the latest; None if never."""
        if self.over:
            return None
        timeouts = self._timeouts()
        waits = [limit for peer in self.peers.values() if (limit := timeouts.limit(peer)) is not None]
        waits += [peer.repair_at for peer in self.peers.values() if peer.repair_at > self._ticked and peer.retransmits]
        waits += [until for peer in self.peers.values() if (until := timeouts.expected_until(peer)) > self._ticked]
        return min([self._heartbeat_at, *waits])

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._ticked, timeouts = now, self._timeouts()
        for name, peer in self.peers.items():
            limit = timeouts.limit(peer)
            if limit is not None and now >= limit:
                if timeouts.outstanding(peer) or timeouts.lingers(peer):
                    self.demote(name, f"no progress for {self._timings.freeze:g} s")
                    peer.progressed = now
                else:
                    self.lose(name, timeouts.overdue(peer))
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self._timings.heartbeat
            self.tell_sent()

    def _tell_phase(self, name: str, peer: Peer, now: float) -> None:
        phase = self._phase_of(name)
        if phase is None:
            if peer.state is PeerState.CHANGING_PHASE:
                # It may stay where it is.
                peer.move(PeerEvent.LISTENS)
            return
        if peer.state is PeerState.READY:
            peer.move(PeerEvent.PHASE)
        peer.progressed = now
        # Who comes late is owed what has gone out already.
        self.outbox.append((name, replace(phase, first=self.next_block) if phase.traits.windowed else phase))

    def _ready(self, name: str, peer: Peer, ready: Ready, now: float) -> None:
        first_time = peer.ready is None
        peer.ready, peer.unanswered = ready, 0
        self.early = self.early or ready.early
        peer.held = BlockMap()
        most = self.layout.blocks
        for first, count in ready.held:
            if first < 0 or count < 0 or first + count > most:
                self.lose(name, "broke the protocol: holds blocks that there are not")
                return
            peer.held.add_range(first, count)
        peer.move(PeerEvent.ANSWERED)
        if peer.demoted:
            # It may have heard nothing of it, and takes light only from a sender that waits for it.
            self.outbox.append((name, Demoted(self.hello.session)))
        peer.handled = peer.position = peer.held.first_missing()
        peer.written = peer.held.held
        if first_time:
            peer.resumed = peer.held.held - count_held(peer.held, self.hello.holes)
        self._limit = 0
        # Whose session has gone on without us asks by itself for what it misses.
        there = self.phase is not None and ready.phase == self.phase.number and not self._by.apart
        if not there and (self._everywhere is not None or self.phase is not None):
            # It comes late: what has gone out without it, or was left out because the others had it, is owed to it.
            self._asked[name] = None
            peer.retransmits.add_whole(peer.held.missing(0, self.next_block))
            if self._everywhere is not None:
                for first, count in self._everywhere.ranges():
                    peer.retransmits.add_whole(peer.held.missing(max(first, self.next_block), first + count))
        self._tell_digests(name, 0)
        if self.phase is not None and not there:
            self._tell_phase(name, peer, now)

    def settle_held(self) -> None:
        """The invitation is over: what every receiver holds need not be sent."""
        there = [peer for peer in self.peers.values() if peer.state in LISTENING]
        self._everywhere = BlockMap()
        if there and all(peer.held.held for peer in there):
            for first, count in there[0].held.ranges():
                self._everywhere.add_range(first, count)
            for peer in there[1:]:
                self._everywhere.intersect(peer.held)

    def _phase_ready(self, name: str, peer: Peer, answer: PhaseReady) -> None:
        if self.phase is None or answer.number != self.phase.number or peer.state is not PeerState.CHANGING_PHASE:
            return
        peer.move(PeerEvent.LISTENS)
        if answer.reason:
            self.demote(name, answer.reason)
        self._limit = 0

    def _credit(self, name: str, peer: Peer, credit: Credit, now: float) -> None:
        moved = credit.handled > peer.handled or credit.written > peer.written
        completing = self._end is not None and credit.written >= self.layout.blocks
        if peer.state is not PeerState.CHANGING_PHASE and (moved or completing or self._idle(peer)):
            peer.progressed = now
        if moved and self._end is not None:
            self._served = now
        if credit.handled > peer.handled:
            peer.handled, self._handled_more = credit.handled, True
        peer.position, peer.written = credit.position, max(peer.written, credit.written)
        if peer.retransmits:
            # A pipeline that was left may have brought these blocks; a stream releases what every receiver has.
            peer.retransmits.drop(credit.position)
        if peer.demoted and self._readmits(peer, now):
            self._promote(name, peer)

    def _standing(self, states: Iterable[PeerState]) -> int:
        """How many receivers stand there."""
        return sum(self._census[state] for state in states)

    def _idle(self, peer: Peer) -> bool:
        """Nothing is expected of it."""
        timeouts = self._timeouts()
        return not (timeouts.outstanding(peer) or timeouts.limit(peer))

    def _promote(self, name: str, peer: Peer) -> None:
        peer.demoted, self._limit = "", 0
        self.outbox.append((name, Promoted(self.hello.session)))

    def _readmits(self, peer: Peer, now: float) -> bool:
        limited = peer.ready is not None and peer.ready.max_rate
        if limited or peer.state is not PeerState.READY or self._end is not None or not self._by.windowed:
            return False
        # What it misses of a stream would have to be kept for it.
        reached = peer.handled if self.layout.known else peer.position
        return peer.readmission.made(reached, self.next_block, self.window, now)

    def _nack(self, name: str, peer: Peer, nack: Nack, now: float) -> None:
        count, blocks = self.layout.block_segments, self.layout.blocks
        sent = (min(self.next_block + 1, blocks) if self._end is None else blocks) * count
        for first, number in nack.ranges:
            # What has not been sent cannot be lost: forged datagrams may make a receiver ask for it.
            if first >= sent:
                continue
            stop = min(first + number, sent)
            self._asked[name] = None
            self._repairs.ask(peer, first, stop, count)
            if self._end is None and self._by.shared_repair and not peer.demoted:
                self._repairs.await_others(peer, range(first // count, -(-stop // count)), now)
        if peer.repairs + len(peer.retransmits) > _MAX_REPAIRS * sent:
            self.lose(name, f"asked for more than {_MAX_REPAIRS} times the data as repairs")

    def _fin(self, name: str, peer: Peer, fin: Fin) -> None:
        peer.fin = fin
        if fin.reason:
            self.lose(name, fin.reason)
        elif peer.state not in LISTENING or self._end is None:
            self.lose(name, "broke the protocol: claims to have all before the end of data")
        elif fin.digest != self._end.digest:
            self.lose(name, "stored data with another digest")
        else:
            peer.move(PeerEvent.STORED)

    def _tell_digests(self, name: str, first: int) -> None:
        self.outbox += [(name, message) for message in self._digests.messages(first)]

    # ------------------------------------------------------------------------------------- window and slow ones

    def _renew_limit(self) -> int:
        if not self._limit:
            self._keeping_up = [peer for peer in self.peers.values() if peer.active]
        if self._handled_more or not self._limit:
            handled = map(attrgetter("handled"), self._keeping_up)
            self._limit = min(handled) + self.window if self._keeping_up else self.layout.blocks
            self._handled_more = False
        return self._limit

    def _may_demote(self) -> bool:
        there = [peer for peer in self.peers.values() if not peer.over]
        return sum(bool(peer.demoted) for peer in there) + 1 <= max(1, _MAX_DEMOTED * len(there))

    def _others(self, peer: Peer) -> bool:
        return any(other.active for other in self.peers.values() if other is not peer)

    @property
    def _told_at_once(self) -> int:
        """The most digests that wait for others."""
        if self._by.apart:
            return 1
        return max(1, self.window // _TOLD_PER_WINDOW) if self.early else _DIGESTS_TOLD

    @property
    def _by(self) -> Traits:
        """What the present transport does: nothing before the first one."""
        return _NOTHING if self.phase is None else self.phase.traits

    def _timeouts(self) -> Timeouts:
        transport = None if self.phase is None else self.phase.traits
        ended, sized = self._end is not None, self.layout.known

        @cache
        def active() -> int:
            return sum(peer.active for peer in self.peers.values())

        def others(peer: Peer) -> bool:
            return active() > peer.active

        return Timeouts(self._timings, transport, ended, sized, self.next_block, self._served, others)
