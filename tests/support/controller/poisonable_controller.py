"""`blast` with a core that fails on one request, whose key is "poison". Nothing else differs.

Run as a program with the arguments of `blast`; it represents any internal error that a client may meet.
"""

from __future__ import annotations

import sys

from blast_client.cli.command import main
from blast_controller.core.controller import Core
from blast_controller.core.model.events import Event, RequestSubmitted

_take = Core.take


def _cannot(self: Core, event: Event, now: float) -> None:
    if isinstance(event, RequestSubmitted) and event.request.key == "poison":
        raise KeyError("a fault that this key finds")
    _take(self, event, now)


if __name__ == "__main__":
    Core.take = _cannot  # type: ignore[method-assign]
    sys.exit(main())
