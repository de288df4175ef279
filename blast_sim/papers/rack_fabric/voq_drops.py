"""Figure 6: a congested copy among eight, by what VOQs drop (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blast_sim.papers.rack_fabric.models import LOCAL, MILLISECOND, REMOTE, SOURCE, flow, model
from blast_sim.papers.rack_fabric.panel import Axis, Mark, Panel, PanelCase, throughput_over_time

LINES = ("m1 (congested)", "m2", "m3", "m4", "m5 (remote)", "m6 (remote)", "m7 (remote)", "m8 (remote)")
CONGESTED, OTHERS = LINES[0], LINES[1:]
PERIODS = ((1, 2, 7), (2, 3, 3), (3, 4, 1))
"""From ms, to ms, unicast flows to the congested terminal: the reading of the figure's caption."""
LAST_MS = 6
PORT_SPEED_PS = 2560
"""A clock with which the payload line has 100 Gb/s, as the paper's "port-speed line"."""


def fair_share(unicast: int) -> float:
    """Return the fair share in Gb/s of each of `unicast` unicast flows and the multicast."""
    return 100 / (unicast + 1)


def _unicast() -> list[dict[str, object]]:
    """Return seven flows from seven leaves, all from 1 ms on."""
    flows = []
    for number in range(7):
        last = max(until for _, until, flows_then in PERIODS if number < flows_then)
        flows.append(
            flow(
                f"u{number + 1}",
                (5 + number, 0),
                (LOCAL[0],),
                start_ns=MILLISECOND,
                stop_ns=last * MILLISECOND,
            )
        )
    return flows


def _run(drop: str, synchronized: bool, **other: object) -> Callable[[int], Sequence[PanelCase]]:
    def cases(seed: int) -> Sequence[PanelCase]:
        settings = {"voq": {"drop": drop}, "sync": {"on": synchronized}, "sample_ns": 100_000, **other}
        flows = [flow("m", SOURCE, (*LOCAL, *REMOTE)), *_unicast()]
        return [PanelCase("", 0, model(f"6: {drop}, sync {synchronized}", seed, LAST_MS, flows, **settings))]

    return cases


_TIME, _THROUGHPUT = Axis("ms", "time, ms"), Axis("gbps", "throughput of a subflow, Gb/s")
_OVER_TIME = throughput_over_time({"m": LINES})
_SHARES = [Mark(fair_share(unicast), f"fair share {fair_share(unicast):g}", (a, b)) for a, b, unicast in PERIODS]


def _panel(name: str, title: str, cases: Callable[[int], Sequence[PanelCase]], *marks: Mark) -> Panel:
    return Panel(name, title, _TIME, _THROUGHPUT, cases, _OVER_TIME, [*_SHARES, *marks])


PANELS = (
    _panel("6a", "No VOQ drop, no sync", _run("none", False), Mark(60, "still 60 after 4 ms", (4, LAST_MS))),
    _panel("6b", "No VOQ drop, sync", _run("none", True), Mark(99, "99 again", (4, LAST_MS))),
    _panel("6c", "Tail drop, no sync", _run("tail", False), Mark(99, "99 from 2 to 3 ms", (2, 3))),
    _panel("6d", "Tail drop, sync", _run("tail", True)),
    _panel("6e", "Drop from the head, sync", _run("head", True), Mark(99, "hardly affected", (1, 4))),
)

EXPERIMENTS = (
    _panel(
        "6c-port-speed",
        "Tail drop, no sync, payload line of 100 Gb/s",
        _run("tail", False, timing={"clock_ps": PORT_SPEED_PS}),
    ),
    _panel("6c-small-cache", "Tail drop, no sync, cache of 16", _run("tail", False, cache={"packets": 16})),
)
