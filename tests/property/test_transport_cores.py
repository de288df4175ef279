"""Both cores on a simulated network in virtual time: light that loses, doubles and reorders, and orderly control."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.bitmap import Bitmap
from blast_transport.control import Decoder, EndOfData, Hello, Message, Nack, Progress, Repair, Tune, encode
from blast_transport.pacing import Pacer
from blast_transport.receiver_core import ReceiverCore, ReceiverState
from blast_transport.sender_core import PeerState, SenderCore
from blast_transport.store_old import new_hash

SPACING = 0.001
CONTROL_DELAY = 0.002
LIGHT_DELAY = 0.0005
LONGEST = 200.0


@dataclass(frozen=True)
class Faults:
    """What the light does to each receiver's copy."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    garbage: float = 0.0


@dataclass
class Host:
    """A receiver with its file in memory. A frozen host hears nothing any more and says nothing."""

    core: ReceiverCore | None = None
    stored: bytearray = field(default_factory=bytearray)
    frozen_at: float = float("inf")
    nacks: int = 0
    group: str = "239.0.0.1"


class Network:
    """Runs one transfer to its end."""

    def __init__(self, content: bytes, segment_size: int, hosts: int, faults: Faults, seed: int) -> None:
        self.content = content
        self.hello = Hello(9, "f", len(content), segment_size, "239.0.0.1", 80)
        self.hosts = {f"h{index}": Host() for index in range(hosts)}
        self.faults = faults
        self.random = random.Random(seed)
        self.now = 0.0
        self.corrupt = False
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._next_send = 0.0
        self._control_free: dict[tuple[str, bool], float] = {}
        digesting = new_hash()
        digesting.update(content)
        self.digest = digesting.digest()
        self.sender = SenderCore(self.hello, self.hosts, 0.0)

    def run(self) -> None:
        while not self.sender.over:
            self._send_light()
            self._pump()
            self._advance()
            assert self.now < LONGEST, "the transfer does not end"

    def _at(self, delay: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), action))

    def _send_light(self) -> None:
        if not self.sender.sending or self.now < self._next_send:
            return
        segment = self.sender.take_segment()
        if segment == self.hello.segments:
            self.sender.end_of_data(self.digest, self.now)
            return
        self._next_send = self.now + SPACING
        for host in self.hosts.values():
            self._expose(host, segment)

    def _expose(self, host: Host, segment: int) -> None:
        chance, faults = self.random.random, self.faults
        if chance() < faults.garbage:
            wild = self.random.choice([self.random.randrange(1 << 64), self.hello.segments, segment])
            self._at(LIGHT_DELAY, lambda: self._datagram(host, wild, b"x" * self.random.randrange(64)))
        if chance() < faults.loss:
            return
        delay = LIGHT_DELAY + (chance() * 20 * SPACING if chance() < faults.reordering else 0)
        copies = 2 if chance() < faults.duplication else 1
        for _ in range(copies):
            self._at(delay, lambda: self._datagram(host, segment, self._piece(segment)))

    def _piece(self, segment: int) -> bytes:
        start = segment * self.hello.segment_size
        return self.content[start : start + self.hello.segment_size]

    def _datagram(self, host: Host, segment: int, payload: bytes) -> None:
        if host.core is None or self.now >= host.frozen_at:
            return
        # Garbage of the right length in a segment that is still missing cannot be told from data: only the digest can.
        if host.core.datagram(segment, len(payload), self.now):
            self._store(host, segment, payload)

    def _store(self, host: Host, segment: int, payload: bytes) -> None:
        assert host.core is not None
        start = segment * self.hello.segment_size
        host.stored[start : start + len(payload)] = payload
        host.core.check_complete()

    def _pump(self) -> None:
        for name, host in self.hosts.items():
            segment = self.sender.take_repair(name)
            while segment is not None:
                self._control(name, True, Repair(9, segment, self._piece(segment)))
                segment = self.sender.take_repair(name)
            if host.core is not None and self.now < host.frozen_at:
                self._finish(host.core, host)
                for message in host.core.outbox:
                    host.nacks += isinstance(message, Nack)
                    self._control(name, False, message)
                host.core.outbox.clear()
        for name, message in self.sender.outbox:
            self._control(name, True, message)
        self.sender.outbox.clear()

    def _finish(self, core: ReceiverCore, host: Host) -> None:
        if core.state is not ReceiverState.VERIFYING:
            return
        digesting = new_hash()
        digesting.update(bytes(host.stored))
        if digesting.digest() == core.digest:
            core.stored()
        else:
            core.fail("digest")

    def _control(self, name: str, down: bool, message: Message) -> None:
        free = max(self._control_free.get((name, down), 0.0), self.now) + 0.0001
        self._control_free[name, down] = free
        arrive = self._down if down else self._up
        self._at(free + CONTROL_DELAY - self.now, lambda: arrive(name, message))

    def _down(self, name: str, message: Message) -> None:
        host = self.hosts[name]
        if self.now >= host.frozen_at:
            return
        if isinstance(message, Hello):
            host.core = ReceiverCore(message, self.now)
            host.group = message.group
            host.stored = bytearray(message.size)
        assert host.core is not None
        if isinstance(message, EndOfData):
            if host.core.state is ReceiverState.RECEIVING:
                host.core.end_of_data(message, self.now)
        elif isinstance(message, Repair):
            if host.core.repair(message.segment, len(message.data), self.now):
                self._store(host, message.segment, message.data)
        elif isinstance(message, Progress):
            host.core.progress(self.now)
        elif isinstance(message, Tune):
            host.group = message.group
            host.core.tuned(self.now)

    def _up(self, name: str, message: Message) -> None:
        self.sender.receive(name, message, self.now)

    def _advance(self) -> None:
        live = [host.core for host in self.hosts.values() if host.core is not None and self.now < host.frozen_at]
        waits = [limit for core in [self.sender, *live] if (limit := core.deadline()) is not None]
        if self._events:
            waits.append(self._events[0][0])
        if self.sender.sending:
            waits.append(self._next_send)
        self.now = max(self.now, min(waits, default=self.now))
        while self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
        self.sender.tick(self.now)
        for core in live:
            core.tick(self.now)


