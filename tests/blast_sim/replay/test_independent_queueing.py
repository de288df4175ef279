"""Queueing laws that hold exactly for multicasts that wait for the optical network, in any simulator.

Arrivals and sizes are given, so that Little's law, Lindley's recursion and the decision process of the Blast paper
(section III-C.2, with the reconfiguration of section VI-A) determine the end of each multicast, to rounding.
"""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import pytest

from blast_sim.base.report import Row
from blast_sim.experiments.cell import Effort, FlowCell
from blast_sim.experiments.run import run_cell
from blast_sim.replay.runs import ReplayRun, play
from blast_sim.replay.setting import Setting
from blast_sim.scenarios.schema import LightSection, Scenario
from blast_sim.traces.workload import TraceMulticast, Workload

RACKS, FAN_OUT, RECONFIGURATION, BYTES_A_SECOND = 10, 4, 0.025, 1.25e9
EXACT = 1e-9


def _poisson(per_second: float, widths: Sequence[int], sizes: Sequence[int], seed: int) -> list[TraceMulticast]:
    """Return multicasts of these sizes in bytes, with exponential gaps, between racks that are drawn."""
    dice, now, drawn = random.Random(seed), 0.0, []
    for number, size in enumerate(sizes):
        now += dice.expovariate(per_second)
        sender, *receivers = dice.sample(range(RACKS), dice.choice(widths))
        drawn.append(TraceMulticast(str(number), now, sender, tuple(receivers), size))
    return drawn


def _played(multicasts: Sequence[TraceMulticast], policy: str, **light: object) -> tuple[Row, list[float]]:
    """Return the row of results and the seconds of each multicast, in order of arrival."""
    section = LightSection.model_validate({"fan_out": FAN_OUT, **light})
    setting = Setting(RACKS, 40, 10.0, 40.0, section, "0")
    row = play(ReplayRun(Workload(RACKS, tuple(multicasts), (), {}), setting, policy)).row
    by_name = {completion["name"]: completion["seconds"] for completion in row["completions"]}
    return row, [by_name[multicast.name] for multicast in multicasts]


def _service(multicast: TraceMulticast) -> float:
    return RECONFIGURATION + multicast.bytes / BYTES_A_SECOND


def _lindley(multicasts: Sequence[TraceMulticast]) -> list[float]:
    """Return waiting and service of each at one server, in order of arrival."""
    waits = [0.0]
    for one, other in pairwise(multicasts):
        waits.append(max(0.0, waits[-1] + _service(one) - (other.arrival - one.arrival)))
    return [wait + _service(multicast) for wait, multicast in zip(waits, multicasts, strict=True)]


def _sizes(count: int, order: str) -> list[int]:
    """Return sizes of 30 to 330 MB: all alike, or falling or rising in the order of arrival."""
    dice = random.Random(order)
    sizes = [200_000_000] * count if order == "equal" else [dice.randint(30_000_000, 330_000_000) for _ in range(count)]
    return sizes if order == "mixed" else sorted(sizes, reverse=order == "falling")


def _load(load: float, sizes: Sequence[int]) -> float:
    """Return the arrivals per second that keep one server busy for this share of the time."""
    return load / (RECONFIGURATION + sum(sizes) / len(sizes) / BYTES_A_SECOND)


@pytest.mark.parametrize(
    ("policy", "order"), [("paper", "equal"), ("paper", "falling"), ("smith", "rising"), ("srpt-lease", "rising")]
)
@pytest.mark.parametrize("load", [0.6, 1.2])
def test_one_splitter_follows_lindley(policy: str, order: str, load: float) -> None:
    """Where a policy prefers what arrived first, each waits as at a server that takes data / rate and 25 ms for each.

    With no reserve of dark splitters a tree is replaced and never disconnected before; the paper has no time for that.
    """
    sizes = _sizes(60, order)
    multicasts = _poisson(_load(load, sizes), [4], sizes, seed=3)
    _, seconds = _played(multicasts, policy, splitters=1, warm_reserve=0.0)
    assert seconds == pytest.approx(_lindley(multicasts), rel=EXACT)


@pytest.mark.parametrize("load", [0.5, 0.9])
def test_default_reserve_delays_by_one_disconnection(load: float) -> None:
    """By default an idle tree is disconnected, and a request that arrives meanwhile waits for that: 25 ms or less."""
    sizes = _sizes(60, "equal")
    multicasts = _poisson(_load(load, sizes), [4], sizes, seed=3)
    _, seconds = _played(multicasts, "paper", splitters=1)
    delays = [one - other for one, other in zip(seconds, _lindley(multicasts), strict=True)]
    assert min(delays) > -EXACT
    assert max(delays) <= RECONFIGURATION + EXACT


def test_mean_does_not_depend_on_order_of_equal_sizes() -> None:
    """Kleinrock's conservation law: a longer wait of one multicast is a shorter one of others."""
    sizes = _sizes(60, "equal")
    multicasts = _poisson(_load(0.9, sizes), [4], sizes, seed=5)
    expected = sum(_lindley(multicasts)) / len(multicasts)
    for policy in ("paper", "smith", "hrrn"):
        row, _ = _played(multicasts, policy, splitters=1, warm_reserve=0.0)
        assert row["mean_seconds"] == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("policy", ["paper", "srpt-lease", "las-lease", "fair-share"])
