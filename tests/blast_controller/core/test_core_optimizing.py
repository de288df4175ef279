"""Decisions that wait for the optimizer: its answer in time, late, stale, nonsense, or never."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.scheduling.contention import Chosen
from blast_controller.core.model.events import (
    ElementQuarantined,
    FinishRequested,
    Optimized,
    ProgressReported,
    TimePassed,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world

BUDGET = 0.05
SETTINGS = CoreSettings(policy="paper", optimize=BUDGET, reconcile_every=None)
GB = 10**9


@pytest.fixture
def world():
    """Return a world in which one transfer holds every rack, and requests of weights 6, 4 and 4 wait."""
    world = ready_world(make_fabric(8, [8, 4, 4]), SETTINGS)
    world.granted(multicast("first", "r1h1", [f"r{n}h1" for n in range(2, 9)], GB))
    assert not world.questions
    ask(world, "wide", "r1h1", ["r3h1", "r4h1", "r5h1"], 2 * GB)
    ask(world, "left", "r1h1", ["r2h1", "r3h1"], 2 * GB)
    ask(world, "right", "r4h1", ["r5h1", "r6h1"], 2 * GB)
    assert states(world) == {PartState.PENDING}
    return world


def ask(world, key, sender, receivers, size):
    world.submit(multicast(key, sender, receivers, size))
    world.deliver()


def finish_first(world):
    world.handle(FinishRequested(key_of("first"), 0))
    work(world)


def work(world):
    """Deliver all events and run all devices, but not the optimizer."""
    world.deliver()
    while any(world.device(name).queue for name in world.devices):
        for name in world.devices:
            while world.device(name).queue:
                world.work(name)
        world.deliver()


def states(world):
    return {world.state(key) for key in ("wide", "left", "right")}


def active(world):
    names = ("wide", "left", "right", "late")
    known = [name for name in names if key_of(name) in world.core.requests]
    return {name for name in known if world.state(name) is PartState.ACTIVE}


def tick(world, after):
    world.now += after
    world.handle(TimePassed())
    work(world)


def test_contended_decision_waits_for_the_optimizer(world):
    finish_first(world)
    (question,) = world.questions
    assert question.seconds == BUDGET and active(world) == set()
    assert [c.name[0][1] for c in question.contention.contenders] == ["wide", "left", "right"]
    world.think()
    work(world)
    assert active(world) == {"left", "right"}


def test_decision_without_contention_skips_the_optimizer():
    world = ready_world(make_fabric(8, [8, 4, 4]), SETTINGS)
    world.granted(multicast("first", "r1h1", [f"r{n}h1" for n in range(2, 9)], GB))
    ask(world, "left", "r1h1", ["r2h1", "r3h1"], GB)
    ask(world, "right", "r4h1", ["r5h1", "r6h1"], GB)
    finish_first(world)
    assert active(world) == {"left", "right"} and not world.questions


def test_greedy_policy_decides_after_two_budgets_without_an_answer(world):
    finish_first(world)
    assert world.core.next_timer() == world.now + 2 * BUDGET
    tick(world, 1.9 * BUDGET)
    assert active(world) == set()
    tick(world, 0.1 * BUDGET)
    assert active(world) == {"wide"}


def test_core_skips_a_late_optimizer_until_it_answers(world):
    finish_first(world)
    question = world.questions[0]
    tick(world, 2 * BUDGET)
    world.handle(FinishRequested(key_of("wide"), 0))
    work(world)
    assert active(world) == {"left", "right"} and len(world.questions) == 1
    ask(world, "wide2", "r1h1", ["r3h1", "r4h1", "r5h1"], 2 * GB)
    ask(world, "left2", "r1h1", ["r2h1", "r3h1"], 2 * GB)
    world.handle(Optimized(question.revision, (Chosen((key_of("left2"), 0), "ocs1", (4,)),)))
    assert active(world) == {"left", "right"}
    world.handle(FinishRequested(key_of("left"), 0))
    work(world)
    assert world.state("left2") is PartState.ACTIVE
    world.handle(FinishRequested(key_of("right"), 0))
    world.handle(FinishRequested(key_of("left2"), 0))
    work(world)
    assert world.state("wide2") is PartState.ACTIVE


def test_change_during_optimization_makes_the_answer_stale(world):
    finish_first(world)
    question = world.questions.popleft()
    world.now += 0.5 * BUDGET
    world.handle(ElementQuarantined("splitter:s2", "dirty"))
    assert not world.questions, "the core asks one question at a time"
    world.handle(Optimized(question.revision, (Chosen((key_of("right"), 0), "ocs1", (4,)),)))
    work(world)
    assert active(world) == set()
    (again,) = world.questions
    assert again.revision > question.revision and again.seconds == BUDGET
    world.think()
    work(world)
    assert active(world) == {"left", "right"}


@pytest.mark.parametrize(
    "chosen",
    [
        (),
        (Chosen((key_of("unknown"), 3), "ocs1", (4,)),),
        (Chosen((key_of("first"), 0), "ocs1", (8,)),),
        (Chosen((key_of("wide"), 0), "nowhere", (4,)), Chosen((key_of("left"), 9), "ocs1", ())),
        (Chosen((key_of("wide"), 0), "ocs1", (77, 0)),),
    ],
)
def test_greedy_policy_decides_after_an_unusable_answer(world, chosen):
    finish_first(world)
    world.handle(Optimized(world.questions.popleft().revision, chosen))
    work(world)
    assert active(world) == {"wide"}


def test_core_replaces_insufficient_splitters_of_an_answer(world):
    finish_first(world)
    chosen = Chosen((key_of("left"), 0), "ocs1", ())
    world.handle(Optimized(world.questions.popleft().revision, (chosen,)))
    work(world)
    assert active(world) == {"left", "right"}


def test_higher_priority_is_served_first(world):
    world.submit(replace(multicast("late", "r3h1", ["r4h1", "r2h1"], GB // 1000), priority=1))
    finish_first(world)
    world.settle()
    assert "late" in active(world)


def test_pausable_request_stays_active_until_the_answer():
    world = ready_world(make_fabric(6, [4, 4]), replace(SETTINGS, policy="srpt-lease", optimize=BUDGET))
    world.serve(replace(multicast("long", "r1h1", ["r2h1", "r3h1", "r4h1"], 10 * GB), may_pause=True))
    part = world.part("long")
    ask(world, "a", "r1h1", ["r2h1", "r5h1"], GB // 10)
    ask(world, "b", "r1h1", ["r3h1", "r6h1"], GB // 10)
    world.handle(ProgressReported(key_of("long"), 0, GB // 2))
    tick(world, part.grant.lease)
    assert part.state is PartState.ACTIVE and len(world.questions) == 1
    before = [event.kind for event in world.core.request(key_of("long")).events]
    assert before == [EventKind.GRANTED]
    world.settle()
    kinds = [event.kind for event in world.core.request(key_of("long")).events]
    assert kinds[:2] == [EventKind.GRANTED, EventKind.PAUSED]
    assert {world.state(key) for key in "ab"} == {PartState.ACTIVE, PartState.PENDING}


def test_unrequested_answer_is_ignored(world):
    world.handle(Optimized(17, (Chosen((key_of("left"), 0), "ocs1", (4,)),)))
    assert states(world) == {PartState.PENDING}
    finish_first(world)
    world.think()
    work(world)
    assert active(world) == {"left", "right"}
