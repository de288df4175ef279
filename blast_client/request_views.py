"""Requests, grants and the live view as text: pure functions from what the controller said to what is shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from blast_api.ttypes import Explanation, FabricStatus, Grant, PartState, RequestStatus
from blast_client.json_form import state_name
from blast_client.text_table import shortened, text_table
from blast_client.units import format_bytes, format_ms, format_rate

_DEFAULT_TENANT = "default"


def describe_grant(grant: Grant, size: int) -> str:
    """A grant for somebody who is about to send `size` bytes."""
    lines = [
        f"granted {grant.key}, part {grant.part}",
        f"  send to    {grant.groupAddress}:{grant.groupPort} (UDP), never faster than "
        f"{format_rate(grant.rateBitsPerSecond)}",
        f"  receivers  {shortened(grant.receivers)}",
        f"  takes      {format_ms(grant.estimatedServiceMs)} for {format_bytes(size)}; "
        f"the light is yours for {format_ms(grant.leaseMs)}",
    ]
    if grant.pendingReceivers:
        lines.append(f"  not yet    {shortened(grant.pendingReceivers)}")
    lines += [f"  set up in  {timings}" for timings in [_timings(grant)] if timings]
    lines += [f"  light      {margin}" for margin in [_min_margin(grant)] if margin]
    lines.append(f"  afterwards blast finish {grant.key}" + (f" --part {grant.part}" if grant.part else ""))
    return "\n".join(lines)


def describe_request(status: RequestStatus) -> str:
    """One request with its parts."""
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
        lines += [f"    light: {margin}"] if margin else []
    return "\n".join(lines)


def describe_explanation(explanation: Explanation) -> str:
    """What blocks a request, one blocker a line."""
    lines = [explanation.message]
    lines += [f"  blocked by  {blocker}" for blocker in explanation.blockers or ()]
    if explanation.suggestion:
        lines.append(f"  to start    {explanation.suggestion}")
    return "\n".join(lines)


def warned(warnings: Sequence[str] | None) -> list[str]:
    """What is to be known of the controller itself, as a block of its own; nothing where there is nothing."""
    return ["\n".join(f"WARNING: {sentence}" for sentence in warnings)] if warnings else []


def request_table(requests: Sequence[RequestStatus], most: int) -> str:
    """Many requests, one a line of `most` columns; TENANT/KEY where there are other tenants than the default one."""
    if not requests:
        return "no requests"
    tenants = any(request.tenant != _DEFAULT_TENANT for request in requests)
    rows = [[f"{r.tenant}/{r.key}" if tenants else r.key, *_row(r)] for r in requests]
    return text_table(["KEY", "STATE", "AGE", "SIZE", "FROM", "TO", "NOTE"], rows, most)


def top_screen(fabric: FabricStatus, requests: Sequence[RequestStatus], controller: str, most: int) -> str:
    """The live view, with tables of `most` columns: what is free, the light trees, the unfinished requests."""
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
        light_tree_table(fabric, most),
        request_table(requests, most),
    ]
    if away:
        blocks.insert(1, f"AWAY: {', '.join(away)}")
    blocks[1:1] = warned(fabric.warnings)
    return "\n\n".join(blocks)


def light_tree_table(fabric: FabricStatus, most: int = sys.maxsize) -> str:
    """The light trees, one a line."""
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
    return text_table(["TREE", "KEY", "STATE", "GROUP", "ROOT", "SPLITTERS", "LEAVES"], rows, most)


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
    """How well the leaf with the smallest margin is lit; nothing where no losses are known."""
    if not grant.margins:
        return ""
    least = grant.margins[0]
    text = f"least margin at {least.rack}"
    if least.receivedDbm is not None:
        text += f", which receives {least.receivedDbm:.1f} dBm"
    if least.sensitivityMarginDb is not None and least.overloadMarginDb is not None:
        text += f": {least.sensitivityMarginDb:+.1f} dB to sensitivity, {least.overloadMarginDb:+.1f} dB to overload"
    return text + (f" ({least.limitingElement} binds)" if least.limitingElement else "")


def _bar(fabric: FabricStatus) -> str:
    """One sign a splitter: free, in use, unusable."""
    return "".join("×" if s.unusable else "·" if s.reservation is None else "■" for s in fabric.splitters)
