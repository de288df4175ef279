"""A snapshot as rows: a name, and plain values for JSON. Equal snapshots give equal rows, whatever their source.

Fields have the names of the Thrift interface where they have the same meaning. Times are seconds on the core's clock,
with a precision of a millisecond; `Moment` converts them.
"""

from __future__ import annotations

from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import Device, device_name
from blast_controller.core.model.requests import Grant, RequestKey, Timings, TransferReport
from blast_controller.core.snapshot.facts import PartFacts, RequestFacts, TreeFacts, WarmFacts
from blast_controller.core.snapshot.snapshot import Standings

Value = dict[str, object]

MAX_MARGINS = 16
"""Of one grant: those of the leaves with the least margin."""
FABRIC = "fabric"
WARM = "warm"


def request_name(key: RequestKey) -> str:
    """Return the row of a request. No tenant's name has a slash."""
    return f"request/{key[0]}/{key[1]}"


def tree_name(reservation: int) -> str:
    """Return the row of a reservation."""
    return f"tree/{reservation}"


def unit_name(unit: str) -> str:
    """Return the row of a rack, by name, or of a splitter or static tree, by element."""
    return f"unit/{unit}"


def away_name(device: Device) -> str:
    """Return the row of a device that is away."""
    return f"away/{device_name(device)}"


# ------------------------------------------------------------------------------------------------------ values


def fabric_value(fabric: Fabric) -> Value:
    """Return the static description of the fabric."""
    return {
        "opticalRateBitsPerSecond": int(fabric.light_rate),
        "racks": [
            {
                "name": rack.name,
                "datapath": f"{rack.datapath:016x}",
                "device": device_name(rack.datapath),
                "hosts": [host.name for host in fabric.hosts_by_rack[rack.name]],
                "opticalPorts": [
                    {
                        "element": port.element,
                        "port": port.port,
                        "opticalSwitch": port.switch,
                        "switchInput": port.input,
                        "switchOutput": port.output,
                    }
                    for port in rack.optical_ports
                ],
            }
            for rack in fabric.racks.values()
        ],
        "splitters": [
            {
                "element": splitter.element,
                "name": splitter.name,
                "fanOut": splitter.fan_out,
                "opticalSwitch": splitter.switch,
                "switchOutput": splitter.input,
                "switchInputs": list(splitter.outputs),
            }
            for splitter in fabric.splitters.values()
        ],
        "opticalSwitches": list(fabric.switches),
        "staticTrees": list(fabric.static_trees),
    }


def request_value(facts: RequestFacts) -> Value:
    """Return a request with its parts."""
    current = facts.current
    optional = {
        "maxBitsPerSecond": current.max_rate,
        "pending_timeout": _seconds(current.pending_timeout),
        "deadline": _seconds(current.deadline),
        "priority": current.priority,
        "maySplit": current.may_split,
        "mayPause": current.may_pause,
    }
    return {
        "key": current.key,
        "tenant": current.tenant,
        "state": facts.state.value,
        "sender": current.sender,
        "receivers": list(current.receivers),
        "bytes": current.bytes,
        "receivedAt": _seconds(facts.received_at),
        "arrival": facts.arrival,
        "latestSequence": facts.latest_event,
        **{name: value for name, value in optional.items() if value},
        "parts": [_part(part, facts) for part in facts.parts],
    }


def _part(part: PartFacts, request: RequestFacts) -> Value:
    value: Value = {"part": part.number, "state": part.state.value}
    # A part usually has all receivers of its request, which the row has already.
    if part.receivers != request.current.receivers:
        value["receivers"] = list(part.receivers)
    if part.reason is not None:
        value["reason"] = part.reason
    if part.lease_end is not None:
        value["leaseEndsAt"] = _seconds(part.lease_end)
    if part.reached:
        value["progressBytes"] = part.reached
    if part.grant is not None:
        value["grant"] = _grant(part.grant)
    if part.report is not None:
        value["report"] = _report(part.report)
    return value


def _grant(grant: Grant) -> Value:
    value: Value = {
        "reservation": grant.reservation,
        "groupAddress": grant.group_address,
        "groupPort": grant.group_port,
        "rateBitsPerSecond": int(grant.rate),
        "lease": _seconds(grant.lease),
        "firstByte": grant.first_byte,
        "timings": _timings(grant.timings),
    }
    if grant.unserved:
        value["pendingReceivers"] = list(grant.unserved)
    if grant.margins:
        value["margins"] = [
            {
                "rack": margin.rack,
                "receivedDbm": round(margin.received, 2),
                "sensitivityMarginDb": round(margin.sensitivity, 2),
                "overloadMarginDb": round(margin.overload, 2),
                "binding": margin.binding,
            }
            for margin in grant.margins[:MAX_MARGINS]
        ]
    return value


def _timings(timings: Timings) -> Value:
    steps = {
        "computeMs": timings.compute,
        "openflowMs": timings.openflow,
        "opticalMs": timings.optical,
        "totalMs": timings.total,
    }
    return {name: round(1000 * seconds, 2) for name, seconds in steps.items() if seconds is not None}


def _report(report: TransferReport) -> Value:
    value = {
        "bytesSent": report.bytes_sent,
        "duration": _seconds(report.duration),
        "repairedBytes": report.bytes_repaired,
        "failedReceivers": list(report.failed_receivers) or None,
    }
    return {name: found for name, found in value.items() if found is not None}


def tree_value(facts: TreeFacts) -> Value:
    """Return a reservation, and the circuits that make its light tree: [switch, input, output], roots before leaves."""
    tree = facts.layout.tree
    return {
        "reservation": facts.reservation,
        "tenant": facts.request[0],
        "key": facts.request[1],
        "part": facts.part,
        "state": facts.state.value,
        "groupAddress": facts.group_address,
        "rootRack": facts.root,
        "leafRacks": [leaf.port.rack for leaf in tree.leaves] if tree else [],
        "splitters": [hung.splitter.name for hung in tree.splitters] if tree else [],
        "crossConnects": [[c.switch, c.input, c.output] for c in facts.layout.circuits],
        "datapaths": [f"{datapath:016x}" for datapath in sorted(facts.layout.forwards)],
    }


def unit_value(standings: Standings) -> Value:
    """Return those of a unit's elements that are not free: holders (a reservation, 0: probes) and faults."""
    found: Value = {}
    for element in sorted(standings):
        holder, unusable = standings[element]
        standing = {"holder": holder, "unusable": unusable}
        found[element] = {name: value for name, value in standing.items() if value is not None}
    return found


def away_value(reason: str) -> Value:
    """Return a device that is away."""
    return {"reason": reason}


def warm_value(facts: WarmFacts) -> Value:
    """Return the warm trees and their counts."""
    return {
        "trees": facts.trees,
        "opticalGrants": facts.counts.lit,
        "warmHits": facts.counts.hits,
        "evicted": facts.counts.gave_way,
        "reclaimed": facts.counts.taken_over,
        "pieces": [
            {"opticalSwitch": s.switch, "fanOut": s.fan_out, "dark": s.dark, "lit": s.lit, "reserve": s.reserve}
            for s in (facts.reserves[place] for place in sorted(facts.reserves))
        ],
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
