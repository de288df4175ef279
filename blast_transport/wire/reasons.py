"""Reasons that the other end reports; users see them in terminals, logs and reports."""

from __future__ import annotations

MAX_REASON = 500
"""Characters; longer reasons are cut."""


def safe_reason(text: str) -> str:
    """Return the reason in a displayable form: one line without control characters, escapes or changes of direction."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in text[: MAX_REASON + 1])
    return shown if len(shown) <= MAX_REASON else f"{shown[: MAX_REASON - 1]}…"
