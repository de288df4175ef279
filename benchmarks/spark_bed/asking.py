"""A Spark job that runs on and broadcasts when it is asked to, as `asked_job.py` does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mininet_topos.errors import ProcessFault
from mininet_topos.spark.room import SparkRoom
from spark_bed.ways import ways_of_plugin

_JOB = Path(__file__).parent / "asked_job.py"
_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 600.0
"""A job that does not answer for so long hangs."""


@dataclass(frozen=True)
class Answer:
    """What the broadcasts of one order took together, and whether every task read what was sent."""

    seconds: float
    equal: bool


class AskedJob:
    """One, up while the `with` block runs. Raises `ProcessFault` where it ends by itself or hangs."""

    def __init__(self, room: SparkRoom, name: str, conf: Mapping[str, str]) -> None:
        self._room, self._heard = room, 0
        self.ways: list[str] = []
        self.application = ""
        self._pipe = room.cluster.folder / f"{name}.orders"
        os.mkfifo(self._pipe, 0o600)
        # To open it for writing alone would wait for the reader.
        self._orders = os.open(self._pipe, os.O_RDWR | os.O_CLOEXEC)
        self._process = room.cluster.start(_JOB, [str(self._pipe)], conf)

    def __enter__(self) -> AskedJob:
        try:
            self.application = self._next()["application"]
        except BaseException:
            self._process.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._orders)
        if error is None:
            self._process.wait(_PATIENCE_SECONDS)
            self.ways = ways_of_plugin(self._room.cluster.event_file(self._process))
        self._process.stop()
        self._pipe.unlink()

    def ask(self, times: int, size: int, meanwhile: Callable[[AskedJob], None] = lambda _: None) -> Answer:
        """Have it broadcast so many `times` so many bytes; `meanwhile` is called once it has been asked."""
        os.write(self._orders, f"{json.dumps({'times': times, 'bytes': size})}\n".encode())
        meanwhile(self)
        return Answer(**self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(said := self._said()) <= self._heard:
            if self._process.status is not None or time.monotonic() > deadline:
                raise ProcessFault(f"{_JOB.name} gives no answer: {self._process.words.last()}")
            time.sleep(_POLL_SECONDS)
        self._heard += 1
        answer: dict[str, Any] = json.loads(said[self._heard - 1])
        return answer

    def _said(self) -> list[str]:
        text = self._process.words.output.read_text()
        return [line for line in text[: text.rfind("\n") + 1].splitlines() if line.startswith("{")]
