"""Instance files: the JSON that `blast plan` reads.

    {"racks": 8, "ports_per_rack": 1, "splitters": [{"fan_out": 4, "count": 2}],
     "requests": [{"id": "a", "sender": 0, "receivers": [1, 2, 3], "weight": 900}],
     "max_splitters_per_tree": null, "directional": false, "loop_leaf": false}

`ports_per_rack` is one number, or a list with one for each rack; the last three keys may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.base.json_input import parse_json
from blast_sim.base.wrong_input import InputError, entry_of, first_repeated, list_of, number, shown, truth, whole

MAX_RACKS = 100_000
MAX_PIECES = 1_000_000
MAX_FAN_OUT = 4096
MIN_WEIGHT, MAX_WEIGHT = 1e-15, 1e15
"""Range in which sums of weights stay within the solver's tolerances; choose the unit accordingly."""

NEEDED = ("racks", "ports_per_rack", "splitters", "requests")
OPTIONAL = ("max_splitters_per_tree", "directional", "loop_leaf")


def read_instance(path: Path) -> Instance:
    """Read the instance in a file. Raises InputError, OSError."""
    return parse_instance(path.read_bytes())


def parse_instance(data: bytes) -> Instance:
    """Parse the instance in these bytes. Raises InputError."""
    top = entry_of(parse_json(data, "instance", _request_of), "the instance", NEEDED, OPTIONAL)
    racks = whole(top["racks"], "racks", 1, MAX_RACKS)
    entries = list_of(top["requests"], "requests")
    requests = tuple(_request(entry, place, racks) for place, entry in enumerate(entries, start=1))
    twice = first_repeated(request.name for request in requests)
    if twice is not None:
        raise InputError(f"request {shown(twice)}: this id is there twice, but ids must differ")
    directional, loop_leaf = (truth(top.get(key, False), key) for key in ("directional", "loop_leaf"))
    if directional and loop_leaf:
        raise InputError("directional and loop_leaf cannot both be true: the sender's receiver has one use only")
    limit = top.get("max_splitters_per_tree")
    instance = Instance(
        _ports(top["ports_per_rack"], racks),
        _pool(top["splitters"]),
        requests,
        None if limit is None else whole(limit, "max_splitters_per_tree", 0, MAX_PIECES),
        directional,
        loop_leaf,
    )
    _check_splitters(instance)
    return instance


def _check_splitters(instance: Instance) -> None:
    """Raise InputError if a request needs a splitter and the pool is empty, which is most likely a mistake.

    With a pool that is too small, the allocation rejects requests instead.
    """
    if any(instance.pool.values()):
        return
    for request in instance.requests:
        if instance.leaves(request) > 1:
            raise InputError(f"request {shown(request.name)} needs a splitter, but splitters lists none")


def _request_of(pairs: Sequence[tuple[str, object]]) -> str:
    return next((f"request {shown(value)}: " for key, value in pairs if key == "id"), "")


def _ports(value: object, racks: int) -> tuple[int, ...]:
    if not isinstance(value, list):
        return (whole(value, "ports_per_rack", 0, MAX_PIECES),) * racks
    if len(value) != racks:
        raise InputError(f"ports_per_rack has {len(value)} entries for {racks} racks: give one each, or one number")
    return tuple(whole(ports, f"ports_per_rack of rack {rack}", 0, MAX_PIECES) for rack, ports in enumerate(value))


def _pool(value: object) -> dict[int, int]:
    pool: dict[int, int] = {}
    for place, item in enumerate(list_of(value, "splitters"), start=1):
        where = f"entry {place} of splitters"
        entry = entry_of(item, where, ("fan_out", "count"))
        fan_out = whole(entry["fan_out"], f"{where}: ways", 2, MAX_FAN_OUT)
        if fan_out in pool:
            raise InputError(f"{where}: 1:{fan_out} is there twice: add the counts up")
        pool[fan_out] = whole(entry["count"], f"{where}: count", 0, MAX_PIECES)
    return pool


def _request(value: object, place: int, racks: int) -> InstanceRequest:
    where = f"request {shown(value['id'])}" if isinstance(value, dict) and "id" in value else f"request number {place}"
    entry = entry_of(value, where, ("id", "sender", "receivers", "weight"))
    if not isinstance(entry["id"], str) or not entry["id"]:
        raise InputError(f"{where}: id must be a text of at least one character")
    sender = whole(entry["sender"], f"{where}: sender", 0, racks - 1)
    receivers = [
        whole(rack, f"{where}: a receiver", 0, racks - 1) for rack in list_of(entry["receivers"], f"{where}: receivers")
    ]
    if not receivers:
        raise InputError(f"{where}: receivers must name at least one rack")
    if sender in receivers:
        raise InputError(f"{where}: its sender, rack {sender}, is among its receivers: leave it out there")
    twice = first_repeated(receivers)
    if twice is not None:
        raise InputError(f"{where}: rack {twice} is there twice among its receivers")
    weight = number(entry["weight"], f"{where}: weight", MIN_WEIGHT, MAX_WEIGHT)
    return InstanceRequest(entry["id"], sender, tuple(receivers), weight)
