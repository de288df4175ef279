"""Decisions of a sender in one session with many receivers. No sockets, no files, no clock.

Theory of operation. The sender invites every receiver when it connects, and the receiver answers with the blocks that
it holds. The data goes in phases, each by one transport from some block on; the sender announces a phase, a receiver
answers when it listens, and a receiver that does not answer in time fails. In an optical phase a block leaves only when
it fits into the window: at most `window` blocks may be ahead of the slowest receiver. Requested segments go over the
receiver's own connection if only that receiver misses them, and as a retransmission to all if several do.

A receiver that blocks the window, or shows no progress, is demoted: it leaves the window, keeps what it still receives,
and is repaired after the others; if it keeps up again for long enough, it is readmitted. A receiver whose connection
ends may reconnect until then, and resumes. A receiver gets EndOfData when all data was sent once and no repair is
outstanding, and ends with Fin. Each receiver has a state and a deadline of its own, so that none waits for another.
Only a message of a receiver is progress, never bytes that its connection accepts: the kernel of a stopped process
accepts many.

The caller pulls: `permitted`, `sent` and `take_shared_repair` for the optical transport, `take_repair` for one
receiver. Messages collect in `outbox`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from operator import attrgetter

from blast_transport.blocks.block_map import BlockMap, Range, count_held
from blast_transport.session.peers.peer import LISTENING, OVER, UNANSWERED, Peer, PeerEvent, PeerState
from blast_transport.session.peers.repairs import Repairs
from blast_transport.session.peers.stragglers import Stragglers
from blast_transport.session.peers.timeouts import SharedSilence, Timeouts
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.sent_digests import SentDigests
from blast_transport.transports.sending import ParityRun, Reached
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Demoted,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Readmitted,
    Ready,
    TransportReport,
)
from blast_transport.wire.transports import Traits

_MAX_REPAIRS = 4
"""Times the data that a receiver may ask for again."""

_MAX_UNANSWERED = 3
"""Maximum consecutive invitations that a receiver may answer by closing the connection."""

_STOPPED_SECONDS = 2.0
"""A heartbeat is due every second: a longer time between two ticks means that this host did not run."""
_HINT_SECONDS = 0.1
"""Seconds for which the optical transport waits before the sender reports its position, and interval of later reports.
"""

_SLOWEST_SHARE = 0.5
"""A receiver whose rate limit is below this share of the granted rate is served separately, at its own rate."""

_MAX_DEMOTED = 0.5
"""Share of the receivers that may be demoted for being slow: if most are, the sender is too fast."""


_AT_ONCE = 16
"""Blocks for which a transport should have permission when it begins to send."""

_DIGESTS_PER_REPORT = 512
"""Blocks after which new digests are sent if no receiver needs them earlier: each message wakes every receiver."""

_REPORTS_PER_WINDOW = 4
"""Digest messages per window if a receiver needs digests early: it stores no block, and sends no credit, without them.
"""

_NOTHING = Traits()

_MAY_ANSWER = (*UNANSWERED, PeerState.ABSENT)
"""Before the first phase: a receiver that reconnects may answer, too."""

_SILENT = (Credit, TransportReport)
"""Such a message alone is no progress."""


def _no_phase(_name: str) -> Phase | None:
    return None


class SenderCore:
    """State of one session at the sender.

    Attributes to read: `peers` by name, `hello`, `layout`, `phase`, `next_block` (of the optical transport), `outbox`,
    `words` (the latest report of each receiver's transport, for the caller to take), `early` (a receiver needs a
    block's digest before it may use it).
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
        self._phase_of: Callable[[str], Phase | None] = _no_phase
        self._everywhere: BlockMap | None = None
        self._digests = SentDigests(hello.session)
        self._repairs = Repairs(self.peers.values())
        self._stragglers = Stragglers(now)
        self._silence = SharedSilence()
        self._end: EndOfData | None = None
        # Limit of the window; computed again after any receiver has handled more. 0: the counted receivers have
        # changed, too.
        self._limit, self._handled_more = 0, False
        self._keeping_up: list[Peer] = []
        self._dark = False
        # Receivers with outstanding repairs, in the order of their requests: few among many.
        self._asked: dict[str, None] = {}
        self._timings = timings or SenderTimings()
        self._heartbeat_at = now + self._timings.heartbeat
        self._ticked = self._hinted = self._served = now

    # ------------------------------------------------------------------------------------------ who is there

    @property
    def settling(self) -> bool:
        """Return whether a receiver that the others wait for has neither answered nor failed."""
        if not self._standing(_MAY_ANSWER if self.phase is None else UNANSWERED):
            return False
        timeouts = self._timeouts()
        return any(
            not peer.demoted if peer.state is PeerState.CHANGING_PHASE else self._ticked < timeouts.expected_until(peer)
            for peer in self.peers.values()
        )

    @property
    def attended(self) -> bool:
        """Return whether a receiver listens and accepts data."""
        return self._census[PeerState.READY] > 0

    @property
    def sending(self) -> bool:
        """Return whether a receiver listens, all have answered, and the data has not ended."""
        return self._end is None and self.attended and not self.settling

    @property
    def ended(self) -> bool:
        """Return whether all data was sent once."""
        return self._end is not None

    @property
    def over(self) -> bool:
        """Return whether every receiver has ended, successfully or not."""
        return self._standing(OVER) == len(self.peers)

    @property
    def none_connected(self) -> bool:
        """Return whether no receiver is connected, and none has the data yet."""
        return self._standing((PeerState.ABSENT, PeerState.FAILED)) == len(self.peers)

    def connected(self, name: str, now: float) -> None:
        """Invite this receiver, whose control connection is open."""
        peer = self.peers[name]
        if peer.state is PeerState.ABSENT:
            peer.move(PeerEvent.CONNECTED)
            peer.progressed, peer.reason = now, ""
            self.outbox.append((name, self.hello))

    def disconnected(self, name: str, reason: str, now: float, timeout: float = 0.0) -> None:
        """Handle the end of the connection to this receiver; it may reconnect while the data goes out.

        Within `timeout` seconds it may reconnect at any time, because the path to it failed, not the receiver.
        """
        peer = self.peers[name]
        if peer.over:
            return
        peer.awaited = now + timeout
        if self._end is not None and now >= peer.awaited:
            self.lose(name, reason)
            return
        if peer.state is PeerState.INVITED and not timeout:
            peer.unanswered += 1
            if peer.unanswered >= _MAX_UNANSWERED:
                self.lose(name, reason)
                return
        if peer.state is not PeerState.ABSENT:
            peer.move(PeerEvent.DISCONNECTED)
        peer.reason, peer.progressed = reason, now
        peer.retransmits.clear()
        self._limit = 0

    def lose(self, name: str, reason: str) -> None:
        """Fail this receiver. No effect if it has ended already."""
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

    def exclude_unreached(self, name: str, reason: str) -> None:
        """Demote this receiver because the datagrams of the phase do not reach it."""
        self.peers[name].unreached = reason
        self.demote(name, reason)

    def quit(self, reason: str) -> None:
        """Abort the session."""
        for name, peer in self.peers.items():
            if peer.state in (*UNANSWERED, *LISTENING):
                self.outbox.append((name, Abort(self.hello.session, reason)))
            self.lose(name, reason)

    # ---------------------------------------------------------------------------------------------- transports

    def begin_phase(
        self, phase: Phase, phase_of: Callable[[str], Phase | None], now: float, group_blocks: int = 0
    ) -> None:
        """Continue by another transport; `phase_of` returns a receiver's own form, None: it receives no data by it.

        The transport can send parity of groups of `group_blocks` blocks, if not 0.
        """
        self.phase, self._phase_of, self._limit, self._dark = phase, phase_of, 0, False
        self.next_block = phase.first
        if phase.traits.windowed:
            self.window = phase.window
        self._repairs.begin(group_blocks)
        if phase.traits.repairs_itself:
            for name, peer in self.peers.items():
                if phase_of(name) is not None:
                    peer.retransmits.cut(phase.first)
        for name, peer in self.peers.items():
            if peer.state in (PeerState.READY, PeerState.CHANGING_PHASE):
                self._send_phase(name, peer, now)

    def readmit(self) -> None:
        """Readmit demoted receivers that have caught up, for example between light trees, before another phase."""
        for name, peer in self.peers.items():
            caught_up = peer.state is PeerState.READY and peer.position >= self.next_block - self.window
            if peer.demoted and caught_up and self._end is None and peer.readmission.spared and not self.limited(name):
                self._promote(name, peer)

    def unreached(self) -> list[str]:
        """Return the receivers that datagrams did not reach, and that still need data and may join a chain."""
        return [
            name
            for name, peer in self.peers.items()
            if peer.unreached and peer.state is PeerState.READY and not self._holds_all(peer) and not self.limited(name)
        ]

    def first_complete(self) -> str | None:
        """Return a receiver that holds all blocks, None if there is none."""
        return next((name for name, peer in self.peers.items() if peer.active and self._holds_all(peer)), None)

    def chain_unreached(self, names: Iterable[str]) -> None:
        """Readmit these receivers: the next phase begins with the first block that one lacks."""
        for name in names:
            self._promote(name, self.peers[name])
            self.peers[name].retransmits.clear()
        self.fall_back()

    def pause(self) -> None:
        """Pause sending; until it resumes, repairs of demoted receivers delay no other receiver."""
        self._dark = True
        self.report_sent()

    def resume(self) -> None:
        """Resume the phase."""
        self._dark = False

    def end_phases(self) -> None:
        """End announcing phases: no more data goes out."""
        self._phase_of = _no_phase

    def rate_of(self, granted: float) -> float:
        """Return the rate that all receivers accept, at most `granted` bits/s; demote receivers far below it.

        The grant of multicast is no rate of the network: there, the receiver with the highest limit is the measure.
        """
        limits = {
            name: min(granted, peer.ready.max_rate or math.inf)
            for name, peer in self.peers.items()
            if peer.active and peer.ready is not None
        }
        measure = max(limits.values(), default=granted) if self._by.shares_network else granted
        for name, limit in limits.items():
            if limit < _SLOWEST_SHARE * measure:
                self.demote(name, f"accepts at most {limit / 1e6:g} Mbit/s")
        return min((limit for limit in limits.values() if limit >= _SLOWEST_SHARE * measure), default=granted)

    def limited(self, name: str) -> bool:
        """Return whether this receiver has a rate limit of its own."""
        ready = self.peers[name].ready
        return ready is not None and bool(ready.max_rate)

    def permitted(self, now: float) -> int:
        """Return the block before which blocks may leave, because they fit into the window.

        While the next block does not fit, find the receivers that block the window over time.
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
            # A receiver that lost a whole window knows of no loss.
            self._hinted = now
            self.report_sent()
        return min(self._limit, self.next_block + self._digests_at_once) if self.early else self._limit

    @property
    def everywhere(self) -> BlockMap:
        """Return the blocks that every receiver held at the end of the invitation."""
        return BlockMap() if self._everywhere is None else self._everywhere

    @property
    def hole_blocks(self) -> int:
        """Return the blocks in holes that every receiver created itself, so that none was sent."""
        return count_held(self.everywhere, self.hello.holes)

    def sent(self, block: int) -> None:
        """Record that all blocks before this one have left, or need not."""
        self.next_block = max(self.next_block, block + 1)

    def fall_back(self) -> None:
        """Move back to the first block that a receiver that keeps up lacks: the next phase begins there."""
        self.next_block = min([self.next_block, *(peer.position for peer in self.peers.values() if peer.active)])

    def owe(self, stop: int) -> None:
        """Repair the blocks before this one over the control connections at every receiver that misses them."""
        if stop > self.next_block:
            for name, peer in self.peers.items():
                if peer.state in LISTENING:
                    self._asked[name] = None
                    peer.retransmits.add_whole(peer.held.missing(self.next_block, stop))
            self.next_block = stop

    @property
    def needed(self) -> int:
        """Return the block before which all receivers that keep up hold all blocks.

        If none keeps up, all that are present count. Blocks are digested up to there.
        """
        there = [peer for peer in self.peers.values() if peer.state in LISTENING]
        counted = [peer for peer in there if not peer.demoted] or there
        return min([self.digests, *(peer.position for peer in counted)])

    def reached(self) -> dict[str, Reached]:
        """Return how far each receiver is that keeps up."""
        return {name: Reached(peer.position, peer.written) for name, peer in self.peers.items() if peer.active}

    def digest(self, digests: bytes) -> None:
        """Add the digests of the next blocks, one after the other."""
        self._digests.add(digests)

    @property
    def digests(self) -> int:
        """Return the number of blocks whose digests were passed to `digest`."""
        return self._digests.count

    def table(self) -> bytes:
        """Return all digests."""
        return self._digests.table()

    def send_due_digests(self, dry: bool) -> None:
        """Send new digests if it is time; `dry`: no more will come for now."""
        unsent = self._digests.count - self._digests.sent
        if unsent and (dry or unsent >= self._digests_at_once or (self.early and self._stragglers.blocked)):
            self.send_digests()

    def send_digests(self) -> None:
        """Send the new digests to every receiver that listens."""
        first, self._digests.sent = self._digests.sent, self._digests.count
        for name, peer in self.peers.items():
            if peer.state in LISTENING:
                self._send_digests(name, first)

    def end_of_data(self, size: int, digest: bytes, now: float) -> None:
        """Record that all was sent once: `size` bytes with this digest of the whole."""
        self.send_digests()
        self._end = EndOfData(self.hello.session, size, digest)
        self._repairs.clear()
        self.layout = self.layout.closed(size)
        for name, peer in self.peers.items():
            peer.progressed = now
            peer.retransmits.cut(self.layout.blocks)
            if peer.state is PeerState.ABSENT and now >= peer.awaited:
                self.lose(name, peer.reason)

    # ----------------------------------------------------------------------------------------------- repairs

    def take_shared_repair(self, now: float, gather: float) -> tuple[int, int] | ParityRun | None:
        """Return (block, mask of segments) that several receivers miss, or parity segments that repair their losses.

        The losses are no longer outstanding. Return None if there are none yet, `gather` seconds after the request.
        """
        return self._repairs.take_shared(self.layout, now, gather, self.next_block)

    @property
    def decodes(self) -> bool:
        """Return whether all receivers that keep up can compute lost segments from parity segments.

        A receiver that uses blocks in order cannot: its window may end before the group, which parity has to wait for.
        """
        active = [peer for peer in self.peers.values() if peer.active]
        return not self.early and all(peer.ready is not None and peer.ready.coding for peer in active)

    @property
    def lacks_coding(self) -> bool:
        """Return whether erasure coding would have helped, but the sender or a receiver that keeps up lacks it."""
        several = sum(peer.lossy for peer in self.peers.values()) > 1
        return several and self._by.shares_network and not self._repairs.coded and not self.early and self.layout.known

    @property
    def shared_repairs(self) -> int:
        """Return the number of segments that were retransmitted for several receivers."""
        return self._repairs.shared

    @property
    def with_repairs(self) -> list[str]:
        """Return the receivers for which `take_repair` may have something."""
        self._asked = {name: None for name in self._asked if self.peers[name].retransmits}
        if self._end is None:
            return list(self._asked)
        return [name for name, peer in self.peers.items() if peer.retransmits or peer.state is PeerState.READY]

    def take_repair(self, name: str, now: float) -> list[Range]:
        """Return segments to repair at this receiver alone; empty if none is due.

        They are runs within blocks, about as much as one block. A receiver with no outstanding repair gets EndOfData if
        the data has ended.
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
        """Handle a message from this receiver; ignore a late one of another session."""
        peer = self.peers[name]
        if peer.over or peer.state is PeerState.ABSENT or message.session != self.hello.session:
            return
        silent = isinstance(message, _SILENT) or peer.state is PeerState.CHANGING_PHASE
        if isinstance(message, PhaseReady) or not silent:
            self._progress(peer, now)
        match message:
            case Credit() if peer.state in LISTENING:
                self._credit(name, peer, message, now)
            case Nack() if peer.state in LISTENING:
                self._nack(name, peer, message, now)
            case Ready() if peer.state is PeerState.INVITED:
                self._ready(name, peer, message, now)
            case PhaseReady():
                self._phase_ready(name, peer, message)
            case Heartbeat():
                pass
            case TransportReport():
                self.words[name] = message
            case Fin():
                self._fin(name, peer, message)
            case Abort():
                self.lose(name, message.reason or "was stopped")
            case _:
                self.lose(name, f"broke the protocol: {type(message).__name__} in state {peer.state.name}")

    def handled_by(self, session: int, blocks: Mapping[str, int], now: float) -> None:
        """Record that each of these receivers has handled all blocks before the given one."""
        if session != self.hello.session:
            return
        for name, handled in blocks.items():
            peer = self.peers[name]
            if handled > peer.handled and peer.active:
                peer.handled, self._handled_more = handled, True
                self._progress(peer, now)

    def report_sent(self) -> None:
        """Report the position of the optical transport to every receiver: no gap shows a loss at the end."""
        alive = Heartbeat(self.hello.session, self.next_block)
        self.outbox += [(name, alive) for name, peer in self.peers.items() if peer.state in LISTENING]

    def deadline(self) -> float | None:
        """Return the latest time for the next `tick`; None if none is due."""
        if self.over:
            return None
        timeouts = self._timeouts()
        waits = [limit for peer in self.peers.values() if (limit := timeouts.limit(peer)) is not None]
        waits += [peer.repair_at for peer in self.peers.values() if peer.repair_at > self._ticked and peer.retransmits]
        waits += [until for peer in self.peers.values() if (until := timeouts.expected_until(peer)) > self._ticked]
        return min([self._heartbeat_at, *waits])

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if now >= self._ticked + _STOPPED_SECONDS:
            self._excuse(now - self._ticked)
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
            self.report_sent()

    def _excuse(self, seconds: float) -> None:
        """Extend all deadlines: this host was stopped or busy, and answers wait to be read, or to be sent."""
        self._served += seconds
        self._silence.excuse(seconds)
        for peer in self.peers.values():
            peer.progressed += seconds
            peer.awaited += seconds

    def _send_phase(self, name: str, peer: Peer, now: float) -> None:
        phase = self._phase_of(name)
        if phase is None:
            if peer.state is PeerState.CHANGING_PHASE:
                # It may stay where it is.
                peer.move(PeerEvent.LISTENS)
            return
        if peer.state is PeerState.READY:
            peer.move(PeerEvent.PHASE)
        peer.progressed = now
        # A late receiver gets the past blocks as repairs.
        self.outbox.append((name, replace(phase, first=self.next_block) if phase.traits.windowed else phase))

    def _ready(self, name: str, peer: Peer, ready: Ready, now: float) -> None:
        first_time = peer.ready is None
        peer.ready, peer.unanswered = ready, 0
        self.early = self.early or ready.early
        peer.held = BlockMap()
        blocks = self.layout.blocks
        for first, count in ready.held:
            if first < 0 or count < 0 or first + count > blocks:
                self.lose(name, "broke the protocol: holds blocks that do not exist")
                return
            peer.held.add_range(first, count)
        peer.move(PeerEvent.ANSWERED)
        if peer.demoted:
            # It may have missed the message, and accepts optical data only from a sender that waits for it.
            self.outbox.append((name, Demoted(self.hello.session)))
        peer.handled = peer.position = peer.held.first_missing()
        peer.written = peer.held.held
        if first_time:
            peer.resumed = peer.held.held - count_held(peer.held, self.hello.holes)
        self._limit = 0
        # A receiver whose session continued without a connection requests its missing blocks itself.
        there = self.phase is not None and ready.phase == self.phase.number and not self._by.apart
        if not there and (self._everywhere is not None or self.phase is not None):
            # It is late: it gets repairs for blocks that went out without it, or were left out because the others held
            # them.
            self._asked[name] = None
            peer.retransmits.add_whole(peer.held.missing(0, self.next_block))
            if self._everywhere is not None:
                for first, count in self._everywhere.ranges():
                    peer.retransmits.add_whole(peer.held.missing(max(first, self.next_block), first + count))
        self._send_digests(name, 0)
        if self.phase is not None and not there:
            self._send_phase(name, peer, now)

    def settle_held(self) -> None:
        """End the invitation: blocks that every receiver holds need not be sent."""
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
        if answer.reason and self._by.windowed:
            self.exclude_unreached(name, answer.reason)
        elif answer.reason:
            self.demote(name, answer.reason)
        self._limit = 0

    def _credit(self, name: str, peer: Peer, credit: Credit, now: float) -> None:
        moved = credit.handled > peer.handled or credit.written > peer.written
        completing = self._end is not None and credit.written >= self.layout.blocks
        if peer.state is not PeerState.CHANGING_PHASE and (moved or completing or self._idle(peer)):
            self._progress(peer, now)
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

    def _progress(self, peer: Peer, now: float) -> None:
        peer.progressed = now
        if peer.active:
            self._silence.progressed(now)

    def _standing(self, states: Iterable[PeerState]) -> int:
        """Return the number of receivers in these states."""
        return sum(self._census[state] for state in states)

    def _idle(self, peer: Peer) -> bool:
        """Return whether nothing is expected of it."""
        timeouts = self._timeouts()
        return not (timeouts.outstanding(peer) or timeouts.limit(peer))

    def _promote(self, name: str, peer: Peer) -> None:
        peer.demoted, self._limit = "", 0
        self.outbox.append((name, Readmitted(self.hello.session)))

    def _readmits(self, peer: Peer, now: float) -> bool:
        limited = peer.ready is not None and peer.ready.max_rate
        if limited or peer.state is not PeerState.READY or self._end is not None or not self._by.windowed:
            return False
        # A stream would have to keep the blocks that it misses.
        reached = peer.handled if self.layout.known else peer.position
        return peer.readmission.made(reached, self.next_block, self.window, now)

    def _nack(self, name: str, peer: Peer, nack: Nack, now: float) -> None:
        count, blocks = self.layout.block_segments, self.layout.blocks
        sent = (min(self.next_block + 1, blocks) if self._end is None else blocks) * count
        for first, number in nack.ranges:
            # A block that was not sent cannot be lost: forged datagrams may make a receiver request it.
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

    def _send_digests(self, name: str, first: int) -> None:
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

    def _holds_all(self, peer: Peer) -> bool:
        return peer.position >= self.layout.blocks

    def _others(self, peer: Peer) -> bool:
        return any(other.active for other in self.peers.values() if other is not peer)

    @property
    def _digests_at_once(self) -> int:
        """Return the maximum number of digests that wait for others."""
        if self._by.apart:
            return 1
        return max(1, self.window // _REPORTS_PER_WINDOW) if self.early else _DIGESTS_PER_REPORT

    @property
    def _by(self) -> Traits:
        """Return the properties of the present transport; none before the first phase."""
        return _NOTHING if self.phase is None else self.phase.traits

    def _timeouts(self) -> Timeouts:
        transport = None if self.phase is None else self.phase.traits
        ended, sized = self._end is not None, self.layout.known

        @cache
        def active() -> int:
            return sum(peer.active for peer in self.peers.values())

        def others(peer: Peer) -> bool:
            return active() > peer.active

        return Timeouts(self._timings, transport, ended, sized, self.next_block, self._served, self._silence, others)
