"""Network devices by `ip` and `tc` in batches, in any process's network namespace. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from mininet_topos.kernel.errors import HostError

_INTERRUPTED = "Dump was interrupted and may be inconsistent."
"""Message of `ip` and `tc` if interfaces appear or disappear while they list them, even if only for their names."""
_LOOKS = 100
"""Interfaces disappear a moment after their namespace."""


def batch(tool: str, lines: Iterable[str], namespace_pid: int | None = None) -> None:
    """Run `ip` or `tc` once on all `lines`, in the network namespace of a process (None: the caller's own).

    Raises `HostError` for any output of the tool: both print complaints and still exit with status 0.
    """
    script = "\n".join(lines)
    if script:
        run([tool, "-batch", "-"], script + "\n", namespace_pid)


def run(command: Sequence[str], stdin: str = "", namespace_pid: int | None = None) -> None:
    """Run a command that prints nothing on success. Raises `HostError` if it prints anything or fails."""
    output = query(command, stdin, namespace_pid)
    if output:
        raise HostError(f"{command[0]} failed: {output}")


def query(command: Sequence[str], stdin: str = "", namespace_pid: int | None = None) -> str:
    """Return the output of a command, stripped. Raises `HostError` if it fails or complains.

    A listing during which interfaces changed is repeated; a command with `stdin` has done its work and is not.
    """
    enter = [] if namespace_pid is None else ["mnexec", "-a", str(namespace_pid)]
    for _ in range(_LOOKS):
        try:
            done = subprocess.run([*enter, *command], input=stdin, capture_output=True, text=True, check=False)
        except FileNotFoundError as missing:
            raise HostError(f"the command {missing.filename!r} is not installed") from None
        complaints = [line for line in done.stderr.splitlines() if line.strip() not in ("", _INTERRUPTED)]
        if done.returncode or complaints:
            output = "\n".join([*complaints, done.stdout]).strip()
            raise HostError(f"{command[0]} failed: {output or f'exit status {done.returncode}'}")
        if stdin or _INTERRUPTED not in done.stderr:
            return done.stdout.strip()
    raise HostError(f"{command[0]} was interrupted {_LOOKS} times: interfaces of this machine come and go all the time")


def require_root() -> None:
    """Raise `HostError` unless the process may make namespaces and interfaces."""
    if os.geteuid() != 0:
        raise HostError("a lab makes network namespaces and bridges: run it as root")


def require_commands(*commands: str) -> None:
    """Raise `HostError` naming every command that this machine lacks."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        raise HostError(f"this machine lacks {', '.join(missing)}: install the Debian packages named in the quickstart")


def veth_pair(near: str, far: str, mtu: int, near_options: str = "", far_options: str = "") -> str:
    """Return the `ip -batch` line that makes a veth pair; options are `netns PID`, `address MAC`."""
    return f"link add name {near} mtu {mtu} {near_options} type veth peer name {far} mtu {mtu} {far_options}"


def silence_ipv6(interface: str) -> None:
    """Switch IPv6 off on an interface (or on `all`, `default`) of the calling thread's network namespace.

    Otherwise neighbor discovery would talk into the fibers as soon as an interface comes up.
    """
    switch = Path("/proc/sys/net/ipv6/conf") / interface / "disable_ipv6"
    if switch.exists():
        switch.write_text("1")
