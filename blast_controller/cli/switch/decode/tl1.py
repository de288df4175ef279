"""Transcripts of TL1: the messages of the switch; prompts and echoed commands are left out."""

from __future__ import annotations

from collections.abc import Iterator

from blast_controller.cli.switch.decode.transcript import Record
from tl1_driver.protocol.codec import Tl1Decoder
from tl1_driver.protocol.messages import Acknowledgment, Autonomous, Message, Response


class Tl1TranscriptDecoder:
    """A decoder of TL1."""

    def __init__(self) -> None:
        self._decoder = Tl1Decoder()

    def feed(self, data: bytes) -> Iterator[Record]:
        """Return the messages that `data` completes."""
        return map(described, self._decoder.feed(data))

    def finish(self) -> Iterator[Record]:
        """Return the unfinished messages at the end."""
        return map(described, self._decoder.finish())


def described(message: Message) -> Record:
    """Return a message as a record."""
    if isinstance(message, Response):
        found = {"kind": "response", "sid": message.sid, "ctag": message.ctag, "code": message.code}
        refusal = {} if message.code == "COMPLD" else {"error": message.error_code or message.error_text}
        return {**found, "lines": list(message.lines), **{name: text for name, text in refusal.items() if text}}
    if isinstance(message, Acknowledgment):
        return {"kind": "acknowledgment", "ctag": message.ctag, "code": message.code.value}
    if isinstance(message, Autonomous):
        found = {"kind": "autonomous", "sid": message.sid, "ctag": message.atag, "code": message.severity.value}
        return {**found, "verb": message.verb, "lines": list(message.lines)}
    return {"kind": "unparsed", "lines": message.text.splitlines(), "error": str(message.error)}
