"""Tables of the fabric for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from blast_api.ttypes import FabricStatus, OpticalPortStatus, RackStatus, StaticTreeStatus, WarmStatus
from blast_client.cli.request_views import light_tree_table, warned
from blast_client.cli.text_table import shortened, text_table
from blast_client.cli.units import format_rate


def fabric_table(fabric: FabricStatus) -> str:
    """Return tables of optical switches, splitters, racks with their optical ports, and light trees."""
    return "\n\n".join(
        [
            *warned(fabric.warnings),
            f"light {format_rate(fabric.opticalRateBitsPerSecond)}, {fabric.pendingParts} requests pending",
            _switches(fabric),
            _splitters(fabric),
            *([_static_trees(fabric.staticTrees)] if fabric.staticTrees else []),
            _racks(fabric.racks),
            light_tree_table(fabric),
            *([_warm(fabric.warm)] if fabric.warm is not None else []),
        ]
    )


def _switches(fabric: FabricStatus) -> str:
    rows = [[s.name, "connected" if s.connected else "disconnected", s.reason or ""] for s in fabric.opticalSwitches]
    return text_table(["OPTICAL SWITCH", "STATE", "NOTE"], rows)


def _warm(warm: WarmStatus) -> str:
    """Return the number of warm trees, their hit rate, and the dark and lit resources that no request uses."""
    share = f" ({warm.warmHits / warm.opticalGrants:.0%})" if warm.opticalGrants else ""
    summary = (
        f"warm trees: {warm.trees}; grants on a warm tree: {warm.warmHits} of {warm.opticalGrants}{share}; "
        f"evicted: {warm.evicted}; reclaimed: {warm.reclaimed}"
    )
    rows = [
        [
            "optical ports" if pieces.fanOut is None else f"splitters 1:{pieces.fanOut}",
            pieces.opticalSwitch,
            *map(str, (pieces.dark, pieces.lit, pieces.reserve)),
        ]
        for pieces in warm.resources
    ]
    return summary + "\n" + text_table(["IDLE", "ON", "DARK", "KEPT LIT", "RESERVE"], rows) if rows else summary


def _splitters(fabric: FabricStatus) -> str:
    if not fabric.splitters:
        return "no splitters"
    rows = [
        [
            s.name,
            f"1:{s.fanOut}",
            f"{s.opticalSwitch} output {s.switchOutput}",
            _ranges(s.switchInputs),
            _use(s.reservation, s.unusable),
        ]
        for s in fabric.splitters
    ]
    return text_table(["SPLITTER", "FAN-OUT", "FED BY", "OUTPUTS", "USE"], rows)


def _static_trees(trees: Sequence[StaticTreeStatus]) -> str:
    rows = [[t.name, t.root, shortened(t.leaves), _use(t.reservation, t.unusable)] for t in trees]
    return text_table(["STATIC TREE", "ROOT", "LEAVES", "USE"], rows)


def _racks(racks: Sequence[RackStatus]) -> str:
    rows = []
    for rack in racks:
        first = [rack.name, rack.datapath, "connected" if rack.connected else "disconnected", shortened(rack.hosts)]
        for number, port in enumerate(rack.opticalPorts):
            rows.append([*(first if number == 0 else [""] * 4), *_port(port)])
        if not rack.opticalPorts:
            rows.append([*first, "none", "", ""])
    return text_table(["RACK", "TOR", "STATE", "HOSTS", "OPTICAL PORT", "SWITCH IN/OUT", "USE"], rows)


def _port(port: OpticalPortStatus) -> list[str]:
    place = f"{port.opticalSwitch} {port.switchInput}/{port.switchOutput}"
    return [str(port.port), place, _use(port.reservation, port.unusable)]


def _use(reservation: int | None, unusable: str | None) -> str:
    if unusable:
        return f"unusable: {unusable}"
    return "free" if reservation is None else f"tree {reservation}"


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as ranges: 1, 2, 3, 7 as "1-3, 7"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
