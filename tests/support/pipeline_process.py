"""A receiving node of a pipeline as a process of its own, to be killed and stopped.

`python -m tests.support.pipeline_process DIRECTORY`: prints its port, reads the leg as one line of JSON, fills the file
`file` in the directory, and prints a line for each event.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from blast_transport.carriers.pipeline.node import PipelineNode
from blast_transport.carriers.pipeline.protocol.leg import (
    Drained,
    Ended,
    Lost,
    Member,
    PipelineLeg,
    PipelineTimings,
    Reported,
)
from tests.support.pipeline_chain import Door, file_store

ROOT = Path(__file__).resolve().parents[2]


class NodeProcess:
    """One such process."""

    def __init__(self, directory: Path) -> None:
        arguments = [sys.executable, "-m", "tests.support.pipeline_process", str(directory)]
        self._process = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = 0

    def read_port(self) -> int:
        self.port = int(self._line())
        return self.port

    def begin(self, leg: PipelineLeg, size: int | None) -> None:
        """Whoever joins is let in when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(_leg_to_json(leg) | {"size": size}).encode() + b"\n")
        self._process.stdin.flush()
        assert self._line() == b"ready\n"

    def wait(self) -> dict[str, Any]:
        """The events by name, the time of the end among them, or nothing of one that was killed."""
        assert self._process.stdout is not None
        lines = [json.loads(line) for line in self._process.stdout]
        return {line["event"]: line for line in lines}

    def kill(self) -> None:
        self._process.kill()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _leg_to_json(leg: PipelineLeg) -> dict[str, Any]:
    return asdict(leg) | {"token": leg.token.hex()}


def _leg_from_json(values: dict[str, Any]) -> PipelineLeg:
    chain = tuple(Member(*member) for member in values["chain"])
    timings = PipelineTimings(**values["timings"])
    return PipelineLeg(**(values | {"token": bytes.fromhex(values["token"]), "chain": chain, "timings": timings}))


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def _report(event: object) -> None:
    match event:
        case Drained(position):
            _say(event="drained", position=position, at=time.monotonic())
        case Reported(failed):
            _say(event="reported", failed=failed)
        case Lost(name, reason):
            _say(event="lost", name=name, reason=reason)
        case Ended(outcome, reason):
            _say(event="ended", outcome=outcome.name, reason=reason)


def main() -> None:
    directory = Path(sys.argv[1])
    door = Door()
    print(door.port, flush=True)
    values = json.loads(sys.stdin.readline())
    store = file_store(directory, "file", values.pop("size"))
    node = PipelineNode(_leg_from_json(values), store, _report)
    door.admit = node.accept
    print("ready", flush=True)
    before = time.process_time()
    node.start()
    node.join()
    _say(event="used", cpu=time.process_time() - before)
    door.close()
    if store.layout.size is not None and store.position == store.layout.blocks:
        # The test compares with the source; the name is all that is missing here.
        store.target.commit(store.layout.size, fsync=False)
    store.discard()


if __name__ == "__main__":
    main()
