"""TL1 messages: the command that a client sends, and the four kinds of message that a switch sends."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from tl1_driver.protocol.errors import MalformedTextError

_ERROR_CODE = re.compile(r"[A-Za-z]{4}")
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tl1Command:
    """A command without its CTAG: `VERB:TID:AID:CTAG:block:block...;`.

    `blocks` are the fields after the CTAG; the first is the general block, normally empty. `secret` is a text inside
    the command that must not appear in transcripts.
    """

    verb: str
    aid: str = ""
    blocks: tuple[str, ...] = field(default=(), repr=False)
    tid: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a command, its continued parts (`>`) joined.

    `code` is in capitals: COMPLD, DENY, PRTL, DELAY, RTRV, or OK if an acknowledgment replaced the answer. `lines` are
    the payload lines as sent, quotes included, without surrounding blanks and empty lines.
    """

    sid: str
    ctag: str
    code: str
    lines: tuple[str, ...] = ()
    timestamp: str = ""

    @property
    def error_code(self) -> str:
        """The four-letter code of a refusal in capitals, or "" if the body has none."""
        return next((line.upper() for line in self.lines if _ERROR_CODE.fullmatch(line)), "")

    @property
    def error_text(self) -> str:
        """The switch's explanation of a refusal: its comments, or else its other lines."""
        comments = [text.strip() for line in self.lines for text in _COMMENT.findall(line)]
        return "; ".join(comments or [line for line in self.lines if not _ERROR_CODE.fullmatch(line)])


class AcknowledgmentCode(StrEnum):
    """The code of an acknowledgment (GR-831: sent when the answer takes longer than two seconds)."""

    IN_PROGRESS = "IP"
    PRINTOUT_FOLLOWS = "PF"
    ALL_RIGHT = "OK"
    NO_ACKNOWLEDGMENT = "NA"
    NO_GOOD = "NG"
    REPEAT_LATER = "RL"


@dataclass(frozen=True, slots=True)
class Acknowledgment:
    """An acknowledgment of the command `ctag` before its answer, or in place of it."""

    code: AcknowledgmentCode
    ctag: str


class Severity(StrEnum):
    """The severity of an autonomous message."""

    CRITICAL = "*C"
    MAJOR = "**"
    MINOR = "*"
    EVENT = "A"


@dataclass(frozen=True, slots=True)
class Autonomous:
    """An unsolicited message.

    Parameters
    ----------
    sid : str
        Identifier of the switch.
    severity : Severity
        Alarm code of the message.
    atag : str
        Sequence number that the switch assigned.
    verb : str
        Text after the ATAG, such as `REPT ALM EQPT`.
    lines : tuple[str, ...]
        Payload lines as sent, quotes included.
    timestamp : str
        Date and time in the header, as sent.
    """

    sid: str
    severity: Severity
    atag: str
    verb: str
    lines: tuple[str, ...] = ()
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Text that could not be decoded, at most its first 200 bytes, and the error."""

    text: str
    error: MalformedTextError


Message = Response | Acknowledgment | Autonomous | Unparsed
