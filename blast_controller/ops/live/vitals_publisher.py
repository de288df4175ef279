"""The vital signs for pages, filtered by audience."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.ops.live.broadcast import Audience, LiveBroadcast
from blast_controller.ops.vitals import ConditionQueries, VitalPoint, Vitals

EVERY = 1.0
"""Seconds."""


class VitalsPublisher:
    """Takes a point each second and sends it to all pages."""

    def __init__(self, vitals: Vitals, condition: ConditionQueries, snapshot: Callable[[], Snapshot]) -> None:
        self._vitals = vitals
        self._condition = condition
        self._snapshot = snapshot

    def whole(self, audience: Audience) -> dict[str, object]:
        """Return the vital signs with their history of the last minutes."""
        history = [_plain(point) for point in self._vitals.history] if audience is None else []
        return {**self._signs(audience), "history": history}

    async def publish(self, broadcast: LiveBroadcast) -> None:
        """Send a point each second while the server runs."""
        while True:
            point = self._vitals.sample(self._snapshot(), time.time())
            broadcast.vitals(partial(self._with_point, point))
            await asyncio.sleep(EVERY)

    def _with_point(self, point: VitalPoint, audience: Audience) -> dict[str, object]:
        signs = self._signs(audience)
        # Totals over all tenants are not visible to a single tenant.
        return signs if audience is not None else {**signs, "point": _plain(point)}

    def _signs(self, audience: Audience) -> dict[str, object]:
        clock = {"now": round(time.monotonic(), 3), "wall": round(time.time(), 3)}
        signs = {"clock": clock, **self._condition.signs()}
        if audience is not None:
            return {**signs, "drift": {"rules": 0, "elements": 0}, "counts": {}}
        drift = self._condition.drift
        found = {"rules": drift.rules, "elements": drift.elements}
        return {**signs, "drift": found, "counts": dict(self._condition.counts())}


def _plain(point: VitalPoint) -> dict[str, float | None]:
    return {
        "wall": point.wall,
        "waiting": point.waiting,
        "trees": point.trees,
        "granted": point.granted,
        "grantMs": point.grant_ms,
    }