class Interrupted(Network):
    """The light goes off for a while after some of the segments, and on again at the same group or at another one.

    Whoever does not listen to the group of a datagram does not get it, and what goes out in the dark nobody does.
    """

    def __init__(self, content: bytes, size: int, faults: Faults, seed: int, pauses: dict[int, float]) -> None:
        super().__init__(content, size, 3, faults, seed)
        self._pauses = dict(pauses)
        self._dark_until = 0.0
        self._group = self.hello.group

    def _send_light(self) -> None:
        if not self.sender.sending:
            return
        pause = self._pauses.pop(self.sender.next_segment, None)
        if pause is not None:
            self._dark_until = self._next_send = self.now + pause
            if self.random.random() < 0.7:
                self._group = f"239.0.1.{len(self._pauses)}"
                self.sender.tune(self._group, 80, self.now)
        if self.now >= self._dark_until:
            super()._send_light()

    def _expose(self, host: Host, segment: int) -> None:
        if host.group == self._group:
            super()._expose(host, segment)


# Drawn by length, because Hypothesis rarely draws long byte strings.
contents = st.integers(0, 6000).map(lambda length: random.Random(length).randbytes(length))
sizes = st.integers(1, 64)
shares = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0])
fault_sets = st.builds(Faults, loss=shares, duplication=shares, reordering=shares)


@settings(max_examples=150, deadline=None)
@given(contents, sizes, st.integers(1, 4), fault_sets, st.integers())
def test_every_receiver_ends_with_the_same_bytes(
    content: bytes, size: int, hosts: int, faults: Faults, seed: int
) -> None:
    network = Network(content, size, hosts, faults, seed)
    network.run()
    for name, host in network.hosts.items():
        assert network.sender.peers[name].state is PeerState.COMPLETE, network.sender.peers[name].reason
        assert host.stored == content


@settings(max_examples=60, deadline=None)
@given(contents, sizes, st.integers(1, 4), st.integers())
def test_no_loss_means_no_question_and_no_repair(content: bytes, size: int, hosts: int, seed: int) -> None:
    network = Network(content, size, hosts, Faults(duplication=0.3), seed)
    network.run()
    assert [host.nacks for host in network.hosts.values()] == [0] * hosts
    assert [peer.repairs for peer in network.sender.peers.values()] == [0] * hosts


@settings(max_examples=60, deadline=None)
@given(contents, sizes, st.sampled_from([0.01, 0.1, 0.5]), st.integers())
def test_orderly_loss_is_repaired_once(content: bytes, size: int, loss: float, seed: int) -> None:
    network = Network(content, size, 3, Faults(loss=loss), seed)
    network.run()
    for name, host in network.hosts.items():
        assert host.core is not None
        assert network.sender.peers[name].repaired_bytes == host.core.repaired_bytes
        assert host.core.duplicates == 0


@settings(max_examples=60, deadline=None)
@given(contents, sizes, fault_sets, st.integers(), st.floats(0, 0.5))
def test_a_frozen_receiver_harms_no_other(content: bytes, size: int, faults: Faults, seed: int, when: float) -> None:
    network = Network(content, size, 3, faults, seed)
    network.hosts["h1"].frozen_at = when
    network.run()
    for name in ("h0", "h2"):
        assert network.sender.peers[name].state is PeerState.COMPLETE
        assert network.hosts[name].stored == content
    frozen = network.sender.peers["h1"]
    assert frozen.reason or network.hosts["h1"].stored == content


