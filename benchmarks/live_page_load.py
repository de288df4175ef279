"""Load of `live_page.py`: serves a busy fabric, and on each order (a line) lets things happen in it.

Says where it serves. After seconds which trees came and went, and when the core was told what made them; after
"restart" when its HTTP server, which had ended, served again.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from itertools import count
from pathlib import Path

from child import tell

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from blast_controller.core.model.events import FinishAsked, ProgressTold, RequestSubmitted
from tests.support.core import key_of, make_fabric, multicast
from tests.support.live_server import LiveServer, live

GROUP = 3
"""Racks of each tree."""
SIZE = 10**12
AWAY_SECONDS = 1.0


class Load:
    """Groups of racks, each of which has a tree again and again."""

    def __init__(self, served: LiveServer, groups: int) -> None:
        self._runtime, self._lab = served.lab.runtime, served.lab
        self._numbers = count(1)
        self._reached = 0
        self._lit: deque[tuple[int, str]] = deque()
        for group in range(groups):
            self._submit(group)
        self._lab.settle()

    def _submit(self, group: int) -> str:
        key = f"iteration-{next(self._numbers)}"
        sender, *others = (f"r{GROUP * group + n + 1}h1" for n in range(GROUP))
        self._runtime.post(RequestSubmitted(multicast(key, sender, others, size=SIZE)))
        self._lit.append((group, key))
        return key

    def _reservation(self, key: str) -> int:
        grant = self._runtime.snapshot.request(key_of(key)).parts[0].grant
        assert grant is not None, f"{key} has no light"
        return grant.reservation

    def run(self, seconds: float, rate: float) -> list[tuple[int, str, float]]:
        """Of five events three are a sender's progress, one ends a request, and one asks for light again."""
        came: list[tuple[str, float]] = []
        happened: list[tuple[int, str, float]] = []
        start, free = time.monotonic(), 0
        for number in range(int(seconds * rate)):
            time.sleep(max(start + number / rate - time.monotonic(), 0.0))
            wall = time.time()
            if number % 5 == 3:
                free, key = self._lit.popleft()
                happened.append((self._reservation(key), "gone", wall))
                self._runtime.post(FinishAsked(key_of(key), 0))
            elif number % 5 == 4:
                came.append((self._submit(free), wall))
            else:
                self._reached += SIZE // 10_000
                self._runtime.post(ProgressTold(key_of(self._lit[number % len(self._lit)][1]), 0, self._reached))
        self._lab.settle()
        return [*happened, *((self._reservation(key), "come", wall) for key, wall in came)]


def served_again(served: LiveServer) -> float:
    """End the HTTP server, as a controller does that is stopped, and serve at the same place; the time of day then."""
    served.side.end(served.server)
    time.sleep(AWAY_SECONDS)
    served.server = served.side.server(None)
    served.server.start("127.0.0.1", served.port)
    return time.time()


def main() -> None:
    """Serve until there are no more orders."""
    racks, trees, rate = int(sys.argv[1]), min(int(sys.argv[2]), int(sys.argv[1]) // GROUP), float(sys.argv[3])
    with live(make_fabric(racks, [4] * trees)) as served:
        load = Load(served, trees)
        tell({"url": served.url, "trees": len(served.lab.runtime.snapshot.trees)})
        for line in sys.stdin:
            if line.strip() == "restart":
                tell({"again": served_again(served)})
            else:
                tell({"happened": load.run(float(line), rate)})


if __name__ == "__main__":
    main()
