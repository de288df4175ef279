"""A trace made small enough for a lab: racks folded onto fewer, less to send, sooner.

Rack r becomes rack r mod N. A group that is then within one rack needs no light, and is dropped and counted. A scaled
trace is written in the coflow format, one mapper a coflow, so that `--volume maximum` reads it as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from blast_sim.base.wrong_input import InputError
from blast_sim.traces.coflow_file import Coflow, CoflowTrace
from blast_sim.traces.workload import MEGABYTE, TraceMulticast, Workload


def scaled(workload: Workload, racks: int, scale: float, speed: float) -> Workload:
    """Return the multicasts folded onto `racks` racks, with scaled sizes and arrivals.

    Bytes are divided by `scale`, and arrivals by `speed` (to the millisecond). Shuffles are left out. Raises InputError
    if no group is left.
    """
    folded = [_folded(one, racks) for one in workload.multicasts]
    kept = tuple(_shrunk(one, scale, speed) for one in folded if one.receivers)
    if not kept:
        raise InputError(f"every group of the trace is within one of {racks} racks: fold it onto more")
    scaling = {"folded_onto": racks, "scale": scale, "speed": speed, "within_a_rack": len(folded) - len(kept)}
    return Workload(racks, kept, (), {**workload.rules, **scaling})


def as_coflows(workload: Workload) -> CoflowTrace:
    """Return the multicasts as coflows of one mapper, for a file."""
    return CoflowTrace(workload.racks, tuple(_coflows(workload.multicasts)))


def _folded(one: TraceMulticast, racks: int) -> TraceMulticast:
    sender = one.sender % racks
    receivers = {receiver % racks for receiver in one.receivers} - {sender}
    return replace(one, sender=sender, receivers=tuple(sorted(receivers)))


def _shrunk(one: TraceMulticast, scale: float, speed: float) -> TraceMulticast:
    return replace(one, arrival=round(one.arrival / speed, 3), bytes=max(1, math.ceil(one.bytes / scale)))


def _coflows(multicasts: Iterable[TraceMulticast]) -> Iterable[Coflow]:
    for one in multicasts:
        sizes = (one.bytes / MEGABYTE,) * len(one.receivers)
        yield Coflow(one.name, round(one.arrival * 1000), (one.sender,), one.receivers, sizes)
