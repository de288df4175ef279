"""Which labs exist on this machine: one directory each under /run/blast-lab, which is also the claim on the id.

A lab that has much to keep for a short time keeps it in memory, in a directory of its own under /dev/shm.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from blast_base.json_types import JsonObject
from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.names import Names, is_lab_id, owner

ROOT = Path("/run/blast-lab")
_MEMORY = Path("/dev/shm")
_STATE = "lab.json"
_ATTEMPTS = 1000
"""More labs than fit on a machine."""


def claim() -> Names:
    """Return a free lab id, claimed by creating its directory. Raises `HostError` if none is available."""
    taken = {owner(entry.name) for entry in Path("/sys/class/net").iterdir()}
    for _ in range(_ATTEMPTS):
        names = Names(f"b{secrets.token_hex(2)[:3]}")
        if names.lab not in taken and _claimed(directory(names.lab)):
            write_state(names.lab, {})
            return names
    raise HostError(f"no lab id is free: remove old labs (`blast lab down`) or clear {ROOT}")


def directory(lab: str) -> Path:
    """Return the directory of a lab's state and logs."""
    return ROOT / lab


def memory(lab: str) -> Path:
    """Return the folder for a lab's data in memory; the user of it creates it."""
    return _MEMORY / f"blast-lab-{lab}"


def known_labs() -> list[str]:
    """Return the ids that have a directory."""
    return sorted(entry.name for entry in ROOT.iterdir() if is_lab_id(entry.name)) if ROOT.is_dir() else []


def labs_built_by(pid: int) -> list[str]:
    """Return the ids of the labs that process `pid` owns or, if it has ended, owned."""
    return [lab for lab in known_labs() if read_state(lab).get("owner", {}).get("pid") == pid]


def write_state(lab: str, state: Mapping[str, object]) -> None:
    """Write down what the lab is, and which process owns it (the caller's)."""
    pid = os.getpid()
    text = json.dumps({"lab": lab, "owner": {"pid": pid, "started": started(pid)}, **state}, indent=2)
    temporary = directory(lab) / f"{_STATE}.new"
    temporary.write_text(text + "\n")
    temporary.rename(directory(lab) / _STATE)


def read_state(lab: str) -> JsonObject:
    """Return the data of `write_state`, or an empty dict if it was never called."""
    try:
        state: JsonObject = json.loads((directory(lab) / _STATE).read_text())
    except FileNotFoundError:
        return {}
    return state


def owner_process(lab: str) -> int | None:
    """Return the living process that owns the lab, or None.

    A process that only got its number later is not it.
    """
    process = read_state(lab).get("owner")
    if process is None or started(process["pid"]) != process["started"]:
        return None
    pid: int = process["pid"]
    return pid


def started(pid: int) -> int | None:
    """Return the start time of a process, or None if it has ended.

    The time is in clock ticks since the start of the machine (proc(5), field 22).
    """
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = status.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _claimed(place: Path) -> bool:
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        return False
    return True
