"""Senders that follow their plans, against the core in virtual time: they send all data within their grants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blast_api.ttypes import Grant
from blast_client.send.part_plan import (
    STOP_BEFORE,
    Finish,
    InvalidGrantError,
    PartPlan,
    ReportProgress,
    StartOpticalSending,
    StopOpticalSending,
)
from blast_controller.core.model.errors import RejectedError, RequestEndedError
from blast_controller.core.model.events import FinishRequested, ProgressReported, TimePassed
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import CoreSettings
from blast_controller.rpc.convert import grant as to_thrift
from blast_transport.transports.choices import OpticalChoice
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world

STEP = STOP_BEFORE / 2
"""Seconds between two reads of the clock. An event is handled up to two steps late, the maximum allowed delay."""
TINY = 1e-9
LONGEST = 120.0
SETTINGS = CoreSettings(reconcile_every=None, keep_warm=60.0)
LINE_RATE = 10e9
PACE = 0.98


@dataclass(frozen=True)
class PlannedRequest:
    """A request: seconds of data, arrival time, racks (the sender first), and permissions.

    Receivers confirm `repairs` seconds after the last byte has left on the optical path.
    """

    seconds: float
    at: float
    racks: tuple[int, ...]
    may_pause: bool
    may_split: bool
    repairs: float = 0.0


class Sending:
    """The sender of one request: a plan for each part, and a position that moves during its grant."""

    def __init__(self, world: World, key: str, planned: PlannedRequest) -> None:
        self._world, self._key, self._may_pause = world, key, planned.may_pause
        self.size = round(planned.seconds * LINE_RATE / 8)
        sender, *receivers = (f"r{rack}h1" for rack in planned.racks)
        request = multicast(key, sender, receivers, self.size)
        world.serve(replace(request, may_pause=planned.may_pause, may_split=planned.may_split))
        self.receivers = set(receivers)
        self.reached: dict[int, int] = {}
        self._plans: dict[int, PartPlan] = {}
        self._lights: dict[int, OpticalChoice] = {}
        self._handled = self._known = 0
        self._repairs = planned.repairs
        self._confirm_at: dict[int, float] = {}

    @property
    def request(self):
        return self._world.core.request(key_of(self._key))

    def step(self) -> None:
        """Act on what had happened by the step before."""
        handled, self._handled, self._known = self._handled, self._known, len(self.request.events)
        for event in self.request.events[handled : self._handled]:
            self._handle(event)
        for part, plan in self._plans.items():
            if self._confirm_at.get(part, LONGEST) <= self._world.now:
                del self._confirm_at[part]
                self._act(part, plan.confirm())
            if (due := plan.deadline()) is not None and due <= self._world.now:
                self._act(part, plan.tick(self.reached[part], self._world.now))

    def move(self) -> None:
        """Send for the step that ends now."""
        for number, light in self._lights.items():
            lit = min(STEP, light.until - (self._world.now - STEP))
            if lit > TINY and self.reached[number] < self.size:
                part = self.request.parts[number]
                assert part.state is PartState.ACTIVE, "sends without a grant"
                assert part.grant.group_address == light.group
                self.reached[number] = min(self.size, self.reached[number] + int(lit * light.rate * PACE / 8))
                if self.reached[number] == self.size:
                    self._confirm_at[number] = self._world.now + self._repairs

    def _handle(self, event) -> None:
        part, now = event.part, self._world.now
        if event.kind in (EventKind.GRANTED, EventKind.CHANGED) and event.grant is not None:
            plan = self._plans.setdefault(part, PartPlan(self.size, may_pause=self._may_pause))
            self._act(part, plan.grant(to_thrift(self._key, event.grant), self.reached.setdefault(part, 0), now))
        elif event.kind in (EventKind.PAUSED, EventKind.REVOKED):
            self._act(part, self._plans[part].pause(self.reached[part]))
        elif event.kind is EventKind.ENDED:
            assert event.state is PartState.DONE, event.reason
            self._lights.pop(part, None)

    def _act(self, part: int, actions: list) -> None:
        for action in actions:
            match action:
                case StartOpticalSending(light):
                    self._lights[part] = light
                case StopOpticalSending():
                    self._lights.pop(part, None)
                case ReportProgress(reached):
                    self._world.handle(ProgressReported(key_of(self._key), part, reached))
                case Finish():
                    self._finish(part)
        self._world.settle()

    def _finish(self, part: int) -> None:
        try:
            self._world.handle(FinishRequested(key_of(self._key), part))
        except RequestEndedError:
            pass
        except RejectedError as refusal:
            assert refusal.code == "not_active"


planned_requests = st.lists(
    st.builds(
        PlannedRequest,
        seconds=st.floats(0.01, 4.0),
        at=st.floats(0, 3.0),
        racks=st.lists(st.integers(1, 6), min_size=2, max_size=6, unique=True).map(tuple),
        may_pause=st.booleans(),
        may_split=st.booleans(),
        repairs=st.sampled_from([0.0, 0.05, 1.0]),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=25, deadline=None)
@example(
    [PlannedRequest(1.0, 1.0, (1, 2), False, False)] * 2
    + [PlannedRequest(2.0, 0.0, (1, 2), True, False), PlannedRequest(0.25, 0.0, (1, 2), False, False)]
)
@given(planned_requests)
def test_senders_deliver_all_data_only_within_grants(requests: list[PlannedRequest]) -> None:
    world = ready_world(make_fabric(6, [4, 4]), SETTINGS)
    waiting = sorted(enumerate(requests), key=lambda numbered: numbered[1].at)
    senders: list[Sending] = []
    while waiting or not all(sender.request.state.final for sender in senders):
        world.now += STEP
        for sender in senders:
            sender.move()
        world.run(TimePassed())
        while waiting and waiting[0][1].at <= world.now:
            number, planned = waiting.pop(0)
            senders.append(Sending(world, f"k{number}", planned))
        for sender in senders:
            sender.step()
        assert world.now < LONGEST, "a request is not served"
    for sender in senders:
        assert sender.request.state is PartState.DONE, sender.request
        served = [host for part in sender.request.parts for host in part.receivers]
        assert sorted(served) == sorted(sender.receivers)
        assert set(sender.reached.values()) == {sender.size}


SIZE = 1000


def grant(first_byte: int = 0, lease_ms: int = 1000, group: str = "239.0.0.1") -> Grant:
    return Grant(
        key="k", part=0, receivers=["b"], groupAddress=group, groupPort=80, rateBitsPerSecond=8000,
        estimatedServiceMs=1000, leaseMs=lease_ms, firstByte=first_byte, pendingReceivers=[], reservation=1,
    )  # fmt: skip


def granted(may_pause: bool = True) -> PartPlan:
    plan = PartPlan(SIZE, may_pause=may_pause)
    assert plan.grant(grant(), 0, 10.0) == [
        StartOpticalSending(OpticalChoice("239.0.0.1", 80, 8000, pytest.approx(10.99)))
    ]
    return plan


def test_plan_reports_progress_once_per_lease() -> None:
    plan = granted()
    assert plan.deadline() == pytest.approx(10.6)
    assert plan.tick(500, 10.59) == []
    assert plan.tick(500, 10.6) == [ReportProgress(500)]
    assert plan.deadline() == pytest.approx(10.99)
    assert plan.tick(700, 10.99) == []
    assert plan.deadline() is None
    (shine,) = plan.grant(grant(500), 700, 11.0)
    assert isinstance(shine, StartOpticalSending) and shine.light.until == pytest.approx(11.99)
    assert plan.tick(800, 11.6) == [ReportProgress(800)]


def test_pause_stops_sending_and_reports_exact_progress() -> None:
    plan = granted()
    plan.tick(500, 10.6)
    assert plan.pause(900) == [StopOpticalSending(), ReportProgress(900)]
    assert plan.deadline() is None
    (shine,) = plan.grant(grant(900, group="239.0.0.9"), 900, 50.0)
    assert isinstance(shine, StartOpticalSending) and shine.light.group == "239.0.0.9"


def test_plan_without_pauses_reports_no_progress() -> None:
    plan = granted(may_pause=False)
    assert plan.deadline() == pytest.approx(10.99)
    assert plan.tick(500, 10.99) == []
    assert plan.pause(500) == [StopOpticalSending()]


@pytest.mark.parametrize("now", [10.6, 10.99])
def test_plan_finishes_once_all_data_is_sent(now: float) -> None:
    plan = granted()
    assert plan.tick(SIZE, now) == [Finish()]
    assert plan.deadline() is None


def test_confirmation_finishes_part_at_once() -> None:
    assert granted().confirm() == [Finish()]


def test_confirmation_during_pause_finishes_part_at_next_grant() -> None:
    plan = granted()
    assert plan.pause(SIZE) == [StopOpticalSending(), ReportProgress(SIZE)]
    assert plan.confirm() == []
    assert plan.grant(grant(SIZE), SIZE, 20.0) == [Finish()]


def test_finish_that_crosses_pause_is_repeated_at_next_grant() -> None:
    # The pause was in transit when all data had been sent.
    plan = granted()
    assert plan.tick(SIZE, 10.99) == [Finish()]
    assert plan.pause(SIZE) == [StopOpticalSending(), ReportProgress(SIZE)]
    assert plan.grant(grant(SIZE), SIZE, 20.0) == [Finish()]


def test_grant_that_skips_bytes_is_rejected() -> None:
    with pytest.raises(InvalidGrantError, match="byte 600, but only 500"):
        granted().grant(grant(600), 500, 11.0)
