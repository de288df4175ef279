"""A recording returns every moment as it was recorded, over blocks, bases, reopening, crashes and trimming."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_controller.history import blocks, images, writer
from blast_controller.history.blocks import BlockText, RecordedBlock, Stamp
from blast_controller.history.compression import DecompressionError, packed, packed_for_speed, unpacked
from blast_controller.history.encoder import Difference, Rows
from blast_controller.history.errors import RecordingError
from blast_controller.history.images import apply_image, image_texts
from blast_controller.history.lines import from_lines, to_lines
from blast_controller.history.reader import RecordingReader
from blast_controller.history.retention import Keep
from blast_controller.history.writer import RunFacts, Writer

KEEP = Keep()
TEXT = "".join(f"one text or another, {number}. " for number in range(30))
FACTS = RunFacts(1, "1.0", "here", "the controller has started")
NAMES = st.sampled_from(
    ["fabric", "unit/r1", "unit/r2", "tree/7", "request/a/k", "request/a/\n", "request/a/\\n", "warm"]
)
ROWS = st.text("abr12é\U0001f600", max_size=20).map(lambda text: f'{{"v":"{text}"}}')
DIFFERENCES = st.dictionaries(NAMES, st.none() | ROWS, min_size=1, max_size=6)
STEPS = st.integers(-4_000_000_000, 4_000_000_000)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("moment"), DIFFERENCES, STEPS),
        st.tuples(st.just("flush"), st.none(), st.just(0)),
        st.tuples(st.just("copy"), st.none(), st.just(0)),
        st.tuples(st.just("reopen"), st.none(), st.just(0)),
    ),
    max_size=60,
)


LOOKS: tuple[Callable[[RecordingReader], object], ...] = (
    RecordingReader.span,
    lambda reader: reader.activity(5, 0.0, 1e12),
    lambda reader: reader.between(1e9, 2e9),
    lambda reader: [reader.moment(sequence) for sequence in range(1, 42, 3)],
)


REFUSED = "refused"


def looked_at(path: Path) -> list[object]:
    """Return the result of each of `LOOKS`, or `REFUSED` if the look was refused."""
    found: list[object] = []
    for look in LOOKS:
        try:
            with closing(RecordingReader(path)) as reader:
                found.append(look(reader))
        except RecordingError as fault:
            assert str(fault)
            found.append(REFUSED)
    return found


def taken(difference: Difference, rows: Rows) -> None:
    """Apply a difference to rows."""
    for name, row in difference.items():
        if row is None:
            rows.pop(name, None)
        else:
            rows[name] = row


class Tape:
    """A recording and a copy of its input; `flushed` moments must survive a kill."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "recording.sqlite"
        self.noted: list[tuple[Stamp, Rows]] = []
        self.flushed = 0
        self.copies: list[tuple[Path, int]] = []
        self.rows: Rows = {}
        self.stamp = Stamp(0, 1_000_000_000_000_000)
        self.begin()

    def begin(self) -> None:
        self.writer = Writer(self.path, KEEP)
        self.rows = {**self.rows, "fabric": "{}"}
        self.writer.begin(self.stamp, self.rows, FACTS)
        self.noted.append((self.stamp, dict(self.rows)))
        self.flushed = len(self.noted)

    def moment(self, difference: Difference, step: int) -> None:
        self.stamp = Stamp(self.stamp.now + abs(step) // 1000, self.stamp.wall + step)
        taken(difference, self.rows)
        self.writer.append(self.stamp, difference)
        self.noted.append((self.stamp, dict(self.rows)))

    def flush(self, *_: object) -> None:
        self.writer.flush(self.stamp.wall)
        self.flushed = len(self.noted)

    def copy(self, *_: object) -> None:
        """Copy the files as a kill leaves them."""
        there = self.path.with_name(f"copy{len(self.copies)}.sqlite")
        for end in ("", "-wal"):
            shutil.copy(f"{self.path}{end}", f"{there}{end}")
        self.copies.append((there, self.flushed))

    def reopen(self, *_: object) -> None:
        """Reopen the recording; moments that were not flushed are lost, and their numbers are used again."""
        self.writer.close()
        with_last = RecordingReader(self.path)
        kept = with_last.span().newest.sequence
        with_last.close()
        assert kept >= self.flushed
        del self.noted[kept:]
        self.begin()


def check(path: Path, noted: list[tuple[Stamp, Rows]], min_moments: int) -> None:
    """Check that `min_moments` or more are readable, each as it was recorded."""
    reader = RecordingReader(path)
    newest = reader.span().newest.sequence
    assert min_moments <= newest <= len(noted)
    for sequence in range(1, newest + 1):
        past = reader.moment(sequence)
        stamp, rows = noted[sequence - 1]
        assert (past.rows, round(past.now * 1e6)) == (rows, stamp.now)
    walls = [stamp.wall for stamp, _ in noted[:newest]]
    for wall in walls:
        last = max(place for place, other in enumerate(walls) if other <= wall)
        assert reader.at(wall / 1e6).rows == noted[last][1]
    reader.close()


@settings(max_examples=60)
@given(ACTIONS)
def test_recording_returns_every_moment_unchanged(actions):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        small.setattr(writer, "BLOCK_BYTES", 120)
        small.setattr(writer, "MAX_PIECES", 5)
        small.setattr(writer, "NETS_PER_BASE", 0.5)
        small.setattr(writer, "TEXT_BYTES", 150)
        small.setattr(images, "TEXT_BYTES", 60)
        tape = Tape(Path(folder))
        for action, difference, step in actions:
            getattr(tape, action)(difference, step)
        for path, flushed in tape.copies:
            check(path, tape.noted, min(flushed, len(tape.noted)))
        tape.writer.close()
        check(tape.path, tape.noted, tape.flushed)


@given(st.lists(st.text()))
def test_names_round_trip_through_lines(names):
    lines = to_lines(names)
    assert not any("\n" in line for line in lines) and from_lines(lines) == names


@given(st.lists(st.tuples(DIFFERENCES, st.integers(0, 10**12), STEPS), min_size=1, max_size=20))
def test_block_replays_to_each_of_its_moments(moments):
    rows: Rows = {}
    text, noted, stamps = BlockText(), [], []
    for difference, now, wall in moments:
        stamps.append(Stamp(now, wall))
        text.add(stamps[-1], difference, rows)
        taken(difference, rows)
        noted.append(dict(rows))
    block = RecordedBlock(unpacked(packed(text.text())), stamps[0])
    assert block.stamps == stamps
    for count, after in enumerate(noted, 1):
        played: Rows = {}
        block.play(played, count)
        assert played == after


@given(st.dictionaries(NAMES, ROWS), DIFFERENCES)
def test_image_applies_its_difference_to_rows(rows, difference):
    found, expected = dict(rows), dict(rows)
    apply_image(image_texts(difference), found)
    taken(difference, expected)
    assert found == expected


@given(st.data())
def test_malformed_block_or_image_is_read_or_rejected(data):
    """A good text with a piece of it replaced, or any text."""
    good = BlockText()
    good.add(Stamp(0, 0), {"unit/r1": '{"port:r1/5":1}', "tree/1": '{"a":1}'}, {})
    good.add(Stamp(5, 9), {"unit/r1": None, "tree/1": '{"a":2}'}, {"unit/r1": "{}", "tree/1": '{"a":1}'})
    text = data.draw(st.sampled_from([good.text(), next(image_texts({"a": "{}", "b": None})), "1 1\n0\n1\na\n"]))
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    spoilt = text[:begin] + data.draw(st.text("019 -\n{}\x01a\\", max_size=12)) + text[end:]
    for read in (lambda: RecordedBlock(spoilt, Stamp(0, 0)).play({}, 2), lambda: apply_image([spoilt], {})):
        with suppress(DecompressionError):
            read()


@given(st.binary(max_size=200), st.integers(0, 150), st.integers(0, 255), st.sampled_from([packed, packed_for_speed]))
def test_changed_packed_bytes_are_rejected(anything, place, other, pack):
    good = bytearray(pack(TEXT))
    good[place % len(good)] = other
    for spoilt in (anything, bytes(good), bytes(good[:-1]), bytes(good) + anything):
        with suppress(DecompressionError):
            # Some bits of a header mean nothing.
            assert unpacked(spoilt) == TEXT


@pytest.mark.parametrize("pack", [packed, packed_for_speed])
def test_changed_byte_never_yields_another_text(pack):
    good = pack(TEXT)
    for place, other in itertools.product(range(len(good)), range(256)):
        with suppress(DecompressionError):
            assert unpacked(good[:place] + bytes([other]) + good[place + 1 :]) == TEXT


@settings(max_examples=40)
@given(st.data())
def test_damaged_recording_is_read_unchanged_or_rejected(data):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        small.setattr(writer, "BLOCK_BYTES", 300)
        tape = Tape(Path(folder))
        for number in range(40):
            tape.moment({f"tree/{number % 7}": f'{{"n":{number}}}', "tree/9": f'{{"m":{number}}}'}, 1000)
        tape.flush()
        tape.writer.close()
        expected = looked_at(tape.path)
        content = bytearray(tape.path.read_bytes())
        # Most of a small file is empty.
        used = [place for place, byte in enumerate(content) if byte]
        for _ in range(data.draw(st.integers(1, 20))):
            content[data.draw(st.sampled_from(used))] = data.draw(st.sampled_from([0, 1, 7, 8, 9, 255]))
        tape.path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2]))])
        for found, whole in zip(looked_at(tape.path), expected, strict=True):
            assert found in (whole, REFUSED)


def test_blocks_keep_times_to_the_microsecond():
    assert blocks.stamp_of(1.0000014, 1_790_000_000.123456) == Stamp(1_000_001, 1_790_000_000_123_456)