@settings(max_examples=100, deadline=None)
@given(contents, sizes, fault_sets, st.integers(), st.dictionaries(st.integers(0, 100), st.floats(0, 30), max_size=4))
def test_pauses_of_any_length_cost_no_byte_and_no_question(
    content: bytes, size: int, faults: Faults, seed: int, pauses: dict[int, float]
) -> None:
    network = Interrupted(content, size, faults, seed, pauses)
    network.run()
    for name, host in network.hosts.items():
        peer = network.sender.peers[name]
        assert peer.state is PeerState.COMPLETE, peer.reason
        assert host.stored == content
        if faults in (Faults(), Faults(duplication=faults.duplication)):
            assert (host.nacks, peer.repairs) == (0, 0)


@settings(max_examples=100, deadline=None)
@given(contents, sizes, fault_sets, st.integers())
def test_garbage_never_passes_as_the_file(content: bytes, size: int, faults: Faults, seed: int) -> None:
    wild = Faults(faults.loss, faults.duplication, faults.reordering, garbage=0.3)
    network = Network(content, size, 2, wild, seed)
    network.run()
    for name, host in network.hosts.items():
        peer = network.sender.peers[name]
        if peer.state is PeerState.COMPLETE:
            assert host.stored == content
        else:
            assert peer.reason == "digest"
            assert host.stored != content


def test_a_light_path_that_is_dark_costs_time_and_nothing_else() -> None:
    network = Network(bytes(range(250)) * 10, 50, 2, Faults(loss=1.0), 1)
    network.run()
    assert all(peer.state is PeerState.COMPLETE for peer in network.sender.peers.values())
    assert [peer.repairs for peer in network.sender.peers.values()] == [50, 50]


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "range"]), st.integers(0, 19), st.integers(0, 20))))
def test_bitmap_is_a_set(steps: list[tuple[str, int, int]]) -> None:
    bitmap, model = Bitmap(20), set[int]()
    for action, first, length in steps:
        if action == "add":
            assert bitmap.add(first) == (first not in model)
            model.add(first)
        elif action == "discard":
            bitmap.discard(first)
            model.discard(first)
        else:
            stop = min(20, first + length)
            bitmap.add_range(first, stop - first)
            model |= set(range(first, stop))
        missing = [index for start, size in bitmap.missing(0, 20) for index in range(start, start + size)]
        assert missing == sorted(set(range(20)) - model)
        assert bitmap.held == len(model)


@given(
    st.lists(st.floats(0, 0.02), min_size=1, max_size=80),
    st.sampled_from([1e6, 100e6, 1e9, 40e9]),
    st.sampled_from([600, 1514, 9014]),
)
def test_however_late_the_sender_wakes_no_window_holds_more_than_the_rate(
    sleeps: list[float], rate: float, size: int
) -> None:
    pacer, now, sent = Pacer(rate, size, 0.0), 0.0, []
    for sleep in sleeps:
        now += sleep
        for _ in range(200):
            if pacer.delay(now) > 0:
                break
            pacer.sent(size, now)
            sent.append(now)
    burst = max(0.001 * rate, size * 8) + size * 8
    for first in range(0, len(sent), 7):
        for last in range(first, len(sent), 5):
            assert (last - first + 1) * size * 8 <= (sent[last] - sent[first]) * rate * 1.000001 + burst + 1


messages = st.one_of(
    st.builds(Progress, st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)),
    st.builds(Repair, st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(max_size=200)),
    st.builds(EndOfData, st.integers(0, 2**32 - 1), st.binary(min_size=32, max_size=32)),
    st.builds(
        Nack,
        st.integers(0, 2**32 - 1),
        st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1)), min_size=1, max_size=20).map(tuple),
    ),
)


@given(st.lists(messages, max_size=6), st.lists(st.integers(1, 50)))
def test_the_stream_may_be_cut_anywhere(sent: list[Message], cuts: list[int]) -> None:
    stream, decoder, got = b"".join(map(encode, sent)), Decoder(), []
    for cut in cuts:
        got += decoder.feed(stream[:cut])
        stream = stream[cut:]
    assert got + decoder.feed(stream) == sent


@pytest.mark.parametrize("seed", range(3))
def test_the_simulation_loses_as_told(seed: int) -> None:
    network = Network(bytes(5000), 10, 1, Faults(loss=0.1), seed)
    network.run()
    assert 20 <= network.sender.peers["h0"].repairs <= 90
