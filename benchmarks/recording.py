"""Claims about the flight recorder, on requests that come at 10 a second and live as those of a coflow trace do:

bytes   of the file for a request, with bases, nets and all that SQLite adds: <= 400
cpu     milliseconds for a request: of the core alone, of handing moments over (deciding thread), and of recording
week    a file of a week opens in < 2 s, and seeks to a random moment in < 300 ms: 64 racks, so many hours of requests
        (--hours) recorded once through the real core when it knows as many ended requests as it ever does, and then
        repeated with shifted times until it is a week

.venv/bin/python -m benchmarks.recording [--racks 64 1000] [--hours 1] [--folder /tmp]
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.machine import describe
from blast_controller.core.controller import Core
from blast_controller.core.model.events import FinishAsked, RequestSubmitted
from blast_controller.core.model.requests import EventKind, MulticastRequest, TransferReport
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.snapshot.changes import EVERYTHING
from blast_controller.moments.encoder import Encoder
from blast_controller.moments.mailbox import Mailbox
from blast_controller.moments.moment import Moment
from blast_controller.recording.blocks import stamp_of
from blast_controller.recording.reader import Reader
from blast_controller.recording.retention import Keep
from blast_controller.recording.writer import RunFacts, Writer
from blast_sim.base.virtual_clock import Call, VirtualClock
from blast_sim.controller.core_driver import CoreDriver, Delays, Refused, Told
from blast_sim.traces.deriving import Volume, derived
from blast_sim.traces.synthetic import synthetic
from tests.support.core import make_fabric

PER_SECOND = 10.0
WARM_UP = 2200.0
"""Seconds after which the core remembers 20,000 ended requests, the most that it does by default."""
BEGIN = 1_790_000_000.0
FLUSH = 0.5
WEEK = 7 * 86_400
SEEKS = 100
HOSTS = 20
MEGABYTES = 100.0
"""Of a transfer. With ten times as many, 64 racks could not serve all who ask."""


class Unsteady(VirtualClock):
    """No two steps of devices take equally long."""

    def __init__(self) -> None:
        super().__init__()
        self._dice = random.Random("devices")

    def at(self, when: float, call: Call, late: bool = False) -> None:
        """A little later than that."""
        super().at(when + self._dice.expovariate(2000) if when > self.now and not late else when, call, late)


class Load:
    """Requests of a synthetic coflow trace on so many racks; `shown` is called after every decision."""

    def __init__(self, racks: int, seconds: float, shown: Callable[[Core, float], None]) -> None:
        self.clock = Unsteady()
        fabric = make_fabric(racks, [8] * (racks // 8) + [4] * (racks // 4), hosts=HOSTS)
        self.core = Core(fabric, CoreSettings(keep_warm=60.0, warm_reserve=0.5))
        self._dice = random.Random("transfers")
        conclude = self.core.conclude

        def concluded(now: float) -> list:
            commands = conclude(now)
            shown(self.core, self.clock.now)
            return commands

        self.core.conclude = concluded  # type: ignore[method-assign]
        self._driver = CoreDriver(self.core, self.clock, Delays(0.02, 0.003), lambda taken: taken, self._hear)
        trace = synthetic(1, racks, int(seconds * PER_SECOND), 1000 / PER_SECOND)
        for one in derived(trace, "job-broadcast", Volume(MEGABYTES), 1).multicasts:
            host = f"h{self._dice.randint(1, HOSTS)}"
            receivers = tuple(f"r{rack + 1}{host}" for rack in one.receivers)
            wanted = MulticastRequest(one.name, "default", f"r{one.sender + 1}{host}", receivers, one.bytes)
            self.clock.at(one.arrival, lambda wanted=wanted: self._driver.tell(RequestSubmitted(wanted)))

    def _hear(self, told: Told | Refused) -> None:
        if not isinstance(told, Told) or told.event.kind is not EventKind.GRANTED or told.event.grant is None:
            return
        size = self.core.request(told.request).current.bytes
        took = 8 * size / told.event.grant.rate * self._dice.uniform(1.0, 1.1)
        report = TransferReport(size, took, self._dice.randrange(size // 1000 + 1))
        done = FinishAsked(told.request, told.event.part, report)
        self.clock.at(self.clock.now + took, lambda: self._driver.tell(done))


@dataclass
class Recording:
    """What the recorder's two threads do, one after the other, and the processor's seconds that each takes."""

    path: Path
    begin_at: float
    put: float = 0.0
    record: float = 0.0
    moments: int = 0
    _encoder: Encoder = field(default_factory=Encoder)
    _mailbox: Mailbox = field(default_factory=lambda: Mailbox(4096, lambda: None))
    writer: Writer | None = None
    _flushed: float = 0.0

    def shown(self, core: Core, now: float) -> None:
        """As the runtime publishes."""
        changes = core.take_changes()
        if now < self.begin_at:
            return
        began = time.thread_time()
        self._mailbox.put(Moment(core.snapshot, now, BEGIN + now, changes if self.moments else EVERYTHING))
        put = time.thread_time()
        self.put += put - began
        self._write(now)
        self.record += time.thread_time() - put

    def _write(self, now: float) -> None:
        for moment in self._mailbox.take():
            difference, stamp = self._encoder.encode(moment), stamp_of(moment.now, moment.wall)
            self.moments += 1
            if self.writer is None:
                self.writer = Writer(self.path, Keep(1 << 40, 1000))
                self.writer.begin(stamp, self._encoder.rows, RunFacts(1, "benchmark", "here", "begins"))
            elif difference:
                self.writer.append(stamp, difference)
        if self.writer is not None and now - self._flushed >= FLUSH:
            self.writer.flush(round((BEGIN + now) * 1e6))
            self._flushed = now


def recorded(path: Path, racks: int, seconds: float) -> dict[str, float]:
    """Record so many seconds after the warm-up."""
    recording = Recording(path, WARM_UP)
    load = Load(racks, WARM_UP + seconds, recording.shown)
    while load.clock.next < WARM_UP:
        load.clock.advance(load.clock.next)
    began, known = time.thread_time(), _arrived(load.core)
    while load.clock.next < WARM_UP + seconds:
        load.clock.advance(load.clock.next)
    taken = time.thread_time() - began
    requests = _arrived(load.core) - known
    assert recording.writer is not None
    recording.writer.flush(round((BEGIN + load.clock.now) * 1e6))
    recording.writer.close()
    core = taken - recording.put - recording.record
    return {
        "racks": racks,
        "requests": requests,
        "remembered": len(load.core.requests),
        "moments": recording.moments,
        "bytes_per_request": round(path.stat().st_size / requests, 1),
        "core_ms": round(1000 * core / requests, 3),
        "put_ms": round(1000 * recording.put / requests, 4),
        "recording_ms": round(1000 * recording.record / requests, 3),
        "deciding_thread_ratio": round((core + recording.put) / core, 4),
        "in_all_ratio": round(taken / core, 3),
    }


def _arrived(core: Core) -> int:
    return max((request.arrival for request in core.requests.values()), default=0)


def repeat(source: Path, week: Path) -> None:
    """The same again with later times and numbers, each time as a run of its own, until it is a week."""
    Writer(week, Keep(1 << 40, 1000)).close()
    connection = sqlite3.connect(week, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("ATTACH ? AS one", (str(source),))
    (moments,) = connection.execute("SELECT max(last) FROM one.block").fetchone()
    (length,) = connection.execute("SELECT max(most) - min(least) + 1000000 FROM one.block").fetchone()
    for turn in range(round(WEEK * 1e6 / length)):
        shift = {"m": turn * moments, "w": turn * length, "r": turn}
        connection.execute("BEGIN")
        for statement in (
            "INSERT INTO run SELECT number + :r, first + :m, began + :w, seen + :w, epoch, release, instance, reason "
            "FROM one.run",
            "INSERT INTO base SELECT sequence + :m, run + :r, now + :w, wall + :w, changes, alone FROM one.base",
            "INSERT INTO block SELECT first + :m, last + :m, run + :r, now + :w, wall + :w, least + :w, most + :w, "
            "changes FROM one.block",
            "INSERT INTO body (owner, kind, data) SELECT owner + :m, kind, data FROM one.body",
        ):
            connection.execute(statement, shift)
        connection.execute("COMMIT")
    connection.close()


def looked_at(week: Path) -> dict[str, float]:
    """Milliseconds to open, to draw a time bar, and to seek."""
    began = time.perf_counter()
    reader = Reader(week)
    span = reader.span()
    opened = time.perf_counter()
    reader.activity(1000, span.oldest.wall, span.newest.wall)
    bar = time.perf_counter()
    dice, rows = random.Random("seeks"), 0
    seeks, processor = [], []
    for _ in range(SEEKS):
        at = dice.uniform(span.oldest.wall, span.newest.wall)
        start, busy = time.perf_counter(), time.thread_time()
        rows = len(reader.at(at).rows)
        seeks.append(1000 * (time.perf_counter() - start))
        processor.append(1000 * (time.thread_time() - busy))
    seeks.sort()
    processor.sort()
    return {
        "file_bytes": week.stat().st_size,
        "days": round((span.newest.wall - span.oldest.wall) / 86_400, 2),
        "moments": span.newest.sequence,
        "rows_of_a_moment": rows,
        "open_ms": round(1000 * (opened - began), 1),
        "time_bar_ms": round(1000 * (bar - opened), 1),
        "seek_p50_ms": round(seeks[SEEKS // 2], 1),
        "seek_p99_ms": round(seeks[SEEKS * 99 // 100 - 1], 1),
        "seek_most_ms": round(seeks[-1], 1),
        "seek_processor_p50_ms": round(processor[SEEKS // 2], 1),
        "seek_processor_p99_ms": round(processor[SEEKS * 99 // 100 - 1], 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--racks", type=int, nargs="+", default=[64, 1000])
    parser.add_argument("--hours", type=float, default=1.0, help="recorded through the core")
    parser.add_argument("--no-week", action="store_true", help="leave the week out")
    parser.add_argument("--folder", type=Path, help="for the files, which are removed (a week: some 2 GB)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: dict[str, object] = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for racks in args.racks:
            path = Path(folder) / f"{racks}.sqlite"
            rows[f"{racks} racks"] = recorded(path, racks, 3600 * args.hours)
        if not args.no_week:
            week = Path(folder) / "week.sqlite"
            repeat(Path(folder) / f"{args.racks[0]}.sqlite", week)
            rows["week"] = looked_at(week)
    if args.json:
        print(json.dumps({"machine": describe(), "rows": rows}, indent=2))
        return
    print(describe())
    for name, value in rows.items():
        print(f"{name}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
