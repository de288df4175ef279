"""An agent that says of a measurement what a test wants it to say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from blast_transport.links.dialling import Address
from blast_transport.wire.codec import FRAME
from blast_transport.wire.measuring import MeasuringMessage, encode_measuring
from tests.support.waiting import HANGING

Say = Callable[..., None]


@contextmanager
def lying_agent(name: str, script: Callable[[Say], None]) -> Iterator[Address]:
    """It hears one order, plays `script`, which is given what says messages, and closes when the other side does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_play, args=(listening, script), daemon=True)
        thread.start()
        yield (name, *listening.getsockname())
        thread.join(HANGING)


def _play(listening: socket.socket, script: Callable[[Say], None]) -> None:
    sock, _ = listening.accept()

    def say(*messages: MeasuringMessage) -> None:
        sock.sendall(b"".join(map(encode_measuring, messages)))

    with sock, suppress(OSError):
        sock.settimeout(HANGING)
        sock.recv(FRAME.unpack(sock.recv(FRAME.size, socket.MSG_WAITALL))[0], socket.MSG_WAITALL)
        script(say)
        sock.recv(1)
