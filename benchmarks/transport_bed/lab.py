"""One more cell: the lab, where light comes of a request to the controller and passes ToRs and optical switch.

What sends and receives runs in the lab's hosts; a grant is part of the time of its transfer. Every packet passes Open
vSwitch in user space, so links have the lab's rate, and the file is smaller.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from blast_client import Client
from mininet_topos.demo.iterations import MOST_RECEIVERS
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results, Transfer
from mininet_topos.demo.stage import Stage
from mininet_topos.demo.transfers import Job
from mininet_topos.lab import Lab
from mininet_topos.plan import preset
from transport_bed import contents
from transport_bed.comparison import Effort, Row, row_of
from transport_bed.run import Outcome

SHARE = 20
"""The file has this part of the size of the others."""
_WAYS: dict[str, tuple[str, Callable[[Job, str], object]]] = {
    "optical": ("Blast, optical, with its grant", Job.by_light),
    "pipeline": ("Blast, pipeline", Job.by_pipeline),
    "unicast": ("Blast, one copy for each", Job.by_unicast),
}


@dataclass(frozen=True)
class LabCell:
    """The lab's preset `small`: from one host to those of seven other racks."""

    name: str = f"lab, {MOST_RECEIVERS} receivers"
    receivers: int = MOST_RECEIVERS

    def tools(self, wanted: Sequence[str]) -> list[str]:
        """Whatever else is wanted, these run here."""
        return list(_WAYS)

    def size(self, effort: Effort) -> int:
        """Bytes of the file."""
        return max(1_000_000, effort.size // SHARE)

    def measure(self, wanted: Sequence[str], effort: Effort, report: Callable[[str], None]) -> list[Row]:
        """One row for each way. Raises CannotRun, HostError, LabError."""
        outcomes: dict[str, list[Outcome]] = {name: [] for name in self.tools(wanted)}
        with _job(self.size(effort)) as job:
            for number in effort.rounds:
                for name, results in outcomes.items():
                    report(f"{self.name}: {name}, round {number}")
                    results.append(_transfer(job, name, f"{name}-{number}"))
        return [
            {**row_of(self.name, self.receivers, self.size(effort), results), "shape": "lab", "rate_mbps": None}
            | {"tool": name, "title": _WAYS[name][0]}
            for name, results in outcomes.items()
        ]


@contextmanager
def _job(size: int) -> Iterator[Job]:
    contents.require_room(size, MOST_RECEIVERS + 1)
    plan = preset("small")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(plan))
        client = stack.enter_context(Client(lab.thrift))
        stage = Stage(lab, client, Results(plan.summary), out=io.StringIO())
        stage.wait_devices()
        path = Path(stack.enter_context(contents.workshop())) / "source"
        contents.write_random(path, size)
        sender, *others = stage.first_hosts()[: MOST_RECEIVERS + 1]
        receivers = stack.enter_context(Receivers(stage, stage.first_hosts()))
        yield stack.enter_context(Job(stage, receivers, sender, others, path))


def _transfer(job: Job, way: str, name: str) -> Outcome:
    started = time.monotonic()
    _WAYS[way][1](job, name)
    seconds = time.monotonic() - started
    transfer: Transfer = job.stage.results.transfers[-1]
    failure = "" if transfer.hashes_equal else "another file than was sent at some receiver"
    return Outcome(seconds, failure, {"core_share": transfer.core_share, "uplink_copies": transfer.uplink_copies})
