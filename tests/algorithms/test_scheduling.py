"""The scheduler event by event, and the preferences of each policy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from algorithms.b_matching.feasibility import Feasibility
from algorithms.scheduling import DEFAULT, POLICIES
from algorithms.scheduling.job import Job, racks_of
from algorithms.scheduling.policy import AGING, Policy, State, chunk
from algorithms.scheduling.scheduler import Scheduler
from algorithms.scheduling.selection import PartStateError
from algorithms.scheduling.tenants import Tenants
from tests.support.controller.scheduling import SET_UP, Clock, job


def clock(policy: str | Policy = DEFAULT, racks: int = 6, pool: dict[int, int] | None = None, **more: object) -> Clock:
    rule = POLICIES[policy] if isinstance(policy, str) else policy
    return Clock(rule, {"ocs": [1] * racks}, {"ocs": {4: 4} if pool is None else pool}, **more)


def order(policy: str, *jobs: Job, now: float = 0.0, state: State | None = None) -> list[object]:
    rule = POLICIES[policy]
    return [j.request for j in sorted(jobs, key=lambda j: rule.key(j, now, state or State(SET_UP)))]


def lit(virtual: Clock) -> set[object]:
    return {name[0] for name in virtual.lit}


def test_paper_policy_serves_largest_volume_per_rack_first() -> None:
    assert order("paper", job("small", [0, 1, 2], 1), job("large", [0, 1, 2], 5)) == ["large", "small"]
    assert POLICIES["paper"].quantum(job("a", [0, 1], 9)) is None
    assert POLICIES["paper"].max_wait(job("a", [0, 1], 9)) == math.inf


def test_shortest_first_considers_racks_and_weight() -> None:
    for name in ("smith", "srpt-lease"):
        narrow, wide = job("narrow", [0, 1], 1.5), job("wide", range(6), 1.0)
        assert order(name, wide, narrow) == ["narrow", "wide"]
        assert order(name, replace(wide, weight=4.0), narrow) == ["wide", "narrow"]


def test_the_response_ratio_grows_with_waiting() -> None:
    long, short = job("long", [0, 1], 4.0, at=0.0), job("short", [0, 1], 1.0, at=9.0)
    assert order("hrrn", long, short, now=10.0) == ["long", "short"]
    assert order("hrrn", long, replace(short, submitted_at=0.0), now=10.0) == ["short", "long"]


def test_las_lease_ignores_sizes() -> None:
    fresh, old = job("fresh", [0, 1], 50.0, known=False), job("old", [0, 1], 0.1, attained=1.0, known=False)
    assert order("las-lease", old, fresh) == ["fresh", "old"]


def test_deadlines_that_can_be_kept_come_first() -> None:
    soon, later = job("soon", [0, 1], 1.0, deadline=3.0), job("later", [0, 1], 1.0, deadline=9.0)
    lost, none = job("lost", [0, 1], 8.0, deadline=4.0), job("none", [0, 1], 2.0)
    assert order("edf", none, lost, later, soon) == ["soon", "later", "none", "lost"]


def test_absent_tenant_accumulates_no_credit() -> None:
    tenants = Tenants({"b": 2.0})
    tenants.enter("a")
    tenants.charge("a", 10.0)
    tenants.enter("b")
    assert tenants.account("b") == 10.0
    tenants.charge("b", 10.0)
    assert tenants.account("b") == 15.0
    tenants.leave("b")
    tenants.charge("a", 1.0)
    tenants.enter("b")
    assert tenants.account("b") == 15.0
    mine, theirs = job("mine", [0, 1], 1.0, tenant="a"), job("theirs", [0, 1], 1.0, tenant="b")
    assert order("fair-share", theirs, mine, state=State(SET_UP, tenants)) == ["mine", "theirs"]


def test_objective_is_larger_for_job_that_key_prefers() -> None:
    small, large, state = job("small", [0, 1, 2], 1.0), job("large", [0, 1, 2], 5.0), State(SET_UP)
    assert POLICIES["paper"].objective(small, state) < POLICIES["paper"].objective(large, state)
    assert POLICIES[DEFAULT].objective(small, state) > POLICIES[DEFAULT].objective(large, state)


def test_the_last_lease_absorbs_a_small_remainder() -> None:
    assert chunk(job("a", [0, 1], 0.6), 0.5) == 0.6
    assert chunk(job("a", [0, 1], 0.7), 0.5) == 0.5
    assert chunk(job("a", [0, 1], 0.6, known=False), 0.5) == 0.5


def test_reported_remaining_time_replaces_estimate() -> None:
    virtual = clock(racks=2)
    start = virtual.arrive(job("a", [0, 1], 2.0)).starts[0]
    selection = virtual.scheduler.lease_end(start.job.name, 0.6, remaining=0.9)
    assert selection.starts[0].job.remaining == 0.9
    assert selection.starts[0].job.continues and selection.paused is None


def test_dedicated_grant_continues_beyond_estimate() -> None:
    virtual = clock("paper", racks=2)
    start = virtual.arrive(job("a", [0, 1], 2.0)).starts[0]
    virtual.arrive(job("b", [0, 1], 20.0))
    (kept,) = virtual.scheduler.lease_end(start.job.name, 2.1, remaining=0.4).starts
    assert kept.job.name == ("a", 0) and kept.seconds == 0.4


def test_extended_pending_job_is_tried_again() -> None:
    virtual = clock(racks=4)
    virtual.arrive(job("a", [0, 1], 1.0))
    virtual.arrive(job("b", [1, 2], 1.0))
    selection = virtual.play(virtual.scheduler.extend(job("b", [2, 3], 3.0), 0.0))
    assert [start.job.name for start in selection.starts] == [("b", 0)]


def test_extension_that_removes_rack_frees_it() -> None:
    scheduler = Scheduler(POLICIES[DEFAULT], {"ocs": Feasibility([1] * 5, {4: 2})})
    scheduler.arrive(job("a", [0, 1, 2, 3], 1.0), 0.0)
    scheduler.arrive(job("b", [4, 3], 1.0), 0.0)
    selection = scheduler.extend(job("a", [0, 1, 2], 4.0), 0.1, (4,))
    assert [start.job.name for start in selection.starts] == [("b", 0)]
    running = {start.job.name: start for start in scheduler.running}
    assert running["a", 0].job.remaining == 4.0 and racks_of(running["a", 0].job.group.ports, 5) == [0, 1, 2]


def test_tenant_over_its_splitter_limit_still_gets_lightpaths() -> None:
    virtual = clock(racks=9, limits={"small": 1})
    assert virtual.scheduler.arrive(job("a", [0, 1, 2], 1.0, tenant="small"), 0.0).starts
    virtual.scheduler.limit("small", 0, 0.0)
    assert virtual.scheduler.arrive(job("b", [3, 4], 1.0, tenant="small"), 0.0).starts
    assert not virtual.scheduler.arrive(job("c", [6, 7, 8], 1.0, tenant="small"), 0.0).starts


def test_scheduler_enforces_splitter_limits_of_tenants() -> None:
    virtual = clock(racks=9, limits={"small": 1, "none": -1})
    assert virtual.scheduler.arrive(job("a", [0, 1, 2], 1.0, tenant="small"), 0.0).starts
    assert not virtual.scheduler.arrive(job("b", [3, 4, 5], 1.0, tenant="small"), 0.0).starts
    assert not virtual.scheduler.arrive(job("c", [6, 7], 1.0, tenant="none"), 0.0).starts
    freed = virtual.scheduler.complete(("a", 0), 1.0)
    assert [start.job.name for start in freed.starts] == [("b", 0)]
    freed = virtual.scheduler.limit("none", 0, 1.0)
    assert [start.job.name for start in freed.starts] == [("c", 0)]
    assert not virtual.scheduler.limit("none", None, 1.0).starts


def test_lost_hardware_is_not_used_until_it_is_back() -> None:
    scheduler = Scheduler(POLICIES[DEFAULT], {"ocs": Feasibility([1] * 4, {4: 1})})
    scheduler.lose("ocs", 0b1, ())
    scheduler.lose("ocs", 0, (4,))
    assert not scheduler.arrive(job("a", [0, 1], 1.0), 0.0).starts
    assert not scheduler.arrive(job("b", [1, 2, 3], 1.0), 0.0).starts
    assert [s.job.name for s in scheduler.regain("ocs", 0, (4,), 1.0).starts] == [("b", 0)]
    assert not scheduler.regain("ocs", 0b1, (), 1.0).starts
    assert [s.job.name for s in scheduler.complete(("b", 0), 2.0).starts] == [("a", 0)]


def test_lost_port_in_use_is_free_after_completion_and_recovery() -> None:
    scheduler = Scheduler(POLICIES[DEFAULT], {"ocs": Feasibility([1] * 2, {})})
    scheduler.arrive(job("a", [0, 1], 1.0), 0.0)
    scheduler.lose("ocs", 0b10, ())
    scheduler.arrive(job("b", [0, 1], 1.0), 0.0)
    assert not scheduler.complete(("a", 0), 1.0).starts
    assert scheduler.regain("ocs", 0b10, (), 1.0).starts


def test_events_of_unknown_parts_raise_part_state_error() -> None:
    scheduler = Scheduler(POLICIES[DEFAULT], {"ocs": Feasibility([1] * 2, {})})
    scheduler.arrive(job("a", [0, 1], 1.0), 0.0)
    scheduler.arrive(job("b", [0, 1], 1.0), 0.0)
    for mistake in (
        lambda: scheduler.arrive(job("a", [0, 1], 1.0), 0.0),
        lambda: scheduler.complete(("b", 0), 1.0),
        lambda: scheduler.lease_end(("c", 0), 1.0),
        lambda: scheduler.withdraw(("c", 0), 1.0),
        lambda: scheduler.extend(job("c", [0, 1], 1.0), 1.0),
    ):
        with pytest.raises(PartStateError):
            mistake()


def test_ports_are_reserved_for_overdue_job() -> None:
    scheduler = clock(racks=4).scheduler
    due = AGING * 0.5
    wide = job("wide", [0, 1, 2], 0.5, parts=1)
    scheduler.arrive(job("a", [0, 1], 20.0, priority=1), 0.0)
    scheduler.arrive(wide, 0.0)
    assert scheduler.arrive(job("early", [2, 3], 0.4, due - 0.1, priority=1), due - 0.1).starts
    assert not scheduler.complete(("early", 0), due + 0.3).starts
    assert scheduler.holder == wide
    assert not scheduler.arrive(job("late", [2, 3], 0.1, due + 0.3, priority=1), due + 0.3).starts
    selection = scheduler.lease_end(("a", 0), due + 0.4)
    assert [start.job.request for start in selection.starts] == ["wide"] and selection.paused == ("a", 0)
    assert scheduler.holder is None


def test_resources_are_reserved_for_overdue_job_once_it_can_start() -> None:
    scheduler = clock(racks=6, pool={4: 0}, limits={"none": -1}).scheduler
    scheduler.arrive(job("a", [0, 1], 0.5), 0.0)
    scheduler.arrive(job("b", [4, 5], 0.5), 0.0)
    scheduler.arrive(job("impossible", [0, 1, 2], 0.5, parts=1), 0.0)
    scheduler.arrive(job("forbidden", [4, 5], 0.5, tenant="none"), 0.1)
    scheduler.arrive(job("other", [0, 1], 0.5, 1000.0), 1000.0)
    assert scheduler.holder is None
    scheduler.limit("none", None, 1000.0)
    assert scheduler.holder is not None and scheduler.holder.request == "forbidden"
    scheduler.regain("ocs", 0, (4,), 1000.0)
    assert scheduler.holder.request == "impossible"


def test_running_job_that_becomes_overdue_is_not_paused() -> None:
    scheduler = clock(racks=2).scheduler
    long = job("long", [0, 1], 1.2)
    due = AGING * long.size
    scheduler.arrive(long, 0.0)
    scheduler.arrive(job("short", [0, 1], 0.1, due + 1), due + 1)
    selection = scheduler.lease_end(("long", 0), due + 2)
    assert selection.paused is None and [start.job.request for start in selection.starts] == ["long"]
    early = clock(racks=2).scheduler
    early.arrive(long, 0.0)
    early.arrive(job("short", [0, 1], 0.1), 0.0)
    assert early.lease_end(("long", 0), 0.6).paused == ("long", 0)


def test_splitters_are_reserved_for_overdue_job() -> None:
    virtual = clock(racks=12, pool={4: 2})
    virtual.arrive(job("a", [0, 1, 2], 2.0))
    virtual.arrive(job("b", [3, 4, 5], 2.0))
    virtual.arrive(job("wide", [6, 7, 8, 9, 10, 11], 0.5, parts=1))
    soon = AGING * 0.5
    scheduler = virtual.scheduler
    assert not scheduler.complete(("a", 0), soon + 0.1).starts
    assert not scheduler.arrive(job("c", [0, 1, 2], 0.1, soon + 0.2), soon + 0.2).starts
    assert [s.job.request for s in scheduler.arrive(job("d", [0, 1], 0.1, soon), soon + 0.2).starts] == ["d"]
    assert [s.job.request for s in scheduler.complete(("b", 0), soon + 0.3).starts] == ["wide"]
    assert [s.job.request for s in scheduler.complete(("wide", 0), soon + 0.9).starts] == []
    assert [s.job.request for s in scheduler.complete(("d", 0), soon + 1.0).starts] == ["c"]
