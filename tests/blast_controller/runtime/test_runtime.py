"""The runtime: one thread owns the core; work, waits and timers come to it in order."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from blast_controller.core.controller import Core
from blast_controller.core.model.errors import RequestTimeoutError, UnknownRequestError
from blast_controller.core.model.events import RequestSubmitted, WithdrawRequested
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from blast_controller.runtime.faults import InternalError
from blast_controller.runtime.runtime import Runtime
from blast_controller.runtime.waiting import Wait
from blast_controller.store.errors import DiskFullError
from blast_controller.store.memory import MemoryStore
from tests.support.core import key_of, make_fabric, multicast
from tests.support.runtime import TIMEOUT, running
from tests.support.waiting import eventually

ANYTHING = Wait(lambda e: True, lambda e: e, lambda: RequestTimeoutError("Too late."))
WANTED = multicast("a", "r1h1", ["r2h1", "r3h1"])


@pytest.fixture
def lab():
    with running(make_fabric(4, [4])) as lab:
        yield lab


def grant_of(turn):
    wait = Wait(lambda e: e.kind is EventKind.GRANTED, lambda e: e.grant, lambda: RequestTimeoutError("Too late."))
    return turn.wait(key_of("a"), TIMEOUT, wait)


def test_work_is_done_on_one_thread_and_answered(lab):
    names = {lab.runtime.call(lambda turn: threading.current_thread().name).result(TIMEOUT) for _ in range(3)}
    assert names == {"core"}


def test_a_grant_with_the_time_that_each_step_took(lab):
    def work(turn):
        turn.handle(RequestSubmitted(WANTED))
        return grant_of(turn)

    grant = lab.runtime.call(work).result(TIMEOUT)
    assert grant.receivers == ("r2h1", "r3h1")
    assert grant.timings.compute > 0
    assert (grant.timings.openflow, grant.timings.optical) == (0.001, 0.001)
    assert 0 < grant.timings.total < TIMEOUT


def test_a_refusal_goes_to_who_asked(lab):
    refused = lab.runtime.call(lambda turn: turn.handle(WithdrawRequested(key_of("a"))))
    with pytest.raises(UnknownRequestError):
        refused.result(TIMEOUT)
    assert lab.runtime.call(lambda turn: 7).result(TIMEOUT) == 7


def test_a_wait_that_is_too_long_is_sent_away(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(WANTED))
    started = time.monotonic()
    future = lab.runtime.call(lambda turn: turn.wait(key_of("a"), 0.05, ANYTHING))
    with pytest.raises(RequestTimeoutError, match="Too late"):
        future.result(TIMEOUT)
    assert time.monotonic() - started >= 0.05


def test_deadlines_of_the_core_are_kept_without_any_event(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"], pending_timeout=0.05)))
    eventually(lambda: lab.look().request(key_of("a")).state is PartState.EXPIRED, "the end of its patience")


def test_deadlines_are_kept_although_work_never_ends():
    with running(make_fabric(2)) as lab:
        stop = threading.Event()

        def again(turn):
            if not stop.is_set():
                lab.runtime.call(again)

        try:
            for _ in range(2):
                lab.runtime.call(again)
            future = lab.runtime.call(lambda turn: turn.wait(key_of("x"), 0.02, ANYTHING))
            with pytest.raises(RequestTimeoutError):
                future.result(TIMEOUT)
        finally:
            stop.set()


@pytest.mark.parametrize("patience", [1e4, 1e10, 9.2e15])
def test_patience_may_be_longer_than_a_thread_can_sleep(lab, patience):
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"], pending_timeout=patience)))
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


def test_who_goes_away_leaves_the_waiting_room(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(WANTED))
    future = lab.runtime.call(grant_of)
    lab.settle()
    assert future.cancel()
    lab.devices.release()
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE
    assert lab.runtime.waiting.next_deadline() is None


def test_who_goes_away_before_the_work_is_begun_is_no_trouble(lab):
    gate = threading.Event()
    lab.runtime.call(lambda turn: gate.wait(TIMEOUT))
    futures = [lab.runtime.call(grant_of), lab.runtime.call(lambda turn: 1)]
    assert all(future.cancel() for future in futures)
    gate.set()
    lab.settle()


def test_a_look_that_fails_fails_alone(lab, caplog):
    """Whatever it raises, and also where an event came first: what the event did stands."""

    def work(turn):
        turn.handle(RequestSubmitted(WANTED))
        return 1 // 0

    with pytest.raises(InternalError) as fault:
        lab.runtime.call(work).result(TIMEOUT)
    assert f"trace {fault.value.trace}" in caplog.text and "ZeroDivisionError" in caplog.text
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


@pytest.mark.parametrize("made", ["answer", "excuse"])
def test_an_answer_to_a_wait_that_cannot_be_made_fails_alone(lab, made):
    lab.devices.held = []

    def work(turn):
        turn.handle(RequestSubmitted(WANTED))
        patience = TIMEOUT if made == "answer" else 0.0
        return turn.wait(key_of("a"), patience, lambda event: True, lambda event: 1 // 0, lambda: 1 // 0)

    future = lab.runtime.call(work)
    lab.settle()
    lab.devices.release()
    with pytest.raises(InternalError):
        future.result(TIMEOUT)
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


def test_an_event_that_cannot_be_handled_is_fatal(monkeypatch):
    failures = []
    happened = threading.Event()
    store = MemoryStore()
    loaded = store.open()
    core = Core(make_fabric(1), CoreSettings())
    runtime = Runtime(core, store, lambda error: (failures.append(error), happened.set()))
    runtime.start(None, None, loaded)  # type: ignore[arg-type]
    monkeypatch.setattr(core, "take", lambda event, now: 1 // 0)
    runtime.call(lambda turn: turn.handle(RequestSubmitted(WANTED)))
    assert happened.wait(TIMEOUT)
    assert str(failures[0]).startswith("RequestSubmitted failed: ZeroDivisionError")


@pytest.mark.parametrize("fails", [False, True])
def test_work_goes_on_while_changes_are_written_and_nothing_leaves_before(lab, monkeypatch, fails):
    commit, gate, commits, done = lab.store.commit, threading.Event(), [], []
    monkeypatch.setattr("blast_controller.runtime.runtime.WRITE_AGAIN", 0.001)
    # Each piece of work is decided on alone.
    monkeypatch.setattr("blast_controller.runtime.runtime.LARGEST_BATCH", 1)

    def slow_commit(records, at):
        commits.append({record.key for record in records if record.kind == "request"})
        gate.wait(TIMEOUT)
        if fails and len(commits) == 1:
            raise DiskFullError(Path("journal"))
        commit(records, at)

    def submit(key):
        def work(context):
            context.take(RequestSubmitted(multicast(key, "r1h1", ["r1h2"])))
            done.append(key)
            return context.when_decided(lambda: key)

        return work

    def first(context):
        # More work waits when this is decided on: its changes are written on the other thread.
        futures.append(lab.runtime.call(lambda context: None))
        return submit("a")(context)

    futures: list[Future] = []
    lab.store.commit = slow_commit
    futures.append(lab.runtime.call(first))
    eventually(lambda: len(commits) == 1)
    futures += [lab.runtime.call(submit(key)) for key in ("b", "c")]
    eventually(lambda: done == ["a", "b", "c"])
    assert not any(future.done() for future in futures)
    assert lab.runtime.snapshot.requests.states.get(PartState.PENDING, 0) == 0
    gate.set()
    assert [future.result(TIMEOUT) for future in futures if future.result(TIMEOUT)] == ["a", "b", "c"]
    written = {"default/b", "default/c"} | ({"default/a"} if fails else set())
    assert written in commits, "one write for all that came during the first"
