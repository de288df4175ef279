"""Removal of a lab, complete and limited to this lab, whatever state its owner left it in.

Marks that survive the owner's death identify the parts of a lab: processes by `BLAST_LAB` in their environment, bridges
by `external_ids`, interfaces by their prefix. Namespaces have no name and end with the last process in them. Nothing is
found by a process's name, and no pattern can match parts of another lab.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mininet_topos.kernel.errors import HostError, PlanError
from mininet_topos.kernel.names import BRIDGE_KEY, MARK, is_lab_id, owner
from mininet_topos.kernel.netdev import query
from mininet_topos.lab import registry

_GRACE_SECONDS = 5.0
_KILLED_SECONDS = _LINKS_SECONDS = 60.0
"""Guards against waiting for ever for the kernel, which on a busy machine takes its time."""
_NOT_RUNNING = tuple(os.strerror(number) for number in (errno.ENOENT, errno.ECONNREFUSED))
"""Errors if the socket of Open vSwitch's database does not exist, or has no listener."""


@dataclass(frozen=True)
class Removed:
    """The removed parts of one lab. `bridges` is None if Open vSwitch is not running."""

    lab: str
    processes: int
    bridges: int | None
    links: int


def down(lab: str) -> Removed:
    """Remove one lab, and end the process that owns it unless that is the caller.

    Raises `PlanError` for what is no lab's id, `HostError` when something refuses to go.
    """
    if not is_lab_id(lab):
        raise PlanError(f"{lab!r} is no lab's id: give one of {', '.join(found_labs()) or 'none, as no lab exists'}")
    owners = [pid for pid in (registry.owner_process(lab),) if pid not in (None, os.getpid())]
    processes = _end({pid for pid in owners if pid is not None})
    processes += _end_marked(lab)
    bridges = _remove_bridges(lab)
    links = _remove_links(lab)
    _remove_folder(registry.memory(lab))
    _remove_folder(registry.directory(lab))
    return Removed(lab, processes, bridges, links)


def found_labs() -> list[str]:
    """Return the id of every lab of which anything is left on this machine."""
    marked = {_mark_of(pid) for pid in _processes()}
    named = {owner(entry.name) for entry in Path("/sys/class/net").iterdir()}
    bridged = (_marked_bridges() or {}).values()
    return sorted(lab for lab in {*registry.known_labs(), *marked, *named, *bridged} if lab)


def marked_processes(lab: str) -> set[int]:
    """Return every process that carries the lab's mark, except the caller."""
    return {pid for pid in _processes() if _mark_of(pid) == lab and pid != os.getpid()}


def bridges_of(lab: str) -> list[str]:
    """Return the lab's bridges in Open vSwitch."""
    return [bridge for bridge, mark in (_marked_bridges() or {}).items() if mark == lab]


def links_of(lab: str) -> list[str]:
    """Return the lab's interfaces in the namespace of the caller."""
    return [entry.name for entry in Path("/sys/class/net").iterdir() if owner(entry.name) == lab]


def _end_marked(lab: str) -> int:
    """End the processes of a lab and return their number.

    A dying process may have started another just before: look again until there is none.
    """
    ended = 0
    while pids := marked_processes(lab):
        ended += _end(pids)
    return ended


def _end(pids: Iterable[int]) -> int:
    """End processes, by handles that cannot come to mean another process; return how many there were."""
    handles = {handle: pid for pid in pids if (handle := _open(pid)) is not None}
    try:
        for handle, pid in handles.items():
            _signal(handle, _request_to_end(pid))
        for handle in _still_alive(handles, _GRACE_SECONDS):
            _signal(handle, signal.SIGKILL)
        stubborn = _still_alive(handles, _KILLED_SECONDS)
        if stubborn:
            raise HostError(f"processes {[handles[h] for h in stubborn]} do not end: the kernel holds them")
    finally:
        for handle in handles:
            os.close(handle)
    return len(handles)


def _request_to_end(pid: int) -> signal.Signals:
    """Return the signal that asks a process to end.

    An interactive shell, which is what holds a Mininet node, ignores SIGTERM.
    """
    try:
        is_node = b"\0mininet:" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        is_node = False
    return signal.SIGHUP if is_node else signal.SIGTERM


def _still_alive(handles: Iterable[int], seconds: float) -> list[int]:
    alive, deadline = list(handles), time.monotonic() + seconds
    while alive and (left := deadline - time.monotonic()) > 0:
        poller = select.poll()
        for handle in alive:
            poller.register(handle, select.POLLIN)
        ended = {handle for handle, _ in poller.poll(left * 1000)}
        alive = [handle for handle in alive if handle not in ended]
    return alive


def _open(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _signal(handle: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def _mark_of(pid: int) -> str | None:
    prefix = f"{MARK}=".encode()
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    marks = (entry[len(prefix) :].decode(errors="replace") for entry in environment if entry.startswith(prefix))
    return next((mark for mark in marks if is_lab_id(mark)), None)


def _marked_bridges() -> dict[str, str] | None:
    """Return bridge → lab for all labs, or None if Open vSwitch is installed but not running."""
    if shutil.which("ovs-vsctl") is None:
        return {}
    command = ["ovs-vsctl", "--timeout=30", "--format=json", "--columns=name,external_ids", "find", "Bridge"]
    try:
        found = query(command)
    except HostError as refusal:
        # A switch that does not run may have nothing that could be removed: many labs need none.
        if any(f"database connection failed ({reason})" in str(refusal) for reason in _NOT_RUNNING):
            return None
        raise
    # A map is ["map", [[key, value], …]] (RFC 7047, section 5.1).
    rows = [(name, dict(pairs)) for name, (_, pairs) in json.loads(found)["data"]]
    return {name: keys[BRIDGE_KEY] for name, keys in rows if BRIDGE_KEY in keys}


def _remove_bridges(lab: str) -> int | None:
    marked = _marked_bridges()
    if marked is None:
        return None
    bridges = [bridge for bridge, mark in marked.items() if mark == lab]
    if bridges:
        deletions = [word for bridge in bridges for word in ("--", "--if-exists", "del-br", bridge)]
        query(["ovs-vsctl", "--timeout=60", *deletions])
    return len(bridges)


def _remove_links(lab: str) -> int:
    """Remove the lab's interfaces and return their number.

    Most disappear with their namespace, which takes the kernel a moment. Raises HostError if some remain.
    """
    removed, deadline = 0, time.monotonic() + _LINKS_SECONDS
    while links := links_of(lab):
        if time.monotonic() > deadline:
            raise HostError(f"interfaces {', '.join(links)} do not go away")
        removed = max(removed, len(links))
        for link in links:
            _remove_link(link)
    return removed


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise HostError(f"the folder {folder} does not go away")


def _remove_link(link: str) -> None:
    try:
        query(["ip", "link", "delete", link])
    except HostError:
        # It may have gone by itself in the meantime, of which `ip` speaks in more than one way.
        if (Path("/sys/class/net") / link).exists():
            raise
