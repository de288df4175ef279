"""The vital signs as pages are told them, by whom they may be seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.ops.live.broadcast import Audience, Broadcast
from blast_controller.ops.vitals import Condition, Point, Vitals

EVERY = 1.0
"""Seconds."""


class Signs:
    """Takes a point a second, and tells all pages."""

    def __init__(self, vitals: Vitals, condition: Condition, snapshot: Callable[[], Snapshot]) -> None:
        self._vitals = vitals
        self._condition = condition
        self._snapshot = snapshot

    def whole(self, audience: Audience) -> dict[str, object]:
        """With all that is known of the last minutes."""
        history = [_plain(point) for point in self._vitals.history] if audience is None else []
        return {**self._told(audience), "history": history}

    async def tell(self, broadcast: Broadcast) -> None:
        """For as long as the server runs."""
        while True:
            point = self._vitals.sample(self._snapshot(), time.time())
            broadcast.vitals(partial(self._with_point, point))
            await asyncio.sleep(EVERY)

    def _with_point(self, point: Point, audience: Audience) -> dict[str, object]:
        told = self._told(audience)
        # What all tenants have together is none of one tenant's business.
        return told if audience is not None else {**told, "point": _plain(point)}

    def _told(self, audience: Audience) -> dict[str, object]:
        clock = {"now": round(time.monotonic(), 3), "wall": round(time.time(), 3)}
        told = {"clock": clock, **self._condition.told()}
        if audience is not None:
            return {**told, "drift": {"rules": 0, "elements": 0}, "counts": {}}
        drift = self._condition.drift
        found = {"rules": drift.rules, "elements": drift.elements}
        return {**told, "drift": found, "counts": dict(self._condition.counts())}


def _plain(point: Point) -> dict[str, float | None]:
    return {
        "wall": point.wall,
        "waiting": point.waiting,
        "trees": point.trees,
        "granted": point.granted,
        "grantMs": point.grant_ms,
    }
