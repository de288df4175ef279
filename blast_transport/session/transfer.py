"""One transfer at the sender: a session from the invitation to the last verdict, by one transport after the other."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from blast_transport.base.errors import LightPathError, RemoteProtocolError, WrongInputError
from blast_transport.base.report import Progress
from blast_transport.session.control_links import ControlLinks
from blast_transport.session.light_retry import LightRetry
from blast_transport.session.peers.peer import PeerState
from blast_transport.session.registry import SENDERS
from blast_transport.session.renewals import Renewals
from blast_transport.session.route import GiveUp, Improve, Route
from blast_transport.session.sender_core import SenderCore
from blast_transport.session.settings import SenderSettings
from blast_transport.store.block_reader import BlockReader
from blast_transport.store.source import Source, StreamSource
from blast_transport.transports.choices import Dark, Light, TransportChoice, Unicast
from blast_transport.transports.sending import (
    Anew,
    Digested,
    Granted,
    Member,
    PeerLost,
    SendingContext,
    SendingEvent,
    SendingTransport,
    Sent,
)
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import TRANSPORTS, Traits

_IDLE_SECONDS = 1.0
_TOKEN_BYTES = 16
_REPORT_SECONDS = 0.2
_CARE_SECONDS = 0.01
"""Between two turns, while light flows, in which repairs leave; when it has to wait, they leave at once."""
_LOOK_SECONDS = 0.1
"""Between two looks at every receiver then: what it finds is a matter of a second, and its price grows with them."""
# Each one costs both sides as much as a block does; the rest of a window covers the time that it travels.
_CREDITS_PER_WINDOW = 3
_SHORTEST_GATHER, _LONGEST_GATHER = 0.001, 0.05
_DIGESTED_AT_ONCE = 1 << 10
_AGAIN_SECONDS = 0.02


@dataclass(slots=True)
class Totals:
    """What went which way. `transports` in the order in which they were begun."""

    began: float | None = None
    datagrams: int = 0
    offload: bool | None = None
    transports: list[str] = field(default_factory=list)


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
        # Of the last phase: what its transport does, and how long what several may miss is gathered.
        self._traits = Traits()
        self._gather = _LONGEST_GATHER
        self._retry = LightRetry()
        self._renewals = Renewals()
        self._anew: TransportChoice | None = None
        # Those that the present transport knows to be there.
        self._there: set[str] = set()
        self._settled = False
        self._nobody_since: float | None = None
        self._care_at = self._look_at = 0.0

    def run(self, report: Callable[[Progress], None] | None = None) -> None:
        """See it through, with a `report` some times a second. Raises as `Sender.transmit` does."""
        self._report = report
        core, source = self._core, self._reader.source
        self._route.wake = self._links.wake
        if isinstance(source, StreamSource):
            source.wake = self._links.wake
        try:
            while not core.over:
                self._obey()
                try:
                    self._turn(time.monotonic(), source)
                except LightPathError as error:
                    self._do_without_light(error)
            self._links.repair(core, core.owed, self._reader.segments)
            self._links.exchange(core, 0)
        finally:
            for transport in self._transports():
                self._put_away(transport)
            # They call us, and hold the memory of what they sent.
            self._transport, self._draining = None, []
            core.end_phases()
            self._reader.close()

    def _turn(self, now: float, source: Source) -> None:
        transport = self._transport
        if now < self._care_at and transport is not None and self._traits.windowed and not transport.over:
            wait, left = self._drive(transport, now), self._care_at - time.monotonic()
            if wait >= left and self._core.owed:
                wait, self._care_at = 0.0, now
            self._links.exchange(self._core, max(0.0, min(wait, left)))
        else:
            self._care(now, source)

    def _drive(self, transport: SendingTransport, now: float) -> float:
        """Let the transport do what it may; seconds until there is more."""
        core = self._core
        if self._traits.windowed:
            transport.permit(core.permitted(now))
        for _ in range(transport.room(now)):
            if (shared := core.take_shared_repair(now, self._gather)) is None:
                break
            transport.retransmit(*shared)
        transport.stay(self._care_at)
        wait = transport.work(now)
        self._hear(transport)
        return wait

    def _pass_words(self, transport: SendingTransport, now: float) -> None:
        """What the present transport's counterparts tell it, and which of them are lost."""
        words, self._core.words = self._core.words, {}
        for name, word in words.items():
            if word.phase == self._phases:
                try:
                    transport.heard(name, word.body, now)
                except RemoteProtocolError as error:
                    self._core.lose(name, f"broke the protocol: {error}")
        for name in list(self._there):
            peer = self._core.peers[name]
            # Who was reached through others that are lost did not fail: the way to it did.
            if peer.state is PeerState.FAILED or (peer.state is PeerState.ABSENT and now >= peer.awaited):
                self._there.discard(name)
                transport.gone(name, peer.reason)

    def _hear(self, transport: SendingTransport) -> None:
        """What the transport tells, and what was digested for it."""
        for event in transport.events():
            self._take(event, transport)
        self._core.digest(self._reader.take_digests())
        self._core.tell_due_digests(self._reader.dry)

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
            case Anew(choice) if transport is self._transport:
                self._anew = choice
                self._renewals.ask(core.needed, time.monotonic())
            case Granted(rate):
                transport.pace(core.rate_of(rate))
                # About the time of a window: by then everybody who misses the same has said so.
                window = core.window * core.layout.block_size * 8 / rate
                self._gather = min(max(window, _SHORTEST_GATHER), _LONGEST_GATHER)

    def _care(self, now: float, source: Source) -> None:
        """Everything that is to be done, and all receivers looked at; while light flows not for every burst."""
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
        owed = core.owed
        if self._links.repair(core, owed, self._reader.segments):
            wait = 0
        if wait > _CARE_SECONDS:
            soon = _CARE_SECONDS if owed and not looking else math.inf
            wait = min(wait, soon, self._until_look(now))
        self._plan(now, looking)
        self._links.exchange(core, wait)
        if looking:
            core.tick(time.monotonic())
        self._release(source)
        self._tell()

    def _until_look(self, now: float) -> float:
        """Seconds until something may be due at some receiver."""
        if now < self._look_at:
            return self._look_at - now
        deadline = self._core.deadline()
        return math.inf if deadline is None else max(0.0, deadline - time.monotonic())

    def _plan(self, began: float, looked: bool) -> None:
        """When this, which began then, is to be done again."""
        now = time.monotonic()
        if self._transport is None or not self._core.sending or self._transport.over:
            # Every answer of many would have all of them looked at again: half of the time is for hearing.
            self._care_at, self._look_at = now, now + (now - began) if looked else self._look_at
        else:
            self._care_at = now + _CARE_SECONDS
            self._look_at = now + _LOOK_SECONDS if looked else self._look_at

    def repaired_bytes(self) -> int:
        """What was sent again to single receivers; to each apart, nothing is sent again."""
        return 0 if self._apart else sum(peer.repaired_bytes for peer in self._core.peers.values())

    @property
    def _apart(self) -> bool:
        """What went to single receivers may have been all that they got."""
        return any(TRANSPORTS[name].apart for name in self.totals.transports)

    def _obey(self) -> None:
        """Follow what was told through the route."""
        while (order := self._route.take_order()) is not None:
            if isinstance(order, GiveUp):
                for transport in self._transports():
                    transport.quit(order.reason)
                self._core.quit(order.reason)
            elif isinstance(order, Improve):
                if isinstance(self._choice, type(order.choice)) and not self._goes_on(order.choice):
                    self._go(order.choice)
            elif self._retry.keeps(order) or (self._route.no_more_light and isinstance(order, Light | Dark)):
                continue
            elif self._goes_on(order):
                self._choice = order
            else:
                self._go(order)

    def _do_without_light(self, error: LightPathError) -> None:
        """Our own side of it has failed: what has not left goes another way, if there is one. Raises `error` if not."""
        light, otherwise = self._choice, self._route.otherwise
        if otherwise is None or not isinstance(light, Light):
            raise error
        self._go(otherwise)
        self._note_failure(light, error, time.monotonic())

    def _try_again(self, light: Light, now: float) -> None:
        """Go over to light that has failed before; as long as it cannot even begin, the data goes on as it does."""
        try:
            self._make(light)[1].close()
        except LightPathError as error:
            self._note_failure(light, error, now)
        else:
            self._go(light)

    def _note_failure(self, light: Light, error: LightPathError, now: float) -> None:
        self._route.broken = str(error)
        if not self._retry.failed(light, now):
            self._route.light_broke(str(error))

    @property
    def _drained(self) -> bool:
        """Nothing is under way any more by what was left."""
        return all(draining.over for draining in self._draining)

    def _go(self, choice: TransportChoice) -> None:
        self._choice, self._anew = choice, None
        self._leave()
        if isinstance(choice, Dark):
            self._core.pause()

    def _goes_on(self, choice: TransportChoice) -> bool:
        """The present transport goes by this way as well."""
        if self._transport is None or not self._transport.follow(choice):
            return False
        if isinstance(choice, Dark):
            self._core.pause()
        else:
            self._core.resume()
        self._care_at = 0.0
        return True

    def _leave(self) -> None:
        """Another way is to be taken, or none for now."""
        core, transport, self._transport = self._core, self._transport, None
        if transport is None:
            return
        self._hear(transport)
        if self._traits.windowed:
            # A loss at the end of the light shows by no gap, so say where it was.
            core.tell_sent()
        stop = transport.leave()
        if stop is None:
            self._hear(transport)
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
            self._hear(draining)
        if self._transport is not None:
            return self._advance(self._transport, now)
        if isinstance(self._choice, Dark):
            return _IDLE_SECONDS
        self._begin(self._choice, now)
        return 0

    def _advance(self, transport: SendingTransport, now: float) -> float:
        if self.totals.began is None:
            self.totals.began = now
        self._pass_words(transport, now)
        self._hear(transport)
        if self._anew is not None and self._renewals.due is not None:
            if now >= self._renewals.due:
                self._go(self._anew)
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
            # A chain that has failed, and a stream that goes on: what it was to bring, too.
            self._go(Unicast())
            self._core.fall_back()
            return 0
        return self._end(now)

    def _end(self, now: float) -> float:
        """Everything has left: digest what a transport left out, and say so; seconds until there is more to do."""
        core, reader, size = self._core, self._reader, self._reader.source.size
        assert size is not None
        while reader.digest(_DIGESTED_AT_ONCE):
            continue
        core.digest(reader.take_digests())
        if not reader.last(reader.digested):
            # Its size is known before all of it is there.
            return _AGAIN_SECONDS
        self._route.reached = size
        # Before receivers are told what the whole is: none of them takes a mixture of two versions for it.
        reader.source.check_unchanged()
        core.end_of_data(size, reader.whole(core.table()), now)
        return 0

    def _begin(self, choice: TransportChoice, now: float) -> None:
        """The session is ready for its next phase."""
        core = self._core
        core.readmit()
        phase, transport = self._make(choice)
        self._renewals.began(now)
        # Light reaches whoever listens, one or many.
        self._there = set() if phase.traits.windowed else {name for name, peer in core.peers.items() if peer.active}
        self._phases, self._transport = phase.number, transport
        if isinstance(choice, Light):
            self._retry.began(now)
            self._route.broken = ""
        self._traits = phase.traits
        self.totals.transports.append(choice.transport)
        self._links.expedite(by_light=phase.traits.windowed)
        core.begin_phase(phase, transport.phase, now)

    def _make(self, choice: TransportChoice) -> tuple[Phase, SendingTransport]:
        """The next phase and its transport, if that is the way. Raises WrongInputError, LightPathError."""
        if choice.transport not in SENDERS:
            raise WrongInputError(f"there is no transport {choice.transport!r}; there are {', '.join(SENDERS)}")
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
        return phase, SENDERS[choice.transport](phase, choice, self._context(phase))

    def _window(self, choice: TransportChoice) -> int:
        """Blocks that the way and the smallest buffer of a receiver hold."""
        layout = self._core.layout
        buffers = [peer.ready.receive_buffer // 2 for peer in self._core.peers.values() if peer.active and peer.ready]
        known = [size for size in (choice.window_bytes, *buffers) if size]
        return max(1, min(known, default=0) // (layout.segment_size * layout.block_segments))

    def _first(self, traits: Traits) -> int:
        """The block with which a phase begins."""
        core = self._core
        if not traits.repairs_itself:
            return core.next_block
        if not self._drained:
            # The nodes of a chain end with the next one, and what they have not brought is brought by that.
            return min([core.next_block, *(peer.position for peer in core.peers.values() if peer.active)])
        return self._behind() if self._traits.windowed else core.next_block

    def _behind(self) -> int:
        """Where a chain begins that follows light: what nobody may have of the last window is brought by it too.

        Each host gets that from its neighbor; as repairs all of it would leave by the sender's link once for each.
        """
        core = self._core
        positions = [peer.position for peer in core.peers.values() if peer.active]
        return max(core.next_block - core.window, min([core.next_block, *positions]))

    def _context(self, phase: Phase) -> SendingContext:
        core, settings = self._core, self._settings
        # Who names a highest rate would slow down all behind it, and is served apart.
        names = [name for name, peer in core.peers.items() if peer.active and not core.limited(name)]
        behind = phase.first - core.window
        return SendingContext(
            reader=self._reader,
            held=core.everywhere,
            members=tuple(Member(self._links.address(name), core.peers[name].position < behind) for name in names),
            own_address=self._links.own_address(),
            interface_address=settings.interface_address,
            dial=settings.dialer,
            credentials=settings.credentials,
            wake=self._links.wake,
            woken=self._links.woken,
        )

    def _reach(self, position: int) -> None:
        self._route.reached = max(self._route.reached, position)

    def _release(self, source: Source) -> None:
        """Make room for more of a stream."""
        if source.descriptor is None:
            # The next phase begins with what has not left by our count, also if it has come everywhere by now.
            stop = min(self._core.needed, self._core.next_block)
            source.release(self._core.layout.offset(stop))

    def _alone(self, now: float) -> bool:
        """Nobody is connected; after a while that is the end."""
        if not self._core.nobody:
            self._nobody_since = None
            return False
        since = self._nobody_since = self._nobody_since or now
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

    def _tell(self) -> None:
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
