"""Reads a recording, beside its writer or without one, for any number of threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from blast_controller.history.activity import spread
from blast_controller.history.blocks import RecordedBlock, Stamp
from blast_controller.history.compression import DecompressionError, unpacked
from blast_controller.history.differences import MAX_DIFFERENCES, Differences, differences
from blast_controller.history.encoder import Rows
from blast_controller.history.errors import DamagedRecordingError, NothingRecordedError, RecordingStorageError
from blast_controller.history.files import ALL, MOMENTS, NET, open_to_read, typed_faults
from blast_controller.history.images import apply_image
from blast_controller.history.look import BaseRow, BlockRow, RecordingQueries, only
from blast_controller.history.past import Bucket, Gap, Instant, Past, RecordedRun, RecordedSpan

SOON = 30.0
"""Seconds. It is noted more often that a controller is still there."""
MAX_BUCKETS = 10_000
KEPT_STATES = 2
"""The number of states at starts of blocks that are cached for nearby reads."""
LATEST = (1 << 63) - 1
"""The largest integer of SQLite: no moment is later."""


class _MomentPlace(NamedTuple):
    """Where a moment is: in a block, or a base by itself."""

    sequence: int
    stamp: Stamp
    run: int
    block: tuple[BlockRow, RecordedBlock] | None


class _Step(NamedTuple):
    """Over a whole block: by its net, or by all its moments where it is still without one."""

    block: BlockRow
    nets: list[bytes]
    moments: list[bytes]


class _Way(NamedTuple):
    """From the rows after moment `start`, or images of them, over whole blocks to the moment."""

    start: int
    rows: Rows
    images: list[bytes]
    steps: list[_Step]
    found: _MomentPlace


class RecordingReader:
    """One recording. All methods but `close` raise RecordingError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_to_read(path)
        self._reading = threading.Lock()
        self._closed = False
        self._kept: OrderedDict[int, Rows] = OrderedDict()
        try:
            # Queries choose rows by values, so that a changed one hides its row: all are compared once.
            with self._looking() as look:
                look.check()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        with self._reading:
            self._closed = True
            self._connection.close()

    # ---------------------------------------------------------------------------------------------- overview

    def span(self) -> RecordedSpan:
        """Return the recorded period. Raises NothingRecordedError for an empty file."""
        with self._looking() as look:
            oldest, base = look.base("ORDER BY sequence"), look.base("ORDER BY sequence DESC")
            block = look.block("ORDER BY first DESC")
            runs = look.runs("ORDER BY number")
            if oldest is None or base is None or not runs:
                raise NothingRecordedError(f"the recording {self._path} is empty: it begins when a controller decides")
            newest = Instant(base.sequence, base.wall / 1e6)
            if block is not None and block.last > newest.sequence:
                newest = Instant(block.last, look.read(block).stamps[-1].wall / 1e6)
        return RecordedSpan(Instant(oldest.sequence, oldest.wall / 1e6), newest, tuple(runs))

    def activity(self, buckets: int, begin: float, end: float) -> list[Bucket]:
        """Return the activity from `begin` to `end` (wall times), in `buckets` periods of equal length.

        Blocks count evenly over their time, a minute or two during high activity.
        """
        first, last = _microseconds(begin), _microseconds(end)
        with self._looking() as look:
            pieces = look.pieces(first, last)
        return spread(pieces, min(max(buckets, 1), MAX_BUCKETS), first, last)

    # ----------------------------------------------------------------------------------------------- moments

    def at(self, wall: float) -> Past:
        """Return the state at this wall time: the last moment, by number, of this time or before.

        If the clock was set back, this is the state at the last occurrence of the time. Raises NothingRecordedError.
        """
        past = self._past(lambda look: self._found_at(look, _microseconds(wall)))
        return replace(past, gap=self._gap(past, wall)) if wall > past.run.seen + SOON else past

    def moment(self, sequence: int) -> Past:
        """Return the moment of this number. Raises NothingRecordedError."""
        return self._past(lambda look: self._found(look, min(max(sequence, -LATEST), LATEST)))

    def between(self, one: float, other: float, limit: int = MAX_DIFFERENCES) -> Differences:
        """Return the differences between two wall times, and the number of rows beyond `limit`."""
        return self.differences(self.at(one), self.at(other), limit)

    def differences(self, before: Past, after: Past, limit: int = MAX_DIFFERENCES) -> Differences:
        """Return the differences between two moments of this recording."""
        try:
            return differences(before.rows, after.rows, limit)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedRecordingError(self._path, "a row is malformed") from error

    def _gap(self, past: Past, wall: float) -> Gap | None:
        with self._looking() as look:
            following = look.runs("WHERE number > ? ORDER BY number LIMIT 1", past.run.number)
        if not following:
            return Gap(past.run.seen, None, "the controller stopped, or its recording pauses")
        run = following[0]
        # Its clock may have been set back.
        return Gap(past.run.seen, run.began, run.reason) if wall < run.began else None

    def _past(self, find: Callable[[RecordingQueries], _MomentPlace]) -> Past:
        with self._looking() as look:
            found = find(look)
            run = self._run(look, found)
            way = self._way(look, found)
        try:
            rows = self._walked(way)
        except DecompressionError as error:
            raise DamagedRecordingError(self._path, str(error)) from error
        return Past(found.sequence, found.stamp.now / 1e6, found.stamp.wall / 1e6, run, rows)

    def _run(self, look: RecordingQueries, found: _MomentPlace) -> RecordedRun:
        runs = look.runs("WHERE number = ?", found.run)
        if not runs:
            raise DamagedRecordingError(self._path, "a moment belongs to no run")
        return runs[0]

    def _found_at(self, look: RecordingQueries, wall: int) -> _MomentPlace:
        base = look.base("WHERE alone AND wall <= ? ORDER BY sequence DESC", wall)
        block = look.block("WHERE least <= ? ORDER BY first DESC", wall)
        if block is not None and (base is None or block.first > base.sequence):
            read = look.read(block)
            places = [place for place, stamp in enumerate(read.stamps) if stamp.wall <= wall]
            if not places:
                raise DamagedRecordingError(self._path, "a block has no moment of its time")
            return _MomentPlace(block.first + places[-1], read.stamps[places[-1]], block.run, (block, read))
        # A recording may begin with a base that ends a block which is gone.
        base = base or look.base("WHERE wall <= ? ORDER BY sequence", wall)
        if base is None:
            raise NothingRecordedError(
                f"{self._path} has no recording of that time: `blast journal at oldest` shows the oldest moment"
            )
        return _alone(base)

    def _found(self, look: RecordingQueries, sequence: int) -> _MomentPlace:
        block = look.block("WHERE first <= ? ORDER BY first DESC", sequence)
        if block is not None and block.last >= sequence:
            read = look.read(block)
            return _MomentPlace(sequence, read.stamps[sequence - block.first], block.run, (block, read))
        base = look.base("WHERE sequence = ?", sequence)
        if base is None:
            raise NothingRecordedError(f"there is no moment {sequence} in {self._path}")
        return _alone(base)

    # --------------------------------------------------------------------------------------------- the way there

    def _way(self, look: RecordingQueries, found: _MomentPlace) -> _Way:
        """Read everything needed to reconstruct a moment in one transaction, so that trimming cannot interfere."""
        base = look.base("WHERE sequence <= ? ORDER BY sequence DESC", found.sequence)
        if base is None:
            raise DamagedRecordingError(self._path, "a moment has no base")
        if base.sequence == found.sequence:
            # It is the last of its block, and a base as well.
            found = found._replace(block=None)
        before = found.block[0].first - 1 if found.block is not None else found.sequence
        start, rows, images = base.sequence, dict[str, str](), list[bytes]()
        kept = max((at for at in self._kept if start <= at <= before), default=None)
        if kept is not None:
            start, rows = kept, dict(self._kept[kept])
            self._kept.move_to_end(kept)
        elif not (images := look.bodies(start, ALL)):
            raise DamagedRecordingError(self._path, "a base is empty")
        steps = []
        for block in look.blocks("WHERE first > ? AND first <= ? ORDER BY first", start, before):
            nets = look.bodies(block.first, NET)
            steps.append(_Step(block, nets, [] if nets else look.bodies(block.first, MOMENTS)))
        return _Way(start, rows, images, steps, found)

    def _walked(self, way: _Way) -> Rows:
        rows, at = way.rows, way.start
        apply_image((unpacked(image) for image in way.images), rows)
        for block, nets, moments in way.steps:
            _check_follows(block, at)
            if nets:
                apply_image((unpacked(net) for net in nets), rows)
            else:
                RecordedBlock(only(moments), block.stamp).play(rows, block.last - block.first + 1)
            at = block.last
        if way.found.block is not None:
            row, read = way.found.block
            _check_follows(row, at)
            self._keep(at, dict(rows))
            read.play(rows, way.found.sequence - row.first + 1)
        return rows

    def _keep(self, sequence: int, rows: Rows) -> None:
        with self._reading:
            self._kept[sequence] = rows
            self._kept.move_to_end(sequence)
            while len(self._kept) > KEPT_STATES:
                self._kept.popitem(last=False)

    @contextmanager
    def _looking(self) -> Iterator[RecordingQueries]:
        """Yield the file as of one moment."""
        with self._reading, typed_faults(self._path):
            if self._closed:
                raise RecordingStorageError(self._path, "it is closed already")
            self._connection.execute("BEGIN")
            try:
                yield RecordingQueries(self._connection, self._path)
            finally:
                self._connection.execute("COMMIT")


def _check_follows(block: BlockRow, at: int) -> None:
    if block.first != at + 1:
        raise DecompressionError("a block is missing")


def _alone(base: BaseRow) -> _MomentPlace:
    return _MomentPlace(base.sequence, Stamp(base.now, base.wall), base.run, None)


def _microseconds(wall: float) -> int:
    """Convert to microseconds, limited to the range of the file."""
    return round(min(max(wall, -1e12), 1e12) * 1e6)
