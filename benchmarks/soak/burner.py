"""Burns a share of one processor: in the baseline's slices as much as the hostile clients used in the others.

A process of its own; each line on standard input is the share from now on, 0 for none.
"""

from __future__ import annotations

import select
import signal
import sys
import time

PERIOD_SECONDS = 0.02


def main() -> None:
    """Burn until standard input ends."""
    # Ctrl-C is for the soak, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    share = 0.0
    while True:
        begun = time.monotonic()
        spent = time.process_time()
        while time.process_time() - spent < share * PERIOD_SECONDS:
            pass
        left = PERIOD_SECONDS - (time.monotonic() - begun) if share else None
        ready, _, _ = select.select([sys.stdin], [], [], left if left is None else max(0.0, left))
        if ready:
            line = sys.stdin.readline()
            if not line:
                return
            share = min(float(line), 1.0)


if __name__ == "__main__":
    main()
