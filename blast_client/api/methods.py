"""The interface's methods that a client may repeat.

A new method of the interface needs a row here and a method in aio.py; then run scripts/generate-client.
"""

from __future__ import annotations

from collections.abc import Mapping

SAFE_TO_REPEAT: Mapping[str, bool] = {
    "submit": True,
    "awaitEvent": True,
    "request": True,
    # A second call would add the receivers, the time or the bytes twice.
    "extend": False,
    # A second call raises Ended if the part has ended for another reason meanwhile.
    "finish": False,
    "withdraw": False,
    "status": True,
    "listRequests": True,
    "explain": True,
    "fabric": True,
    "version": True,
    "ping": True,
    "login": False,
    "drain": True,
    "reconcile": False,
    "verifyFabric": False,
    "elements": True,
    "quarantine": True,
    "releaseElement": True,
    "resume": False,
    # A second call would reach the new leader and make it step down as well.
    "stepDown": False,
    "journal": True,
}
"""True if a second call changes nothing and returns the same answer, so that a client repeats it on a new connection
or at another controller."""
