"""How a process that owns a lab ends when told to: through every `finally` on the way, so that the lab goes too."""

from __future__ import annotations

import signal
from typing import NoReturn

_REQUESTS = (signal.SIGTERM, signal.SIGHUP)


def end_in_order(status: int) -> None:
    """From now on SIGTERM and SIGHUP raise SystemExit(`status`) in the main thread.

    The first one counts: a second one must not interrupt the removal that the first began.
    """

    def leave(_number: int, _frame: object) -> NoReturn:
        for number in _REQUESTS:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(status)

    for number in _REQUESTS:
        signal.signal(number, leave)
