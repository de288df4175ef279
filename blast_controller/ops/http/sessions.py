"""Browser sessions: a cookie that scripts cannot read represents a token that was entered once.

Permissions of a session are evaluated at every request: a removed token is invalid at once.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

COOKIE = "blast_session"
MAX_SESSIONS, MAX_PER_TOKEN = 256, 16
"""The limits of all sessions, and of one token; the least recently used one is dropped."""
IDLE_SECONDS = 12 * 3600.0
"""A working day, after which an operator logs in again."""


@dataclass(slots=True)
class BrowserSession:
    """A browser's session.

    `digest` is that of the session's token (None: authenticated by certificate), and `csrf` the value that every write
    must repeat (OWASP's synchronizer token).
    """

    digest: bytes | None
    csrf: str
    used_at: float


class Sessions:
    """The sessions of one controller; none survives it. For one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._sessions: OrderedDict[str, BrowserSession] = OrderedDict()

    def open(self, digest: bytes | None) -> tuple[str, BrowserSession]:
        """Begin a session and return its cookie with it."""
        self._make_room(digest)
        name, session = secrets.token_urlsafe(32), BrowserSession(digest, secrets.token_urlsafe(32), self._now())
        self._sessions[name] = session
        return name, session

    def _make_room(self, digest: bytes | None) -> None:
        """End the session that was used longest ago: of the same token, or of the token with the most of them."""
        of_token = Counter(session.digest for session in self._sessions.values())
        crowded = digest
        if of_token[digest] < MAX_PER_TOKEN:
            if len(self._sessions) < MAX_SESSIONS:
                return
            crowded = max(of_token, key=of_token.__getitem__)
        del self._sessions[next(name for name, session in self._sessions.items() if session.digest == crowded)]

    def find(self, name: str | None) -> BrowserSession | None:
        """Return the session of a cookie, unless it is unknown or expired."""
        session = self._sessions.get(name or "")
        if name is None or session is None:
            return None
        now = self._now()
        if now - session.used_at > IDLE_SECONDS:
            del self._sessions[name]
            return None
        session.used_at = now
        self._sessions.move_to_end(name)
        return session

    def close(self, name: str | None) -> None:
        """End a session, if there is one."""
        self._sessions.pop(name or "", None)


def is_repeated(session: BrowserSession, shown: str | None) -> bool:
    """Return true if a write repeats its session's CSRF token."""
    return shown is not None and hmac.compare_digest(session.csrf.encode(), shown.encode("utf-8", "replace"))
