"""Figures 9 and 10: congestion notification in a lossless class, at outputs and at inputs (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blast_sim.papers.rack_fabric.models import LOCAL, SOURCE, flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Mark, Panel, PanelCase, throughput_over_time

LAST_MS = 20
SETTLED_MS = 5
"""Means are taken from here on."""
MULTICAST = ("m1", "m2", "m3", "m4")
UNICAST = ("u1", "u2", "u3")
T1, T2 = ("T1-m1", "T1-m2"), ("T2-m1", "T2-m2")
OUTPUTS = {"points": "outputs"}
INPUTS = {"points": "inputs"}
STANDARD_MARKING = {**INPUTS, "marking": "arrival"}
PAUSE_ONLY = {"points": "none"}


def _unicast(targets: Sequence[Sequence[int]]) -> list[dict[str, object]]:
    """Return unicast flows to these targets, one from each of three other leaves."""
    return [flow(name, (1 + number, 0), (targets[number],)) for number, name in enumerate(UNICAST)]


def _run(
    title: str, flows: Sequence[dict[str, object]], congestion: Mapping[str, object]
) -> Callable[[int], Sequence[PanelCase]]:
    settings: dict[str, object] = {"classes": [{"lossless": True}], "qcn": dict(congestion), "sample_ns": 250_000}

    def cases(seed: int) -> Sequence[PanelCase]:
        return [PanelCase("", 0, model(f"{title}: {congestion}", seed, LAST_MS, flows, **settings))]

    return cases


_NINE = [flow("m", SOURCE, LOCAL), *_unicast(LOCAL[:3])]
_TEN = [
    flow("T1", SOURCE, LOCAL[:2], rate_gbps=50.0),
    flow("T2", SOURCE, LOCAL[2:], rate_gbps=50.0),
    *_unicast([LOCAL[0]] * 3),
]
_NAMES = {"m": MULTICAST, "T1": T1, "T2": T2, **{name: (name,) for name in UNICAST}}


def _panel(name: str, title: str, cases: Callable[[int], Sequence[PanelCase]], *marks: Mark) -> Panel:
    x, y = Axis("ms", "time, ms"), Axis("gbps", "throughput, Gb/s")
    return Panel(name, title, x, y, cases, throughput_over_time(_NAMES), marks)


_FAIR = Mark(25, "T1's fair share")

PANELS = (
    _panel("9a", "One multicast and three unicast flows, QCN at outputs", _run("9", _NINE, OUTPUTS)),
    _panel("9b", "The same, QCN at inputs", _run("9", _NINE, INPUTS)),
    _panel("10a", "Two multicasts of one host, PAUSE only", _run("10", _TEN, PAUSE_ONLY), _FAIR),
    _panel("10b", "The same, QCN at inputs, standard marking", _run("10", _TEN, STANDARD_MARKING), _FAIR),
    _panel("10c", "The same, QCN at inputs, marking by occupancy", _run("10", _TEN, INPUTS), _FAIR),
    _panel("10d", "The same, standard QCN at outputs", _run("10", _TEN, OUTPUTS), _FAIR),
)
