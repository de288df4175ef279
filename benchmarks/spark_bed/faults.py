"""What may be wrong while a job with the plugin runs, each as something that one can do to the lab."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from blast_api.ttypes import PartState
from blast_client import BlastError, Client
from mininet_topos.spark.room import SparkRoom
from spark_bed.asking import AskedJob

_NOBODY = "127.0.0.1:1"


@dataclass(frozen=True)
class Fault:
    """Something wrong.

    `conf` is added to what the plugin is told. `lasting` is there for the whole case; `sudden` comes in the middle of
    each broadcast, of a job with and of one without the plugin, and is `mended` after it.
    """

    title: str
    conf: Mapping[str, str] = field(default_factory=dict)
    lasting: Callable[[SparkRoom], AbstractContextManager[None]] = lambda _: nullcontext()
    sudden: Callable[[SparkRoom, AskedJob], None] = lambda _, __: None
    mended: Callable[[SparkRoom], None] = lambda _: None
    small: bool = False


@contextmanager
def _frozen_agents(room: SparkRoom) -> Iterator[None]:
    for pid in room.agents.pids.values():
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in room.agents.pids.values():
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _draining(room: SparkRoom) -> Iterator[None]:
    with Client(room.lab.thrift) as operator:
        operator.drain(True)
        try:
            yield
        finally:
            operator.drain(False)


def _kill_controller(room: SparkRoom, _: AskedJob) -> None:
    room.lab.kill_controller()


def _start_controller(room: SparkRoom) -> None:
    room.lab.start_controller()
    room.wait_devices()


def _withdraw(room: SparkRoom, _: AskedJob) -> None:
    with Client(room.lab.thrift) as operator:
        for request in operator.list_requests([PartState.ACTIVE]):
            # It may have ended meanwhile.
            with suppress(BlastError):
                operator.withdraw(request.key)


def _kill_executor(room: SparkRoom, job: AskedJob) -> None:
    """Its worker starts another, which comes while the broadcast is on its way."""
    address = room.cluster.address(random.choice(room.cluster.executors))
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if job.application in words and address in words and "java" in words[0]:
                os.kill(int(process.name), signal.SIGKILL)


FAULTS = {
    "none": Fault("nothing is wrong"),
    "small": Fault("nothing is wrong, 0.1 MB", small=True),
    "no-agents": Fault("hosts without an agent", {"spark.executorEnv.BLAST_FOLDER": "/nonexistent"}),
    "frozen-agents": Fault("agents that do not answer", lasting=_frozen_agents),
    "no-controller": Fault("no controller", {"spark.blast.controller": _NOBODY}),
    "refused": Fault("a controller that refuses", lasting=_draining),
    "stranger": Fault("a host that the fabric does not know", {"spark.blast.host": "nowhere"}),
    "killed": Fault("the controller killed in the middle", sudden=_kill_controller, mended=_start_controller),
    "withdrawn": Fault("light withdrawn in the middle", sudden=_withdraw),
    "lost": Fault("an executor lost, another added in the middle", sudden=_kill_executor),
}
