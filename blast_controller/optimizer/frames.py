"""Messages between the controller and its optimizer's process: Python objects, each after its length in four bytes."""

from __future__ import annotations

import pickle
import struct

LENGTH = struct.Struct("!I")


def frame(message: object) -> bytes:
    """Return a message as bytes."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body
