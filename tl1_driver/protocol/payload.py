"""Text inside TL1 messages: quoting, and rows of `NAME=value`."""

from __future__ import annotations

import re

from tl1_driver.protocol.errors import InvalidCommandError

_FIRST_NAME = re.compile(r"(?:^|[,:])\s*([A-Za-z][A-Za-z0-9_-]*=)")
_NAME = re.compile(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9_-]*)=")
_SAFE = re.compile(r"[A-Za-z0-9_.+@/-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_QUOTED_OR_COLON = re.compile(r'"(?:[^"\\]|\\.)*"?|:', re.DOTALL)


def quote(text: str) -> str:
    r"""Return `text` as a TL1 value: unchanged if that is safe, else in quotes with inner quotes written `\"`.

    Raises `InvalidCommandError` for control characters, which no quoting makes safe to send.
    """
    if _CONTROL.search(text):
        raise InvalidCommandError("a value with control characters cannot be sent over TL1")
    if _SAFE.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquote(text: str) -> str:
    """Return `text` without blanks and one pair of quotes around it, inner quotes unescaped."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\([\"\\])", r"\1", text[1:-1])
    return text


def parameters(line: str) -> dict[str, str]:
    """Return the `NAME=value` pairs of a payload row, names in capitals.

    A value extends to the next `,NAME=`, so it may be empty and may contain blanks, colons and commas. Text before the
    first name (an AID such as `GGN:`) is not part of the result.
    """
    row = unquote(line)
    if (first := _FIRST_NAME.search(row)) is None:
        return {}
    row = row[first.start(1) :]
    names = list(_NAME.finditer(row))
    ends = [match.start() for match in names[1:]] + [len(row)]
    return {match[1].upper(): row[match.end() : end].strip() for match, end in zip(names, ends, strict=True)}


def split_blocks(text: str) -> list[str]:
    """Return `text` split at its colons, except those in quotes."""
    cuts = [match.start() for match in _QUOTED_OR_COLON.finditer(text) if match[0] == ":"]
    return [text[start:end] for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(text)], strict=True)]
