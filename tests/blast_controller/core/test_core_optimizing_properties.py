"""A core whose optimizer answers well, badly, late or never loses no request and delays none for long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.scheduling.contention import Chosen
from blast_controller.core.model.events import FinishRequested, Optimized, ProgressReported, TimePassed
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Part
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_checks import check_no_part_waits_needlessly

BUDGET = 0.1
HOSTS = [f"r{rack}h1" for rack in range(1, 9)]
ANSWERS = ["in time", "in time", "late", "empty", "nonsense", "never"]


class Traffic:
    """Random requests on devices that reply at once, with an optimizer that may be slow."""

    def __init__(self, data: st.DataObject, policy: str) -> None:
        self.data = data
        chosen = CoreSettings(policy=policy, optimize=BUDGET, reconcile_every=None, keep_warm=5.0)
        self.world: World = ready_world(make_fabric(8, [4, 4, 2, 2]), chosen)
        self.needless_since: float | None = None
        self.decided = 0
        self.asked = 0

    def one_of(self, *choices: object) -> object:
        return self.data.draw(st.sampled_from(choices))

    def act(self) -> None:
        kind = self.one_of("ask", "ask", "ask", "finish", "time", "time", "think", "think")
        if kind == "ask":
            self.ask()
        elif kind == "finish":
            self.finish_one()
        elif kind == "time":
            self.pass_time(self.data.draw(st.sampled_from([BUDGET / 4, BUDGET, 2 * BUDGET])))
        elif self.world.questions:
            self.think()
        self.devices_work()
        self.check_waits()

    def ask(self) -> None:
        members = self.data.draw(st.lists(st.sampled_from(HOSTS), min_size=2, max_size=6, unique=True))
        size = self.data.draw(st.sampled_from([10**8, 10**9, 10**10]))
        may_pause, may_split = self.data.draw(st.booleans()), self.data.draw(st.booleans())
        request = multicast(f"k{self.asked}", members[0], members[1:], size)
        self.world.submit(replace(request, may_pause=may_pause, may_split=may_split))
        self.asked += 1

    def finish_one(self) -> None:
        active = self.active()
        if active:
            key, part = self.data.draw(st.sampled_from(active))
            self.world.handle(FinishRequested(key, part))

    def active(self) -> list[tuple[tuple[str, str], int]]:
        requests = self.world.core.requests.items()
        return [(k, p.index) for k, r in requests for p in r.parts if p.state is PartState.ACTIVE]

    def pass_time(self, seconds: float) -> None:
        """Advance the time, fire each timer when it is due, and report the progress of pausable requests."""
        until = self.world.now + seconds
        for key, part in self.active():
            request = self.world.core.request(key)
            if request.current.may_pause:
                reached = request.parts[part].reached
                self.world.handle(ProgressReported(key, part, min(reached + 1000, request.current.bytes)))
        while (timer := self.world.core.next_timer()) is not None and timer <= until:
            self.world.now = max(self.world.now, timer)
            self.world.handle(TimePassed())
            self.devices_work()
        self.world.now = until

    def think(self) -> None:
        how = self.one_of(*ANSWERS)
        if how == "late":
            self.pass_time(2 * BUDGET)
        if how in ("late", "in time"):
            self.world.think(100)
            return
        question = self.world.questions.popleft()
        names = [(key_of(f"k{number}"), 0) for number in range(self.asked)] if how == "nonsense" else []
        chosen = tuple(Chosen(name, "ocs1", (4, 4, 4)) for name in names)
        if how != "never":
            self.world.post(Optimized(question.revision, chosen))

    def devices_work(self) -> None:
        self.world.deliver()
        while any(self.world.device(name).queue for name in self.world.devices):
            for name in self.world.devices:
                while self.world.device(name).queue:
                    self.world.work(name)
            self.world.deliver()

    def check_waits(self) -> None:
        """Check that a request that can be served waits for two budgets at most."""
        decided = sum(part.state is not PartState.PENDING for part in self.parts())
        try:
            check_no_part_waits_needlessly(self.world)
        except AssertionError:
            now = self.world.now
            if self.needless_since is None or decided > self.decided:
                self.needless_since = now
            assert now < self.needless_since + 2 * BUDGET + 1e-9, "the optimizer is waited for too long"
        else:
            self.needless_since = None
        self.decided = decided

    def parts(self) -> list[Part]:
        return [part for request in self.world.core.requests.values() for part in request.parts]

    def finish(self) -> None:
        """Check that all requests are served, even if the optimizer never answers again."""
        for _ in range(40 * self.asked + 1):
            if all(request.state.final for request in self.world.core.requests.values()):
                return
            self.finish_one()
            self.devices_work()
            self.pass_time(BUDGET)
            self.check_waits()
        raise AssertionError("some requests have not been served")


@pytest.mark.parametrize("policy", ["paper", "srpt-lease"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_optimizer_faults_lose_no_request_and_delay_none_for_long(policy: str, data: st.DataObject) -> None:
    traffic = Traffic(data, policy)
    for _ in range(data.draw(st.integers(1, 30))):
        traffic.act()
    traffic.finish()
