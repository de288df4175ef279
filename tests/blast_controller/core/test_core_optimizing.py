"""Decisions that wait for the optimizer: its answer in time, late, stale, nonsense, or never."""

from __future__ import annotations

from dataclasses import replace

import pytest

from algorithms.scheduling.contention import Chosen
from blast_controller.core.model.events import ElementQuarantined, FinishAsked, Optimized, ProgressReported, Tick
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import key_of, make_fabric, multicast, ready_world

BUDGET = 0.05
SETTINGS = CoreSettings(policy="paper", optimize=BUDGET, reconcile_every=None)
GB = 10**9


@pytest.fixture
def world():
    """One transfer holds every rack; behind it wait one worth 6 that goes first, and two worth 4 each."""
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
    world.handle(FinishAsked(key_of("first"), 0))
    work(world)


def work(world):
    """Let everybody but the optimizer do their work."""
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
    world.handle(Tick())
    work(world)


def test_a_contended_decision_waits_for_its_answer(world):
    finish_first(world)
    (question,) = world.questions
    assert question.seconds == BUDGET and active(world) == set()
    assert [c.name[0][1] for c in question.contention.contenders] == ["wide", "left", "right"]
    world.think()
    work(world)
    assert active(world) == {"left", "right"}


def test_who_can_all_be_served_does_not_wait():
    world = ready_world(make_fabric(8, [8, 4, 4]), SETTINGS)
    world.granted(multicast("first", "r1h1", [f"r{n}h1" for n in range(2, 9)], GB))
    ask(world, "left", "r1h1", ["r2h1", "r3h1"], GB)
    ask(world, "right", "r4h1", ["r5h1", "r6h1"], GB)
    finish_first(world)
    assert active(world) == {"left", "right"} and not world.questions


def test_without_an_answer_greed_decides_after_two_budgets(world):
    finish_first(world)
    assert world.core.next_timer() == world.now + 2 * BUDGET
    tick(world, 1.9 * BUDGET)
    assert active(world) == set()
    tick(world, 0.1 * BUDGET)
    assert active(world) == {"wide"}


def test_a_late_optimizer_is_not_waited_for_again_until_it_has_answered(world):
    finish_first(world)
    question = world.questions[0]
    tick(world, 2 * BUDGET)
    world.handle(FinishAsked(key_of("wide"), 0))
    work(world)
    assert active(world) == {"left", "right"} and len(world.questions) == 1
    ask(world, "wide2", "r1h1", ["r3h1", "r4h1", "r5h1"], 2 * GB)
    ask(world, "left2", "r1h1", ["r2h1", "r3h1"], 2 * GB)
    world.handle(Optimized(question.revision, (Chosen((key_of("left2"), 0), "ocs1", (4,)),)))
    assert active(world) == {"left", "right"}
    world.handle(FinishAsked(key_of("left"), 0))
    work(world)
    assert world.state("left2") is PartState.ACTIVE
    world.handle(FinishAsked(key_of("right"), 0))
    world.handle(FinishAsked(key_of("left2"), 0))
    work(world)
    assert world.state("wide2") is PartState.ACTIVE


def test_what_changes_meanwhile_makes_the_answer_stale(world):
    finish_first(world)
    question = world.questions.popleft()
    world.now += 0.5 * BUDGET
    world.handle(ElementQuarantined("splitter:s2", "dirty"))
    assert not world.questions, "one question is out at a time"
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
        (Chosen((key_of("nobody"), 3), "ocs1", (4,)),),
        (Chosen((key_of("first"), 0), "ocs1", (8,)),),
        (Chosen((key_of("wide"), 0), "nowhere", (4,)), Chosen((key_of("left"), 9), "ocs1", ())),
        (Chosen((key_of("wide"), 0), "ocs1", (77, 0)),),
    ],
)
def test_a_useless_answer_leaves_greed(world, chosen):
    finish_first(world)
    world.handle(Optimized(world.questions.popleft().revision, chosen))
    work(world)
    assert active(world) == {"wide"}


def test_splitters_that_do_not_do_are_replaced(world):
    finish_first(world)
    wanted = Chosen((key_of("left"), 0), "ocs1", ())
    world.handle(Optimized(world.questions.popleft().revision, (wanted,)))
    work(world)
    assert active(world) == {"left", "right"}


def test_a_higher_priority_goes_first_whatever_others_are_worth(world):
    world.submit(replace(multicast("late", "r3h1", ["r4h1", "r2h1"], GB // 1000), priority=1))
    finish_first(world)
    world.settle()
    assert "late" in active(world)


def test_who_may_pause_keeps_its_light_until_the_answer():
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


def test_an_answer_to_nothing_is_nothing(world):
    world.handle(Optimized(17, (Chosen((key_of("left"), 0), "ocs1", (4,)),)))
    assert states(world) == {PartState.PENDING}
    finish_first(world)
    world.think()
    work(world)
    assert active(world) == {"left", "right"}
