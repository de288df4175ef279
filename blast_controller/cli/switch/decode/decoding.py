"""Reading of a transcript: its protocol is recognized, and its records are printed as they are read."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from blast_base.command_line import DONE, WRONG_INPUT
from blast_controller.cli.switch.decode.gnmic import GnmicTranscriptDecoder
from blast_controller.cli.switch.decode.netconf import NetconfTranscriptDecoder
from blast_controller.cli.switch.decode.recognition import MAX_UNRECOGNIZED, recognize
from blast_controller.cli.switch.decode.redis import RedisTranscriptDecoder
from blast_controller.cli.switch.decode.tl1 import Tl1TranscriptDecoder
from blast_controller.cli.switch.decode.transcript import Record, TranscriptDecoder, TranscriptProtocol

STANDARD_INPUT = "-"
_CHUNK = 1 << 16
"""Bytes of one read; any size works."""
_DECODERS: dict[TranscriptProtocol, Callable[[], TranscriptDecoder]] = {
    TranscriptProtocol.TL1: Tl1TranscriptDecoder,
    TranscriptProtocol.NETCONF: NetconfTranscriptDecoder,
    TranscriptProtocol.REDIS: RedisTranscriptDecoder,
    TranscriptProtocol.GNMI: GnmicTranscriptDecoder,
}


class UnknownTranscriptError(Exception):
    """The content of a transcript does not show its protocol."""


def run_decode(options: Namespace) -> int:
    """Print the records of `options.file`; return the exit status."""
    try:
        if options.file == STANDARD_INPUT:
            _print_records(_pieces(sys.stdin.buffer), options.protocol)
        else:
            with Path(options.file).open("rb") as transcript:
                _print_records(_pieces(transcript), options.protocol)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _complain(f"cannot read {options.file}: {error.strerror or error}")
    except UnknownTranscriptError:
        return _complain(
            f"{options.file} does not begin like a transcript of TL1, NETCONF, Redis or gnmic: give --protocol, and "
            "export a packet capture as raw bytes of its TCP stream first"
        )
    return DONE


def _complain(sentence: str) -> int:
    sys.stderr.write(f"blast switch decode: {sentence}\n")
    return WRONG_INPUT


def _print_records(pieces: Iterable[bytes], protocol: str | None) -> None:
    for record in records(pieces, None if protocol is None else TranscriptProtocol(protocol)):
        sys.stdout.write(f"{json.dumps(record)}\n")
        sys.stdout.flush()


def _pieces(transcript: BinaryIO) -> Iterator[bytes]:
    # Read whatever is available, so that the output of a pipe appears at once.
    read = getattr(transcript, "read1", transcript.read)
    while chunk := read(_CHUNK):
        yield chunk


def records(pieces: Iterable[bytes], protocol: TranscriptProtocol | None = None) -> Iterator[Record]:
    """Return the records of a transcript.

    Parameters
    ----------
    pieces : Iterable[bytes]
        The transcript, in pieces of any size.
    protocol : TranscriptProtocol | None
        Its protocol. None: the one that its content shows.

    Yields
    ------
    Record
        The records; none if the transcript is empty.

    Raises
    ------
    UnknownTranscriptError
        If the content does not show the protocol.
    """
    decoder = None if protocol is None else _DECODERS[protocol]()
    beginning = b""
    for piece in pieces:
        if decoder is not None:
            yield from decoder.feed(piece)
            continue
        beginning += piece
        if (found := recognize(beginning)) is not None:
            decoder = _DECODERS[found]()
            yield from decoder.feed(beginning)
        elif len(beginning) > MAX_UNRECOGNIZED:
            raise UnknownTranscriptError
    if decoder is not None:
        yield from decoder.finish()
    elif beginning.strip():
        raise UnknownTranscriptError
