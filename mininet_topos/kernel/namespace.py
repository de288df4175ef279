"""Do something inside another process's network namespace without leaving one's own. Standard library only.

A thread has a namespace of its own, and a socket stays in the one where it was opened: so a short-lived thread
enters, opens, and ends. (`os.setns` exists from Python 3.12 on.)
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from mininet_topos.kernel.errors import HostError

_CLONE_NEWNET = 0x40000000
"""Of Linux (sched.h); the os module has it only from Python 3.12 on."""
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def enter_network_of(pid: int) -> None:
    """Move the calling thread, and those it starts from now on, into a process's network namespace, for good.

    Raises `HostError` when the process is gone or the kernel refuses.
    """
    try:
        with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
            if _libc.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    except OSError as refusal:
        raise HostError(f"cannot enter the network namespace of process {pid}: {refusal}") from refusal


def run_in_network_of(pid: int, action: Callable[[], T]) -> T:
    """Call `action` in a process's network namespace, in a thread of its own; returns or raises what it does."""
    visit = _Visit(pid, action)
    visit.start()
    visit.join()
    if visit.error is not None:
        raise visit.error
    return visit.result


def open_socket(pid: int, family: socket.AddressFamily, kind: socket.SocketKind, protocol: int = 0) -> socket.socket:
    """Open a socket (UDP, TCP, AF_PACKET …) in a process's network namespace."""
    return run_in_network_of(pid, lambda: socket.socket(family, kind, protocol))


class _Visit(threading.Thread, Generic[T]):
    result: T

    def __init__(self, pid: int, action: Callable[[], T]) -> None:
        super().__init__(name=f"visit-{pid}", daemon=True)
        self._pid, self._action = pid, action
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            enter_network_of(self._pid)
            self.result = self._action()
        except BaseException as error:  # noqa: BLE001 - top of the thread: handed to the caller
            self.error = error
