"""A running Spark job that broadcasts on command (`broadcast_job.py`), and the transports that the plugin used."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mininet_topos.kernel.errors import ProcessError
from mininet_topos.spark.room import SparkRoom

JOB = Path(__file__).parent / "broadcast_job.py"
_LIMIT_SECONDS = 600.0
_EVENTS = ("ExecutorJoined", "BroadcastSent", "BroadcastTaken")

Job = Literal["one", "threads", "star"]
"""One broadcast, several from as many threads, or a star join, as in `broadcast_job.py`."""
BROADCASTS_OF: Mapping[Job, int] = {"one": 1, "threads": 4, "star": 3}
"""Number of concurrent broadcasts of each job."""


def events_of_plugin(event_file: Path, kind: str) -> list[dict[str, Any]]:
    """Return the plugin's events of a kind, for example "BroadcastSent", in order."""
    lines = event_file.read_text().splitlines()
    return [json.loads(line) for line in lines if f'"org.blast.spark.{kind}"' in line[:60]]


def transports_of_plugin(event_file: Path) -> list[str]:
    """Return the transports of each broadcast: "optical", "pipeline+optical", or "spark" for one without Blast."""
    return [str(sent["way"]) for sent in events_of_plugin(event_file, "BroadcastSent")]


def order(size: int, explicit: Mapping[str, Any] | None = None, job: Job = "one") -> str:
    """Return the line that makes the job broadcast; `explicit` has the settings of `blast_broadcast`."""
    return json.dumps({"job": job, "bytes": size, "explicit": explicit})


@dataclass(frozen=True)
class Answer:
    """The seconds of all broadcasts together, and whether every task read the correct bytes."""

    seconds: float
    equal: bool


class AskedJob:
    """A job that runs during a `with` block. Raises ProcessError if it exits by itself or hangs."""

    def __init__(self, room: SparkRoom, name: str, conf: Mapping[str, str]) -> None:
        self._room, self._answers_read = room, 0
        self.events: dict[str, list[dict[str, Any]]] = {}
        self._pipe = room.cluster.folder / f"{name}.orders"
        os.mkfifo(self._pipe, 0o600)
        # Opening it only for writing would block until the reader opens it.
        self._orders = os.open(self._pipe, os.O_RDWR | os.O_CLOEXEC)
        self._process = room.cluster.start(JOB, [str(self._pipe)], conf)

    def __enter__(self) -> AskedJob:
        try:
            self._next()
        except BaseException:
            self._process.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._orders)
        if kind is None:
            self._process.wait(_LIMIT_SECONDS)
            file = self._room.cluster.event_file(self._process)
            self.events = {kind: events_of_plugin(file, kind) for kind in _EVENTS}
        self._process.stop()
        self._pipe.unlink()

    @property
    def transports(self) -> list[str]:
        """The transports of each broadcast, after the `with` block."""
        return [str(sent["way"]) for sent in self.events["BroadcastSent"]]

    def ask(self, times: int, size: int) -> Answer:
        """Make the job broadcast a block of data `times` times."""
        os.write(self._orders, f"{order(size)}\n".encode() * times)
        done = [self._next() for _ in range(times)]
        return Answer(sum(one["seconds"] for one in done), all(one["equal"] for one in done))

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _LIMIT_SECONDS
        while len(answers := self._answers()) <= self._answers_read:
            if self._process.status is not None or time.monotonic() > deadline:
                raise ProcessError(f"{JOB.name} does not answer: {self._process.words.last()}")
            time.sleep(0.02)
        self._answers_read += 1
        answer: dict[str, Any] = json.loads(answers[self._answers_read - 1])
        return answer

    def _answers(self) -> list[str]:
        text = self._process.words.output.read_text()
        return [line for line in text[: text.rfind("\n") + 1].splitlines() if line.startswith("{")]
