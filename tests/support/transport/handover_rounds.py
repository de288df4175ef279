"""Random rounds of one transfer that changes its transport while receivers are late, lose their group, die or return.

The plan of a round depends on its seed only. A step is due when all blocks before its own have left the sender. Until
then the source shows only some more blocks: no transport, however fast, ends the file before the last step.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import accumulate
from pathlib import Path
from queue import Empty
from typing import NamedTuple
from unittest.mock import patch

from blast_transport.base.engines import AUTO, PYTHON
from blast_transport.base.report import Progress, Received, ReceiverOutcome, TransferResult
from blast_transport.blocks.digests import DIGEST_BYTES
from blast_transport.blocks.sealing import TAG_BYTES
from blast_transport.datagrams.interface import open_group_socket
from blast_transport.links.dialling import Address
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.source import FileSource
from blast_transport.store.targets import file_target
from blast_transport.transports.choices import Chain, MulticastChoice, TransportChoice
from blast_transport.transports.pipeline.sender import _UNDER_WAY_BYTES
from blast_transport.wire.datagram import segment_size_for, segments_for
from blast_transport.wire.transports import MULTICAST, OPTICAL, PIPELINE
from tests.support.dice import SeededDice
from tests.support.transport.transport_hosts import (
    LOOPBACK,
    MTU,
    TIMEOUT,
    Agent,
    FaultyLight,
    Process,
    agent,
    light,
    receiver_process,
)
from tests.support.waiting import HANGING, eventually


class Fate(Enum):
    """Fate of a receiver in a round; "returns" is killed and started again."""

    STEADY = "steady"
    LOSSY = "lossy"
    LOSES_GROUP = "loses-group"
    LATE = "late"
    DIES = "dies"
    RETURNS = "returns"


class StepKind(Enum):
    """Kind of a step: a change of the transport, or an event at a receiver."""

    CHANGE = "change"
    LOSE = "lose group"
    REGAIN = "regain group"
    START = "start"
    KILL = "kill"


FAULTS = (Fate.LOSES_GROUP, Fate.LATE, Fate.DIES, Fate.RETURNS)
PROCESSES = (Fate.LATE, Fate.DIES, Fate.RETURNS)
"""Receivers that are processes of their own; all others are agents in threads."""
BLOCK_SIZE = segment_size_for(MTU) * segments_for(segment_size_for(MTU))
RATES = (50e6, 100e6, 200e6, 400e6)
_MAX_LEAD = 40
"""Blocks that are available behind that of the next step."""
_LEFT_BLOCKS = _UNDER_WAY_BYTES // BLOCK_SIZE + _MAX_LEAD + 4
"""More than a pipeline brings after it is left."""
_RECORD = struct.Struct(f"<Q{DIGEST_BYTES}s")
_TIMINGS = SenderTimings(connect=HANGING, ready=HANGING, stall=HANGING)
"""A busy machine fails no receiver; one that is silent is demoted as soon as usual."""


class HandoverStep(NamedTuple):
    """An event when all blocks before `block` have left; afterwards the blocks before `shown` are available.

    A change goes to the transport `subject` at up to `rate`, and the next step waits for it if it `settles`. All other
    steps affect the receiver `subject`.
    """

    block: int
    kind: StepKind
    subject: str
    rate: float = 0.0
    settles: bool = True
    shown: int = 0


@dataclass(frozen=True)
class HandoverPlan:
    """A round: the blocks of its file, the sender's engine, the fates of receivers, and the steps in order.

    The first step is the first transport.
    """

    blocks: int
    engine: str
    sealed: bool
    fates: Mapping[str, Fate]
    steps: tuple[HandoverStep, ...]

    @property
    def transports(self) -> list[str]:
        """Return the transports that must be used, in order: another change at once may replace one to a pipeline."""
        return [step.subject for step in self.steps if step.kind is StepKind.CHANGE and step.settles]


def plan_of(seed: int) -> HandoverPlan:
    """Return the plan of the round with this seed."""
    dice = SeededDice(seed)
    blocks = dice.number(60, 200)
    # One receiver keeps up, so that multicast goes on.
    fates = [Fate.STEADY, dice.pick(FAULTS), *(dice.pick(list(Fate)) for _ in range(dice.number(1, 2)))]
    named = {f"{fate.value}-{number}": fate for number, fate in enumerate(fates)}
    steps = _changes(dice, blocks)
    for name, fate in named.items():
        kinds = {Fate.LATE: [StepKind.START], Fate.DIES: [StepKind.KILL], Fate.RETURNS: [StepKind.KILL, StepKind.START]}
        kinds[Fate.LOSES_GROUP] = [StepKind.LOSE, StepKind.REGAIN][: dice.number(1, 2)]
        affected = kinds.get(fate, [])
        places = _places(dice, blocks, len(affected))
        steps += [HandoverStep(block, kind, name) for block, kind in zip(places, affected, strict=True)]
    blocks, laid_out = _lay_out(dice, sorted(steps, key=lambda step: step.block), blocks)
    return HandoverPlan(blocks, dice.pick([AUTO, AUTO, AUTO, PYTHON]), dice.rarely(), named, laid_out)


def _lay_out(dice: SeededDice, steps: Sequence[HandoverStep], blocks: int) -> tuple[int, tuple[HandoverStep, ...]]:
    """Return the blocks of the file, and the steps with the blocks that are available after each.

    A pipeline that is left still brings many blocks: the steps that follow come during that, or afterwards.
    """
    places, shift, transport = list[int](), 0, ""
    for step in steps:
        places.append(step.block + shift)
        if step.kind is StepKind.CHANGE:
            if transport == PIPELINE:
                blocks += _LEFT_BLOCKS
                shift += dice.pick([0, _LEFT_BLOCKS])
            transport = step.subject
    shown = accumulate((min(place + dice.number(0, _MAX_LEAD), blocks - 1) for place in places[1:]), max)
    return blocks, tuple(
        step._replace(block=place, shown=until)
        for step, place, until in zip(steps, places, [*shown, blocks], strict=True)
    )


def _changes(dice: SeededDice, blocks: int) -> list[HandoverStep]:
    """Return changes to multicast, optical and multicast, and to pipelines before, between and behind these."""
    transports = [MULTICAST, OPTICAL, MULTICAST]
    for place in sorted(dice.some(range(len(transports) + 1), 2), reverse=True):
        transports.insert(place, PIPELINE)
    places = [0, *_places(dice, blocks, len(transports) - 1)]
    return [
        HandoverStep(
            block, StepKind.CHANGE, transport, dice.pick(RATES), transport != PIPELINE or dice.number(0, 1) > 0
        )
        for block, transport in zip(places, transports, strict=True)
    ]


def _places(dice: SeededDice, blocks: int, number: int) -> list[int]:
    """Return that many different blocks in order, neither the first ones nor the last ones."""
    places = set[int]()
    while len(places) < number:
        places.add(dice.number(2, blocks - 2))
    return sorted(places)


class PartlyShown(FileSource):
    """A file of which only the first `shown` bytes are available."""

    shown = 0

    @property
    def available(self) -> int:
        return min(self.shown, self.size)


class Memberships:
    """Opener of group sockets that can lose all their memberships, as behind a switch that forgets them."""

    def __init__(self) -> None:
        self._lost = False
        self._joined: list[tuple[socket.socket, bytes]] = []

    def __call__(self, interface_address: str, group: str, port: int, source: str | None = None, /) -> socket.socket:
        sock = open_group_socket(interface_address, group, port, source)
        self._joined.append((sock, socket.inet_aton(group) + socket.inet_aton(interface_address)))
        if self._lost:
            self._apply(socket.IP_DROP_MEMBERSHIP)
        return sock

    def lose(self) -> None:
        """Drop the memberships, and those of later sockets."""
        self._lost = True
        self._apply(socket.IP_DROP_MEMBERSHIP)

    def regain(self) -> None:
        """Join again."""
        self._lost = False
        self._apply(socket.IP_ADD_MEMBERSHIP)

    def _apply(self, option: int) -> None:
        for sock, membership in self._joined:
            # Sockets of earlier phases are closed.
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_IP, option, membership)


class StoredBlocks:
    """Blocks that a receiver has stored, in all its lives: it writes a record for each of them."""

    def __init__(self, directory: Path) -> None:
        pattern = f"*{file_target.RECORDS_SUFFIX}"
        path = eventually(lambda: next(directory.glob(pattern), None), f"a session in {directory.name}")
        assert path is not None
        # The receiver removes the file at its end.
        self._file = path.open("rb")

    def check(self, expected: Iterable[int]) -> list[str]:
        """Return the faults: a block that was stored twice, or one of the `expected` that was not stored."""
        with self._file as file:
            data = file.read()
        # A killed process may leave part of a record. A block with two digests first arrived damaged.
        records = Counter(_RECORD.iter_unpack(data[: len(data) - len(data) % _RECORD.size]))
        again = sorted(block for (block, _), count in records.items() if count > 1)
        missing = sorted({*expected} - {block for block, _ in records})
        found = ((again, "twice"), (missing, "never"))
        return [f"{how}: {len(blocks)} blocks, from {blocks[0]} to {blocks[-1]}" for blocks, how in found if blocks]


class HandoverRound:
    """A round under way: its receivers and its transfer. `repeated`: segments that agents received again, of `all`."""

    def __init__(self, plan: HandoverPlan, folder: Path, log: Callable[[str], None]) -> None:
        self.repeated = self.all = 0
        self._plan, self._folder, self._log = plan, folder, log
        self._began = time.monotonic()
        self._agents: dict[str, Agent] = {}
        self._memberships: dict[str, Memberships] = {}
        self._ports: dict[str, int] = {}
        self._lives: dict[str, ExitStack] = {}
        self._stored: dict[str, StoredBlocks] = {}
        self._file = folder / "content"
        self._block_size = BLOCK_SIZE - (TAG_BYTES if plan.sealed else 0)
        self._file.write_bytes(os.urandom(plan.blocks * self._block_size - 1000))
        self._route = Route(_choice(plan.steps[0]))
        self._transport = ""
        self._outcome: TransferResult | Exception | None = None

    def play(self) -> list[str]:
        """Take all steps; return the faults."""
        # Records that wait in memory at the end would not be counted.
        with ExitStack() as stack, patch.object(file_target, "_RECORDS_PER_WRITE", 1):
            addresses = [self._prepare(name, stack) for name in self._plan.fates]
            settings = SenderSettings(LOOPBACK, MTU, _TIMINGS, sealed=self._plan.sealed, engine=self._plan.engine)
            sender = stack.enter_context(Sender(addresses, settings))
            with self._sending(sender) as source:
                self._show(source, self._plan.steps[0])
                self._stored |= {name: StoredBlocks(self._folder / name) for name in self._agents}
                for step in self._plan.steps[1:]:
                    self._await(partial(self._have_left, step.block), f"block {step.block} to leave")
                    self._take(step, stack)
                    self._show(source, step)
            self._count_repeated()
            return self._faults()

    def _prepare(self, name: str, stack: ExitStack) -> Address:
        """Start a receiver unless it is late; return its address."""
        fate, directory = self._plan.fates[name], self._folder / name
        if fate in PROCESSES:
            # No other program may take the port while the receiver does not run.
            reserved = stack.enter_context(socket.socket())
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((LOOPBACK, 0))
            self._ports[name] = reserved.getsockname()[1]
            if fate is not Fate.LATE:
                self._start(name, stack)
            return name, LOOPBACK, self._ports[name]
        if fate is Fate.LOSSY:
            # Erasure coding would need sockets that compiled code can read.
            one = stack.enter_context(agent(directory, FaultyLight(0.02, 0.02, 0.001), engine=PYTHON))
        else:
            self._memberships[name] = Memberships()
            one = stack.enter_context(agent(directory, self._memberships[name]))
        self._agents[name] = one
        return one.address

    def _start(self, name: str, stack: ExitStack) -> Process:
        self._lives[name] = stack.enter_context(ExitStack())
        return self._lives[name].enter_context(receiver_process(self._folder / name, self._ports[name]))

    @contextmanager
    def _sending(self, sender: Sender) -> Iterator[PartlyShown]:
        """Send in a thread until the end of the transfer, or until a step fails."""
        descriptor = os.open(self._file, os.O_RDONLY)
        source = PartlyShown(self._file, descriptor)
        thread = threading.Thread(target=self._send, args=(sender, source))
        thread.start()
        try:
            yield source
            self._await(lambda: False, "the end of the transfer")
        finally:
            self._route.give_up("the round is over")
            thread.join(TIMEOUT)
            os.close(descriptor)

    def _send(self, sender: Sender, source: PartlyShown) -> None:
        try:
            self._outcome = sender.transmit(source, self._route, Destination(self._file.name), self._note)
        except Exception as error:  # noqa: BLE001 the round reports it
            self._outcome = error

    def _note(self, progress: Progress) -> None:
        self._transport = progress.transport

    def _await(self, condition: Callable[[], object], event: str) -> None:
        """Wait for an event, or for the end of the transfer."""
        eventually(lambda: self._outcome or condition(), f"{event}, by {self._transport or 'no transport'}")

    def _have_left(self, blocks: int) -> bool:
        return self._route.reached >= blocks * self._block_size

    def _show(self, source: PartlyShown, step: HandoverStep) -> None:
        source.shown = step.shown * self._block_size
        self._route.wake()

    def _take(self, step: HandoverStep, stack: ExitStack) -> None:
        name = step.subject
        self._report(f"{self._route.reached // self._block_size} blocks left by {self._transport or '-'}: {step}")
        match step.kind:
            case StepKind.CHANGE:
                self._route.go(_choice(step))
                if step.settles:
                    self._await(lambda: self._transport == name, f"the change to {name}")
            case StepKind.LOSE:
                self._memberships[name].lose()
            case StepKind.REGAIN:
                self._memberships[name].regain()
            case StepKind.START:
                process = self._start(name, stack)
                self._await(lambda: _receives(process), f"the invitation of {name}")
                if name not in self._stored:
                    self._stored[name] = StoredBlocks(self._folder / name)
            case StepKind.KILL:
                self._stored[name] = StoredBlocks(self._folder / name)
                self._lives[name].close()

    def _report(self, event: str) -> None:
        self._log(f"{time.monotonic() - self._began:.3f} s: {event}")

    def _faults(self) -> list[str]:
        """Return the faults at the end of the transfer."""
        result = self._outcome
        if not isinstance(result, TransferResult):
            raise result or AssertionError("the transfer does not end")
        self._report(f"{', '.join(result.transports)}; notes: {result.notes}")
        content = self._file.read_bytes()
        faults = [fault for outcome in result.receivers for fault in self._faults_of(outcome, content)]
        used = iter(result.transports)
        if not all(transport in used for transport in self._plan.transports):
            faults.append(f"used {', '.join(result.transports)} instead of {', '.join(self._plan.transports)}")
        return faults

    def _faults_of(self, outcome: ReceiverOutcome, content: bytes) -> Iterator[str]:
        """Yield the faults of a receiver."""
        self._report(str(outcome))
        name, file = outcome.name, self._folder / outcome.name / self._file.name
        dead = self._plan.fates[name] is Fate.DIES
        if outcome.complete is dead or (dead and not outcome.reason):
            yield f"{name} is reported as complete: {outcome.complete}, {outcome.reason!r}"
        elif not dead and file.read_bytes() != content:
            yield f"the file of {name} differs"
        stored = self._stored[name].check(range(0 if dead else self._plan.blocks))
        yield from (f"{name} stored {fault}" for fault in stored)

    def _count_repeated(self) -> None:
        """Count the segments that arrived again at receivers of this process."""
        for one in self._agents.values():
            with suppress(Empty):
                event = one.events.get_nowait()
                if isinstance(event, Received):
                    self.all += self._plan.blocks * segments_for(segment_size_for(MTU))
                    self.repeated += event.duplicates


def _choice(step: HandoverStep) -> TransportChoice:
    if step.subject == PIPELINE:
        return Chain()
    return MulticastChoice(max_rate=step.rate) if step.subject == MULTICAST else light(step.rate)


def _receives(process: Process) -> bool:
    """Return whether the process has opened a file to receive."""
    opened = list[Path]()
    for link in Path(f"/proc/{process.process.pid}/fd").iterdir():
        # It may be closed by now.
        with suppress(OSError):
            opened.append(link.readlink())
    return any(path.parent == process.directory for path in opened)