def test_mean_number_in_system_obeys_littles_law(policy: str) -> None:
    """The mean number in the system, integrated over time, is the rate of arrivals times the reported mean time.

    Pauses, parts and kept trees are allowed; no multicast takes less time than its data takes at the rate of light.
    """
    multicasts = _poisson(6.0, [2, 3, 4, 5, 6, 8], _sizes(60, "mixed"), seed=1)
    row, seconds = _played(multicasts, policy, splitters=3, may_pause=True, may_split=True)
    assert [(one["name"], one["arrival"], one["bytes"]) for one in row["completions"]] == [
        (one.name, one.arrival, one.bytes) for one in multicasts
    ]
    events = [(one.arrival, 1) for one in multicasts]
    events += [(one.arrival + its, -1) for one, its in zip(multicasts, seconds, strict=True)]
    events.sort()
    present, area = 0, 0.0
    for (now, change), (later, _) in pairwise(events):
        present += change
        assert present >= 0
        area += present * (later - now)
    duration = events[-1][0] - events[0][0]
    assert area / duration == pytest.approx(len(multicasts) / duration * row["mean_seconds"], rel=EXACT)
    for percent in (50, 95, 99):
        name = "median_seconds" if percent == 50 else f"p{percent}_seconds"
        assert sum(its <= row[name] for its in seconds) * 100 >= percent * len(seconds)
        assert sum(its < row[name] for its in seconds) * 100 < percent * len(seconds)
    assert all(its >= one.bytes / BYTES_A_SECOND * (1 - EXACT) for one, its in zip(multicasts, seconds, strict=True))


def _score(multicast: TraceMulticast) -> Fraction:
    """Return volume / racks, the volume being data times receivers."""
    return Fraction(multicast.bytes * len(multicast.receivers), len(multicast.receivers) + 1)


def _splitters(multicast: TraceMulticast) -> int:
    return -((len(multicast.receivers) - 1) // -(FAN_OUT - 1))


def _by_paper(multicasts: Sequence[TraceMulticast], splitters: int) -> list[float]:
    """Return the seconds of each: at every arrival and end the best scores that fit are served, until they are done."""
    pending: list[TraceMulticast] = []
    serving: list[tuple[float, TraceMulticast]] = []
    ends: dict[str, float] = {}
    arriving = list(multicasts)
    while arriving or serving:
        now = min([multicast.arrival for multicast in arriving[:1]] + [end for end, _ in serving])
        pending += [multicast for multicast in arriving if multicast.arrival <= now]
        arriving = [multicast for multicast in arriving if multicast.arrival > now]
        serving = [(end, multicast) for end, multicast in serving if end > now]
        for multicast in sorted(pending, key=_score, reverse=True):
            busy = {rack for _, other in serving for rack in (other.sender, *other.receivers)}
            used = sum(_splitters(other) for _, other in serving) + _splitters(multicast)
            if used <= splitters and busy.isdisjoint((multicast.sender, *multicast.receivers)):
                ends[multicast.name] = now + multicast.bytes / BYTES_A_SECOND
                serving.append((ends[multicast.name], multicast))
                pending.remove(multicast)
    return [ends[multicast.name] - multicast.arrival for multicast in multicasts]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("load", [2.0, 6.0])
def test_decisions_equal_those_of_paper(load: float, seed: int) -> None:
    """One port a rack, 3 splitters 1:4, groups of 2 to 8 racks; no time for set-up."""
    multicasts = _poisson(load, [2, 3, 4, 5, 6, 8], _sizes(60, "mixed"), seed)
    _, seconds = _played(multicasts, "paper", splitters=3, switching_ms=1e-6, openflow_ms=1e-6)
    assert seconds == pytest.approx(_by_paper(multicasts, 3), abs=1e-6)


@pytest.mark.parametrize("jobs", [2, 6])
def test_iterative_jobs_obey_response_time_law(jobs: int) -> None:
    """A closed system: jobs = rate of rounds x (waiting + data + computation), and a splitter serves a round at a time.

    Within 3 %, since the rate counts whole rounds of a part of the time.
    """
    kind = {"name": "a", "count": jobs, "racks": 3, "iterations": 40, "megabytes": 300.0, "compute_s": 0.6}
    scenario = Scenario.model_validate(
        {
            "title": "jobs on one splitter",
            "network": {"racks": 18, "servers_per_rack": 4, "uplink_gbps": {"any": 40.0}},
            "light": {"splitters": 1, "fan_out": FAN_OUT, "warm_reserve": 0.0},
            "jobs": [kind],
            "run": [{"methods": ["blast"], "networks": ["any"], "backgrounds": ["none"], "policies": ["paper"]}],
        }
    )
    (row,) = run_cell(FlowCell(scenario, "blast", "any", "none", "paper", effort=Effort(compute="0")))
    rate, data = row["multicasts_per_second"], 0.3e9 / BYTES_A_SECOND
    assert rate * (row["wait_seconds"] + data + 0.6) == pytest.approx(jobs, rel=0.03)
    assert rate <= 1.03 * min(1 / (RECONFIGURATION + data), jobs / (data + 0.6))
