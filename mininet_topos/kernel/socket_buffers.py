"""Socket buffers wide enough for emulated light.

Open vSwitch's user-space datapath reads every port by a packet socket of its own and writes all ports by one. With the
kernel's default of 212992 bytes each holds some 15 jumbo frames, 10 ms of light at 100 Mbit/s: when its process waits
longer than that for a processor, or sends the burst that has come meanwhile, packets are lost that no fiber loses.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

RECEIVE_BYTES = 4 << 20
"""Defaults of 200 kB lose datagrams whenever a user-space switch is late."""
SEND_BYTES = 32 << 20

_SO_SNDBUFFORCE = 32
"""Of Linux; the socket module lacks it."""
_SYS_PIDFD_GETFD = 438
"""Number of the system call, the same on all architectures."""
_libc = ctypes.CDLL(None, use_errno=True)


def raise_receive_default() -> None:
    """Widen the receive buffer of every socket opened from now on, the ports of new bridges among them.

    It is the machine's default, and only ever raised; Mininet tunes the machine's limits in the same way. In a network
    namespace other than the machine's first, such as a container's, the file is absent, or refuses writes (Linux 6.18):
    there the machine has to raise the default.
    """
    default = Path("/proc/sys/net/core/rmem_default")
    if default.exists() and int(default.read_text()) < RECEIVE_BYTES:
        with suppress(PermissionError):
            default.write_text(str(RECEIVE_BYTES))


def widen_send_buffer() -> bool:
    """Widen Open vSwitch's send buffer, and return whether it was there to be widened.

    It is not before the first packet was sent, nor where the kernel does not let us reach it (a container without
    CAP_SYS_PTRACE): then start Open vSwitch under `sysctl net.core.wmem_default=33554432`, or expect loss on a busy
    machine.
    """
    found = False
    for sender in _senders(_vswitchd_pid()):
        if sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < SEND_BYTES:
            sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, SEND_BYTES)
        found = True
    return found


def _vswitchd_pid() -> int:
    rundir = Path(os.environ.get("OVS_RUNDIR", "/var/run/openvswitch"))
    try:
        return int((rundir / "ovs-vswitchd.pid").read_text())
    except (OSError, ValueError):
        return 0


def _senders(pid: int) -> Iterator[socket.socket]:
    """Yield handles of the packet sockets of a process that are bound to no interface.

    The process only writes by these sockets.
    """
    try:
        process = os.pidfd_open(pid)
    except (OSError, ValueError):
        return
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if _is_socket(entry) and (copy := _copy(process, int(entry.name))) is not None:
                with copy:
                    if copy.family == socket.AF_PACKET and not copy.getsockname()[0]:
                        yield copy
    finally:
        os.close(process)


def _is_socket(entry: Path) -> bool:
    try:
        return str(entry.readlink()).startswith("socket:")
    except (FileNotFoundError, PermissionError):
        return False


def _copy(process: int, number: int) -> socket.socket | None:
    handle = _libc.syscall(_SYS_PIDFD_GETFD, process, number, 0)
    return socket.socket(fileno=handle) if handle >= 0 else None
