"""Reasons that the other side gives: people read them in terminals, logs and reports, next to lines of our own."""

from __future__ import annotations

MAX_REASON = 500
"""Characters; what is longer is cut."""


def safe_reason(text: str) -> str:
    """Return a reason as it may be shown: one line without control characters, escapes or changes of direction."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in text[: MAX_REASON + 1])
    return shown if len(shown) <= MAX_REASON else f"{shown[: MAX_REASON - 1]}…"
