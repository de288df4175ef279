"""Safe mode: the decision from the failures of earlier runs, their record on disk, and the runtime in it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.controller import Core
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import DeviceConnected, DeviceDisconnected, RequestSubmitted, TimePassed
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.process.safe_mode import WITHIN, EndRecord, RunFailure, safe_mode_reason
from blast_controller.runtime.runtime import Runtime
from blast_controller.store.memory import MemoryStore
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.runtime import TIMEOUT, InstantDevices

REQUEST = multicast("a", "r1h1", ["r2h1", "r3h1"])


@pytest.mark.parametrize(
    ("ends", "is_safe_mode"),
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
def test_second_failure_in_a_row_soon_after_start_causes_safe_mode(ends, is_safe_mode):
    assert (safe_mode_reason(ends) is not None) is is_safe_mode


def test_safe_mode_reason_names_the_fault_and_the_command():
    sentence = safe_mode_reason([RunFailure(1, 5.0, "KeyError: 'a'"), RunFailure(2, 2.0, "KeyError: 'b'")])
    assert sentence is not None and "KeyError: 'b'" in sentence and "blast resume" in sentence


class Runs:
    """Runs of a controller, each of which adds its failure to the record."""

    def __init__(self, record: EndRecord) -> None:
        self.record, self.epoch = record, 0

    def run(self, ran: float, faulty: bool) -> bool:
        """Return whether this run was in safe mode; a run in safe mode does not fail."""
        self.epoch += 1
        held = safe_mode_reason(self.record.read()) is not None
        if faulty and not held:
            self.record.add(RunFailure(self.epoch, ran, "KeyError"))
        return held


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=12))
def test_safe_mode_follows_two_failed_runs_with_a_short_second(tmp_path_factory, history):
    runs = Runs(EndRecord(tmp_path_factory.mktemp("record") / "ends"))
    before: list[tuple[float, bool]] = []
    for ran, faulty in history:
        held = runs.run(ran, faulty)
        short = len(before) > 1 and before[-1][1] and before[-2][1] and before[-1][0] <= WITHIN
        assert held is short
        if held:
            # Every restart enters safe mode, until an operator clears the record.
            assert runs.run(ran, faulty)
            runs.record.clear()
            before.clear()
        else:
            before.append((ran, faulty))


def test_failure_record_survives_restarts_and_stays_small(tmp_path):
    path = tmp_path / "journal.sqlite"
    for epoch in range(50):
        EndRecord.beside(path).add(RunFailure(epoch, 1.5, "long " * 1000))
    ends = EndRecord.beside(path).read()
    assert [end.epoch for end in ends] == [48, 49] and (tmp_path / "journal.sqlite.ends").stat().st_size < 2000
    EndRecord.beside(path).clear()
    EndRecord.beside(path).clear()
    assert EndRecord.beside(path).read() == []


def test_several_faults_of_one_run_are_recorded_once(tmp_path):
    record = EndRecord(tmp_path / "ends")
    for sentence in ("core", "optical", "openflow"):
        record.add(RunFailure(7, 1.0, sentence))
    assert [end.sentence for end in record.read()] == ["openflow"]


@pytest.mark.parametrize("text", [b"\xff\xfe", b"{}\n", b"[1]\n", b'{"epoch": "1", "ran": 1, "sentence": "x"}\n', b"["])
def test_malformed_failure_record_is_logged_and_ignored(tmp_path, text, caplog):
    path = tmp_path / "ends"
    path.write_bytes(text)
    assert EndRecord(path).read() == []
    assert "cannot be read" in caplog.text
    EndRecord(path).add(RunFailure(1, 1.0, "x"))
    assert [end.epoch for end in EndRecord(path).read()] == [1]


def test_failure_to_write_the_record_is_logged(tmp_path, caplog):
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
        first.call(lambda context, device=device: context.handle(DeviceConnected(device))).result(TIMEOUT)
    first.call(lambda context: context.handle(RequestSubmitted(REQUEST))).result(TIMEOUT)
    first.call(lambda context: None).result(TIMEOUT)
    first.stop()
    store.close()
    runtime = Runtime(Core(fabric, CoreSettings(lease_minimum=0.01)), store, failing)
    loaded = store.open()
    runtime.enter_safe_mode("Two runs failed.", loaded)
    yield SimpleNamespace(runtime=runtime, store=store, loaded=loaded, fabric=fabric)
    runtime.stop()


def failing(error: BaseException) -> None:
    raise AssertionError("the runtime failed") from error


def on(held, work):
    return held.runtime.call(work).result(TIMEOUT)


def test_safe_mode_shows_lit_trees_and_rejects_events(held):
    written = len(held.store.journal(0, 1000))
    assert on(held, lambda context: context.core.request(key_of("a")).state) is PartState.ACTIVE
    (tree,) = on(held, lambda context: list(context.core.reservations))
    assert tree.request == key_of("a")
    for event in (RequestSubmitted(multicast("b", "r1h1", ["r2h1"])), TimePassed()):
        with pytest.raises(RejectedError, match="Two runs failed") as refusal:
            on(held, lambda context, event=event: context.handle(event))
        assert refusal.value.code == "safe_mode"
    held.runtime.post(DeviceDisconnected("ocs1", "gone"))
    assert on(held, lambda context: context.core.view.away["ocs1"]).startswith("not checked")
    assert held.runtime._time_left() is None, "no lease ends"
    assert len(held.store.journal(0, 1000)) == written


def test_resumed_runtime_continues_as_after_a_restart(held):
    core = Core(held.fabric, CoreSettings(lease_minimum=3600.0))
    devices = InstantDevices(held.runtime)
    on(held, lambda context: held.runtime.go_on(core, devices, devices, held.loaded))
    assert held.runtime.safe_mode is None
    assert on(held, lambda context: context.core.request(key_of("a")).state) is PartState.ACTIVE
    on(held, lambda context: context.handle(RequestSubmitted(multicast("b", "r4h1", ["r4h2"]))))
    assert key_of("b") in on(held, lambda context: list(context.core.requests))


def test_safe_mode_survives_an_unreadable_journal(held, monkeypatch):
    runtime = Runtime(Core(held.fabric, CoreSettings()), held.store, failing)
    load = runtime.core.load
    monkeypatch.setattr(runtime.core, "load", lambda records, now: 1 // 0 if records else load(records, now))
    runtime.enter_safe_mode("Two runs failed.", held.loaded)
    try:
        assert runtime.call(lambda context: list(context.core.requests)).result(TIMEOUT) == []
        assert "no requests and trees are shown" in str(runtime.safe_mode)
    finally:
        runtime.stop()
