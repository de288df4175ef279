"""TL1 on the wire: commands to bytes, bytes to messages. No socket, no clock.

Theory of operation. The scanner cuts the stream into segments (`scanner.py`); the decoder is in one of three states:

    BETWEEN   outside any message: prompts, echoed commands and terminal noise are dropped, acknowledgments are
              messages of one line, `SID date time` begins a message
    HEADED    after `SID date time`: the next line identifies the answer (`M ctag code`) or alarm (`*C atag verb`)
    PAYLOAD   lines up to `;` (the end) or a line that is just `>` (another part with the same tag follows)

A header inside a payload, also inside quoted text, means that the end before it was lost: the unfinished message is
dropped and the new one begins. No input makes the decoder raise, or store more than about twice its limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tl1_driver.protocol.errors import (
    InvalidCommandError,
    MalformedTextError,
    MessageTooLongError,
    NotTl1Error,
    TruncatedResponseError,
)
from tl1_driver.protocol.messages import (
    Acknowledgment,
    AcknowledgmentCode,
    Autonomous,
    Message,
    Response,
    Severity,
    Tl1Command,
    Unparsed,
)
from tl1_driver.protocol.scanner import BETWEEN, PAYLOAD, Scanner, Segment, SegmentEnd

RECEIVE_LIMIT = 1 << 20
"""Default size limit of a message in bytes: a full list of a 320-port switch takes about 37 kB."""

UNPARSED_BYTES = 200
"""Bytes of invalid text that an error repeats."""
UNFINISHED_PARTS = 64
"""Messages in parts (`>`) at a time: memory that a faulty switch may take."""
LONGEST_SID = 256
"""Characters of a name of a switch; a longer line is not the head of a message."""

_BLANKS = b" \t\0"
_NOISE = re.compile(
    rb"\x1b\[[\x20-\x3f]*[@-~]?|\x1b[()][A-Z0-9]|\x1b.?|\xff[\xfb-\xfe].?|\xff[\xf0-\xfa]?|[\0-\x08\x0b-\x1f\x7f]",
    re.DOTALL,
)
_PROMPTS = re.compile(rb"\s*(?:(?:[<>]|[A-Za-z0-9_.-]{1,64}>)\s*)+")
_ECHO = re.compile(rb"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*\s*(?::.*)?", re.DOTALL)
_TIMESTAMP = re.compile(rb"(?:\A|\s)((?:\d\d)?\d\d-\d\d-\d\d[ \t]+\d\d:\d\d:\d\d)\Z")
_ANSWER = re.compile(rb"[Mm][ \t]+(\S{1,80})[ \t]+([A-Za-z]{2,8})(?!\S)(.*)", re.DOTALL)
_COMPLETION_CODES = frozenset({"COMPLD", "DENY", "PRTL", "DELAY", "RTRV"})
_ALARM = re.compile(rb"(\*[Cc]|\*\*|\*\^?|[Aa])[ \t]+(\S{1,80})[ \t]+(\S.*)", re.DOTALL)
_ACKNOWLEDGMENT = re.compile(rb"(IP|PF|OK|NA|NG|RL)[ \t]+(\S{1,80})", re.IGNORECASE)

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")
_CTAG = re.compile(r"[A-Za-z0-9_.-]+")
_BLOCK = re.compile(r'(?:[^;:"\x00-\x1f\x7f]|"(?:[^"\\\x00-\x1f\x7f]|\\["\\])*")*')


def encode_command(command: Tl1Command, ctag: str, *, limit: int, terminator: bytes = b";") -> bytes:
    """Return the bytes of a command, without trailing empty blocks.

    Parameters
    ----------
    command : Command
        Command to encode.
    ctag : str
        CTAG of the command.
    limit : int
        Maximum length in bytes, with the terminator.
    terminator : bytes
        Bytes that end the command: `;`, or `;` and a line end.

    Returns
    -------
    bytes
        The command as it is sent.

    Raises
    ------
    InvalidCommandError
        If a field could be misread (a stray `;`, `:`, quote or control character), or if the result is too long.
    """
    if not _WORD.fullmatch(command.verb) or not _CTAG.fullmatch(ctag):
        raise InvalidCommandError(f"{command.verb!r} with CTAG {ctag!r} is not a TL1 command")
    for block in (command.tid, command.aid, *command.blocks):
        if not _BLOCK.fullmatch(block):
            raise InvalidCommandError(f"{command.verb} cannot be sent: a field would end it early")
    text = ":".join((command.verb, command.tid, command.aid, ctag, *command.blocks)).rstrip(":")
    wire = text.encode() + terminator
    if len(wire) > limit:
        raise InvalidCommandError(f"{command.verb} is {len(wire)} bytes long, the switch accepts {limit}")
    return wire


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _header(line: bytes) -> tuple[str, str] | None:
    """Return SID and timestamp if `line` begins a message."""
    if not line[-1:].isdigit() or (stamp := _TIMESTAMP.search(line)) is None or stamp.start() > LONGEST_SID:
        return None
    return _text(line[: stamp.start()].strip().strip(b'"')), _text(stamp[1])


@dataclass(slots=True)
class _Draft:
    """A message under construction: the header, the three fields of the second line, and the lines received.

    A dropped draft (`spoiled`) keeps its place until its last part, so that the rest of a message whose beginning is
    lost cannot pass for a whole message.
    """

    header: tuple[str, str]
    kind: type[Response] | type[Autonomous]
    tag: str
    first: str
    last: str = ""
    lines: list[str] = field(default_factory=list)
    size: int = 0
    spoiled: bool = False

    @property
    def key(self) -> tuple[object, str]:
        return (self.kind, self.tag)

    def add(self, line: bytes) -> None:
        if not self.spoiled:
            self.lines.append(_text(line))
            self.size += len(line) + 1

    def spoil(self) -> None:
        self.spoiled, self.lines, self.last, self.size = True, [], "", 0

    def continue_from(self, earlier: _Draft) -> None:
        self.header = earlier.header
        if earlier.spoiled:
            self.spoil()
        elif not self.spoiled:
            self.lines = earlier.lines + self.lines
            self.size += earlier.size

    def message(self) -> Message:
        sid, timestamp = self.header
        if self.kind is Response:
            return Response(sid, self.tag, self.first, tuple(self.lines), timestamp)
        return Autonomous(sid, Severity(self.first), self.tag, self.last, tuple(self.lines), timestamp)

    def excerpt(self) -> str:
        return "\n".join(self.lines[:20])[:UNPARSED_BYTES] or f"{self.first} {self.tag}"


def _draft(header: tuple[str, str], line: bytes) -> _Draft | None:
    """Return the message that `header` and the next line begin, or None if that line is not a second line."""
    if answer := _ANSWER.fullmatch(line):
        draft = _Draft(header, Response, _text(answer[1]), _text(answer[2]).upper(), size=len(answer[1]))
        if rest := answer[3].strip(_BLANKS):
            draft.add(rest)
        return draft
    if alarm := _ALARM.fullmatch(line):
        severity = _text(alarm[1]).upper().rstrip("^")
        return _Draft(header, Autonomous, _text(alarm[2]), severity, _text(alarm[3]), size=len(line))
    return None


class Tl1Decoder:
    """A decoder that turns the bytes of one session into messages.

    Parameters
    ----------
    limit : int
        Size limit of a message in bytes, all its parts together.
    """

    def __init__(self, limit: int = RECEIVE_LIMIT) -> None:
        self._limit = limit
        self._scanner = Scanner()
        self._header: tuple[str, str] | None = None
        self._draft: _Draft | None = None
        self._suspect: bytes | None = None
        self._parts: dict[tuple[object, str], _Draft] = {}

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that some bytes complete, independently of how the stream was chunked.

        Parameters
        ----------
        data : bytes
            The next bytes.

        Returns
        -------
        list[Message]
            The messages in their order.
        """
        self._scanner.push(data)
        messages: list[Message] = []
        while (segment := self._next_segment()) is not None:
            messages.extend(self._take(segment))
        return messages

    def finish(self) -> list[Message]:
        """Return the last messages of a stream.

        Returns
        -------
        list[Message]
            A last line without an end, and all unfinished messages.
        """
        messages = self.feed(b"\n")
        rest = self._scanner.rest().strip(_BLANKS + b"\r\n")
        if self._draft is not None and not self._draft.spoiled:
            self._complete(self._draft, rest)
        drafts = [*self._parts.values(), *([self._draft] if self._draft else [])]
        error = TruncatedResponseError("the text ends inside a message")
        messages += [Unparsed(draft.excerpt(), error) for draft in drafts if not draft.spoiled]
        if self._header is not None:
            messages.append(_unparsed(" ".join(self._header).encode(), error))
        if rest and self._draft is None:
            messages.append(_unparsed(rest, error))
        self._header = self._draft = self._suspect = None
        self._parts.clear()
        return messages

    def _next_segment(self) -> Segment | None:
        if self._draft is None or self._draft.spoiled:
            return self._scanner.next_segment(BETWEEN, self._limit)
        held = self._draft.size + len(self._suspect or b"") + sum(part.size for part in self._parts.values())
        return self._scanner.next_segment(PAYLOAD, max(0, self._limit - held))

    def _take(self, segment: Segment) -> Iterator[Message]:
        if segment.end is SegmentEnd.TOO_LONG:
            yield from self._give_up(segment.text)
        elif segment.end is SegmentEnd.UNCLOSED and self._draft is not None:
            yield from self._abandon(self._draft, segment.text)
        elif self._draft is not None:
            yield from self._payload(self._draft, segment)
        else:
            line = _NOISE.sub(b"", segment.text)
            prompts = _PROMPTS.match(line)
            line = line[prompts.end() if prompts else 0 :].strip(_BLANKS)
            if line:
                yield from self._headed(line, segment.end) if self._header else self._between(line, segment.end)

    def _between(self, line: bytes, end: SegmentEnd) -> Iterator[Message]:
        if (header := _header(line)) and end is SegmentEnd.LINE:
            self._header = header
        elif (draft := _draft(("", ""), line)) and draft.kind is Response and draft.first in _COMPLETION_CODES:
            # The header was lost in noise; the CTAG suffices to find the command.
            yield from self._begin(draft, end)
        elif acknowledgment := _ACKNOWLEDGMENT.fullmatch(line):
            code = AcknowledgmentCode(_text(acknowledgment[1]).upper())
            yield Acknowledgment(code, _text(acknowledgment[2]))
        elif not (end is SegmentEnd.SEMICOLON and _ECHO.fullmatch(line)):
            yield _unparsed(line, NotTl1Error("text between messages is neither prompt nor echo nor acknowledgment"))

    def _headed(self, line: bytes, end: SegmentEnd) -> Iterator[Message]:
        assert self._header is not None
        if draft := _draft(self._header, line):
            self._header = None
            yield from self._begin(draft, end)
        else:
            header, self._header = " ".join(self._header).encode(), None
            yield _unparsed(header, TruncatedResponseError("no message follows the date and time"))
            yield from self._between(line, end)

    def _begin(self, draft: _Draft, end: SegmentEnd) -> Iterator[Message]:
        self._draft = draft
        if end is SegmentEnd.SEMICOLON:
            yield from self._finish(draft)

    def _payload(self, draft: _Draft, segment: Segment) -> Iterator[Message]:
        line = segment.text.strip(_BLANKS)
        if line and self._suspect is not None:
            suspect, self._suspect = self._suspect, None
            header = _header(suspect)
            begun = _draft(header, _NOISE.sub(b"", line)) if header else None
            if begun is not None:
                yield from self._truncate(draft)
                yield from self._begin(begun, segment.end)
                return
            draft.add(suspect)
        if segment.end is SegmentEnd.SEMICOLON:
            if line:
                draft.add(line)
            yield from self._finish(draft)
        elif line == b">":
            yield from self._put_aside(draft)
        elif _header(line):
            self._suspect = line
        elif line:
            draft.add(line)

    def _finish(self, draft: _Draft) -> Iterator[Message]:
        self._draft = None
        self._complete(draft, b"")
        if earlier := self._parts.pop(draft.key, None):
            draft.continue_from(earlier)
        if not draft.spoiled:
            yield draft.message()

    def _put_aside(self, draft: _Draft) -> Iterator[Message]:
        self._draft = None
        if earlier := self._parts.pop(draft.key, None):
            draft.continue_from(earlier)
        yield from self._keep(draft)

    def _keep(self, draft: _Draft) -> Iterator[Message]:
        self._parts[draft.key] = draft
        if len(self._parts) > UNFINISHED_PARTS:
            oldest = self._parts.pop(next(iter(self._parts)))
            if not oldest.spoiled:
                yield Unparsed(oldest.excerpt(), TruncatedResponseError("too many messages wait for their next part"))

    def _truncate(self, draft: _Draft) -> Iterator[Message]:
        self._draft = None
        if earlier := self._parts.pop(draft.key, None):
            draft.continue_from(earlier)
        if not draft.spoiled:
            yield Unparsed(
                draft.excerpt(), TruncatedResponseError(f"message {draft.tag} has no end: another one began inside it")
            )
        draft.spoil()
        yield from self._keep(draft)

    def _abandon(self, draft: _Draft, text: bytes) -> Iterator[Message]:
        self._complete(draft, text.strip(_BLANKS + b"\r\n"))
        yield from self._truncate(draft)

    def _complete(self, draft: _Draft, last: bytes) -> None:
        """Add the buffered lines and the last line, whatever it is."""
        if self._suspect is not None:
            draft.add(self._suspect)
            self._suspect = None
        if last:
            draft.add(last)

    def _give_up(self, text: bytes) -> Iterator[Message]:
        """Drop all buffered data. The rest of the messages is read line by line and not stored."""
        error = MessageTooLongError(f"more than {self._limit} bytes without an end")
        if self._draft is None:
            self._header = None
            yield _unparsed(text, error)
        elif not self._draft.spoiled:
            self._suspect = None
            if earlier := self._parts.pop(self._draft.key, None):
                self._draft.continue_from(earlier)
            for draft in [*self._parts.values(), self._draft]:
                if not draft.spoiled:
                    yield Unparsed(draft.excerpt(), error)
                    draft.spoil()


def _unparsed(raw: bytes, error: MalformedTextError) -> Unparsed:
    return Unparsed(_text(raw[:UNPARSED_BYTES]), error)
