"""What is said over TL1: the command we send, and the four kinds of message that come back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from tl1_driver.errors import MalformedText

_ERROR_CODE = re.compile(r"[A-Za-z]{4}")
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command without its CTAG: `VERB:TID:AID:CTAG:block:block...;`.

    `blocks` are what follows the CTAG; the first is the general block, normally empty. `secret` is a text inside the
    command that must not appear in transcripts.
    """

    verb: str
    aid: str = ""
    blocks: tuple[str, ...] = field(default=(), repr=False)
    tid: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a command, its continued parts (`>`) joined.

    `code` is in capitals: COMPLD, DENY, PRTL, DELAY, RTRV, or OK when an acknowledgment stood for the answer.
    `lines` are the payload lines as sent, quotes included, without surrounding blanks and empty lines.
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
        """What the switch says about a refusal: its comments, or failing these its other lines."""
        comments = [text.strip() for line in self.lines for text in _COMMENT.findall(line)]
        return "; ".join(comments or [line for line in self.lines if not _ERROR_CODE.fullmatch(line)])


class AcknowledgmentCode(StrEnum):
    """What an acknowledgment says (GR-831: sent when the answer takes longer than two seconds)."""

    IN_PROGRESS = "IP"
    PRINTOUT_FOLLOWS = "PF"
    ALL_RIGHT = "OK"
    NO_ACKNOWLEDGMENT = "NA"
    NO_GOOD = "NG"
    REPEAT_LATER = "RL"


@dataclass(frozen=True, slots=True)
class Acknowledgment:
    """A sign of life of the command `ctag` before its answer, or in its place."""

    code: AcknowledgmentCode
    ctag: str


class Severity(StrEnum):
    """How bad an autonomous message says things are."""

    CRITICAL = "*C"
    MAJOR = "**"
    MINOR = "*"
    EVENT = "A"


@dataclass(frozen=True, slots=True)
class Autonomous:
    """A message nobody asked for. `verb` is all that follows the ATAG, such as `REPT ALM EQPT`."""

    sid: str
    severity: Severity
    atag: str
    verb: str
    lines: tuple[str, ...] = ()
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Text given up, at most its first 200 bytes, and why."""

    text: str
    error: MalformedText


Message = Response | Acknowledgment | Autonomous | Unparsed
