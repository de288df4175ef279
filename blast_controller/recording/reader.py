"""Reads a recording, beside its writer or without one, for any number of threads."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from blast_controller.moments.encoder import Rows
from blast_controller.recording.activity import spread
from blast_controller.recording.blocks import Block, Stamp
from blast_controller.recording.compression import Unreadable, unpacked
from blast_controller.recording.differences import MOST, Differences, differences
from blast_controller.recording.errors import CannotKeep, Damaged, NothingRecorded
from blast_controller.recording.files import ALL, MOMENTS, NET, open_to_read, typed_faults
from blast_controller.recording.images import apply_image
from blast_controller.recording.past import Bucket, Gap, Instant, Past, Run, Span

SOON = 30.0
"""Seconds. It is noted more often that a controller is still there."""
MOST_BUCKETS = 10_000
KEPT_STATES = 2
"""States at which blocks begin that are kept for whoever looks near them next."""
LATEST = (1 << 63) - 1


class _BlockRow(NamedTuple):
    first: int
    last: int
    run: int
    now: int
    wall: int

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.now, self.wall)


class _BaseRow(NamedTuple):
    sequence: int
    run: int
    now: int
    wall: int


_BLOCK, _BASE = "SELECT first, last, run, now, wall FROM block", "SELECT sequence, run, now, wall FROM base"
_RUN = "SELECT number, first, began / 1e6, seen / 1e6, epoch, release, instance, reason FROM run"


class _Found(NamedTuple):
    """Where a moment is: in a block, or a base by itself."""

    sequence: int
    stamp: Stamp
    run: int
    block: tuple[_BlockRow, Block] | None


_Find = Callable[[sqlite3.Connection], _Found]


class Reader:
    """One recording. Every method raises RecordingFault."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_to_read(path)
        self._reading = threading.Lock()
        self._closed = False
        self._kept: OrderedDict[int, Rows] = OrderedDict()

    def close(self) -> None:
        """Let go of the file."""
        with self._reading:
            self._closed = True
            self._connection.close()

    # ---------------------------------------------------------------------------------------------- overview

    def span(self) -> Span:
        """What can be shown. Raises NothingRecorded of a file that is still empty."""
        with self._looking() as look:
            oldest = look.execute("SELECT sequence, wall FROM base ORDER BY sequence LIMIT 1").fetchone()
            bases = look.execute("SELECT sequence, wall FROM base ORDER BY sequence DESC LIMIT 1").fetchone()
            block = look.execute(f"{_BLOCK} ORDER BY first DESC LIMIT 1").fetchone()
            runs = tuple(Run(*row) for row in look.execute(f"{_RUN} ORDER BY number"))
            if oldest is None or not runs:
                raise NothingRecorded(f"nothing is recorded in {self._path} yet: it begins when a controller decides")
            newest = Instant(bases[0], bases[1] / 1e6)
            if block is not None and block[1] > newest.sequence:
                row = _BlockRow(*block)
                text = self._bodies(look, row.first, MOMENTS)
                newest = Instant(row.last, self._block(text, row).stamps[-1].wall / 1e6)
        return Span(Instant(oldest[0], oldest[1] / 1e6), newest, runs)

    def activity(self, buckets: int, begin: float, end: float) -> list[Bucket]:
        """What happened from `begin` to `end` (wall times), in so many pieces of equal length.

        Blocks are spread evenly over their time, a minute or two where much happens.
        """
        buckets = min(max(buckets, 1), MOST_BUCKETS)
        query = (
            "SELECT least, most, last - first + 1, changes FROM block WHERE most >= :begin AND least <= :end "
            "UNION ALL SELECT wall, wall, 1, changes FROM base WHERE alone AND wall BETWEEN :begin AND :end"
        )
        with self._looking() as look:
            rows = look.execute(query, {"begin": _microseconds(begin), "end": _microseconds(end)}).fetchall()
        return spread(rows, buckets, _microseconds(begin), _microseconds(end))

    # ----------------------------------------------------------------------------------------------- moments

    def at(self, wall: float) -> Past:
        """As it was shown at this wall time: the last moment, by number, of this time or before.

        Where the clock was set back, that is what was shown the last time that it was so late. Raises NothingRecorded.
        """
        past = self._past(lambda look: self._found_at(look, _microseconds(wall)))
        return replace(past, gap=self._gap(past, wall)) if wall > past.run.seen + SOON else past

    def moment(self, sequence: int) -> Past:
        """The moment of this number. Raises NothingRecorded."""
        return self._past(lambda look: self._found(look, min(max(sequence, -LATEST), LATEST)))

    def between(self, one: float, other: float, most: int = MOST) -> Differences:
        """What differs between two wall times, and how many rows beyond `most` do."""
        return self.differences(self.at(one), self.at(other), most)

    def differences(self, before: Past, after: Past, most: int = MOST) -> Differences:
        """What differs between two moments of this recording."""
        try:
            return differences(before.rows, after.rows, most)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Damaged(self._path, "a row cannot be understood") from error

    def _gap(self, past: Past, wall: float) -> Gap | None:
        with self._looking() as look:
            query = f"{_RUN} WHERE number > ? ORDER BY number LIMIT 1"
            following = look.execute(query, (past.run.number,)).fetchone()
        if following is None:
            return Gap(past.run.seen, None, "the controller has ended, or its recording pauses")
        run = Run(*following)
        # Its clock may have been set back.
        return Gap(past.run.seen, run.began, run.reason) if wall < run.began else None

    def _past(self, find: _Find) -> Past:
        with self._looking() as look:
            found = find(look)
            run = look.execute(f"{_RUN} WHERE number = ?", (found.run,)).fetchone()
            way = self._way(look, found)
        if run is None:
            raise Damaged(self._path, "a moment belongs to no run")
        try:
            rows = self._walked(way)
        except Unreadable as error:
            raise Damaged(self._path, str(error)) from error
        now, wall = found.stamp
        return Past(found.sequence, now / 1e6, wall / 1e6, Run(*run), rows)

    def _found_at(self, look: sqlite3.Connection, wall: int) -> _Found:
        query = f"{_BASE} WHERE alone AND wall <= ? ORDER BY sequence DESC LIMIT 1"
        base = look.execute(query, (wall,)).fetchone()
        block = look.execute(f"{_BLOCK} WHERE least <= ? ORDER BY first DESC LIMIT 1", (wall,)).fetchone()
        if block is not None and (base is None or block[0] > base[0]):
            row = _BlockRow(*block)
            read = self._block(self._bodies(look, row.first, MOMENTS), row)
            places = [place for place, stamp in enumerate(read.stamps) if stamp.wall <= wall]
            if not places:
                raise Damaged(self._path, "a block has no moment of its time")
            return _Found(row.first + places[-1], read.stamps[places[-1]], row.run, (row, read))
        if base is None:
            # A recording may begin with a base that ends a block which is gone.
            base = look.execute(f"{_BASE} WHERE wall <= ? ORDER BY sequence LIMIT 1", (wall,)).fetchone()
        if base is None:
            raise NothingRecorded(
                f"nothing is recorded of that time in {self._path}: the oldest moment is named by `blast journal at`"
            )
        return _alone(_BaseRow(*base))

    def _found(self, look: sqlite3.Connection, sequence: int) -> _Found:
        block = look.execute(f"{_BLOCK} WHERE first <= ? ORDER BY first DESC LIMIT 1", (sequence,)).fetchone()
        if block is not None and block[1] >= sequence:
            row = _BlockRow(*block)
            read = self._block(self._bodies(look, row.first, MOMENTS), row)
            return _Found(sequence, read.stamps[sequence - row.first], row.run, (row, read))
        base = look.execute(f"{_BASE} WHERE sequence = ?", (sequence,)).fetchone()
        if base is None:
            raise NothingRecorded(f"there is no moment {sequence} in {self._path}")
        return _alone(_BaseRow(*base))

    # --------------------------------------------------------------------------------------------- the way there

    def _way(self, look: sqlite3.Connection, found: _Found) -> _Way:
        """All that is needed to come to a moment, read at once, so that nobody drops any of it meanwhile."""
        base = look.execute(f"{_BASE} WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1", (found.sequence,)).fetchone()
        if base is None:
            raise Damaged(self._path, "a moment has no base")
        start = _BaseRow(*base).sequence
        if start == found.sequence:
            # It is the last of its block, and a base as well.
            found = found._replace(block=None)
        before = found.block[0].first - 1 if found.block is not None else found.sequence
        kept = max((at for at in self._kept if start <= at <= before), default=None)
        if kept is None:
            rows, images = {}, self._bodies(look, start, ALL)
            if not images:
                raise Damaged(self._path, "a base is empty")
        else:
            rows, images, start = dict(self._kept[kept]), [], kept
            self._kept.move_to_end(kept)
        steps: list[_Step] = []
        query = f"{_BLOCK} WHERE first > ? AND first <= ? ORDER BY first"
        for row in look.execute(query, (start, before)).fetchall():
            block = _BlockRow(*row)
            nets = self._bodies(look, block.first, NET)
            steps.append(_Step(block, nets, [] if nets else self._bodies(look, block.first, MOMENTS)))
        return _Way(start, rows, images, steps, found)

    def _walked(self, way: _Way) -> Rows:
        rows = way.rows
        apply_image((unpacked(image) for image in way.images), rows)
        at = way.start
        for block, nets, moments in way.steps:
            if block.first != at + 1:
                raise Unreadable("a block is missing")
            if nets:
                apply_image((unpacked(net) for net in nets), rows)
            else:
                Block(_only(moments), block.stamp).play(rows, block.last - block.first + 1)
            at = block.last
        if way.found.block is None:
            return rows
        row, read = way.found.block
        if row.first != at + 1:
            raise Unreadable("a block is missing")
        self._keep(at, dict(rows))
        read.play(rows, way.found.sequence - row.first + 1)
        return rows

    def _keep(self, sequence: int, rows: Rows) -> None:
        with self._reading:
            self._kept[sequence] = rows
            self._kept.move_to_end(sequence)
            while len(self._kept) > KEPT_STATES:
                self._kept.popitem(last=False)

    # --------------------------------------------------------------------------------------------------- reading

    @contextmanager
    def _looking(self) -> Iterator[sqlite3.Connection]:
        """The file as of one moment."""
        with self._reading, typed_faults(self._path):
            if self._closed:
                raise CannotKeep(self._path, "it is closed already")
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("COMMIT")

    def _bodies(self, look: sqlite3.Connection, owner: int, kind: int) -> list[bytes]:
        query = "SELECT data FROM body WHERE owner = ? AND kind = ? ORDER BY number"
        return [data for (data,) in look.execute(query, (owner, kind))]

    def _block(self, bodies: list[bytes], row: _BlockRow) -> Block:
        try:
            block = Block(_only(bodies), row.stamp)
        except Unreadable as error:
            raise Damaged(self._path, str(error)) from error
        if len(block.stamps) != row.last - row.first + 1:
            raise Damaged(self._path, "a block has not as many moments as it should")
        return block


class _Step(NamedTuple):
    """Over a whole block: by its net, or by all its moments where it is still without one."""

    block: _BlockRow
    nets: list[bytes]
    moments: list[bytes]


class _Way(NamedTuple):
    """From the rows after moment `start`, or images of them, over whole blocks to the moment."""

    start: int
    rows: Rows
    images: list[bytes]
    steps: list[_Step]
    found: _Found


def _only(bodies: list[bytes]) -> str:
    if len(bodies) != 1:
        raise Unreadable("a block has not one body")
    return unpacked(bodies[0])


def _alone(base: _BaseRow) -> _Found:
    return _Found(base.sequence, Stamp(base.now, base.wall), base.run, None)


def _microseconds(wall: float) -> int:
    """Far off times are as far off as can be."""
    return round(min(max(wall, -1e12), 1e12) * 1e6)
