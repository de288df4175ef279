"""What readers are shown: what is durable, all of it once somebody has its answer, and nothing that may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from blast_api import ttypes
from blast_controller.core.model.events import DeviceDisconnected, FinishRequested, WithdrawRequested
from blast_controller.core.model.settings import CoreSettings
from blast_controller.store.errors import DiskFullError
from tests.blast_controller.rpc.test_handler import CLIENT, granted, now, wanted
from tests.support.core import TENANT, key_of, make_fabric, multicast, ready_world
from tests.support.published import rebuilt_snapshot
from tests.support.runtime import Running, running
from tests.support.waiting import eventually


@pytest.fixture
def lab() -> Iterator[Running]:
    with running(make_fabric(4, [4, 4]), CoreSettings()) as lab:
        lab.handler = lab.make_handler()
        yield lab


def listed(lab: Running) -> list[str]:
    return [status.key for status in now(lab.handler.listRequests(CLIENT, None, 100, None)).requests]


def test_who_has_its_answer_sees_it_in_every_reading(lab):
    grant = granted(lab)
    assert listed(lab) == ["a"]
    assert [tree.reservation for tree in lab.handler.fabric(CLIENT).lightTrees] == [grant.reservation]
    held = {e.name for e in lab.handler.elements(CLIENT) if e.reservation == grant.reservation}
    assert "splitter:s1" in held or "splitter:s2" in held
    now(lab.handler.finish(CLIENT, "a", 0, None))
    assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.DONE


def test_what_cannot_be_written_is_not_told(lab, monkeypatch):
    granted(lab)
    full = DiskFullError("journal.db")

    def refuse(records, at):
        raise full

    with monkeypatch.context() as disk:
        disk.setattr(lab.store, "commit", refuse)
        answer = lab.handler.submit(CLIENT, wanted("lost", receivers=("r4h1",)))
        lab.runtime.call(lambda turn: turn.handle(FinishRequested(key_of("a"), 0)))
        eventually(lambda: lab.runtime.store_fault is not None, event="the failure to write")
        # Asked while nothing can be written, and answered at once.
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
        lab.runtime.call(lambda turn: turn.handle(WithdrawRequested(key_of("a"))))
        eventually(lambda: lab.runtime.store_fault is not None, event="the failure to write")
        yield


def test_while_nothing_can_be_written_nobody_hears_of_what_is_not_durable(lab, monkeypatch):
    granted(lab)
    with withdrawal_that_cannot_be_written(lab, monkeypatch):
        refused = lab.handler.finish(CLIENT, "a", 0, None)
        heard = lab.handler.awaitEvent(CLIENT, "a", 1, 60_000)
        with pytest.raises(ttypes.Rejected, match="cannot be written"):
            now(lab.handler.submit(CLIENT, wanted("b", receivers=("r4h1",))))
        assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.ACTIVE
        assert not refused.done() and not heard.done()
    with pytest.raises(ttypes.Ended):
        now(refused)
    assert now(heard).kind == ttypes.EventKind.ENDED


def test_answers_tell_how_far_they_go_where_a_journal_is_shared(lab):
    granted(lab)
    assert now(lab.handler.status(CLIENT, "a")).journalSequence is None
    lab.runtime.sequence = lambda: lab.store._newest
    now(lab.handler.finish(CLIENT, "a", 0, None))
    lab.settle()
    newest = lab.store._newest
    assert now(lab.handler.status(CLIENT, "a")).journalSequence == newest
    assert lab.handler.fabric(CLIENT).journalSequence == newest
    assert now(lab.handler.listRequests(CLIENT, None, 10, None)).journalSequence == newest


def test_what_may_be_known_elsewhere_already_is_told_as_of_before(lab, monkeypatch):
    """Where a journal is shared, and whether the last change counts is open."""
    granted(lab)
    lab.runtime.sequence = lambda: lab.store._newest
    with withdrawal_that_cannot_be_written(lab, monkeypatch):
        told = now(lab.handler.status(CLIENT, "a"))
        assert told.state == ttypes.PartState.ACTIVE and told.staleMs is not None
        assert lab.handler.fabric(CLIENT).staleMs >= told.staleMs
    eventually(lambda: lab.handler.fabric(CLIENT).staleMs is None, event="the journal to be written")
    assert now(lab.handler.status(CLIENT, "a")).staleMs is None


def test_a_snapshot_stays_as_it_is_and_shares_what_has_not_changed():
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


def test_nothing_is_published_before_it_is_decided():
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("k", "r1h1", ["r2h1"]))
    world.core.take(FinishRequested(key_of("k"), 0), world.now)
    assert world.core.snapshot.request(key_of("k")).state.value == "active"
    world.core.conclude(world.now)
    assert world.core.snapshot.request(key_of("k")).state.value == "done"


def test_who_may_be_succeeded_by_now_tells_nothing_as_it_is(lab):
    """A leader that was stopped for a while: somebody else may have changed everything."""
    granted(lab)
    lab.runtime.holds_leadership = lambda: False
    for ask in (
        lambda: lab.handler.fabric(CLIENT),
        lambda: lab.handler.elements(CLIENT),
        lambda: listed(lab),
        lambda: now(lab.handler.status(CLIENT, "a")),
        lambda: now(lab.handler.explain(CLIENT, "a")),
        lambda: now(lab.handler.submit(CLIENT, wanted("b"))),
        lambda: now(lab.handler.finish(CLIENT, "a", 0, None)),
    ):
        with pytest.raises(ttypes.NotLeader):
            ask()
    lab.runtime.post(DeviceDisconnected(4, "what devices say is still heard"))
    lab.settle()
    lab.runtime.holds_leadership = lambda: True
    assert now(lab.handler.status(CLIENT, "a")).state == ttypes.PartState.ACTIVE
