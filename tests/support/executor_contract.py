"""What the optical executor promises, against the emulated switch, with a relay that writes down every command.

`ExecutorContract` is the promise, a suite to inherit; a class below it makes the `lab`, by whichever way to the switch.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from blast_controller.core.model.commands import CircuitChange, SetCircuits
from blast_controller.core.model.events import DeviceDown, DeviceUp, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.optical.executor import OpticalExecutor, SwitchSettings
from tests.support.waiting import eventually, for_a_while
from tl1_driver.circuits import Circuit
from tl1_driver.dialects import DIALECTS
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.ways import Tcp, Way

PATIENCE = 30.0
TCP = Tcp()


class SwitchThread:
    """An emulated switch 16 x 16 in a thread, behind a relay; `commands` are the changes it was sent."""

    def __init__(self, port: int, connect_seconds: float = 0.0) -> None:
        self.loop = asyncio.new_event_loop()
        self.switch = EmulatedSwitch(16, 16, apply=self._apply, connect_seconds=connect_seconds)
        self.commands: list[str] = []
        self.lit: set[Circuit] = set()
        self._listening = socket.create_server(("127.0.0.1", port), reuse_port=True)
        self.port = self._listening.getsockname()[1]
        self._relays: set[asyncio.Task] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _apply(self, removed, added) -> None:
        self.lit = self.lit - set(removed) | set(added)

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        inner_socket = socket.create_server(("127.0.0.1", 0))
        inner_port = inner_socket.getsockname()[1]
        inner = await self.switch.serve(inner_socket)

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._relays.add(asyncio.current_task())
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", inner_port)
            for end in (writer, far_writer):
                end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up = asyncio.ensure_future(self._pump(reader, far_writer, self._note))
            down = asyncio.ensure_future(self._pump(far_reader, writer, lambda data: None))
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            for task in (up, down):
                task.cancel()
            writer.close()
            far_writer.close()

        outer = await asyncio.start_server(relay, sock=self._listening)
        self._ready.set()
        await self._stop.wait()
        for server in (outer, inner):
            server.close()
        self.switch.cut()
        if self._relays:
            await asyncio.wait(self._relays, timeout=1)

    @staticmethod
    async def _pump(reader, writer, note: Callable[[bytes], None]) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                note(data)
                writer.write(data)
                await writer.drain()

    def _note(self, data: bytes) -> None:
        for text in data.decode().split(";"):
            verb, _, rest = text.strip().partition("::")
            if verb in ("ent-crs-fiber", "dlt-crs-fiber"):
                self.commands.append(f"{verb[:3]} {rest.split(':')[0]}")

    def do(self, function: Callable[[], object]) -> None:
        """Do something on the switch's own thread."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (function(), done.set()))
        assert done.wait(PATIENCE)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class Bench:
    """An executor for the switch "ocs1" and the events it gave."""

    def __init__(self, port: int, timeout: float, way: Way = TCP) -> None:
        self.port = port
        self.events: queue.Queue = queue.Queue()
        self.failures: list[BaseException] = []
        settings = SwitchSettings("ocs1", "127.0.0.1", port, DIALECTS["glimmerglass"], timeout=timeout, way=way)
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.executor = OpticalExecutor(
            [settings], self.events.put, self.failures.append, on_refused=lambda *told: self.refusals.update([told])
        )
        self.executor.start()

    def next(self, kind: type):
        event = self.events.get(timeout=PATIENCE)
        assert isinstance(event, kind), event
        return event

    def apply(self, *changes: CircuitChange) -> None:
        self.executor.apply(SetCircuits("ocs1", changes))

    def answers(self, count: int) -> dict[tuple[int, int], StepConfirmed | StepFailed]:
        """The next answers, by step; there must be one of each and no more."""
        found = [self.next(StepConfirmed | StepFailed) for _ in range(count)]
        steps = {(event.reservation, event.step): event for event in found}
        assert len(steps) == count
        return steps

    def quiet(self) -> None:
        for_a_while(self.events.empty, "silence of the executor")


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextlib.contextmanager
def bench(port: int, timeout: float = 2.0, way: Way = TCP) -> Iterator[Bench]:
    found = Bench(port, timeout, way)
    try:
        yield found
    finally:
        found.executor.stop()
    assert found.failures == []


def circuits(*pairs: tuple[int, int]) -> tuple[CrossConnect, ...]:
    return tuple(CrossConnect("ocs1", *pair) for pair in pairs)


