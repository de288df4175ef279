"""Standbys that follow the journal, and candidates for leadership, without etcd."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from blast_controller.store.errors import JournalError, LockLostError, StoreUnreachableError
from blast_controller.store.interface import JournalPosition, Loaded
from blast_controller.store.memory import MemoryStore
from blast_controller.succession import candidate as candidate_module
from blast_controller.succession import following as following_module
from blast_controller.succession.candidate import Candidate, Hooks
from blast_controller.succession.following import Following
from tests.support.waiting import eventually


@dataclass
class FakeJournal:
    seen: JournalPosition = field(default_factory=lambda: JournalPosition("one:9090", 5, 1))
    fault: JournalError | None = None
    reads: int = 0

    def look(self) -> JournalPosition:
        if self.fault is not None:
            raise self.fault
        return self.seen

    def state(self) -> Loaded:
        self.reads += 1
        return Loaded(1, {}, False)


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(following_module, "INTERVAL", 0.01)
    monkeypatch.setattr(candidate_module, "LOOK", 0.01)
    monkeypatch.setattr(candidate_module, "PUBLISH_EVERY", 1)
    monkeypatch.setattr(candidate_module, "AGAIN", 0.01)


def test_standby_loads_changes_only_and_notes_every_leader():
    journal, shown, met = FakeJournal(), [], []
    following = Following(journal, shown.append, met.append)
    assert following.age() is None and following.leader() is None
    following.start()
    assert (following.leader(), met, len(shown)) == ("one:9090", [5], 1)
    age = following.age()
    eventually(lambda: following.age() < age + 0.005, "another look")
    assert journal.reads == 1
    journal.seen = JournalPosition("two:9090", 9, 2)
    eventually(lambda: met == [5, 9] and len(shown) == 2, "the change")
    following.stop()


def test_age_of_the_followed_state_grows_without_the_journal():
    journal = FakeJournal(fault=StoreUnreachableError("it is away"))
    following = Following(journal, lambda loaded: None, lambda generation: None)
    following.start()
    assert following.age() is None, "nothing was looked at yet"
    journal.fault = None
    eventually(lambda: following.age() is not None, "the first look")
    journal.fault = StoreUnreachableError("again")
    eventually(lambda: following.age() > 0.1, "it to grow old")
    following.stop()


def test_permanent_journal_error_is_raised_at_start():
    with pytest.raises(JournalError, match="damaged"):
        Following(FakeJournal(fault=JournalError("damaged")), lambda _: None, lambda _: None).start()


@dataclass
class Calls:
    led: list[Loaded] = field(default_factory=list)
    deposed: list[str] = field(default_factory=list)
    died: list[BaseException] = field(default_factory=list)

    def hooks(self, lead=None) -> Hooks:
        return Hooks(lead or self.led.append, self.deposed.append, self.died.append)


@dataclass
class FakeRivals:
    reaching: dict[str, int] = field(default_factory=dict)
    published: list[int] = field(default_factory=list)
    fault: JournalError | None = None

    def publish(self, reached: int) -> None:
        if self.fault is not None:
            raise self.fault
        self.published.append(reached)

    def others(self) -> dict[str, int]:
        return self.reaching


def test_candidate_is_leader_until_its_leadership_expires():
    calls, is_leader = Calls(), threading.Event()
    is_leader.set()
    candidate = Candidate(MemoryStore(), FakeRivals(), calls.hooks(), is_leader.is_set, lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert not calls.deposed
    is_leader.clear()
    eventually(lambda: calls.deposed == ["its leadership expired"], "it to notice")
    candidate.stop()


def test_candidate_skips_a_term_that_ends_during_the_load():
    calls, holds = Calls(), iter([False])
    store = MemoryStore()
    candidate = Candidate(store, FakeRivals(), calls.hooks(), lambda: next(holds, True), lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert [loaded.epoch for loaded in calls.led] == [2] and not calls.deposed and not calls.died
    candidate.stop()


class UnreachableAtOpen(MemoryStore):
    """A store that is unreachable for the first `times` calls of `open`."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def open(self) -> Loaded:
        if self.times:
            self.times -= 1
            raise StoreUnreachableError("it is away")
        return super().open()


def test_candidate_retries_to_open_an_unreachable_journal():
    calls = Calls()
    candidate = Candidate(UnreachableAtOpen(2), FakeRivals(), calls.hooks(), lambda: True, lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert not calls.died
    candidate.stop()


def test_stopped_candidate_opens_no_journal():
    store, calls = UnreachableAtOpen(10**9), Calls()
    candidate = Candidate(store, FakeRivals(), calls.hooks(), lambda: True, lambda: 1)
    candidate.start()
    eventually(lambda: store.times < 10**9 - 1, "some tries")
    candidate.stop()
    candidate._thread.join(30)
    assert not candidate._thread.is_alive() and not calls.died and not calls.led


def test_leader_ends_when_it_cannot_decide():
    calls = Calls()

    def lead(loaded: Loaded) -> None:
        raise ValueError("the configuration does not fit")

    Candidate(MemoryStore(), FakeRivals(), calls.hooks(lead), lambda: True, lambda: 1).start()
    eventually(lambda: calls.died, "the end")
    assert "does not fit" in str(calls.died[0])


def test_leader_with_fewer_devices_steps_down_after_several_reports():
    calls, rivals = Calls(), FakeRivals({"other:1": 4})
    reached = 4
    candidate = Candidate(MemoryStore(), rivals, calls.hooks(), lambda: True, lambda: reached)
    candidate.start()
    eventually(lambda: len(rivals.published) > 5, "some reports")
    assert not calls.deposed, "an equal number of devices is no reason"
    before, reached = len(rivals.published), 3
    eventually(lambda: calls.deposed == ["another controller reaches more of the devices"], "it to step down")
    assert len(rivals.published) - before >= candidate_module.REPORTS_TO_STEP_DOWN
    candidate.stop()


def test_rivals_that_cannot_be_read_do_not_depose_the_leader():
    calls, rivals = Calls(), FakeRivals({"other:1": 4}, fault=StoreUnreachableError("away"))
    candidate = Candidate(MemoryStore(), rivals, calls.hooks(), lambda: True, lambda: 0)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    rivals.fault = LockLostError("another controller is the leader")
    rivals.reaching = {}
    rivals.fault = None
    eventually(lambda: rivals.published, "it to go on")
    assert not calls.deposed and not calls.died
    candidate.stop()


def test_state_that_cannot_be_shown_ages_the_published_one():
    journal, broken = FakeJournal(), threading.Event()

    def show(loaded: Loaded) -> None:
        if broken.is_set():
            raise ValueError("it does not fit")

    following = Following(journal, show, lambda generation: None)
    following.start()
    broken.set()
    journal.seen = JournalPosition("one:9090", 5, 2)
    eventually(lambda: following.age() > 0.1, "it to grow old")
    broken.clear()
    eventually(lambda: following.age() < 0.1, "it to be shown")
    following.stop()
