"""Text of requests, grants and the live view, as pure functions of the controller's answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from blast_api.ttypes import Explanation, FabricStatus, Grant, PartState, RequestStatus
from blast_client.cli.json_form import state_name
from blast_client.cli.text_table import shortened, text_table
from blast_client.cli.units import format_bytes, format_ms, format_rate

_DEFAULT_TENANT = "default"


def describe_grant(grant: Grant, size: int) -> str:
    """Describe a grant for a transfer of `size` bytes."""
    lines = [
        f"granted {grant.key}, part {grant.part}",
        f"  group      {grant.groupAddress}:{grant.groupPort} (UDP), at most {format_rate(grant.rateBitsPerSecond)}",
        f"  receivers  {shortened(grant.receivers)}",
        f"  transfer   {format_ms(grant.estimatedServiceMs)} ({format_bytes(size)} at "
        f"{format_rate(grant.rateBitsPerSecond)}); lease {format_ms(grant.leaseMs)}",
    ]
    if grant.pendingReceivers:
        lines.append(f"  pending    {shortened(grant.pendingReceivers)}")
    lines += [f"  setup      {timings}" for timings in [_timings(grant)] if timings]
    lines += [f"  power      {margin}" for margin in [_min_margin(grant)] if margin]
    lines.append(f"  when done  blast finish {grant.key}" + (f" --part {grant.part}" if grant.part else ""))
    return "\n".join(lines)


def describe_request(status: RequestStatus) -> str:
    """Describe a request with its parts."""
    lines = [
        f"{status.key}: {state_name(status.state)}, {format_bytes(status.bytes)} from {status.sender} "
        f"to {shortened(status.receivers)}, {format_ms(status.ageMs)} old"
    ]
    for part in status.parts:
        line = f"  part {part.part}: {state_name(part.state)}"
        if part.grant is not None:
            line += f", group {part.grant.groupAddress}:{part.grant.groupPort} at "
            line += format_rate(part.grant.rateBitsPerSecond)
        if part.leaseLeftMs is not None:
            line += f", lease ends in {format_ms(part.leaseLeftMs)}"
        lines.append(line + (f" ({part.reason})" if part.reason else ""))
        margin = _min_margin(part.grant) if part.grant is not None else ""
        lines += [f"    power: {margin}"] if margin else []
    return "\n".join(lines)


def describe_explanation(explanation: Explanation) -> str:
    """Describe the reasons that block a request, one in each line."""
    lines = [explanation.message]
    lines += [f"  blocked by  {blocker}" for blocker in explanation.blockers or ()]
    if explanation.suggestion:
        lines.append(f"  to start    {explanation.suggestion}")
    return "\n".join(lines)


def warned(warnings: Sequence[str] | None) -> list[str]:
    """Return the controller's warnings as one block; empty if there are none."""
    return ["\n".join(f"WARNING: {sentence}" for sentence in warnings)] if warnings else []


def request_table(requests: Sequence[RequestStatus], width: int) -> str:
    """Return a table of requests of at most `width` columns; keys are TENANT/KEY if there are several tenants."""
    if not requests:
        return "no requests"
    tenants = any(request.tenant != _DEFAULT_TENANT for request in requests)
    rows = [[f"{r.tenant}/{r.key}" if tenants else r.key, *_row(r)] for r in requests]
    return text_table(["KEY", "STATE", "AGE", "SIZE", "FROM", "TO", "NOTE"], rows, width)


def top_screen(fabric: FabricStatus, requests: Sequence[RequestStatus], controller: str, width: int) -> str:
    """Return the live view of at most `width` columns: free resources, light trees, unfinished requests."""
    ports = [port for rack in fabric.racks for port in rack.opticalPorts]
    free_ports = sum(port.reservation is None and not port.unusable for port in ports)
    free_splitters = [s for s in fabric.splitters if s.reservation is None and not s.unusable]
    active = sum(request.state == PartState.ACTIVE for request in requests)
    away = [switch.name for switch in fabric.opticalSwitches if not switch.connected]
    away += [rack.name for rack in fabric.racks if not rack.connected]
    blocks = [
        f"controller {controller}   light {format_rate(fabric.opticalRateBitsPerSecond)}\n"
        f"requests   {active} active, {fabric.pendingParts} pending\n"
        f"splitters  {len(free_splitters)} of {len(fabric.splitters)} free {_bar(fabric)}\n"
        f"ports      {free_ports} of {len(ports)} optical ports free",
        light_tree_table(fabric, width),
        request_table(requests, width),
    ]
    if away:
        blocks.insert(1, f"DISCONNECTED: {', '.join(away)}")
    blocks[1:1] = warned(fabric.warnings)
    return "\n\n".join(blocks)


def light_tree_table(fabric: FabricStatus, width: int = sys.maxsize) -> str:
    """Return a table of light trees of at most `width` columns."""
    if not fabric.lightTrees:
        return "no light trees"
    rows = [
        [
            str(tree.reservation),
            tree.key,
            tree.state,
            tree.groupAddress,
            tree.rootRack,
            ", ".join(tree.splitters) or "–",
            shortened(tree.leafRacks),
        ]
        for tree in fabric.lightTrees
    ]
    return text_table(["TREE", "KEY", "STATE", "GROUP", "ROOT", "SPLITTERS", "LEAVES"], rows, width)


def _row(status: RequestStatus) -> list[str]:
    note = next((part.reason for part in status.parts if part.reason), "")
    lease = next((part.leaseLeftMs for part in status.parts if part.leaseLeftMs is not None), None)
    return [
        state_name(status.state),
        format_ms(status.ageMs),
        format_bytes(status.bytes),
        status.sender,
        shortened(status.receivers, 4),
        note or (f"lease ends in {format_ms(lease)}" if lease is not None else ""),
    ]


def _timings(grant: Grant) -> str:
    if grant.timings is None:
        return ""
    steps = {
        "computation": grant.timings.computeMs,
        "OpenFlow": grant.timings.openflowMs,
        "optical switch": grant.timings.opticalMs,
    }
    shown = ", ".join(f"{name} {format_ms(value)}" for name, value in steps.items() if value is not None)
    if grant.timings.totalMs is None:
        return shown
    return format_ms(grant.timings.totalMs) + (f" ({shown})" if shown else "")


def _min_margin(grant: Grant) -> str:
    """Describe the power budget of the leaf with the minimum margin; empty if losses are not configured."""
    if not grant.margins:
        return ""
    leaf = grant.margins[0]
    text = f"minimum margin at {leaf.rack}"
    if leaf.receivedDbm is not None:
        text += f", which receives {leaf.receivedDbm:.1f} dBm"
    if leaf.sensitivityMarginDb is not None and leaf.overloadMarginDb is not None:
        text += f": {leaf.sensitivityMarginDb:+.1f} dB to sensitivity, {leaf.overloadMarginDb:+.1f} dB to overload"
    return text + (f" (limited by {leaf.limitingElement})" if leaf.limitingElement else "")


def _bar(fabric: FabricStatus) -> str:
    """Return one character for each splitter: free, in use or unusable."""
    return "".join("×" if s.unusable else "·" if s.reservation is None else "■" for s in fabric.splitters)
