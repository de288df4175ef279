"""One transfer at the sender: a session from the invitation to the last verdict, by one transport after the other."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from blast_transport.base.errors import LightPathError, RemoteProtocolError, WrongInputError, sentence
from blast_transport.base.host_order import as_given, by_name
from blast_transport.base.report import Progress
from blast_transport.session.control_links import ControlLinks
from blast_transport.session.light_retry import LightRetry
from blast_transport.session.peers.peer import PeerState
from blast_transport.session.registry import new_sender
from blast_transport.session.renewals import Renewals
from blast_transport.session.route import GiveUp, Improve, Route
from blast_transport.session.sender_core import SenderCore
from blast_transport.session.settings import SenderSettings
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.source import Source, StreamSource
from blast_transport.transports.choices import (
    Chain,
    MulticastChoice,
    OpticalChoice,
    OpticalPause,
    TransportChoice,
    Unicast,
)
from blast_transport.transports.sending import (
    Digested,
    ForwardingMember,
    Granted,
    OrderGiven,
    ParityRun,
    PeerLost,
    PeersUnreached,
    PhaseRequested,
    RateChanged,
    SendingContext,
    SendingEvent,
    SendingTransport,
    Sent,
)
from blast_transport.wire.messages import FILE, FOLDER, Phase, TransportOrder
from blast_transport.wire.transports import TRANSPORTS, Traits

_IDLE_SECONDS = 1.0
_TOKEN_BYTES = 16
_REPORT_SECONDS = 0.2
_CARE_SECONDS = 0.01
"""Between two turns, while light flows, in which repairs leave; when it has to wait, they leave at once."""
_LOOK_SECONDS = 0.1
"""Interval between checks of all receivers then: their cost grows with the number of receivers."""
# Each one costs both sides as much as a block does; the rest of a window covers the time that it travels.
_CREDITS_PER_WINDOW = 3
_SHORTEST_GATHER, _LONGEST_GATHER = 0.001, 0.05
_DIGESTED_AT_ONCE = 1 << 10
"""Blocks; the session serves its links in between."""
_UNCODED = (
    "several receivers lost datagrams, and erasure coding did not repair them: it needs the compiled engine at the "
    "sender and at all receivers; install the package blast-engine there"
)
_AGAIN_SECONDS = 0.02
"""While a window is full: shorter pauses use CPU time, longer ones rate."""


class Totals:
    """Totals of a transfer by transport; `transports` in the order of their start, `notes` on the network."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.datagrams = 0
        self.offload: bool | None = None
        self.transports: list[str] = []
        self.notes: list[str] = []


