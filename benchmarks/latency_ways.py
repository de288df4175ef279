"""Three ways of keeping trees take turns on one lab: its controller takes up each by a reload of its configuration."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from typing import Any

from latency_loads import Asked, Turns

from blast_api.ttypes import FabricStatus
from blast_controller.configuration.config import ControllerSection
from mininet_topos.demo.latency import KEEP_WARM_MS, Endpoints, one
from mininet_topos.demo.results import Latencies
from mininet_topos.demo.stage import Stage

WAYS = {
    "taken_down": (0, 0.0),
    "warm_without_reserve": (KEEP_WARM_MS, 0.0),
    "warm_by_default": (KEEP_WARM_MS, ControllerSection().warm_reserve),
}
"""For how long a tree that is done is kept (ms), and the share of idle pieces that stays dark."""


class Taker:
    """Asks each way's requests in turns, and knows what came of them."""

    def __init__(self, stage: Stage, endpoints: Endpoints, asked: Mapping[str, Turns]) -> None:
        self._stage, self._endpoints, self._asked = stage, endpoints, asked
        self._seen = {way: dict[str, Latencies]() for way in WAYS}
        self._counts = {way: dict.fromkeys(("asked", "found", "taken_over", "gave_way"), 0) for way in WAYS}

    def turn(self, place: int) -> None:
        """The next turn of every way; who comes first changes. Raises DemoError."""
        ways = list(WAYS)
        for way in ways[place % len(ways) :] + ways[: place % len(ways)]:
            self._take_up(way)
            before = self._counted()
            for request in self._asked[way][place]:
                self._ask(way, request)
            self._stage.wait_dark()
            for name, after in self._counted().items():
                self._counts[way][name] += after - before[name]

    def told(self, way: str) -> dict[str, Any]:
        """Latencies by kind of request, and counts, of all turns so far."""
        counts = self._counts[way]
        return {
            "total_ms": {kind: seen.to_json()["total"] for kind, seen in self._seen[way].items()},
            "optical_ms": {kind: seen.to_json()["optical"] for kind, seen in self._seen[way].items()},
            "found_lit": counts["found"] / counts["asked"],
            "taken_over": counts["taken_over"],
            "gave_way": counts["gave_way"],
        }

    def _ask(self, way: str, request: Asked) -> None:
        sample = one(self._stage, self._endpoints, *request.group)
        if request.counts:
            self._seen[way].setdefault(request.kind, Latencies()).add(sample)
            self._counts[way]["asked"] += 1
            # A tree that is found lit needs nothing of any device.
            self._counts[way]["found"] += not sample["optical"]

    def _counted(self) -> dict[str, int]:
        warm = self._stage.client.fabric().warm
        return {"taken_over": warm.takenOver, "gave_way": warm.gaveWay} if warm else {"taken_over": 0, "gave_way": 0}

    def _take_up(self, way: str) -> None:
        lab, (keep_warm_ms, reserve) = self._stage.lab, WAYS[way]
        # What another way keeps lit goes first.
        for kept in (0, keep_warm_ms):
            text = re.sub(r"(?m)^warm_reserve = .*\n", "", lab.config.read_text())
            lines = f"keep_warm_ms = {kept}\nwarm_reserve = {1.0 if not kept else reserve}\n"
            lab.config.write_text(re.sub(r"(?m)^keep_warm_ms = .*\n", lines, text))
            assert lab.controller_pid is not None, "the lab was started with a controller"
            os.kill(lab.controller_pid, signal.SIGHUP)
            self._stage.wait_for(lambda fabric, kept=kept: _is_taken_up(fabric, kept, reserve), "a reload")  # type: ignore[misc]


def _is_taken_up(fabric: FabricStatus, keep_warm_ms: int, reserve: float) -> bool:
    """Whether a fabric without transfers is as it is then: of idle splitters the reserve is told."""
    if not keep_warm_ms:
        return fabric.warm is None
    return fabric.warm is not None and any(pieces.reserve for pieces in fabric.warm.pieces) == (reserve > 0)
