"""The flight recorder: bounds, faults, and reading the past."""

from __future__ import annotations

import logging
import random
import sqlite3
from pathlib import Path

import pytest

from blast_controller.core.model.events import DeviceDisconnected, FinishRequested
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.snapshot.changes import EVERYTHING
from blast_controller.history import recorder as recording
from blast_controller.history import writer as writing
from blast_controller.history.blocks import Stamp
from blast_controller.history.encoder import all_rows
from blast_controller.history.errors import (
    DamagedRecordingError,
    MissingRecordingError,
    NothingRecordedError,
    RecordingFormatError,
    RecordingInUseError,
    RecordingStorageError,
)
from blast_controller.history.files import FORMAT
from blast_controller.history.past import Bucket
from blast_controller.history.reader import RecordingReader
from blast_controller.history.recorder import Recorder
from blast_controller.history.retention import MICROSECONDS_PER_DAY, Keep
from blast_controller.history.writer import RunFacts, Writer
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.waiting import eventually

FACTS = RunFacts(3, "1.0", "here", "the controller has started")
BEGIN = 1_790_000_000_000_000
MIB = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.sqlite"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "INTERVAL", 0.01)
    monkeypatch.setattr(recording, "AGAIN", 0.05)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small blocks, which take less time to fill."""
    monkeypatch.setattr(writing, "BLOCK_BYTES", 1 << 15)


def begun(path: Path, keep: Keep | None = None, wall: int = BEGIN) -> Writer:
    writer = Writer(path, keep or Keep())
    writer.begin(Stamp(0, wall), {"fabric": "{}"}, FACTS)
    return writer


def fill(writer: Writer, moments: int, step: int = 1_000_000, size: int = 500) -> None:
    """Append moments of twice this size that cannot be compressed below it."""
    dice = random.Random(5)
    for number in range(moments):
        row = f'{{"n":"{dice.randbytes(size).hex()}"}}'
        writer.append(Stamp(number * step, BEGIN + number * step), {f"tree/{number % 5}": row})
        if number % 10 == 9:
            writer.flush(BEGIN + number * step)


# ------------------------------------------------------------------------------------------------ the file


def test_recording_stays_within_max_bytes_and_reports_oldest_moment(path):
    max_bytes = MIB
    writer = begun(path, Keep(bytes=max_bytes))
    sizes = []
    for _ in range(4):
        fill(writer, 200, size=2000)
        sizes.append(sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")))
    # One block more than the limit, and the write-ahead log.
    assert max(sizes[1:]) < max_bytes + 13 * MIB and writer.bytes <= max_bytes + MIB // 2
    reader = RecordingReader(path)
    span = reader.span()
    assert 1 < span.oldest.sequence < span.newest.sequence == 801
    assert reader.moment(span.oldest.sequence).rows
    with pytest.raises(NothingRecordedError, match="no moment 1 "):
        reader.moment(1)


def test_recording_drops_moments_beyond_its_retention(path):
    writer = begun(path, Keep(days=1.0))
    fill(writer, 400, step=MICROSECONDS_PER_DAY // 100)
    oldest = RecordingReader(path).span().oldest
    assert BEGIN / 1e6 + 2 * 86400 < oldest.wall < BEGIN / 1e6 + 3.5 * 86400


def test_recording_keeps_the_past_after_a_clock_jump(path):
    writer = begun(path, Keep(days=1.0))
    fill(writer, 600, step=1000)
    before = RecordingReader(path).span().oldest
    writer.begin(Stamp(0, BEGIN + 400 * MICROSECONDS_PER_DAY), {"fabric": "{}"}, FACTS)
    after = RecordingReader(path).span()
    assert after.oldest == before and after.newest.sequence == 602


def test_recording_has_one_writer_at_a_time(path):
    writer = begun(path)
    with pytest.raises(RecordingInUseError, match="a different file"):
        Writer(path, Keep())
    writer.close()
    Writer(path, Keep()).close()


def test_invalid_recordings_are_rejected_with_their_reason(path, tmp_path):
    with pytest.raises(MissingRecordingError, match="no such file"):
        RecordingReader(path)
    with pytest.raises(MissingRecordingError, match="no file can be created"):
        Writer(tmp_path / "nowhere" / "file", Keep())
    path.write_bytes(b"anything else" * 1000)
    for opened in (lambda: RecordingReader(path), lambda: Writer(path, Keep())):
        with pytest.raises(DamagedRecordingError, match="move it"):
            opened()
    path.unlink()
    begun(path).close()
    for other in (FORMAT - 1, FORMAT + 1):
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {other}")
        connection.close()
        with pytest.raises(RecordingFormatError, match=f"has format {other} and this release reads format {FORMAT}"):
            RecordingReader(path)


def test_span_reports_runs_and_gaps(path):
    writer = begun(path)
    writer.flush(BEGIN + 5_000_000)
    writer.close()
    begun(path, wall=BEGIN + 65_000_000).close()
    span = RecordingReader(path).span()
    assert [(run.epoch, run.first) for run in span.runs] == [(3, 1), (3, 2)]
    assert span.gaps == ((BEGIN / 1e6 + 5, BEGIN / 1e6 + 65, FACTS.reason),)


def test_reader_shows_the_latest_moment_after_a_clock_set_back(path):
    writer = begun(path)
    for number, second in enumerate((10, 20, 30, 5, 15, 25)):
        writer.append(Stamp(number, BEGIN + second * 1_000_000), {"warm": f'{{"n":{number}}}'})
    writer.flush(BEGIN)
    reader = RecordingReader(path)
    wall = BEGIN / 1e6
    assert [reader.at(wall + second).rows.get("warm") for second in (0, 4, 5, 9, 15, 24, 25, 31)] == [
        None,
        None,
        *(f'{{"n":{number}}}' for number in (3, 3, 4, 4, 5, 5)),
    ]
    with pytest.raises(NothingRecordedError):
        reader.at(wall - 1)


def test_activity_adds_up_to_all_moments(path):
    writer = begun(path)
    fill(writer, 500)
    reader = RecordingReader(path)
    span = reader.span()
    found = reader.activity(7, span.oldest.wall, span.newest.wall + 1)
    assert sum(bucket.moments for bucket in found) == pytest.approx(501)
    assert all(bucket.moments > 50 for bucket in found)
    assert reader.activity(3, 0.0, 1.0) == [Bucket(0.0, 0.0)] * 3


# ---------------------------------------------------------------------------------------------- the recorder


def publish(recorder: Recorder, world: World) -> None:
    recorder.on_published(world.core.snapshot, world.core.take_changes())


def started(path: Path) -> tuple[Recorder, World]:
    world = ready_world(make_fabric(4, [4]))
    world.core.take_changes()
    recorder = Recorder(path, Keep(), "1.0", "here")
    recorder.on_published(world.core.snapshot, EVERYTHING)
    recorder.start(7)
    recorder.on_published(world.core.snapshot, EVERYTHING)
    return recorder, world


def test_recorder_records_published_state_from_its_start(path, soon):
    recorder, world = started(path)
    eventually(path.exists, "the file")
    grant = world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    publish(recorder, world)
    lit = all_rows(world.core.snapshot)
    eventually(lambda: not recorder.lag, "it to be taken")
    world.handle(FinishRequested(key_of("k"), 0))
    world.handle(DeviceDisconnected(SwitchId("ocs1"), "cable pulled"))
    publish(recorder, world)
    recorder.stop()
    assert recorder.fault is None and recorder.bytes > 0 and not recorder.merged
    reader = RecordingReader(path)
    newest = reader.span().newest
    assert reader.moment(newest.sequence).rows == all_rows(world.core.snapshot)
    past = reader.moment(newest.sequence - 1)
    assert past.rows == lit and f"tree/{grant.reservation}" in lit
    assert past.run.epoch == 7 and past.run.reason == recording.STARTED


def test_recorder_logs_a_damaged_file_once_and_keeps_it(path, soon, caplog):
    path.write_bytes(b"x" * 5000)
    with caplog.at_level(logging.INFO):
        recorder, world = started(path)
        eventually(lambda: recorder.fault is not None, "the fault")
        before = recorder.fault
        for _ in range(3):
            publish(recorder, world)
        path.unlink()
        eventually(lambda: recorder.fault is None, "another try")
        recorder.stop()
    assert "is damaged" in before
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    (run,) = RecordingReader(path).span().runs
    assert run.reason.startswith("recording had paused")


def test_full_disk_leaves_a_gap_and_a_complete_recording_after_it(path, soon, monkeypatch):
    recorder, world = started(path)
    eventually(path.exists, "the file")
    full = [True]
    flush = Writer.flush

    def fails(writer: Writer, wall: int) -> None:
        if full[0]:
            raise RecordingStorageError(path, "database or disk is full")
        flush(writer, wall)

    monkeypatch.setattr(Writer, "flush", fails)
    world.granted(multicast("k", "r1h1", ["r2h1"]))
    publish(recorder, world)
    eventually(lambda: recorder.fault is not None, "the fault")
    full[0] = False
    eventually(lambda: recorder.fault is None, "room")
    world.handle(FinishRequested(key_of("k"), 0))
    publish(recorder, world)
    recorder.stop()
    reader = RecordingReader(path)
    span = reader.span()
    (gap,) = span.gaps
    assert "disk is full" in gap.reason and gap.after <= gap.until
    assert reader.moment(span.newest.sequence).rows == all_rows(world.core.snapshot)
