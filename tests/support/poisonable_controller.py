"""`blast` with a core that cannot handle one request: one whose key is "poison". Nothing else differs.

Run as a program with the arguments of `blast`; stands for whatever fault of ours a client may find.
"""

from __future__ import annotations

import sys
from typing import Any

from blast_client.command import main
from blast_controller.core.applications import Applications

_submitted = Applications.on_submitted


def _cannot(self: Applications, event: Any, now: float) -> None:
    if event.request.key == "poison":
        raise KeyError("a fault that this key finds")
    _submitted(self, event, now)


if __name__ == "__main__":
    Applications.on_submitted = _cannot  # type: ignore[method-assign]
    sys.exit(main())
