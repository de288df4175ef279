"""The optimizer's process: it answers, is killed, hangs, is stopped; the controller goes on."""

from __future__ import annotations

import os
import queue
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import shared_ports
from algorithms.scheduling import POLICIES
from algorithms.scheduling.advised import AdvisedScheduler
from algorithms.scheduling.contention import Contention
from algorithms.scheduling.job import Job, multicast
from blast_controller.core.model.commands import Optimize
from blast_controller.core.model.events import FinishRequested, Optimized, RequestSubmitted
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.optimizer.process import GRACE, OptimizerProcess
from blast_controller.optimizer.worker import NICENESS
from tests.support.controller.core import key_of, make_fabric
from tests.support.controller.core import multicast as request
from tests.support.controller.runtime import TIMEOUT, Running, running
from tests.support.waiting import eventually

STARTS = 30.0
"""Seconds that a process may take to load the solver on a busy machine."""


def contention(racks: int = 60, groups: int = 120, seed: int = 1) -> Contention:
    """Random wide groups on one switch, of which far more can be served than in their order of rank."""
    rng = random.Random(seed)
    scheduler = AdvisedScheduler(POLICIES["paper"], {"ocs": Feasibility([1] * racks, {4: racks})})
    scheduler.gather()
    for number in range(groups):
        members = rng.sample(range(racks), rng.randint(2, 12))
        group = multicast(number, members, rng.paretovariate(1.1), shared_ports)
        scheduler.arrive(Job(number, group, 1 << members[0], 1.0, 0.0), 0.0)
    found = scheduler.contention(0.0)
    assert found is not None
    return found


class Bench:
    """A running process and its answers."""

    def __init__(self) -> None:
        self.answers: queue.Queue[Optimized] = queue.Queue()
        self.failures: list[BaseException] = []
        self.process = OptimizerProcess(self.answers.put, self.failures.append)
        self.process.start()

    def idle(self, revision: int) -> int:
        """Return the id of the process after it has answered `revision` and waits for the next one."""
        self.ask(revision)
        assert self.answer().chosen and self.process.pid is not None
        return self.process.pid

    def ask(self, revision: int, seconds: float = 0.2) -> None:
        self.process.ask(Optimize(revision, contention(), seconds))

    def answer(self, within: float = STARTS) -> Optimized:
        return self.answers.get(timeout=within)

    def at_work(self, revision: int) -> int:
        """Submit a problem that takes a minute, and return the id of the process once it computes."""
        self.ask(0)
        assert self.answer().chosen
        pid = self.process.pid
        assert pid is not None
        before = cpu_of(pid)
        self.ask(revision, 60.0)
        eventually(lambda: cpu_of(pid) >= before + 0.1, "the optimizer at work")
        return pid


