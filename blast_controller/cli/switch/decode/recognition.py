"""The protocol of a transcript: the first line that only one protocol can have decides."""

from __future__ import annotations

import re

from blast_controller.cli.switch.decode.transcript import TranscriptProtocol

MAX_UNRECOGNIZED = 1 << 16
"""Bytes without such a line after which a transcript counts as unknown: banners and logs begin with far less."""

_SIGNS = {
    TranscriptProtocol.TL1: re.compile(
        # `SID date time`, an answer, an acknowledgment, and a command.
        rb"(?:^|[ \t])(?:[0-9]{2})?[0-9]{2}-[0-9]{2}-[0-9]{2}[ \t]+[0-9]{2}:[0-9]{2}:[0-9]{2}[ \t\0]*\r?\n"
        rb"|^[ \t]*M[ \t]+\S{1,80}[ \t]+(?:COMPLD|DENY|PRTL|DELAY|RTRV)\b"
        rb"|^[<>; \t]*(?:IP|PF|OK|NA|NG|RL)[ \t]+\S{1,80}[ \t]*\r?\n"
        rb"|^[<>; \t]*[a-z]{3,8}(?:-[a-z0-9]{1,12}){1,4}:[^:;\n]{0,64}:[^;\n]{0,2000};",
        re.MULTILINE | re.IGNORECASE,
    ),
    TranscriptProtocol.NETCONF: re.compile(
        rb"\]\]>\]\]>|<(?:[\w.-]{1,64}:)?(?:hello|rpc|rpc-reply|notification)[\s>/]|\burn:ietf:params:(?:xml:ns:)?netconf:"
    ),
    TranscriptProtocol.REDIS: re.compile(
        # Captured bytes, and a line of `redis-cli MONITOR`.
        rb"^\*[0-9]{1,10}\r\n[*$:+-]|^\$-?[0-9]{1,10}\r\n|^:-?[0-9]{1,19}\r\n|^\+(?:OK|PONG|QUEUED)\r\n"
        rb"|^-(?:ERR|NOAUTH|NOPERM|WRONGPASS|EXECABORT|WRONGTYPE|LOADING|READONLY|OOM|DENIED) [^\r\n]{0,500}\r\n"
        rb'|^[0-9]{9,11}\.[0-9]{6} \[[0-9]{1,5} [^\]\n]{1,200}\] "',
        re.MULTILINE,
    ),
    TranscriptProtocol.GNMI: re.compile(rb'^[\[{]\s*(?:["\[{\]}]|\r?\n)', re.MULTILINE),
}


def recognize(beginning: bytes) -> TranscriptProtocol | None:
    """Return the protocol of a transcript.

    Parameters
    ----------
    beginning : bytes
        First bytes of the transcript.

    Returns
    -------
    TranscriptProtocol | None
        The protocol. None: these bytes do not show it.
    """
    found = {protocol: sign.search(beginning) for protocol, sign in _SIGNS.items()}
    places = {match.start(): protocol for protocol, match in reversed(found.items()) if match is not None}
    return places[min(places)] if places else None
