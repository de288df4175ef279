"""Burns processor time: in the baseline's slices as much as the hostile clients used in the others, and when they did.

A process of its own; each line on standard input is a JSON list of shares of one processor, each for a period, which
are gone through again and again from now on; an empty list for nothing.
"""

from __future__ import annotations

import json
import select
import signal
import sys
import time
from itertools import cycle

from soak.rhythm import PERIOD_SECONDS


def main() -> None:
    """Burn until standard input ends."""
    # Ctrl-C is for the soak, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    shares = cycle([0.0])
    until: float | None = None
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        if select.select([sys.stdin], [], [], left)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            wanted = json.loads(line)
            shares = cycle(wanted or [0.0])
            until = time.monotonic() if wanted else None
        elif until is not None:
            # Who was kept from burning catches up, as one who has work to do does.
            until += PERIOD_SECONDS
            _burn(next(shares) * PERIOD_SECONDS)


def _burn(seconds: float) -> None:
    spent = time.process_time()
    while time.process_time() - spent < seconds:
        pass


if __name__ == "__main__":
    main()
