"""Following a journal and standing for the lead, without an etcd."""

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


def test_only_what_has_changed_is_taken_up_and_every_leader_is_met():
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


def test_a_journal_that_is_away_makes_what_is_shown_older():
    journal = FakeJournal(fault=StoreUnreachableError("it is away"))
    following = Following(journal, lambda loaded: None, lambda generation: None)
    following.start()
    assert following.age() is None, "nothing was looked at yet"
    journal.fault = None
    eventually(lambda: following.age() is not None, "the first look")
    journal.fault = StoreUnreachableError("again")
    eventually(lambda: following.age() > 0.1, "it to grow old")
    following.stop()


def test_faults_that_waiting_does_not_mend_are_raised_at_the_start():
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

    def tell(self, reached: int) -> None:
        if self.fault is not None:
            raise self.fault
        self.published.append(reached)

    def others(self) -> dict[str, int]:
        return self.reaching


def test_it_leads_until_its_time_is_over():
    calls, leads = Calls(), threading.Event()
    leads.set()
    candidate = Candidate(MemoryStore(), FakeRivals(), calls.hooks(), leads.is_set, lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert not calls.deposed
    leads.clear()
    eventually(lambda: calls.deposed == ["its leadership expired"], "it to notice")
    candidate.stop()


def test_a_term_that_ends_while_the_journal_is_loaded_is_not_begun():
    calls, holds = Calls(), iter([False])
    store = MemoryStore()
    candidate = Candidate(store, FakeRivals(), calls.hooks(), lambda: next(holds, True), lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert [loaded.epoch for loaded in calls.led] == [2] and not calls.deposed and not calls.died
    candidate.stop()


class GoneWhileOpened(MemoryStore):
    """What keeps it goes away while it is opened, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def open(self) -> Loaded:
        if self.times:
            self.times -= 1
            raise StoreUnreachableError("it is away")
        return super().open()


def test_a_journal_that_goes_away_while_it_is_opened_is_opened_again():
    calls = Calls()
    candidate = Candidate(GoneWhileOpened(2), FakeRivals(), calls.hooks(), lambda: True, lambda: 1)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    assert not calls.died
    candidate.stop()


def test_stopped_candidate_opens_no_journal():
    store, calls = GoneWhileOpened(10**9), Calls()
    candidate = Candidate(store, FakeRivals(), calls.hooks(), lambda: True, lambda: 1)
    candidate.start()
    eventually(lambda: store.times < 10**9 - 1, "some tries")
    candidate.stop()
    candidate._thread.join(30)
    assert not candidate._thread.is_alive() and not calls.died and not calls.led


def test_who_leads_and_cannot_decide_ends():
    calls = Calls()

    def lead(loaded: Loaded) -> None:
        raise ValueError("the configuration does not fit")

    Candidate(MemoryStore(), FakeRivals(), calls.hooks(lead), lambda: True, lambda: 1).start()
    eventually(lambda: calls.died, "the end")
    assert "does not fit" in str(calls.died[0])


def test_who_reaches_fewer_devices_than_another_stands_down_but_not_at_once():
    calls, rivals = Calls(), FakeRivals({"other:1": 4})
    reached = 4
    candidate = Candidate(MemoryStore(), rivals, calls.hooks(), lambda: True, lambda: reached)
    candidate.start()
    eventually(lambda: len(rivals.published) > 5, "some words")
    assert not calls.deposed, "as many is not more"
    before, reached = len(rivals.published), 3
    eventually(lambda: calls.deposed == ["another controller reaches more of the devices"], "it to stand down")
    assert len(rivals.published) - before >= candidate_module.PATIENCE
    candidate.stop()


def test_rivals_that_cannot_be_read_do_not_depose_the_leader():
    calls, rivals = Calls(), FakeRivals({"other:1": 4}, fault=StoreUnreachableError("away"))
    candidate = Candidate(MemoryStore(), rivals, calls.hooks(), lambda: True, lambda: 0)
    candidate.start()
    eventually(lambda: calls.led, "it to lead")
    rivals.fault = LockLostError("somebody else leads")
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