class Transfer:
    """Drives `core` until it is over. Not thread-safe; others speak to it through `route`."""

    def __init__(
        self,
        core: SenderCore,
        links: ControlLinks,
        reader: BlockReader,
        route: Route,
        settings: SenderSettings,
    ) -> None:
        self.totals = Totals()
        self._core, self._links, self._reader, self._route = core, links, reader, route
        self._settings = settings
        self._report: Callable[[Progress], None] | None = None
        self._report_at = 0.0
        self._choice: TransportChoice = route.first
        self._transport: SendingTransport | None = None
        self._draining: list[SendingTransport] = []
        # The block before which the last of them still brings all.
        self._left_at = 0
        self._phases = 0
        # Of the last phase: properties of its transport, and the time for which requests of several receivers are
        # collected.
        self._traits = Traits()
        self._gather = _LONGEST_GATHER
        self._retry = LightRetry()
        self._renewals = Renewals()
        self._requested: TransportChoice | None = None
        # Receivers that the present transport serves.
        self._there: set[str] = set()
        self._settled = self._listening = False
        # Until when a receiver that has all data is awaited, to send it to receivers that no datagram reached.
        self._complete_by: float | None = None
        self._alone_since: float | None = None
        self._care_at = self._look_at = 0.0

    def run(self, report: Callable[[Progress], None] | None = None) -> None:
        """Run the transfer to its end, with a `report` several times a second. Raise as `Sender.transmit` does."""
        self._report = report
        core, source = self._core, self._reader.source
        self._route.wake = self._links.wake
        if isinstance(source, StreamSource):
            source.wake = self._links.wake
        try:
            while not core.over:
                self._obey()
                try:
                    self._run_step(time.monotonic(), source)
                except LightPathError as error:
                    self._do_without_light(error)
            self._links.repair(core, core.with_repairs, self._reader.segments)
            self._links.exchange(core, 0)
        finally:
            for transport in self._transports():
                self._put_away(transport)
            # They refer to this object, and hold the memory of the sent data.
            self._transport, self._draining = None, []
            core.end_phases()
            self._reader.close()

    def _run_step(self, now: float, source: Source) -> None:
        transport = self._transport
        if now < self._care_at and transport is not None and self._traits.windowed and not transport.over:
            wait, left = self._drive(transport, now), self._care_at - time.monotonic()
            if wait >= left and self._core.with_repairs:
                wait, self._care_at = 0.0, now
            self._links.exchange(self._core, max(0.0, min(wait, left)))
        else:
            self._care(now, source)

    def _drive(self, transport: SendingTransport, now: float) -> float:
        """Let the transport do what it may; return the seconds until there is more."""
        core = self._core
        if self._traits.windowed:
            if core.words:
                self._pass_words(transport, now)
            transport.permit(core.permitted(now))
        for _ in range(transport.room(now)):
            if (shared := core.take_shared_repair(now, self._gather)) is None:
                break
            if isinstance(shared, ParityRun):
                transport.send_parity(shared)
            else:
                transport.retransmit(*shared)
        transport.stay(self._care_at)
        wait = transport.work(now)
        self._take_events(transport)
        return wait

    def _pass_words(self, transport: SendingTransport, now: float) -> None:
        """Pass reports of receivers, and losses of receivers, to the present transport."""
        words, self._core.words = self._core.words, {}
        for name, word in words.items():
            if word.phase == self._phases:
                try:
                    transport.receive_report(name, word.body, now)
                except RemoteProtocolError as error:
                    self._core.lose(name, f"broke the protocol: {error}")
        for name in list(self._there):
            peer = self._core.peers[name]
            # A receiver behind a lost leader did not fail: the path to it did.
            if peer.state is PeerState.FAILED or (peer.state is PeerState.ABSENT and now >= peer.awaited):
                self._there.discard(name)
                transport.receiver_lost(name, peer.reason)

    def _take_events(self, transport: SendingTransport) -> None:
        """Process the events of the transport, and the digests that it computed."""
        for event in transport.events():
            self._take(event, transport)
        self._core.digest(self._reader.take_digests())
        self._core.send_due_digests(self._reader.dry)

    def _take(self, event: SendingEvent, transport: SendingTransport) -> None:
        core, source = self._core, self._reader.source
        match event:
            case Sent(stop):
                core.sent(stop - 1)
                self._reach(min(core.layout.offset(stop), source.size or 1 << 62))
            case Digested(first, digests):
                self._reader.note(first, digests)
            case PeerLost(name, reason):
                core.demote(name, reason)
            case PeersUnreached(names, reason):
                for name in names:
                    core.exclude_unreached(name, reason)
            case PhaseRequested(choice, note) if transport is self._transport:
                self._requested = choice or self._alternative or Chain()
                if choice is None:
                    self._route.replace(self._choice, self._requested)
                self.totals.notes += [note] if note else []
                self._renewals.ask(core.needed, time.monotonic())
            case OrderGiven(name, body):
                core.outbox.append((name, TransportOrder(core.hello.session, self._phases, body)))
            case Granted(rate):
                transport.pace(core.rate_of(rate))
                self._gather_for(rate)
            case RateChanged(rate):
                self._gather_for(rate)

    def _gather_for(self, rate: float) -> None:
        # About the time of a window: by then all receivers with the same loss have reported it.
        window = self._core.window * self._core.layout.block_size * 8 / rate
        self._gather = min(max(window, _SHORTEST_GATHER), _LONGEST_GATHER)

    def _care(self, now: float, source: Source) -> None:
        """Do all due work and check all receivers; in an optical phase not for every burst."""
        core, looking = self._core, now >= self._look_at
        if self._drained and (light := self._retry.take(now)) is not None:
            self._try_again(light, now)
        if looking:
            self._links.look_after(core, self._settings.timings.connect)
            if self._transport is not None:
                self._transport.look(core.reached(), now)
        wait = self._step(now)
        if (left := self._retry.wait(now)) is not None:
            wait = min(wait, left)
        with_repairs = core.with_repairs
        if self._links.repair(core, with_repairs, self._reader.segments):
            wait = 0
        if wait > _CARE_SECONDS:
            soon = _CARE_SECONDS if with_repairs and not looking else math.inf
            wait = min(wait, soon, self._until_look(now))
        self._plan(now, looking)
        self._links.exchange(core, wait)
        if looking:
            core.tick(time.monotonic())
        self._release(source)
        self._report_progress()

    def _until_look(self, now: float) -> float:
        """Return the seconds until work may be due at a receiver."""
        if now < self._look_at:
            return self._look_at - now
        deadline = self._core.deadline()
        return math.inf if deadline is None else max(0.0, deadline - time.monotonic())

    def _plan(self, began: float, looked: bool) -> None:
        """Schedule the next run of the work that began at `began`."""
        now = time.monotonic()
        if self._transport is None or not self._core.sending or self._transport.over:
            # With many receivers each answer would cause a check of all: spend at least half of the time reading
            # answers.
            self._care_at, self._look_at = now, now + (now - began) if looked else self._look_at
        else:
            self._care_at = now + _CARE_SECONDS
            self._look_at = now + _LOOK_SECONDS if looked else self._look_at

    def repaired_bytes(self) -> int:
        """Return the bytes of repairs to single receivers; none with separate transports, which send nothing twice."""
        return 0 if self._apart else sum(peer.repaired_bytes for peer in self._core.peers.values())

    @property
    def _apart(self) -> bool:
        """Return whether the data may have gone to each receiver separately."""
        return any(TRANSPORTS[name].apart for name in self.totals.transports)

    def _obey(self) -> None:
        """Follow the orders of the route."""
        while (order := self._route.take_order()) is not None:
            if isinstance(order, GiveUp):
                for transport in self._transports():
                    transport.quit(order.reason)
                self._core.quit(order.reason)
            elif isinstance(order, Improve):
                if isinstance(self._choice, type(order.choice)) and not self._goes_on(order.choice):
                    self._go(order.choice)
            elif self._retry.keeps(order) or (
                self._route.no_more_light and isinstance(order, OpticalChoice | OpticalPause)
            ):
                continue
            elif self._goes_on(order):
                self._choice = order
            else:
                self._go(order)

    def _do_without_light(self, error: LightPathError) -> None:
        """Switch to the alternative transport after a failure of this host's optical interface.

        Raises `error` if there is none.
        """
        choice, otherwise = self._choice, self._alternative
        if otherwise is None or not isinstance(choice, OpticalChoice | MulticastChoice):
            raise error
        self._go(otherwise)
        if isinstance(choice, OpticalChoice):
            self._note_failure(choice, error, time.monotonic())
        else:
            self._route.replace(choice, otherwise)
            self.totals.notes.append(sentence(error))

    @property
    def _alternative(self) -> TransportChoice | None:
        """Return the transport for a failure of the present one, None if there is none."""
        choice = self._choice
        return choice.otherwise if isinstance(choice, MulticastChoice) else self._route.otherwise

    def _chain_unreached(self, now: float) -> bool:
        """Continue with a pipeline for receivers that no datagram reached; return whether there are any.

        A receiver that has all data is its first node, so the sender sends nothing twice; it is awaited for a time.
        """
        core, choice = self._core, self._choice
        if not isinstance(choice, MulticastChoice) or not core.layout.known or not (names := core.unreached()):
            return False
        # Only a file can be read again by the receiver that has stored it.
        forwards = core.hello.kind in (FILE, FOLDER) and bool(core.reached())
        first = core.first_complete() if forwards else None
        if forwards and first is None:
            if self._complete_by is None:
                self._complete_by = now + self._settings.timings.stall
                core.report_sent()
            if now < self._complete_by:
                return True
        chain = choice.otherwise if isinstance(choice.otherwise, Chain) else Chain()
        order = [*([] if first is None else [first]), *as_given(names, chain.order or by_name(names))]
        self._go(replace(chain, order=tuple(order), without=frozenset(core.peers.keys() - set(order))))
        core.chain_unreached(names)
        return True

    def _try_again(self, light: OpticalChoice, now: float) -> None:
        """Retry the light tree that failed before; if it cannot begin, the data continues as it does."""
        try:
            self._make(light)[1].close()
        except LightPathError as error:
            self._note_failure(light, error, now)
        else:
            self._go(light)

    def _note_failure(self, light: OpticalChoice, error: LightPathError, now: float) -> None:
        self._route.broken = str(error)
        if not self._retry.failed(light, now):
            self._route.light_broke(str(error))

    @property
    def _drained(self) -> bool:
        """Return whether the transports that were left have no data in flight."""
        return all(draining.over for draining in self._draining)

    def _go(self, choice: TransportChoice) -> None:
        self._choice, self._requested = choice, None
        self._leave()
        if isinstance(choice, OpticalPause):
            self._core.pause()

    def _goes_on(self, choice: TransportChoice) -> bool:
        """Continue with the present transport, if it can follow this choice; return whether it does."""
        if self._transport is None or not self._transport.follow(choice):
            return False
        if isinstance(choice, OpticalPause):
            self._core.pause()
        else:
            self._core.resume()
        self._care_at = 0.0
        return True

    def _leave(self) -> None:
        """Leave the present transport for another one, or for none."""
        core, transport, self._transport = self._core, self._transport, None
        if transport is None:
            return
        self._take_events(transport)
        if self._traits.windowed:
            # No gap shows a loss at the end of an optical phase, so report the position.
            core.report_sent()
        stop = transport.leave()
        if stop is None:
            self._take_events(transport)
            self._put_away(transport)
        else:
            self._left_at = min(stop, core.layout.blocks)
            core.sent(self._left_at - 1)
            self._draining.append(transport)

    def _step(self, now: float) -> float:
        core = self._core
        if self._alone(now) or core.ended:
            return _IDLE_SECONDS
        if core.settling or not core.attended:
            return _IDLE_SECONDS
        if not self._settled:
            self._settled = True
            core.settle_held()
        for draining in self._draining:
            # A target that needs digests early takes no block without its digest, and a full stream waits for that.
            self._reader.digest(self._left_at - self._reader.digested)
            self._take_events(draining)
        if self._transport is not None:
            return self._advance(self._transport, now)
        if isinstance(self._choice, OpticalPause):
            return _IDLE_SECONDS
        self._begin(self._choice, now)
        return 0

    def _advance(self, transport: SendingTransport, now: float) -> float:
        if self.totals.began is None:
            self.totals.began = now
        if not self._listening:
            # All listen from now on.
            self._listening = True
            transport.look(self._core.reached(), now)
        self._pass_words(transport, now)
        self._take_events(transport)
        if self._requested is not None and self._renewals.due is not None:
            if now >= self._renewals.due:
                self._go(self._requested)
                self._core.fall_back()
                return 0
            self._drive(transport, now)
            return self._renewals.due - now
        wait = self._drive(transport, now)
        if self._traits.apart:
            self._core.owe(self._core.digests)
        if not transport.over or not self._drained:
            return wait
        if self._reader.source.size is None:
            # After a failed chain, and in a stream, the next transport also brings what this one did not.
            self._go(Unicast())
            self._core.fall_back()
            return 0
        if self._chain_unreached(now):
            return _AGAIN_SECONDS if self._transport is not None else 0
        return self._end(now)

    def _end(self, now: float) -> float:
        """Digest blocks that the transport left out and announce the end; return the seconds until the next action."""
        core, reader, size = self._core, self._reader, self._reader.source.size
        assert size is not None
        while reader.digest(_DIGESTED_AT_ONCE):
            continue
        core.digest(reader.take_digests())
        if not reader.last(reader.digested):
            # Its size is known before all of it is there.
            return _AGAIN_SECONDS
        self._route.reached = size
        if core.lacks_coding and not self._reader.sealed:
            self.totals.notes.append(_UNCODED)
        # Checked before receivers get the digest of the whole, so that none accepts a mixture of two versions.
        reader.source.check_unchanged()
        core.end_of_data(size, reader.whole(core.table()), now)
        return 0

    def _begin(self, choice: TransportChoice, now: float) -> None:
        """Begin the next phase, for which the session is ready."""
        core = self._core
        core.readmit()
        phase, transport = self._make(choice)
        self._renewals.began(now)
        # An optical phase reaches any number of listeners.
        self._there = set() if phase.traits.windowed else {name for name, peer in core.peers.items() if peer.active}
        self._phases, self._transport, self._listening = phase.number, transport, False
        self._complete_by = None
        if isinstance(choice, OpticalChoice):
            self._retry.began(now)
            self._route.broken = ""
        self._traits = phase.traits
        self.totals.transports.append(choice.transport)
        self._links.expedite(by_light=phase.traits.windowed)
        core.begin_phase(phase, transport.phase, now, transport.group_blocks)

    def _make(self, choice: TransportChoice) -> tuple[Phase, SendingTransport]:
        """Create the next phase and its transport. Raise WrongInputError, LightPathError."""
        if choice.transport not in TRANSPORTS:
            raise WrongInputError(f"there is no transport {choice.transport!r}; there are {', '.join(TRANSPORTS)}")
        traits = TRANSPORTS[choice.transport]
        window = self._window(choice) if traits.windowed else 1
        phase = Phase(
            session=self._core.hello.session,
            number=self._phases + 1,
            transport=choice.transport,
            first=self._first(traits),
            credit=max(1, window // _CREDITS_PER_WINDOW),
            window=window,
            token=secrets.token_bytes(_TOKEN_BYTES),
        )
        return phase, new_sender(phase, choice, self._context(phase))

    def _window(self, choice: TransportChoice) -> int:
        """Return the blocks that the path and the smallest buffer of a receiver hold."""
        layout = self._core.layout
        buffers = [peer.ready.receive_buffer // 2 for peer in self._core.peers.values() if peer.active and peer.ready]
        known = [size for size in (choice.window_bytes, *buffers) if size]
        return max(1, min(known, default=0) // (layout.segment_size * layout.block_segments))

    def _first(self, traits: Traits) -> int:
        """Return the first block of a phase."""
        core = self._core
        if not traits.repairs_itself:
            return core.next_block
        if not self._drained:
            # The nodes of a chain end with the next one, and what they have not brought is brought by that.
            return min([core.next_block, *(peer.position for peer in core.peers.values() if peer.active)])
        return self._behind() if self._traits.windowed else core.next_block

    def _behind(self) -> int:
        """Return the first block of a chain after an optical phase: it includes losses of the last window.

        Each host gets these blocks from its neighbor; as repairs, all would leave over the sender's link once for each
        host.
        """
        core = self._core
        positions = [peer.position for peer in core.peers.values() if peer.active]
        return max(core.next_block - core.window, min([core.next_block, *positions]))

    def _context(self, phase: Phase) -> SendingContext:
        core, settings = self._core, self._settings
        # A node with a rate limit would slow down all behind it, and is served separately.
        names = [name for name, peer in core.peers.items() if peer.active and not core.limited(name)]
        behind = phase.first - core.window
        return SendingContext(
            reader=self._reader,
            held=core.everywhere,
            members=tuple(
                ForwardingMember(self._links.address(name), core.peers[name].position < behind) for name in names
            ),
            own_address=self._links.own_address(),
            interface_address=settings.interface_address,
            dial=settings.dialer,
            credentials=settings.credentials,
            decodes=core.decodes,
            wake=self._links.wake,
            woken=self._links.woken,
        )

    def _reach(self, position: int) -> None:
        self._route.reached = max(self._route.reached, position)

    def _release(self, source: Source) -> None:
        """Make room for more of a stream."""
        if source.descriptor is None:
            # The next phase begins with the first block that is not counted as sent, even if all receivers hold it by
            # now.
            stop = min(self._core.needed, self._core.next_block)
            source.release(self._core.layout.offset(stop))

    def _alone(self, now: float) -> bool:
        """Return whether no receiver has been connected for the connection timeout; the transfer ends then."""
        if not self._core.none_connected:
            self._alone_since = None
            return False
        since = self._alone_since = self._alone_since or now
        if now >= since + self._settings.timings.connect:
            for name, peer in self._core.peers.items():
                self._core.lose(name, peer.reason)
        return True

    def _transports(self) -> list[SendingTransport]:
        return [*self._draining, *([] if self._transport is None else [self._transport])]

    def _put_away(self, transport: SendingTransport) -> None:
        transport.close()
        self.totals.datagrams += transport.datagrams
        if transport.offload is not None:
            self.totals.offload = transport.offload

    def _report_progress(self) -> None:
        now = time.monotonic()
        if self._report is None or now < self._report_at:
            return
        self._report_at = now + _REPORT_SECONDS
        peers = self._core.peers.values()
        done = sorted(min(peer.written * self._core.layout.block_size, self._size()) for peer in peers)
        self._report(
            Progress(
                bytes=self._size(),
                sent=self._route.reached,
                slowest=done[0],
                median=done[len(done) // 2],
                repairs=0 if self._apart else self._core.shared_repairs + sum(peer.repairs for peer in peers),
                transport=self.totals.transports[-1] if self._transport is not None else "",
                demoted=tuple(name for name, peer in self._core.peers.items() if peer.demoted and not peer.over),
                complete=sum(peer.state is PeerState.COMPLETE for peer in peers),
                failed=sum(peer.state is PeerState.FAILED for peer in peers),
            )
        )

    def _size(self) -> int:
        size = self._reader.source.size
        return self._reader.source.available if size is None else size
