"""The floor of the grant latency on this machine: each operation that a request waits for, measured alone.

Measured once after every request, in the same run, so that both see the same machine load.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from types import TracebackType

from mininet_topos.demo.barrier import BarrierProbe
from mininet_topos.demo.commits import Commit, SeparateJournal, renamed
from mininet_topos.demo.stage import Stage
from mininet_topos.demo.tl1_probe import Tl1Probe
from mininet_topos.topology.optical_switch import CONNECT_SECONDS

MIRRORS_MS = CONNECT_SECONDS * 1000
"""Time in which the emulated switch turns its mirrors; deliberately as slow as the paper's switch."""


class Floor:
    """A connection to each component that a request waits for."""

    def __init__(self, stage: Stage, commits: Sequence[Commit]) -> None:
        self._stage, self._commits, self._number = stage, commits, 0

    def __enter__(self) -> Floor:
        lab = self._stage.lab
        with ExitStack() as opened:
            self._journal = opened.enter_context(closing(SeparateJournal(lab.journal)))
            bridge = lab.names.bridge(lab.plan.rack_plans[0].datapath)
            self._switch = opened.enter_context(closing(BarrierProbe(bridge)))
            self._optical = opened.enter_context(closing(Tl1Probe(lab.switch_address)))
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def sample(self) -> dict[str, float]:
        """Return the milliseconds of each operation, and their combination in the order of a request (`total`).

        Raises `DemoError` and the client's errors.
        """
        self._number += 1
        *before, after = (renamed(commit, self._number) for commit in self._commits)
        parts = {
            "ping": self._ping(),
            "commit_before": sum(map(self._journal.seconds, before)),
            "barrier": self._switch.seconds(),
            "tl1": self._optical.seconds(),
        }
        if before:
            # A disk that has just written takes longer for the next commit; in a request the mirrors turn in between.
            time.sleep(CONNECT_SECONDS)
        parts["commit_after"] = self._journal.seconds(after)
        milliseconds = {name: seconds * 1000 for name, seconds in parts.items()}
        return {**milliseconds, "total": together(milliseconds, touches_devices=bool(before))}

    def _ping(self) -> float:
        started = time.perf_counter()
        self._stage.client.ping()
        return time.perf_counter() - started


def together(parts: Mapping[str, float], *, touches_devices: bool) -> float:
    """Return the sum of the parts in ms; the devices are set in parallel.

    A request that finds its tree warm waits for no device, and has no record to write before.
    """
    devices = max(parts["barrier"], parts["tl1"] + MIRRORS_MS) if touches_devices else 0.0
    return parts["ping"] + parts["commit_before"] + devices + parts["commit_after"]
