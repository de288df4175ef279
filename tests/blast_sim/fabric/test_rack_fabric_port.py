"""The compiled simulator of the rack fabric, compared event by event with a model of its ports from the paper."""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from blast_sim.fabric.simulator import program
from blast_sim.fabric.trace import TraceEventKind, read_trace
from tests.support.rack_fabric_port import port
from tests.support.rack_fabric_port.port import (
    Cache,
    DisagreementError,
    Event,
    Frame,
    Header,
    HeaderPools,
    Line,
    Port,
    SyncCam,
    Voq,
    follow,
)
from tests.support.rack_fabric_port.scenario import Constants, constants_of

pytestmark = pytest.mark.rust

Scenario = dict[str, Any]

PACKET = 256
MIN_POOL = 36 * PACKET
"""A jumbo frame must fit into every pool."""


def trace_of(scenario: Scenario) -> list[Event]:
    """Run the simulator and return the events of its trace."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace"
        command = [str(program()), "run", "-", "--trace", str(path)]
        subprocess.run(command, input=json.dumps(scenario), capture_output=True, text=True, check=True)
        return [Event._make(record) for records in read_trace(path) for record in records.tolist()]


# Random scenarios


@st.composite
def flows(draw: st.DrawFn, leaves: int, ethernet: int, classes: list[Scenario]) -> Scenario:
    terminals = [[leaf, port] for leaf in range(leaves) for port in range(ethernet)]
    source = draw(st.sampled_from(terminals))
    others = [terminal for terminal in terminals if terminal != source]
    fewest = min(len(others), draw(st.sampled_from([1, 4])))
    flow: Scenario = {
        "source": source,
        "to": draw(st.lists(st.sampled_from(others), min_size=fewest, max_size=8, unique_by=tuple)),
        "frame_bytes": draw(st.one_of(st.sampled_from([64, 512, 1022, 1522, 9022]), st.integers(64, 3000))),
        "rate_gbps": draw(st.integers(5, 99)),
        "process": draw(st.sampled_from(["constant", "poisson"])),
        "class": draw(st.integers(0, len(classes) - 1)),
        "start_ns": draw(st.sampled_from([0, 700])),
    }
    kind = draw(st.sampled_from(["multicast", "multicast", "uniform", "surrogates"]))
    if kind == "surrogates":
        first = draw(st.integers(1, 2))
        return flow | {"tree": {"surrogates": {"first": first, "remote": 1}}}
    return flow | {"spread": kind}


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Draw small fabrics with few resources, so that every resource runs out."""
    leaves, ethernet = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    lossless = {"lossless": True}
    classes: list[Scenario] = draw(st.sampled_from([[{}], [lossless], [{}, lossless | {"weight": 3}]]))
    several = draw(st.lists(flows(leaves, ethernet, classes), min_size=1, max_size=5))
    block = draw(st.sampled_from([2, 6, 18]))
    low = draw(st.integers(4, 60))
    stop = draw(st.integers(1, 160)) * PACKET
    return {
        "seed": draw(st.integers(1, 1000)),
        "duration_ns": draw(st.integers(4_000, 10_000)),
        "topology": {
            "leaves": leaves,
            "ethernet_ports": ethernet,
            "pcie_ports": draw(st.sampled_from([0, 2])),
            "spines": draw(st.sampled_from([0, 2, 8])),
        },
        "classes": classes,
        "flows": several,
        "cache": {"packets": draw(st.sampled_from([0, 1, 4, 16, 40])), "reserve": draw(st.sampled_from([0, 2, 10]))},
        "sync": {
            "on": draw(st.sampled_from([True, True, False])),
            "surrogates": draw(st.sampled_from([True, True, False])),
            "entries": draw(st.sampled_from([1, 2, 4, 24])),
            "block_packets": block,
            "resume_packets": draw(st.sampled_from([0, 1, block // 2, block])),
            "timeout_ns": draw(st.sampled_from([300, 3000])),
        },
        "headers": {
            "low": low,
            "high": low + draw(st.integers(0, 30)),
            "probability": draw(st.sampled_from([0.0, 0.5, 1.0])),
            "lossless": draw(st.sampled_from([120, 291])),
            "shuffle": draw(st.booleans()),
        },
        "voq": {
            "drop": draw(st.sampled_from(["none", "tail", "head", "head"])),
            "terminal_bytes": draw(st.integers(1, 80)) * PACKET,
            "surrogate_bytes": draw(st.integers(1, 80)) * PACKET,
        },
        "buffers": {
            "ingress_terminal_lossy_bytes": MIN_POOL + draw(st.integers(0, 100)) * PACKET,
            "ingress_surrogate_lossy_bytes": MIN_POOL + draw(st.integers(0, 50)) * PACKET,
            "egress_terminal_bytes": MIN_POOL + draw(st.integers(0, 100)) * PACKET,
            "egress_surrogate_bytes": MIN_POOL + draw(st.integers(0, 100)) * PACKET,
        },
        "pause": {"stop_bytes": stop, "go_bytes": draw(st.integers(1, stop))},
        "qcn": {
            "points": draw(st.sampled_from(["none", "inputs"])),
            "marking": draw(st.sampled_from(["arrival", "occupancy"])),
            "equilibrium_ingress_bytes": draw(st.integers(1, 40)) * 1024,
            "weight": draw(st.sampled_from([0.0, 0.5, 2.0])),
            "sample_bytes": draw(st.integers(1_000, 20_000)),
        },
        "crossbar": {"local_links": draw(st.booleans()), "multicast_weight": draw(st.sampled_from([50, 100]))},
    }


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenario=scenarios())
def test_simulator_follows_the_port_model_of_the_paper(scenario: Scenario) -> None:
    note(json.dumps(scenario))
    follow(scenario, trace_of(scenario))


# Scenarios in which the model found bugs


def flow_of(source: list[int], to: list[list[int]], gbps: float, **other: Any) -> Scenario:
    return {"source": source, "to": to, "frame_bytes": 1522, "rate_gbps": gbps} | other


LOCAL = [[0, port] for port in range(1, 5)]
REMOTE = [[leaf, 0] for leaf in range(1, 5)]
DESTINATIONS = [*LOCAL, *REMOTE]


def of_two_classes(flows: list[Scenario], **other: Any) -> Scenario:
    return {
        "duration_ns": 20_000,
        "topology": {"leaves": 2},
        "classes": [{"lossless": True}] * 2,
        "flows": flows,
    } | other


def test_largest_flow_of_the_congested_buffer_is_notified() -> None:
    flows = [
        flow_of([0, 0], [[0, 1]], 45, frame_bytes=512),
        flow_of([0, 0], [[0, 2]], 50, **{"class": 1}),
        *(flow_of([1, port], [[0, 1]], 99, frame_bytes=512) for port in range(4)),
        flow_of([1, 4], [[0, 2]], 99, **{"class": 1}),
        flow_of([0, 4], [[0, 2]], 99, **{"class": 1}),
    ]
    congestion = {"points": "inputs", "equilibrium_ingress_bytes": 4096, "sample_bytes": 15_000}
    events = trace_of(scenario := of_two_classes(flows, qcn=congestion))
    assert {event.extra for event in events if event.kind == TraceEventKind.CNM and event.port == 0} == {0, 1}
    follow(scenario, events)


def test_lossless_header_pool_does_not_overflow_with_small_frames() -> None:
    scenario = of_two_classes([flow_of([0, 0], [*LOCAL, *REMOTE[:1], [1, 1], [1, 2], [1, 3]], 99, frame_bytes=64)])
    events = trace_of(scenario)
    assert any(event.kind == TraceEventKind.PAUSE for event in events)
    assert max(event.value for event in events if event.kind == TraceEventKind.HEADER_ACCEPTED) < 291
    follow(scenario, events)


def test_queue_continues_after_its_cam_entry_is_released() -> None:
    scenario = of_two_classes(
        [flow_of([0, 0], [[0, 1], [1, 0]], 5, frame_bytes=64)],
        cache={"packets": 0, "reserve": 0},
        sync={"entries": 1, "block_packets": 2, "resume_packets": 0, "timeout_ns": 300},
    )
    events = trace_of(scenario)
    assert sum(event.kind == TraceEventKind.SUSPENDED for event in events) > 1
    follow(scenario, events)


def test_lossy_copies_use_no_headers_of_a_lossless_class() -> None:
    surrogates = {"tree": {"surrogates": {"first": 1, "remote": 0}}}
    lossy = {"class": 1}
    flows = [
        flow_of([0, 0], [[1, port] for port in range(5)], 40, frame_bytes=200, **surrogates, **lossy),
        flow_of([0, 1], [[1, 1], [1, 2]], 5, **surrogates),
        *(flow_of([leaf, port], [[1, 0]], 99, **lossy) for leaf in (0, 2) for port in (2, 3)),
    ]
    scenario = {
        "duration_ns": 100_000,
        "topology": {"leaves": 3, "spines": 8},
        "classes": [{"lossless": True}, {}],
        "flows": flows,
    }
    events = trace_of(scenario)
    # Frames of 1522 bytes come to [1, 1] in the lossless flow alone.
    delivered = [
        event for event in events if event.kind == TraceEventKind.FRAME_OUT and event.port == 9 and event.value == 1522
    ]
    assert len(delivered) * 1522 * 8 / 100_000 > 4.5
    follow(scenario, events)


# Longer scenarios, after figures of the paper


ONTO_ONE = [flow_of([leaf, port], [[0, 1]], 99, frame_bytes=700) for leaf in (1, 2, 3) for port in (2, 3)]
MIXED = [
    flow_of([0, 0], DESTINATIONS, 50, frame_bytes=200, process="poisson"),
    flow_of([0, 0], [[0, 1], [0, 2], [1, 0]], 30, frame_bytes=700, process="poisson"),
    flow_of([0, 0], [[3, 0], [0, 1]], 19, process="poisson"),
]
FABRIC = {"leaves": 5, "spines": 8}

CONGESTED: Scenario = {
    "duration_ns": 40_000,
    "topology": FABRIC,
    "flows": [*MIXED, *ONTO_ONE],
    "sync": {"entries": 4, "block_packets": 6, "resume_packets": 4, "timeout_ns": 900},
    "cache": {"packets": 40},
    "voq": {"terminal_bytes": 40 * PACKET, "surrogate_bytes": 40 * PACKET},
    "buffers": {"ingress_terminal_lossy_bytes": 100 * PACKET},
}
"""Figure 6e: one destination of a multicast flow has many senders; drop from the head."""

TAIL: Scenario = CONGESTED | {"voq": {"drop": "tail", "terminal_bytes": 40 * PACKET}, "sync": {"on": False}}
"""Figure 6c."""

FEW_HEADERS: Scenario = CONGESTED | {"voq": {"drop": "none"}, "headers": {"high": 60, "low": 40}}
"""Figure 5d: random early detection."""

HIGH_ALONE: Scenario = FEW_HEADERS | {"headers": {"high": 60, "low": 40, "probability": 0.0}}

LOW_ALONE: Scenario = FEW_HEADERS | {"headers": {"high": 60, "low": 40, "probability": 1.0}}

SURPLUS: Scenario = {
    "duration_ns": 40_000,
    "topology": FABRIC,
    "flows": [
        flow_of([0, 0], [[0, 1], [1, 0]], 20, frame_bytes=9022, process="poisson"),
        flow_of([0, 0], [[0, 1], [1, 0]], 10, frame_bytes=700, process="poisson"),
        *ONTO_ONE[:1],
    ],
    "voq": {"terminal_bytes": 20 * PACKET},
}
"""Jumbo frames are dropped after credits for them were requested."""

THRASHED: Scenario = {
    "duration_ns": 40_000,
    "topology": FABRIC,
    "flows": [flow_of([0, 0], DESTINATIONS, 60), flow_of([0, 2], [[0, 1], [0, 3], *REMOTE], 40, frame_bytes=9022)],
    "cache": {"packets": 16},
    "sync": {"on": False},
}
"""Figure 4a: two ports share a cache that is too small."""

TREE: Scenario = {
    "duration_ns": 40_000,
    "topology": FABRIC,
    "classes": [{"lossless": True}, {"weight": 2}],
    "flows": [
        flow_of(source, [*LOCAL[1:], *REMOTE, *([leaf, 4] for leaf in range(1, 5))], gbps, **other)
        for source, gbps, other in [
            ([0, 0], 60, {"class": 0, "frame_bytes": 600}),
            ([0, 0], 30, {"class": 1, "frame_bytes": 200}),
            ([0, 1], 40, {"class": 1}),
        ]
    ]
    + ONTO_ONE[2:],
    "voq": {"surrogate_bytes": 14 * PACKET, "terminal_bytes": 30 * PACKET},
    "buffers": {"ingress_surrogate_lossy_bytes": 40 * PACKET, "egress_surrogate_bytes": 40 * PACKET},
    "pause": {"stop_bytes": 100 * PACKET, "go_bytes": 60 * PACKET},
    "qcn": {"points": "inputs", "marking": "arrival", "equilibrium_ingress_bytes": 10_240, "sample_bytes": 15_000},
}
"""Figure 11: replication over surrogates, in a lossless class and in a lossy one."""

for flow in TREE["flows"][:3]:
    flow["tree"] = {"surrogates": {"first": 2, "remote": 1}}

NOTIFIED: Scenario = {
    "duration_ns": 60_000,
    "topology": FABRIC,
    "classes": [{"lossless": True}],
    "flows": [
        flow_of([0, 0], LOCAL[:2], 50, frame_bytes=512),
        flow_of([0, 0], LOCAL[2:], 45, frame_bytes=700),
        *ONTO_ONE,
    ],
    "pause": {"stop_bytes": 200 * PACKET, "go_bytes": 160 * PACKET},
    "qcn": {"points": "inputs", "equilibrium_ingress_bytes": 40_960, "sample_bytes": 15_000},
}
"""Figure 10d: congestion points at inputs notify the flow with the largest share of the buffer."""

LONG = {
    "congested": CONGESTED,
    "tail": TAIL,
    "few headers": FEW_HEADERS,
    "high alone": HIGH_ALONE,
    "low alone": LOW_ALONE,
    "surplus": SURPLUS,
    "thrashed": THRASHED,
    "tree": TREE,
    "notified": NOTIFIED,
}


@cache
def long_trace(name: str) -> list[Event]:
    return trace_of(LONG[name])


@pytest.mark.parametrize("name", LONG)
def test_simulated_figures_follow_the_port_model(name: str) -> None:
    follow(LONG[name], long_trace(name))


# Errors that the model must detect


def noticed(name: str, **constants: Any) -> bool:
    try:
        follow(LONG[name], long_trace(name), Constants(**vars(constants_of(LONG[name])) | constants))
    except DisagreementError:
        return True
    return False


CONSTANTS = [
    ("congested", "terminal_lossy", 1),
    ("congested", "entries", 1),
    ("congested", "block", 1),
    ("congested", "resume", 1),
    ("congested", "terminal_voq", 1),
    ("tail", "terminal_voq", 1),
    ("few headers", "timeout_ps", 1),
    ("high alone", "high", 1),
    ("low alone", "low", 1),
    ("thrashed", "cache", 1),
    ("thrashed", "reserve", 1),
    ("tree", "surrogate_voq", 1),
    ("tree", "surrogate_lossy", 1),
    ("notified", "stop", 1),
    ("notified", "go", 3),
    ("notified", "equilibrium_bytes", 4 * PACKET),
    ("notified", "sample_bytes", 1_500),
    ("notified", "weight", 0.1),
]


@pytest.mark.parametrize(("name", "word", "step"), CONSTANTS)
@pytest.mark.parametrize("sign", [1, -1])
def test_model_detects_a_wrong_constant(name: str, word: str, step: float, sign: int) -> None:
    right = getattr(constants_of(LONG[name]), word)
    assert noticed(name, **{word: right + sign * step})


def _used_unseen(lines: Cache, line: Line) -> None:
    """Leave a line of the cache where it is when it is used."""
    lines._lines[line] = lines._slot


def _last_dropped(voq: Voq) -> Header:
    header = voq.waiting.pop()
    voq.backlog -= header.packets
    return header


def _one_early(frame: Frame) -> bool:
    return not frame.to_come and frame.acknowledged >= len(frame.live) - 1


WRONG_RULES: dict[str, tuple[str, Any, str, Any]] = {
    "CAM: first in, first out": ("congested", SyncCam, "_touch", lambda *_: None),
    "cache: first in, first out": ("thrashed", Cache, "use", _used_unseen),
    "cache: two writes in a slot": ("thrashed", Cache, "writable", True),
    "a dropped copy does not count as sent": ("congested", Port, "_count_as_sent", lambda *_: None),
    "the newest copy is dropped": ("congested", Voq, "drop_head", _last_dropped),
    "headers are kept": ("few headers", HeaderPools, "free", lambda *_: None),
    "payload is freed early": ("thrashed", Frame, "done", property(_one_early)),
    "the last copy gets ahead": ("congested", Frame, "all_begun", False),
    "credits are kept": ("surplus", Voq, "_give_back", lambda _: []),
    "a lane for surrogates has the headers of terminals": (
        "tree",
        HeaderPools,
        "held",
        lambda pools, _: pools._held.total(),
    ),
    "feedback of 63 steps": ("notified", port, "STEPS", 63),
}


@pytest.mark.parametrize("rule", WRONG_RULES)
def test_model_detects_a_wrong_rule(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    name, where, attribute, wrong = WRONG_RULES[rule]
    monkeypatch.setattr(where, attribute, wrong)
    assert noticed(name)


EVERY_KIND = dict.fromkeys(TraceEventKind, "congested") | {
    TraceEventKind.FRAME_IN: "tree",
    TraceEventKind.FRAME_DROPPED: "tree",
    TraceEventKind.HEADER_DROPPED: "few headers",
    TraceEventKind.CACHE_EVICTED: "thrashed",
    TraceEventKind.CNM: "notified",
    TraceEventKind.PAUSE: "tree",
    TraceEventKind.GO: "tree",
}
NOT_OF_A_PORT = {TraceEventKind.FRAME_OUT, TraceEventKind.RETRANSMITTED, TraceEventKind.CORRUPTED}
WITHOUT_VALUE = {
    TraceEventKind.FRAME_DROPPED,
    TraceEventKind.ACKED,
    TraceEventKind.CAM_ALLOCATED,
    TraceEventKind.CAM_RELEASED,
}
WITH_FLAGS = {TraceEventKind.PACKET_SENT, TraceEventKind.CACHE_EVICTED}


@pytest.mark.parametrize("kind", sorted(EVERY_KIND.keys() - NOT_OF_A_PORT), ids=lambda kind: kind.name)
def test_model_detects_a_wrong_trace(kind: TraceEventKind) -> None:
    events = long_trace(EVERY_KIND[kind])
    place, event = next((place, event) for place, event in enumerate(events) if event.kind == kind)
    wrong = [[], [event, event]]
    if kind not in WITHOUT_VALUE:
        wrong.append([event._replace(value=event.value + 1)])
    if kind in WITH_FLAGS:
        wrong.append([event._replace(flags=event.flags ^ 1)])
    for instead in wrong:
        with pytest.raises(DisagreementError):
            follow(LONG[EVERY_KIND[kind]], [*events[:place], *instead, *events[place + 1 :]])
