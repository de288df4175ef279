"""The runtime: one thread owns the core and processes work, waits and timers in order."""

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
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.runtime import TIMEOUT, running
from tests.support.waiting import eventually

ANYTHING = Wait(lambda e: True, lambda e: e, lambda: RequestTimeoutError("Too late."))
REQUEST = multicast("a", "r1h1", ["r2h1", "r3h1"])


@pytest.fixture
def lab():
    with running(make_fabric(4, [4])) as lab:
        yield lab


def grant_of(context):
    wait = Wait(lambda e: e.kind is EventKind.GRANTED, lambda e: e.grant, lambda: RequestTimeoutError("Too late."))
    return context.wait(key_of("a"), TIMEOUT, wait)


def test_work_runs_on_one_thread_and_is_answered(lab):
    names = {lab.runtime.call(lambda context: threading.current_thread().name).result(TIMEOUT) for _ in range(3)}
    assert names == {"core"}


def test_grant_has_the_duration_of_each_step(lab):
    def work(context):
        context.handle(RequestSubmitted(REQUEST))
        return grant_of(context)

    grant = lab.runtime.call(work).result(TIMEOUT)
    assert grant.receivers == ("r2h1", "r3h1")
    assert grant.timings.compute > 0
    assert (grant.timings.openflow, grant.timings.optical) == (0.001, 0.001)
    assert 0 < grant.timings.total < TIMEOUT


def test_refusal_reaches_the_caller(lab):
    refused = lab.runtime.call(lambda context: context.handle(WithdrawRequested(key_of("a"))))
    with pytest.raises(UnknownRequestError):
        refused.result(TIMEOUT)
    assert lab.runtime.call(lambda context: 7).result(TIMEOUT) == 7


def test_wait_times_out(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(REQUEST))
    started = time.monotonic()
    future = lab.runtime.call(lambda context: context.wait(key_of("a"), 0.05, ANYTHING))
    with pytest.raises(RequestTimeoutError, match="Too late"):
        future.result(TIMEOUT)
    assert time.monotonic() - started >= 0.05


def test_pending_timeout_expires_without_any_event(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"], pending_timeout=0.05)))
    eventually(lambda: lab.look().request(key_of("a")).state is PartState.EXPIRED, "the request to expire")


def test_deadlines_are_met_under_endless_work():
    with running(make_fabric(2)) as lab:
        stop = threading.Event()

        def again(context):
            if not stop.is_set():
                lab.runtime.call(again)

        try:
            for _ in range(2):
                lab.runtime.call(again)
            future = lab.runtime.call(lambda context: context.wait(key_of("x"), 0.02, ANYTHING))
            with pytest.raises(RequestTimeoutError):
                future.result(TIMEOUT)
        finally:
            stop.set()


@pytest.mark.parametrize("timeout", [1e4, 1e10, 9.2e15])
def test_pending_timeout_may_exceed_the_longest_thread_sleep(lab, timeout):
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"], pending_timeout=timeout)))
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


def test_cancelled_wait_leaves_the_waiting_room(lab):
    lab.devices.held = []
    lab.runtime.post(RequestSubmitted(REQUEST))
    future = lab.runtime.call(grant_of)
    lab.settle()
    assert future.cancel()
    lab.devices.release()
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE
    assert lab.runtime.waiting.next_deadline() is None


def test_work_cancelled_before_its_start_is_skipped(lab):
    gate = threading.Event()
    lab.runtime.call(lambda context: gate.wait(TIMEOUT))
    futures = [lab.runtime.call(grant_of), lab.runtime.call(lambda context: 1)]
    assert all(future.cancel() for future in futures)
    gate.set()
    lab.settle()


def test_failed_work_keeps_the_effect_of_its_event(lab, caplog):

    def work(context):
        context.handle(RequestSubmitted(REQUEST))
        return 1 // 0

    with pytest.raises(InternalError) as fault:
        lab.runtime.call(work).result(TIMEOUT)
    assert f"trace {fault.value.trace}" in caplog.text and "ZeroDivisionError" in caplog.text
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


@pytest.mark.parametrize("broken", ["answer", "timeout"])
def test_failing_answer_of_a_wait_fails_that_wait_only(lab, broken):
    lab.devices.held = []

    def work(context):
        context.handle(RequestSubmitted(REQUEST))
        timeout = TIMEOUT if broken == "answer" else 0.0
        return context.wait(key_of("a"), timeout, lambda event: True, lambda event: 1 // 0, lambda: 1 // 0)

    future = lab.runtime.call(work)
    lab.settle()
    lab.devices.release()
    with pytest.raises(InternalError):
        future.result(TIMEOUT)
    assert lab.look().request(key_of("a")).state is PartState.ACTIVE


def test_event_that_the_core_cannot_handle_is_fatal(monkeypatch):
    failures = []
    happened = threading.Event()
    store = MemoryStore()
    loaded = store.open()
    core = Core(make_fabric(1), CoreSettings())
    runtime = Runtime(core, store, lambda error: (failures.append(error), happened.set()))
    runtime.start(None, None, loaded)  # type: ignore[arg-type]
    monkeypatch.setattr(core, "take", lambda event, now: 1 // 0)
    runtime.call(lambda context: context.handle(RequestSubmitted(REQUEST)))
    assert happened.wait(TIMEOUT)
    assert str(failures[0]).startswith("RequestSubmitted failed: ZeroDivisionError")


@pytest.mark.parametrize("fails", [False, True])
def test_work_continues_during_a_commit_and_results_wait_for_it(lab, monkeypatch, fails):
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
    assert written in commits, "one write for all changes that arrived during the first"
