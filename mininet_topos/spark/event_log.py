"""Spark's event log: jobs with their times, and the pieces of every broadcast that the driver stored.

Block updates have no time, but come in order: the driver's pieces stand in the log before the job that needs them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blast_base.json_types import JsonObject
from mininet_topos.kernel.errors import ProcessError

_DRIVER = "driver"
_PIECE = re.compile(r"broadcast_(\d+)_piece(\d+)")
_EVENTS = ("ApplicationStart", "ApplicationEnd", "JobStart", "JobEnd", "BlockUpdated")
_BEGINNINGS = tuple(f'{{"Event":"SparkListener{event}"' for event in _EVENTS)


@dataclass
class BroadcastValue:
    """A broadcast value as the driver holds it: number of a piece → bytes, after compression if that is on.

    `after_jobs`: how many jobs had ended when its first piece was stored.
    """

    id: int
    after_jobs: int
    pieces: dict[int, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """All pieces."""
        return sum(self.pieces.values())


@dataclass(frozen=True)
class SparkJob:
    """A job that has ended: Spark's name for it (the line that started it), and its times in seconds (Unix time)."""

    id: int
    name: str
    started: float
    ended: float


@dataclass(frozen=True)
class SparkEventLog:
    """An application: its id, start and end in seconds (Unix time), jobs in the order in which they ended."""

    application: str
    started: float
    ended: float
    jobs: tuple[SparkJob, ...]
    broadcasts: tuple[BroadcastValue, ...]

    @property
    def seconds(self) -> float:
        """The duration of the job."""
        return self.ended - self.started


@dataclass(frozen=True)
class Iteration:
    """One turn of a job's loop: seconds from the end of the one before (or of the last job before the loop).

    `broadcast_bytes`: of all that the driver broadcast meanwhile, `largest_bytes` of the largest value among it.
    """

    number: int
    seconds: float
    broadcast_bytes: int
    largest_bytes: int


def iterations(log: SparkEventLog, name: re.Pattern[str], jobs: int = 1) -> tuple[Iteration, ...]:
    """Return the iterations of a loop that ends after every `jobs`-th job with such a name."""
    ends = [place for place, job in enumerate(log.jobs) if name.search(job.name)][jobs - 1 :: jobs]
    first = next((place for place, job in enumerate(log.jobs) if name.search(job.name)), 0)
    found, begun = [], first
    for number, end in enumerate(ends, start=1):
        before = log.jobs[begun - 1].ended if begun else log.started
        within = [one.bytes for one in log.broadcasts if begun <= one.after_jobs <= end]
        found.append(Iteration(number, log.jobs[end].ended - before, sum(within), max(within, default=0)))
        begun = end + 1
    return tuple(found)


def read_event_log(file: Path) -> SparkEventLog:
    """Read the log of an application that has ended. Raises `ProcessError` if it is incomplete."""
    with file.open(encoding="utf-8") as lines:
        events = (json.loads(line) for line in lines if line.startswith(_BEGINNINGS))
        try:
            return _Reading(events).whole()
        except (ValueError, KeyError) as error:
            raise ProcessError(f"{file} is no event log of an application that has ended: {error!r}") from error


class _Reading:
    def __init__(self, events: Iterable[JsonObject]) -> None:
        self._start: JsonObject = {}
        self._end: JsonObject = {}
        self._begun: dict[int, JsonObject] = {}
        self._jobs: list[SparkJob] = []
        self._broadcasts: dict[int, BroadcastValue] = {}
        for event in events:
            self._take(event)

    def whole(self) -> SparkEventLog:
        return SparkEventLog(
            self._start["App ID"],
            self._start["Timestamp"] / 1000,
            self._end["Timestamp"] / 1000,
            tuple(self._jobs),
            tuple(self._broadcasts.values()),
        )

    def _take(self, event: JsonObject) -> None:
        match event["Event"]:
            case "SparkListenerApplicationStart":
                self._start = event
            case "SparkListenerApplicationEnd":
                self._end = event
            case "SparkListenerJobStart":
                self._begun[event["Job ID"]] = event
            case "SparkListenerJobEnd":
                begun = self._begun.pop(event["Job ID"])
                times = begun["Submission Time"] / 1000, event["Completion Time"] / 1000
                self._jobs.append(SparkJob(event["Job ID"], _name(begun["Stage Infos"]), *times))
            case "SparkListenerBlockUpdated":
                self._store(event["Block Updated Info"])

    def _store(self, info: JsonObject) -> None:
        piece = _PIECE.fullmatch(info["Block ID"])
        size = info["Memory Size"] + info["Disk Size"]
        if piece and size and info["Block Manager ID"]["Executor ID"] == _DRIVER:
            number = int(piece[1])
            broadcast = self._broadcasts.setdefault(number, BroadcastValue(number, len(self._jobs)))
            broadcast.pieces[int(piece[2])] = size


def _name(stages: Sequence[JsonObject]) -> str:
    """Return the name of the stage with the job's results: the last one that was created."""
    return str(max(stages, key=lambda stage: stage["Stage ID"])["Stage Name"]) if stages else ""
