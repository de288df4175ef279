"""When a controller has to hold: a pure judgment of how earlier runs ended, and the record on disk."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.controller import Core
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import DeviceDown, DeviceUp, RequestSubmitted, Tick
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.process.safe_mode import WITHIN, EndRecord, RunFailure, reason_to_hold
from blast_controller.runtime.runtime import Runtime
from blast_controller.store.memory import MemoryStore
from tests.support.core import key_of, make_fabric, multicast
from tests.support.runtime import PATIENCE, InstantDevices

WANTED = multicast("a", "r1h1", ["r2h1", "r3h1"])


@pytest.mark.parametrize(
    ("ends", "holds"),
    [
        ([], False),
        ([RunFailure(1, 0.1, "x")], False),
        ([RunFailure(1, 0.1, "x"), RunFailure(2, 0.1, "x")], True),
        ([RunFailure(1, 9e9, "x"), RunFailure(2, WITHIN, "x")], True),
        ([RunFailure(1, 0.1, "x"), RunFailure(2, WITHIN + 1, "x")], False),
        # A run between the two ended otherwise: by a normal stop, SIGKILL or a power cut.
        ([RunFailure(1, 0.1, "x"), RunFailure(3, 0.1, "x")], False),
    ],
)
def test_two_ends_in_a_row_the_second_soon_after_its_start(ends, holds):
    assert (reason_to_hold(ends) is not None) is holds


def test_the_reason_names_the_fault_and_what_to_do():
    sentence = reason_to_hold([RunFailure(1, 5.0, "KeyError: 'a'"), RunFailure(2, 2.0, "KeyError: 'b'")])
    assert sentence is not None and "KeyError: 'b'" in sentence and "blast resume" in sentence


class Runs:
    """Runs of a controller, each of which ends somehow; what the record then says."""

    def __init__(self, record: EndRecord) -> None:
        self.record, self.epoch = record, 0

    def run(self, ran: float, faulty: bool) -> bool:
        """Whether this run held; one that holds does not end by a fault."""
        self.epoch += 1
        held = reason_to_hold(self.record.read()) is not None
        if faulty and not held:
            self.record.add(RunFailure(self.epoch, ran, "KeyError"))
        return held


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=12))
def test_it_holds_exactly_after_two_faulty_runs_of_which_the_second_was_short(tmp_path_factory, history):
    runs = Runs(EndRecord(tmp_path_factory.mktemp("record") / "ends"))
    before: list[tuple[float, bool]] = []
    for ran, faulty in history:
        held = runs.run(ran, faulty)
        short = len(before) > 1 and before[-1][1] and before[-2][1] and before[-1][0] <= WITHIN
        assert held is short
        if held:
            # It goes on holding, however often it is started, until somebody clears the record.
            assert runs.run(ran, faulty)
            runs.record.clear()
            before.clear()
        else:
            before.append((ran, faulty))


def test_the_record_survives_and_is_small(tmp_path):
    path = tmp_path / "journal.sqlite"
    for epoch in range(50):
        EndRecord.beside(path).add(RunFailure(epoch, 1.5, "long " * 1000))
    ends = EndRecord.beside(path).read()
    assert [end.epoch for end in ends] == [48, 49] and (tmp_path / "journal.sqlite.ends").stat().st_size < 2000
    EndRecord.beside(path).clear()
    EndRecord.beside(path).clear()
    assert EndRecord.beside(path).read() == []


def test_a_run_in_which_several_parts_fail_together_ends_once(tmp_path):
    record = EndRecord(tmp_path / "ends")
    for sentence in ("core", "optical", "openflow"):
        record.add(RunFailure(7, 1.0, sentence))
    assert [end.sentence for end in record.read()] == ["openflow"]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"{}\n", b"[1]\n", b'{"epoch": "1", "ran": 1, "sentence": "x"}\n', b"["])
def test_a_record_that_cannot_be_understood_tells_nothing(tmp_path, text, caplog):
    path = tmp_path / "ends"
    path.write_bytes(text)
    assert EndRecord(path).read() == []
    assert "cannot be read" in caplog.text
    EndRecord(path).add(RunFailure(1, 1.0, "x"))
    assert [end.epoch for end in EndRecord(path).read()] == [1]


def test_a_record_that_cannot_be_written_is_told(tmp_path, caplog):
    EndRecord(tmp_path / "nowhere" / "ends").add(RunFailure(1, 1.0, "x"))
    assert "cannot be written" in caplog.text


@pytest.fixture
def held():
    """Yield a runtime in safe mode with a lit group of an earlier run, and the parts that it needs to continue."""
    fabric, store = make_fabric(4, [4]), MemoryStore()
    core = Core(fabric, CoreSettings(lease_minimum=0.01, lease_factor=1.0))
    loaded = store.open()
    first = Runtime(core, store, failing)
    first.start(devices := InstantDevices(first), devices, loaded)
    for device in [*fabric.switches, *{rack.datapath for rack in fabric.racks.values()}]:
        first.call(lambda turn, device=device: turn.handle(DeviceUp(device))).result(PATIENCE)
    first.call(lambda turn: turn.handle(RequestSubmitted(WANTED))).result(PATIENCE)
    first.call(lambda turn: None).result(PATIENCE)
    first.stop()
    store.close()
    runtime = Runtime(Core(fabric, CoreSettings(lease_minimum=0.01)), store, failing)
    loaded = store.open()
    runtime.hold("It holds, because.", loaded)
    yield SimpleNamespace(runtime=runtime, store=store, loaded=loaded, fabric=fabric)
    runtime.stop()


def failing(error: BaseException) -> None:
    raise AssertionError("the runtime failed") from error


def on(held, work):
    return held.runtime.call(work).result(PATIENCE)


def test_it_shows_what_is_lit_and_takes_no_event(held):
    written = len(held.store.journal(0, 1000))
    assert on(held, lambda turn: turn.core.request(key_of("a")).state) is PartState.ACTIVE
    (tree,) = on(held, lambda turn: list(turn.core.reservations))
    assert tree.request == key_of("a")
    for event in (RequestSubmitted(multicast("b", "r1h1", ["r2h1"])), Tick()):
        with pytest.raises(RejectedError, match="It holds") as refusal:
            on(held, lambda turn, event=event: turn.handle(event))
        assert refusal.value.code == "safe_mode"
    held.runtime.post(DeviceDown("ocs1", "gone"))
    assert on(held, lambda turn: turn.core.view.away["ocs1"]).startswith("not checked")
    assert held.runtime._time_left() is None, "no lease ends"
    assert len(held.store.journal(0, 1000)) == written


def test_it_goes_on_as_after_a_restart(held):
    core = Core(held.fabric, CoreSettings(lease_minimum=3600.0))
    devices = InstantDevices(held.runtime)
    on(held, lambda turn: held.runtime.go_on(core, devices, devices, held.loaded))
    assert held.runtime.holding is None
    assert on(held, lambda turn: turn.core.request(key_of("a")).state) is PartState.ACTIVE
    on(held, lambda turn: turn.handle(RequestSubmitted(multicast("b", "r4h1", ["r4h2"]))))
    assert key_of("b") in on(held, lambda turn: list(turn.core.requests))


def test_a_journal_that_cannot_be_taken_over_is_no_reason_to_end(held, monkeypatch):
    runtime = Runtime(Core(held.fabric, CoreSettings()), held.store, failing)
    load = runtime.core.load
    monkeypatch.setattr(runtime.core, "load", lambda records, now: 1 // 0 if records else load(records, now))
    runtime.hold("It holds.", held.loaded)
    try:
        assert runtime.call(lambda turn: list(turn.core.requests)).result(PATIENCE) == []
        assert "no requests and trees are shown" in str(runtime.holding)
    finally:
        runtime.stop()