class ExecutorContract:
    """The fixture `lab` gives the switch and the executor, which has seen it."""

    def test_one_decision_is_one_delete_and_one_connect_roots_first(self, lab):
        switch, found = lab
        found.apply(CircuitChange(1, 1, (), circuits((9, 9), (10, 2), (11, 3))))
        found.answers(1)
        found.apply(
            CircuitChange(1, 2, circuits((9, 9), (10, 2), (11, 3)), ()),
            CircuitChange(2, 1, (), circuits((1, 12), (13, 4), (14, 5))),
            CircuitChange(3, 1, (), circuits((6, 7))),
        )
        answers = found.answers(3)
        assert all(isinstance(event, StepConfirmed) and event.elapsed > 0 for event in answers.values())
        assert switch.commands == [
            "ent 10009&10010&10011,20009&20002&20003",
            "dlt 10009&10010&10011,20009&20002&20003",
            "ent 10001&10013&10014&10006,20012&20004&20005&20007",
        ]
        assert switch.lit == {(1, 12), (13, 4), (14, 5), (6, 7)}

    def test_a_denied_port_fails_only_its_own_reservation(self, lab):
        switch, found = lab
        switch.do(lambda: switch.switch.faults.refused_inputs.add(5))
        found.apply(
            CircuitChange(1, 1, (), circuits((1, 2), (3, 4))),
            CircuitChange(2, 1, (), circuits((6, 6), (5, 8))),
            CircuitChange(3, 1, (), circuits((7, 9))),
        )
        answers = found.answers(3)
        assert {key: type(event) for key, event in answers.items()} == {
            (1, 1): StepConfirmed,
            (2, 1): StepFailed,
            (3, 1): StepConfirmed,
        }
        assert answers[2, 1].reason.startswith("optical switch ocs1: ")
        assert {(1, 2), (3, 4), (7, 9)} <= switch.lit
        # Of all together, and then of the one alone.
        [(dialect, code)] = found.refusals
        assert dialect == "glimmerglass" and code in answers[2, 1].reason and found.refusals[dialect, code] == 2

    @pytest.mark.parametrize("partial", [False, True], ids=["nothing done", "half done"])
    def test_what_a_denial_left_behind_does_not_matter(self, lab, partial):
        switch, found = lab
        switch.do(
            lambda: (
                switch.switch.faults.refused_outputs.add(8),
                setattr(switch.switch.faults, "partial_bulk", partial),
            )
        )
        found.apply(
            CircuitChange(1, 1, (), circuits((1, 2))), CircuitChange(2, 1, (), circuits((3, 4), (5, 8), (6, 9)))
        )
        answers = found.answers(2)
        assert isinstance(answers[1, 1], StepConfirmed)
        assert isinstance(answers[2, 1], StepFailed)
        found.apply(CircuitChange(2, 2, circuits((3, 4), (5, 8), (6, 9)), ()))
        assert isinstance(found.answers(1)[2, 2], StepConfirmed)
        assert switch.lit == {(1, 2)}

    def test_disconnecting_what_is_not_there_is_done(self, lab):
        switch, found = lab
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        found.answers(1)
        found.apply(CircuitChange(1, 2, circuits((1, 2), (3, 4)), ()), CircuitChange(2, 2, circuits((5, 6)), ()))
        assert {type(event) for event in found.answers(2).values()} == {StepConfirmed}
        assert switch.lit == set()

    def test_a_step_without_anything_is_confirmed(self, lab):
        _, found = lab
        found.apply(CircuitChange(1, 1))
        found.answers(1)

    def test_decisions_are_carried_out_in_order(self, lab):
        switch, found = lab
        for step in range(1, 9):
            pair = circuits((1, 2))
            found.apply(CircuitChange(1, step, *((), pair) if step % 2 else (pair, ())))
        assert list(found.answers(8)) == [(1, step) for step in range(1, 9)]
        assert switch.lit == set()

    def test_what_comes_while_the_switch_is_busy_goes_out_together(self, lab):
        switch, found = lab
        switch.do(lambda: setattr(switch.switch.faults, "answer_delay", 0.2))
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))))
        eventually(lambda: len(switch.commands) == 1)
        for number in (2, 3, 4):
            found.apply(CircuitChange(number, 1, (), circuits((2 * number, 2 * number + 1))))
        assert set(found.answers(4)) == {(number, 1) for number in (1, 2, 3, 4)}
        assert switch.commands[1:] == ["ent 10004&10006&10008,20005&20007&20009"]

    def test_a_session_cut_in_the_middle_answers_every_step_once_and_reads_what_is_there(self, lab):
        switch, found = lab
        switch.do(lambda: setattr(switch.switch.faults, "cut_before_answer", True))
        found.apply(CircuitChange(1, 1, (), circuits((1, 2))), CircuitChange(2, 1, (), circuits((3, 4))))
        found.apply(CircuitChange(3, 1, (), circuits((5, 6))))
        events = [found.events.get(timeout=PATIENCE) for _ in range(4)]
        failed = [(e.reservation, e.step) for e in events if isinstance(e, StepFailed)]
        assert sorted(failed) == [(1, 1), (2, 1), (3, 1)]
        assert [type(e) for e in events if not isinstance(e, StepFailed)] == [DeviceDown]
        switch.do(lambda: setattr(switch.switch.faults, "cut_before_answer", False))
        up = found.next(DeviceUp)
        # The third may have gone out together with the other two.
        assert {CrossConnect("ocs1", c.input, c.output) for c in switch.switch.circuits} == up.circuits
        assert up.circuits >= set(circuits((1, 2), (3, 4))), "what was done before the cut"
