"""One transfer at the sender: a session from the invitation to the last verdict, by one carrier after the other."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from blast_transport.base.errors import LightPathError, WrongInputError
from blast_transport.base.host_order import as_given, by_name
from blast_transport.base.report import Progress
from blast_transport.session.carrier import Carrier
from blast_transport.session.control_links import ControlLinks
from blast_transport.session.light_carrier import LightCarrier, queue_bytes
from blast_transport.session.peer import PeerState
from blast_transport.session.reader import BlockReader
from blast_transport.session.route import CarrierChoice, Chain, Dark, GiveUp, Light, Route, Unicast
from blast_transport.session.sender_core import SenderCore
from blast_transport.session.settings import SenderSettings
from blast_transport.session.unicast_carrier import UnicastCarrier
from blast_transport.store.source import Source, StreamSource
from blast_transport.wire.carriers import CARRIERS, OPTICAL, PIPELINE, UNICAST
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Leg

_IDLE_SECONDS = 1.0
_TOKEN_BYTES = 16
_REPORT_SECONDS = 0.2
_CARE_SECONDS = 0.005
"""Between two looks at every receiver while light flows."""
# Each one costs both sides as much as a block does; the rest of a window covers the time that it travels.
_CREDITS_PER_WINDOW = 3


@dataclass(slots=True)
class Totals:
    """What went which way. `carriers` in the order in which they were begun."""

    began: float | None = None
    datagrams: int = 0
    offload: bool | None = None
    carriers: list[str] = field(default_factory=list)


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
        self._choice: CarrierChoice = route.first
        self._carrier: Carrier | None = None
        self._draining: list[Carrier] = []
        self._legs = 0
        self._settled = False
        self._nobody_since: float | None = None
        self._care_at = 0.0

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
            self._links.repair(core, self._reader.segments)
            self._links.exchange(core, 0)
        finally:
            for carrier in self._carriers():
                self._put_away(carrier)
            # They call us, and hold the memory of what they sent.
            self._carrier, self._draining = None, []
            core.end_legs()
            self._reader.close()

    def _turn(self, now: float, source: Source) -> None:
        if now < self._care_at and isinstance(self._carrier, LightCarrier) and not self._carrier.over:
            wait = self._carrier.step(self._core, now)
            self._links.exchange(self._core, min(wait, self._care_at - now))
        else:
            self._care(now, source)

    def _care(self, now: float, source: Source) -> None:
        """Everything that is to be done; while light flows not for every burst, for it grows with the receivers."""
        core = self._core
        wait = self._step(now)
        if (deadline := core.deadline()) is not None:
            wait = min(wait, max(0.0, deadline - time.monotonic()))
        if self._links.repair(core, self._reader.segments):
            wait = 0
        flowing = self._carrier is not None and core.sending and not self._carrier.over
        self._care_at = time.monotonic() + (_CARE_SECONDS if flowing else 0.0)
        self._links.exchange(core, wait)
        core.tick(time.monotonic())
        self._release(source)
        self._tell()

    def repaired_bytes(self) -> int:
        """What was sent again to single receivers; to each apart, nothing is sent again."""
        if UNICAST in self.totals.carriers:
            return 0
        return sum(peer.repaired_bytes for peer in self._core.peers.values())

    def _obey(self) -> None:
        """Follow what was told through the route."""
        while (order := self._route.take_order()) is not None:
            if isinstance(order, GiveUp):
                for carrier in self._carriers():
                    carrier.quit(order.reason)
                self._core.quit(order.reason)
            elif self._route.broken and isinstance(order, Light | Dark):
                continue
            elif not self._goes_on(order):
                self._choice = order
                self._leave()

    def _do_without_light(self, error: LightPathError) -> None:
        """Our own side of it has failed: what has not left goes another way, if there is one. Raises `error` if not."""
        if self._route.otherwise is None:
            raise error
        self._choice = self._route.otherwise
        self._leave()
        self._route.light_broke(str(error))

    def _goes_on(self, choice: CarrierChoice) -> bool:
        """The present carrier goes by this way as well."""
        carrier = self._carrier
        if isinstance(carrier, LightCarrier) and isinstance(choice, Dark):
            # The receivers keep listening: mostly the same light comes back.
            carrier.darken(self._core)
            return True
        if isinstance(carrier, LightCarrier) and isinstance(choice, Light):
            return carrier.follow(choice)
        return carrier is not None and choice == self._choice

    def _leave(self) -> None:
        """Another way is to be taken, or none for now."""
        carrier, self._carrier = self._carrier, None
        if carrier is None:
            return
        if carrier.leave(self._core):
            self._draining.append(carrier)
        else:
            self._put_away(carrier)

    def _step(self, now: float) -> float:
        core = self._core
        self._links.redial(core, self._settings.timings.connect)
        if self._alone(now) or core.ended:
            return _IDLE_SECONDS
        if core.settling or not any(peer.state is PeerState.READY for peer in core.peers.values()):
            return _IDLE_SECONDS
        if not self._settled:
            self._settled = True
            core.settle_held()
        for draining in self._draining:
            draining.drain(core)
        if self._carrier is None:
            if isinstance(self._choice, Dark):
                return _IDLE_SECONDS
            self._begin(self._choice, now)
            return 0
        return self._advance(self._carrier, now)

    def _advance(self, carrier: Carrier, now: float) -> float:
        if self.totals.began is None:
            self.totals.began = now
        wait = carrier.step(self._core, now)
        if not carrier.over or not all(draining.over for draining in self._draining):
            return wait
        if self._reader.source.size is None:
            # A chain that has failed, and a stream that goes on.
            self._choice = Unicast()
            self._leave()
        else:
            self._end(now)
        return 0

    def _end(self, now: float) -> None:
        """Everything has left: digest what a carrier left out, and say so."""
        core, size = self._core, self._reader.source.size
        assert size is not None
        while self._reader.digest(core.layout.blocks, 1 << 10):
            continue
        self._route.reached = size
        core.end_of_data(size, self._reader.whole(), now)

    def _begin(self, choice: CarrierChoice, now: float) -> None:
        """The session is ready for its next leg."""
        core = self._core
        self._legs += 1
        if isinstance(choice, Light):
            self._begin_light(choice)
        elif isinstance(choice, Chain):
            self._begin_chain(choice)
        elif isinstance(choice, Unicast):
            leg = Leg(core.hello.session, self._legs, UNICAST, core.next_block)
            self._carrier = UnicastCarrier(leg, self._reader)
        carrier = self._carrier
        assert carrier is not None
        self.totals.carriers.append(carrier.name)
        self._links.expedite(by_light=CARRIERS[carrier.name].windowed)
        first = carrier.leg(next(iter(core.peers)))
        core.begin_leg(first or Leg(core.hello.session, self._legs, carrier.name, core.next_block), carrier.leg, now)

    def _begin_light(self, light: Light) -> None:
        core = self._core
        buffers = [peer.ready.receive_buffer // 2 for peer in core.peers.values() if peer.active and peer.ready]
        window = min([queue_bytes(light), *(size for size in buffers if size)])
        core.window = max(1, window // (core.layout.segment_size * core.layout.block_segments))
        credit = max(1, core.window // _CREDITS_PER_WINDOW)
        leg = Leg(
            session=core.hello.session,
            number=self._legs,
            carrier=OPTICAL,
            first=core.next_block,
            credit=credit,
            window=core.window,
        )
        if self._settings.interface_address is None:
            raise WrongInputError("sending by light needs the address of our interface on the light path")
        self._carrier = LightCarrier(self._settings.interface_address, light, leg, self._reader, self._reach)

    def _begin_chain(self, chain: Chain) -> None:
        # What few transfers need is loaded when one does: most processes that send or receive live for seconds.
        from blast_transport.links.chain_source import SourceAdmission
        from blast_transport.pipeline.parameters import PipelineParameters
        from blast_transport.session.pipeline_carrier import Entrance, PipelineCarrier

        core = self._core
        # Who names a highest rate would slow down all behind it, and is served apart.
        names = [name for name, peer in core.peers.items() if peer.active and not core.limited(name)]
        if chain.order is None:
            ordered = by_name(names)
        else:
            ordered = as_given(names, [name for name in chain.order if name in names])
        if self.totals.carriers and self.totals.carriers[-1] == OPTICAL:
            core.next_block = self._behind_light()
        # Who lags far behind would make the others wait: it goes last.
        ordered.sort(key=lambda name: core.peers[name].position < core.next_block - core.window)
        listener = socket.create_server((self._links.own_address(), 0))
        self._carrier = PipelineCarrier(
            Leg(
                session=core.hello.session,
                number=self._legs,
                carrier=PIPELINE,
                first=core.next_block,
                token=secrets.token_bytes(_TOKEN_BYTES),
                parameters=to_parameters(
                    PipelineParameters(self._links.chain(ordered, listener), 0, chain.slowest_rate / 8)
                ),
            ),
            Entrance(listener, SourceAdmission(self._settings.credentials, ordered), self._settings.dialer),
            self._reader,
            self._reach,
            self._links.wake,
        )

    def _behind_light(self) -> int:
        """Where a chain begins that follows light: what nobody may have of the last window is brought by it too.

        Each host gets that from its neighbour; as repairs all of it would leave by the sender's link once for each.
        """
        core = self._core
        positions = [peer.position for peer in core.peers.values() if peer.active]
        return max(core.next_block - core.window, min([core.next_block, *positions]))

    def _reach(self, position: int) -> None:
        self._route.reached = max(self._route.reached, position)

    def _release(self, source: Source) -> None:
        """Make room for more of a stream."""
        if source.descriptor is None:
            source.release(self._core.layout.offset(self._core.needed))

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

    def _carriers(self) -> list[Carrier]:
        return [*self._draining, *([] if self._carrier is None else [self._carrier])]

    def _put_away(self, carrier: Carrier) -> None:
        carrier.close()
        if isinstance(carrier, LightCarrier):
            self.totals.datagrams += carrier.datagrams
            self.totals.offload = carrier.offload

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
                repairs=self._core.shared_repairs + sum(peer.repairs for peer in peers),
                carrier=self._carrier.name if self._carrier is not None else "",
                demoted=tuple(name for name, peer in self._core.peers.items() if peer.demoted and not peer.over),
                complete=sum(peer.state is PeerState.COMPLETE for peer in peers),
                failed=sum(peer.state is PeerState.FAILED for peer in peers),
            )
        )

    def _size(self) -> int:
        size = self._reader.source.size
        return self._reader.source.available if size is None else size