def fields_of(pid: int) -> list[str]:
    """Return the fields of a process's /proc/PID/stat, from its state on (proc(5))."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_of(pid: int) -> float:
    """Seconds that a process has computed for."""
    fields = fields_of(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    try:
        yield made
    finally:
        made.process.stop()
    assert made.failures == []


def test_optimizer_beats_greedy_choice_at_low_priority(bench: Bench) -> None:
    bench.ask(7)
    answer = bench.answer()
    assert answer.revision == 7
    asked = contention()
    places = {contender.name: contender for contender in asked.contenders}
    selection = [(places[chosen.name], chosen.pieces) for chosen in answer.chosen]
    served = asked.served(selection)
    assert len(served) == len(selection), "its choice is feasible"
    greedy = asked.served((c, None) for c in asked.contenders)
    assert sum(c.group.weight for c, _ in served) > sum(c.group.weight for c, _ in greedy)
    assert bench.process.pid is not None
    assert int(fields_of(bench.process.pid)[16]) == os.nice(0) + NICENESS


def test_optimizer_killed_at_work_answers_empty_and_restarts(bench: Bench) -> None:
    pid = bench.at_work(1)
    os.kill(pid, signal.SIGKILL)
    assert bench.answer(TIMEOUT) == Optimized(1)
    bench.ask(2)
    assert bench.answer().chosen and bench.process.pid not in (None, pid)


def test_optimizer_killed_while_idle_answers_one_query_empty(bench: Bench) -> None:
    pid = bench.idle(1)
    os.kill(pid, signal.SIGKILL)
    bench.ask(2)
    assert bench.answer(TIMEOUT) == Optimized(2)
    bench.idle(3)


def test_hung_optimizer_is_killed_and_replaced(bench: Bench) -> None:
    pid = bench.idle(1)
    # Stopped before it is asked: stopped at work, it might have answered already.
    os.kill(pid, signal.SIGSTOP)
    bench.ask(2, 0.5)
    assert bench.answer(0.5 + GRACE + TIMEOUT) == Optimized(2)
    bench.idle(3)
    assert not is_there(pid)


def test_stopping_busy_optimizer_leaves_no_process() -> None:
    bench = Bench()
    pid = bench.at_work(1)
    bench.ask(2)
    bench.process.stop()
    assert not is_there(pid)
    assert {bench.answer(TIMEOUT).revision, bench.answer(TIMEOUT).revision} == {1, 2}
    assert bench.failures == []


class Counted(OptimizerProcess):
    """The optimizer of a lab, which counts questions and answers. Questions of revision -1 are those of the test."""

    def __init__(self, lab: Running) -> None:
        super().__init__(self._take, lab.failures.append)
        self.asked = self.answered = 0
        self._post_to_lab = lab.runtime.post
        self._probes: queue.Queue[Optimized] = queue.Queue()

    def ask(self, command: Optimize) -> None:
        self.asked += command.revision >= 0
        super().ask(command)

    def _take(self, answer: Optimized) -> None:
        if answer.revision < 0:
            self._probes.put(answer)
        else:
            self._post_to_lab(answer)
            self.answered += 1

    def is_up(self) -> bool:
        """Return whether the process answers; without one, answers are empty."""
        self.ask(Optimize(-1, contention(), 0.2))
        return bool(self._probes.get(timeout=STARTS).chosen)


def test_controller_continues_when_its_optimizer_is_killed() -> None:
    settings = CoreSettings(policy="paper", optimize=10.0)
    with running(make_fabric(8, [8, 4, 4]), settings) as lab:
        process = lab.runtime.optimizer = Counted(lab)
        contend(lab, "a")
        process.start()
        try:
            pid = eventually(lambda: process.pid, "the process")
            os.kill(pid, signal.SIGKILL)
            assert first_with_light(lab, "a") == {"wide"}
            eventually(process.is_up, "the next process")
            contend(lab, "b")
            eventually(lambda: process.answered == process.asked, "all answers")
            assert first_with_light(lab, "b") == {"left", "right"}
        finally:
            process.stop()


def contend(lab, mark):  # type: ignore[no-untyped-def]
    """Request what four groups need at once."""
    ask(lab, f"first{mark}", "r1h1", [f"r{n}h1" for n in range(2, 9)])
    ask(lab, f"wide{mark}", "r1h1", ["r3h1", "r4h1", "r5h1"])
    ask(lab, f"left{mark}", "r1h1", ["r2h1", "r3h1"])
    ask(lab, f"right{mark}", "r4h1", ["r5h1", "r6h1"])


def first_with_light(lab, mark):  # type: ignore[no-untyped-def]
    """End the first group and return which of the others are granted at once; finally finish all."""
    end(lab, f"first{mark}")
    first = wait_for_light(lab, mark)
    done: set[str] = set()
    while len(done) < 3:
        lit = wait_for_light(lab, mark)
        for name in lit:
            end(lab, name + mark)
        done |= lit
    return first


def wait_for_light(lab, mark):  # type: ignore[no-untyped-def]
    def lit() -> set[str]:
        core = lab.look()
        return {n for n in ("wide", "left", "right") if core.request(key_of(n + mark)).state is PartState.ACTIVE}

    return eventually(lit, "a grant")


def ask(lab, key, sender, receivers):  # type: ignore[no-untyped-def]
    submission = request(key, sender, receivers, 10**9)
    lab.runtime.call(lambda context: context.handle(RequestSubmitted(submission))).result(TIMEOUT)


def end(lab, key):  # type: ignore[no-untyped-def]
    lab.runtime.call(lambda context: context.handle(FinishRequested(key_of(key), 0))).result(TIMEOUT)
