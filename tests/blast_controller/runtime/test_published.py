"""Readers see durable state only, and all of it as soon as a client has its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blast_api import ttypes
from blast_controller.core.model.events import DeviceDisconnected, FinishRequested, WithdrawRequested
from blast_controller.core.model.settings import CoreSettings
from blast_controller.store.errors import DiskFullError
from tests.blast_controller.rpc.test_handler import CLIENT, granted, multicast_request, now
from tests.support.controller.core import TENANT, key_of, make_fabric, multicast, ready_world
from tests.support.controller.published import rebuilt_snapshot
from tests.support.controller.runtime import Running, running
from tests.support.waiting import eventually


@pytest.fixture
def lab() -> Iterator[Running]:
    with running(make_fabric(4, [4, 4]), CoreSettings()) as lab:
        lab.handler = lab.make_handler()
        yield lab


def listed(lab: Running) -> list[str]:
    return [status.key for status in now(lab.handler.listRequests(CLIENT, None, 100, None)).requests]


def test_answered_changes_are_visible_in_every_reading(lab):
    grant = granted(lab)
    assert listed(lab) == ["a"]
    assert [tree.reservation for tree in lab.handler.fabric(CLIENT).lightTrees] == [grant.reservation]
    held = {e.name for e in lab.handler.elements(CLIENT) if e.reservation == grant.reservation}
    assert "splitter:s1" in held or "splitter:s2" in held
    now(lab.handler.finish(CLIENT, "a", 0, None))
    assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.DONE


def test_unwritten_changes_are_not_visible(lab, monkeypatch):
    granted(lab)
    full = DiskFullError("journal.db")

    def refuse(records, at):
        raise full

    with monkeypatch.context() as disk:
        disk.setattr(lab.store, "commit", refuse)
        answer = lab.handler.submit(CLIENT, multicast_request("lost", receivers=("r4h1",)))
        lab.runtime.call(lambda context: context.handle(FinishRequested(key_of("a"), 0)))
        eventually(lambda: lab.runtime.store_fault is not None, event="the failure to write")
        # These calls are answered although nothing can be written.
        assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.ACTIVE
        with pytest.raises(ttypes.UnknownRequest):
            now(lab.handler.status(CLIENT, "lost"))
        assert listed(lab) == ["a"]
        assert [tree.state for tree in lab.handler.fabric(CLIENT).lightTrees] == ["lit"]
        assert not answer.done()
    assert now(answer).key == "lost"
    assert listed(lab) == ["a", "lost"]


@contextmanager
def withdrawal_that_cannot_be_written(lab, monkeypatch):
    def refuse(records, at):
        raise DiskFullError("journal.db")

    with monkeypatch.context() as disk:
        disk.setattr(lab.store, "commit", refuse)
        lab.runtime.call(lambda context: context.handle(WithdrawRequested(key_of("a"))))
        eventually(lambda: lab.runtime.store_fault is not None, event="the failure to write")
        yield


def test_events_and_refusals_wait_until_the_change_is_durable(lab, monkeypatch):
    granted(lab)
    with withdrawal_that_cannot_be_written(lab, monkeypatch):
        refused = lab.handler.finish(CLIENT, "a", 0, None)
        event = lab.handler.awaitEvent(CLIENT, "a", 1, 60_000)
        with pytest.raises(ttypes.Rejected, match="cannot be written"):
            now(lab.handler.submit(CLIENT, multicast_request("b", receivers=("r4h1",))))
        assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.ACTIVE
        assert not refused.done() and not event.done()
    with pytest.raises(ttypes.Ended):
        now(refused)
    assert now(event).kind == ttypes.EventKind.ENDED


def test_answers_have_a_sequence_with_a_shared_journal(lab):
    granted(lab)
    assert now(lab.handler.status(CLIENT, "a")).journalSequence is None
    lab.runtime.sequence = lambda: lab.store._newest
    now(lab.handler.finish(CLIENT, "a", 0, None))
    lab.settle()
    newest = lab.store._newest
    assert now(lab.handler.status(CLIENT, "a")).journalSequence == newest
    assert lab.handler.fabric(CLIENT).journalSequence == newest
    assert now(lab.handler.listRequests(CLIENT, None, 10, None)).journalSequence == newest


def test_answers_are_stale_while_a_shared_journal_cannot_be_written(lab, monkeypatch):
    """Another controller may already show the unwritten change."""
    granted(lab)
    lab.runtime.sequence = lambda: lab.store._newest
    with withdrawal_that_cannot_be_written(lab, monkeypatch):
        status = now(lab.handler.status(CLIENT, "a"))
        assert status.state == ttypes.PartState.ACTIVE and status.staleMs is not None
        assert lab.handler.fabric(CLIENT).staleMs >= status.staleMs
    eventually(lambda: lab.handler.fabric(CLIENT).staleMs is None, event="the journal to be written")
    assert now(lab.handler.status(CLIENT, "a")).staleMs is None


def test_snapshots_are_immutable_and_share_unchanged_parts():
    world = ready_world(make_fabric(8, [4, 4]))
    world.granted(multicast("first", "r5h1", ["r6h1", "r7h1"]))
    before = world.core.snapshot
    copied = rebuilt_snapshot(world.core)
    world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    after = world.core.snapshot
    assert before == copied != after
    name = (TENANT, "first")
    assert after.request(name) is before.request(name)
    assert after.standings["r6"] is before.standings["r6"]
    assert after.away is before.away and after.units is before.units


def test_snapshot_changes_only_with_a_decision():
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("k", "r1h1", ["r2h1"]))
    world.core.take(FinishRequested(key_of("k"), 0), world.now)
    assert world.core.snapshot.request(key_of("k")).state.value == "active"
    world.core.conclude(world.now)
    assert world.core.snapshot.request(key_of("k")).state.value == "done"


def test_controller_without_leadership_answers_not_leader(lab):
    """Another leader may have changed everything while this one was stopped."""
    granted(lab)
    lab.runtime.holds_leadership = lambda: False
    for ask in (
        lambda: lab.handler.fabric(CLIENT),
        lambda: lab.handler.elements(CLIENT),
        lambda: listed(lab),
        lambda: now(lab.handler.status(CLIENT, "a")),
        lambda: now(lab.handler.explain(CLIENT, "a")),
        lambda: now(lab.handler.submit(CLIENT, multicast_request("b"))),
        lambda: now(lab.handler.finish(CLIENT, "a", 0, None)),
    ):
        with pytest.raises(ttypes.NotLeader):
            ask()
    lab.runtime.post(DeviceDisconnected(4, "device events are still handled"))
    lab.settle()
    lab.runtime.holds_leadership = lambda: True
    assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.ACTIVE
