"""What has just come, held for the successor: the same pages, copied neither from the file nor to it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
from contextlib import suppress

_F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
_NONBLOCK = 2  # SPLICE_F_NONBLOCK, the only flag that tee knows.

_libc = ctypes.CDLL(None, use_errno=True)
_libc.tee.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint)
_libc.tee.restype = ctypes.c_ssize_t


def open_pipe() -> tuple[int, int]:
    """A reader and a writer, with room for more than is taken in one go: a packet needs a page, however short."""
    reader, writer = os.pipe()
    with suppress(OSError):  # Not allowed to this user: the usual 64 KiB will do.
        fcntl.fcntl(writer, _F_SETPIPE_SZ, PIPE_BYTES)
    return reader, writer


class RelayPipe:
    """The bytes from `start` to before `stop`.

    Only what the successor wants next is held: once it lags further behind than a pipe holds, the file serves it until
    it has caught up.
    """

    def __init__(self) -> None:
        self.start = self.stop = 0
        self.wanted = -1
        self._reader, self._writer = open_pipe()

    def copy(self, pipe: int, offset: int, count: int) -> None:
        """The next `count` bytes in `pipe` are those from `offset` on; they stay there."""
        if self.start == self.stop:
            if offset != self.wanted:
                return
            self.start = self.stop = offset
        if offset == self.stop:
            copied = _libc.tee(pipe, self._writer, count, _NONBLOCK)
            self.stop += max(0, copied)

    def give(self, sock: socket.socket, offset: int, limit: int) -> int:
        """Send what is held from `offset` on; 0 if that is nothing. Raises OSError of the socket."""
        self.wanted = offset
        if not self.start <= offset < self.stop:
            return 0
        assert offset == self.start
        sent = os.splice(self._reader, sock.fileno(), min(limit, self.stop - offset))
        self.start += sent
        self.wanted += sent
        return sent

    def close(self) -> None:
        """Give back the pipe."""
        os.close(self._reader)
        os.close(self._writer)
