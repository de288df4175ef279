"""The real controller killed in each phase of a grant: devices come to hold what is wanted, clients lose no answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from blast_api.ttypes import Extension, PartState
from blast_client import Client, ControllerUnreachable

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from tests.support.fabric_truth import assert_converged, held_circuits, rule_ages
from tests.support.fault_bench import FaultBench, fault_bench

pytestmark = pytest.mark.lab

SLOW = 1.0


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[FaultBench]:
    with fault_bench() as bench:
        yield bench


@pytest.fixture
def bench(lab_bench: FaultBench) -> Iterator[FaultBench]:
    """The shared lab, dark and whole before and after each test."""
    yield lab_bench
    lab_bench.lab.faults.slow_mirrors(0)
    lab_bench.lab.faults.hold_answers(0)
    if lab_bench.lab.controller_pid is None:
        lab_bench.restart_controller()
    lab_bench.clear()


def test_killed_while_configuring_it_undoes_and_grants_anew(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.lab.faults.slow_mirrors(SLOW)
        bench.client.submit(request)
        bench.wait_state(request, "configuring")
        first = bench.tree(request).reservation
        bench.lab.kill_controller()
        bench.lab.faults.slow_mirrors(0)
        bench.restart_controller()
        grant = bench.grant(request)
        assert grant.reservation > first, "nobody was told of the first reservation, and its number is spent"
        assert_converged(bench.lab, bench.client)
        assert bench.client.status(request.key).state == PartState.ACTIVE


def test_killed_while_lit_it_touches_nothing_and_answers_the_same(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        grant = bench.grant(request)
        held, ages = held_circuits(bench.lab), rule_ages(bench.lab)
        bench.lab.kill_controller()
        bench.restart_controller()
        again = bench.grant(request)
        assert (again.reservation, again.groupAddress, again.leaseMs, again.receivers) == (
            grant.reservation,
            grant.groupAddress,
            grant.leaseMs,
            grant.receivers,
        )
        assert_converged(bench.lab, bench.client)
        assert held_circuits(bench.lab) == held
        after = rule_ages(bench.lab)
        assert after.keys() == ages.keys() and all(after[rule] > age for rule, age in ages.items())
        assert bench.client.reconcile(dry_run=False).commands == []


def test_killed_while_changing_the_old_tree_stays_whole(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.grant(request)
        bench.lab.faults.slow_mirrors(SLOW)
        asking = threading.Thread(target=_extend, args=(bench.lab.thrift, request.key, "r7h1"))
        asking.start()
        bench.wait_state(request, "changing")
        bench.lab.kill_controller()
        bench.lab.faults.slow_mirrors(0)
        asking.join()
        bench.restart_controller()
        bench.wait_state(request, "lit")
        assert_converged(bench.lab, bench.client)
        assert bench.client.status(request.key).receivers == ["r5h1", "r6h1"], "nobody was told of the extension"
        bench.client.extend(request.key, Extension(addReceivers=["r7h1"]))
        assert sorted(bench.tree(request).leafRacks) == ["r5", "r6", "r7"]
        assert_converged(bench.lab, bench.client)


def _extend(address: str, key: str, host: str) -> None:
    # The controller is killed under it.
    with suppress(ControllerUnreachable), Client(address) as client:
        client.extend(key, Extension(addReceivers=[host]))


def test_killed_while_releasing_it_finishes(bench: FaultBench) -> None:
    request = bench.new_request("r4h1", "r5h1", "r6h1")
    with bench.bystander():
        bench.grant(request)
        bench.lab.faults.hold_answers(SLOW)
        bench.client.finish(request.key)
        bench.wait_state(request, "releasing")
        bench.lab.kill_controller()
        bench.lab.faults.hold_answers(0)
        bench.restart_controller()
        bench.wait_state(request, None)
        assert_converged(bench.lab, bench.client)
        assert bench.client.finish(request.key).state == PartState.DONE, "finishing again answers the same"
        assert bench.client.submit(request).state == PartState.DONE


def test_pending_requests_resume_in_their_order(bench: FaultBench) -> None:
    blocker, *waiting = [bench.new_request("r4h1", "r5h1", "r6h1") for _ in range(4)]
    with bench.bystander():
        bench.grant(blocker)
        for request in waiting:
            assert bench.client.submit(request).state == PartState.PENDING
        bench.lab.kill_controller()
        bench.restart_controller()
        for request in waiting:
            assert bench.client.submit(request).state == PartState.PENDING
        last = blocker
        for request in waiting:
            bench.client.finish(last.key)
            assert bench.client.await_event(request.key, 0, 10).grant is not None
            later = waiting[waiting.index(request) + 1 :]
            assert all(bench.client.status(r.key).state == PartState.PENDING for r in later)
            last = request
        assert_converged(bench.lab, bench.client)
