"""What a soak says at its end: figures beside their bars, and what decided the exit status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from soak import flatness
from soak.flatness import Level
from soak.latencies import ALL, Figures, by_kind, faults, in_phase, ratio, slowest
from soak.places import PLAN, SETTINGS
from soak.reached import Reached
from soak.roster import APPLICATION_SECONDS, ATTACKS, INTRUSIONS, OBSERVER_SECONDS, SEND_SECONDS
from soak.schedule import BASELINE, CALIBRATION, MOST_PAUSE_SECONDS, PAUSE_SECONDS, SOAK

LEAST_COMPLETION, MOST_RATIO = 0.9, 2.0
SLOWEST = 500
"""Calls that are told one by one, with their moments: what else happened then, logs may tell."""
_MIB = 1 << 20


def levels(reached: Reached) -> Mapping[str, Level | None]:
    """What must not grow, by name; None where there are too few samples."""
    samples = reached.samples
    series = {"controller RSS": [(s.at, float(s.controller.rss)) for s in samples if s.controller]}
    agents = [(s.at, float(sum(held.rss for held in s.agents.values()))) for s in samples]
    series |= {
        "agents RSS, all": agents,
        "journal on disk": [(s.at, float(s.journal_bytes)) for s in samples],
        "logs": [(s.at, float(s.log_bytes)) for s in samples],
    }
    return {name: flatness.level(points) for name, points in series.items()}


def to_json(reached: Reached) -> dict[str, Any]:
    """All of it, for programs."""
    phases = {phase: by_kind(in_phase(reached.calls, reached.windows, phase)) for phase in (BASELINE, SOAK)}
    return {
        "lab": PLAN.summary,
        "roster": asdict(reached.roster),
        "rates": {**ATTACKS, **INTRUSIONS},
        "seconds": {phase: _seconds(reached, phase) for phase in (CALIBRATION, BASELINE, SOAK)},
        "cpu_share": {"hostile": reached.hostile_cpu.share, "burnt_in_baseline": reached.burnt_cpu.share},
        "calls": {phase: {kind: asdict(one) for kind, one in found.items()} for phase, found in phases.items()},
        "slowest": {
            phase: [asdict(call) for call in slowest(in_phase(reached.calls, reached.windows, phase), SLOWEST)]
            for phase in phases
        },
        "completion": phases[SOAK][ALL].completion,
        "p99_ratio": ratio(phases[SOAK][ALL].p99, phases[BASELINE][ALL].p99),
        "not_completed": faults(reached.calls),
        "hostile": {name: dict(tally) for name, tally in reached.hostile.items()},
        "levels": {name: asdict(one) | {"flat": one.flat} for name, one in levels(reached).items() if one},
        "samples": [asdict(sample) for sample in reached.samples],
        "pauses": [asdict(pause) for pause in reached.pauses],
        "rounds_p99_ratio": round_ratios(reached),
        "files": {"transfers_by_light": reached.by_light, "intact": reached.intact, "wrong": reached.wrong},
        "controller_ended": reached.ends,
        "differences": reached.differences,
        "left_behind": reached.left,
        "compared": reached.compared,
        "interrupted": reached.interrupted,
        "failures": reached.failures,
    }


def round_ratios(reached: Reached) -> list[float]:
    """The ratio of the two p99 in each round by itself."""
    windows = [window for window in reached.windows if window.phase in (BASELINE, SOAK)]
    found = []
    for pair in zip(windows[::2], windows[1::2], strict=False):
        base, soak = (by_kind(in_phase(reached.calls, [window], window.phase))[ALL].p99 for window in pair)
        found.append(ratio(soak, base))
    return [one for one in found if one is not None]


def lines(reached: Reached) -> Iterator[str]:
    """All of it, for people."""
    yield from _head(reached)
    yield from _calls(reached)
    yield from _hostile(reached)
    yield from _held(reached)
    yield from _bars(reached)
    yield from _verdict(reached)


def _head(reached: Reached) -> Iterator[str]:
    roster, pauses = reached.roster, reached.pauses
    rounds = sum(part.phase == SOAK for part in reached.plan)
    yield f"lab: {PLAN.summary}; TLS, tokens, journal on disk; {SETTINGS}"
    yield (
        f"clients: {roster.applications} applications (request, status, finish each {APPLICATION_SECONDS:g} s), "
        f"{roster.observers} observers (fabric, listRequests, ping each {OBSERVER_SECONDS:g} s), "
        f"{roster.senders} senders (a file each {SEND_SECONDS:g} s, by `auto` and by light alone in turn), "
        f"{len(roster.attacks)} hostile"
    )
    longest = max((pause.seconds for pause in pauses), default=0.0)
    yield (
        f"{rounds} rounds of baseline and soak in turn; a soak lasts until the controller is done with what hostile "
        f"clients have left behind ({PAUSE_SECONDS:g} s at least, {longest:.0f} s at most): "
        f"{_seconds(reached, BASELINE):.0f} s of baseline, {_seconds(reached, SOAK):.0f} s of soak"
    )
    if restless := sum(not pause.calm for pause in pauses):
        yield (
            f"{restless} of {len(pauses)} times it was not done after {MOST_PAUSE_SECONDS:g} s: a baseline behind that "
            "is too slow, and the ratio too good"
        )
    yield (
        f"processor: hostile clients used {reached.hostile_cpu.share:.2f} of one; in their place "
        f"{reached.burnt_cpu.share:.2f} of one was burnt in the baseline, in their rhythm"
    )


def _calls(reached: Reached) -> Iterator[str]:
    base, soak = (by_kind(in_phase(reached.calls, reached.windows, phase)) for phase in (BASELINE, SOAK))
    yield ""
    yield "p50 and p99 are of the completed calls; kinds of a round that was left out are due and not done"
    yield f"{'honest calls':<14}{'baseline':>36}{'soak':>36}{'p99':>8}"
    columns = f"{'done/due':>13}{'p50 ms':>9}{'p99 ms':>9}{'':>5}"
    yield f"{'':<14}{columns}{columns}{'ratio':>8}"
    nothing = Figures(0, 0, None, None, None)
    for kind in dict.fromkeys((*base, *soak)):
        one, other = base.get(kind, nothing), soak.get(kind, nothing)
        times = ratio(other.p99, one.p99)
        yield f"{kind:<14}{_cells(one)}{_cells(other)}{f'{times:.2f}' if times else '-':>8}"
    for why, count in faults(reached.calls):
        yield f"  not completed, {count} times: {why}"


def _cells(one: Figures) -> str:
    return f"{f'{one.completed}/{one.due}':>13}{_ms(one.p50):>9}{_ms(one.p99):>9}{'':>5}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f}"


def _hostile(reached: Reached) -> Iterator[str]:
    if not reached.roster.attacks:
        return
    yield ""
    yield "hostile clients, at fixed rates"
    did = reached.hostile
    for number, name in enumerate((*reached.roster.attacks, *reached.roster.intrusions), 1):
        tally: Mapping[str, int] = did.get(f"{name} {number}") or did.get(name) or {}
        yield f"  {name:<9}{ATTACKS.get(name) or INTRUSIONS[name]}"
        yield f"  {'':<9}did: {', '.join(f'{count} {what}' for what, count in sorted(tally.items())) or 'nothing'}"


def _held(reached: Reached) -> Iterator[str]:
    samples = [sample for sample in reached.samples if sample.controller is not None]
    if not samples:
        return
    yield ""
    yield f"{'held':<20}{'first':>12}{'most':>12}{'last':>12}"
    for name in ("rss", "descriptors", "threads"):
        yield _row(f"controller {name}", [getattr(s.controller, name) for s in samples], name == "rss")
    for name in ("rss", "descriptors", "threads"):
        worst = [max((getattr(held, name) for held in s.agents.values()), default=0) for s in samples]
        yield _row(f"an agent's {name}", worst, name == "rss")
    yield _row("journal", [s.journal_bytes for s in samples], True)
    yield _row("logs", [s.log_bytes for s in samples], True)


def _row(name: str, values: Sequence[int], in_bytes: bool) -> str:
    shown = (values[0], max(values), values[-1])
    cells = (f"{value / _MIB:.1f} MiB" if in_bytes else str(value) for value in shown)
    return f"{name:<20}" + "".join(f"{cell:>12}" for cell in cells)


def _bars(reached: Reached) -> Iterator[str]:
    base, soak = (by_kind(in_phase(reached.calls, reached.windows, phase))[ALL] for phase in (BASELINE, SOAK))
    completion, times = soak.completion, ratio(soak.p99, base.p99)
    yield ""
    yield "beside their bars (told, and nothing else follows from it)"
    yield _bar("honest calls completed", completion, f">= {LEAST_COMPLETION}", (completion or 0) >= LEAST_COMPLETION)
    yield _bar("p99, soak / baseline", times, f"<= {MOST_RATIO:g}", times is not None and times <= MOST_RATIO)
    yield f"  {'':<26}in each round: {', '.join(f'{one:.2f}' for one in round_ratios(reached)) or '-'}"
    for name, one in levels(reached).items():
        if one is None:
            yield f"  {name:<26}too few samples"
            continue
        grown = f"{one.first / _MIB:.1f} -> {one.last / _MIB:.1f} MiB from {one.since / 60:.1f} min on"
        too_early = "" if one.since >= flatness.WARM_UP_SECONDS else " (too short a run to say)"
        yield f"  {name:<26}{grown:<44}flat: {'yes' if one.flat else 'NO'}{too_early}"


def _bar(name: str, value: float | None, bar: str, met: bool) -> str:
    if value is None:
        return f"  {name:<26}{'-':<10}{bar:<34}not measured"
    return f"  {name:<26}{value:<10.3f}{bar:<34}{'met' if met else 'NOT MET'}"


def _verdict(reached: Reached) -> Iterator[str]:
    yield ""
    yield f"transfers: light carried {reached.by_light}, in whole or in part"
    yield f"files: {reached.intact} arrived with the original's SHA-256, {len(reached.wrong)} wrong"
    if reached.compared and not reached.differences:
        yield "journal, rules on the ToRs and cross-connects agree, with light and without"
    if reached.interrupted:
        yield "interrupted: nothing was compared at the end"
    yield from (f"FAILED: {failure}" for failure in reached.failures)
    if not reached.failures and not reached.interrupted:
        yield "nothing was left behind"


def _seconds(reached: Reached, phase: str) -> float:
    return sum(window.seconds for window in reached.windows if window.phase == phase)
