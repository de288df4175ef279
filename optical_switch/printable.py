"""Text of a device in messages and logs: the device may have chosen it to confuse or to flood a log."""

from __future__ import annotations

MAX_TEXT = 200
"""Maximum number of characters of a peer's text in messages: a sentence or two."""


def printable(text: str) -> str:
    r"""Return a text in printable characters and limited length.

    Parameters
    ----------
    text : str
        Text of a device.

    Returns
    -------
    str
        The text, with a question mark for each character that is not printable.

    Examples
    --------
    >>> printable("port 7\x1b[2J is\noff")
    'port 7?[2J is?off'
    """
    shown = "".join(one if one.isprintable() else "?" for one in text[:MAX_TEXT])
    return shown if len(text) <= MAX_TEXT else f"{shown}…"
