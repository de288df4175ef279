"""`blast tl1 decode`: a TL1 transcript as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    # `blast` imports this module at every start, so the decoder is imported only when needed.
    from tl1_driver.protocol.messages import Message

DONE, WRONG_INPUT = 0, 2
CHUNK = 1 << 16
"""Bytes of one read; any size works."""
STANDARD_INPUT = "-"

_DECODE = """\
Print the messages in a TL1 transcript, one JSON object per line. Continued answers (`>`) are joined.

  response         sid, ctag, code (COMPLD, DENY, PRTL, DELAY, RTRV), lines; error: the error code of a refusal
  acknowledgment  ctag, code (IP, PF, OK, NA, NG, RL)
  autonomous       sid, ctag (its ATAG), code (*C, **, *, A), verb (such as REPT ALM EQPT), lines
  unparsed         lines: the first 200 bytes of text that is not TL1, has no end or is too long; error: the reason

Prompts and echoed commands are left out. The exit status is 0 for any readable transcript.
"""
_EXAMPLE = """\
example:
  blast tl1 decode transcript.txt
  nc switch.example.org 3082 | blast tl1 decode - | jq 'select(.kind == "autonomous")'
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `tl1` and its subcommands."""
    tl1 = subparsers.add_parser("tl1", help="decode TL1 transcripts of optical switches")
    commands = tl1.add_subparsers(metavar="COMMAND", required=True)
    decode = commands.add_parser(
        "decode",
        help="print a TL1 transcript as JSON lines",
        description=_DECODE,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    decode.add_argument("file", metavar="FILE", help="transcript; `-` for standard input")
    decode.set_defaults(run=_decode)


def _decode(options: argparse.Namespace) -> int:
    try:
        if options.file == STANDARD_INPUT:
            _print_messages(sys.stdin.buffer)
        else:
            with Path(options.file).open("rb") as transcript:
                _print_messages(transcript)
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"blast tl1 decode: cannot read {options.file}: {error.strerror or error}\n")
        return WRONG_INPUT
    return DONE


def _print_messages(transcript: BinaryIO) -> None:
    for message in _messages(transcript):
        sys.stdout.write(json.dumps(described(message)) + "\n")
        sys.stdout.flush()


def _messages(transcript: BinaryIO) -> Iterator[Message]:
    from tl1_driver.protocol.codec import Tl1Decoder

    decoder = Tl1Decoder()
    # Read whatever is available, so that the output of a pipe appears at once.
    read = getattr(transcript, "read1", transcript.read)
    while chunk := read(CHUNK):
        yield from decoder.feed(chunk)
    yield from decoder.finish()


def described(message: Message) -> dict[str, object]:
    """Return `message` as a JSON object."""
    from tl1_driver.protocol.messages import Acknowledgment, Autonomous, Response

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
