"""The result of a soak: calls, files, levels of memory and journal, differences; and its report."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.transfers.soak_bed.scenario import ATTACKS, BASELINE, PLAN, SETTINGS, SOAK, Roster, Slice
from blast_sim.base.percentiles import percentile

if TYPE_CHECKING:
    from benchmarks.transfers.soak_bed.transfers import Received

MIN_COMPLETION, MAX_RATIO = 0.9, 2.0
ALL, SEND = "all calls", "blast send"
"""Transfers do not count as calls: their seconds would dominate the p99 of all calls."""
WARM_UP_SECONDS, MAX_GROWTH, NEGLIGIBLE_BYTES = 600.0, 0.10, 4 << 20
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was due at `at` (monotonic clock) and took `seconds`; `fault` is the reason of a failure."""

    kind: str
    at: float
    seconds: float
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """A slice as it ran, on the monotonic clock."""

    phase: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of due and completed calls, and seconds of the completed ones (None without any)."""

    due: int
    completed: int
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Resident bytes, descriptors and threads of a process."""

    rss: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Level:
    """Median of the first and of the last fifth of a series after `since` seconds, the warm-up if the run allows it."""

    first: float
    last: float
    since: float

    @property
    def flat(self) -> bool:
        """Return whether the level did not grow."""
        return self.last - self.first <= max(self.first * MAX_GROWTH, NEGLIGIBLE_BYTES)


def level(series: Sequence[tuple[float, float]]) -> Level | None:
    """Return the level of a series of (seconds, value); None if it is too short."""
    if len(series) < 10:
        return None
    end = series[-1][0]
    since = WARM_UP_SECONDS if end >= 2 * WARM_UP_SECONDS else end / 2
    values = [value for at, value in series if at >= since]
    fifth = max(1, len(values) // 5)
    return Level(statistics.median(values[:fifth]), statistics.median(values[-fifth:]), since)


@dataclass
class Reached:
    """All results of a soak, complete or interrupted. `compared` is set once the final comparison has run."""

    roster: Roster
    plan: list[Slice]
    calls: list[Call] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    samples: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    """Seconds since the start, and bytes by name."""
    received: list[Received] = field(default_factory=list)
    hostile: dict[str, Counter[str]] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    compared: bool = False
    interrupted: bool = False

    @property
    def intact(self) -> int:
        """Copies with the bytes of the original."""
        return sum(one.intact for one in self.received)

    @property
    def wrong(self) -> list[str]:
        """A sentence for each wrong copy."""
        return [fault for one in self.received for fault in one.wrong]

    @property
    def failures(self) -> list[str]:
        """The faults that determine the exit status, a sentence each."""
        found = [*self.wrong, *self.differences, *self.left, *self.ends]
        if not self.compared and not self.interrupted:
            found.append("journal, rules and cross-connects were not compared")
        if not self.intact and not self.interrupted:
            found.append("no file arrived, so none was compared")
        return found

    def phase(self, phase: str) -> dict[str, Figures]:
        """Return the figures of the calls that were due in a phase: all together, then by kind."""
        spans = [(window.begin, window.end) for window in self.windows if window.phase == phase]
        return by_kind([call for call in self.calls if any(begin <= call.at < end for begin, end in spans)])

    @property
    def levels(self) -> dict[str, Level | None]:
        """Levels that must not grow, by name."""
        names = self.samples[-1][1] if self.samples else ()
        return {name: level([(at, sizes[name]) for at, sizes in self.samples if name in sizes]) for name in names}


def figures(calls: Sequence[Call]) -> Figures:
    """Return the figures of these calls."""
    times = sorted(call.seconds for call in calls if not call.fault)
    if not times:
        return Figures(len(calls), 0)
    p99 = percentile(times, 99)
    return Figures(len(calls), len(times), statistics.median(times), p99)


def by_kind(calls: Sequence[Call]) -> dict[str, Figures]:
    """Return the figures of all calls but transfers, then of each kind."""
    found = {ALL: figures([call for call in calls if call.kind != SEND])}
    return found | {kind: figures([c for c in calls if c.kind == kind]) for kind in sorted({c.kind for c in calls})}


def faults(calls: Iterable[Call]) -> list[tuple[str, int]]:
    """Return the most frequent reasons why calls were not completed."""
    return Counter(f"{call.kind}: {call.fault}" for call in calls if call.fault).most_common(8)


def to_json(reached: Reached) -> dict[str, Any]:
    """Return all results as JSON."""
    return {
        "lab": PLAN.summary,
        "calls": {
            phase: {kind: asdict(one) for kind, one in reached.phase(phase).items()} for phase in (BASELINE, SOAK)
        },
        "completion": _completion(reached),
        "p99_ratio": _ratio(reached),
        "not_completed": faults(reached.calls),
        "hostile": reached.hostile,
        "levels": {name: asdict(one) | {"flat": one.flat} for name, one in reached.levels.items() if one},
        "files": {"by_light": sum(one.by_light for one in reached.received), "intact": reached.intact},
        "compared": reached.compared,
        "interrupted": reached.interrupted,
        "failures": reached.failures,
    }


def _completion(reached: Reached) -> float | None:
    soak = reached.phase(SOAK)[ALL]
    return soak.completed / soak.due if soak.due else None


def _ratio(reached: Reached) -> float | None:
    soak, base = reached.phase(SOAK)[ALL].p99, reached.phase(BASELINE)[ALL].p99
    return soak / base if soak is not None and base else None


def lines(reached: Reached) -> Iterator[str]:
    """Yield the lines of the printed report."""
    roster = reached.roster
    yield f"lab: {PLAN.summary}; TLS, tokens, journal on disk; {SETTINGS}"
    yield f"clients: {roster.applications} applications, {roster.observers} observers, {len(roster.attacks)} hostile"
    yield f"\n{'honest calls':<14}" + "".join(f"{phase:>14}{'p50 ms':>9}{'p99 ms':>9}" for phase in (BASELINE, SOAK))
    base, soak = reached.phase(BASELINE), reached.phase(SOAK)
    for kind in dict.fromkeys((*base, *soak)):
        yield f"{kind:<14}{_cells(base.get(kind))}{_cells(soak.get(kind))}"
    yield from (f"  not completed, {count} times: {reason}" for reason, count in faults(reached.calls))
    for name, tally in reached.hostile.items():
        yield f"  {name:<10}{ATTACKS[name.partition(' ')[0]]}"
        yield f"  {'':<10}did: {', '.join(f'{count} {action}' for action, count in sorted(tally.items())) or 'nothing'}"
    yield "\nbars (they do not change the exit status)"
    yield _bar("honest calls completed", _completion(reached), MIN_COMPLETION, ">=")
    yield _bar("p99, soak / baseline", _ratio(reached), MAX_RATIO, "<=")
    for name, one in reached.levels.items():
        if one is not None:
            growth = f"{one.first / _MIB:.1f} -> {one.last / _MIB:.1f} MiB from {one.since / 60:.1f} min on"
            short = "" if one.since >= WARM_UP_SECONDS else " (the run is shorter than two warm-ups)"
            yield f"  {name:<26}{growth:<44}flat: {'yes' if one.flat else 'NO'}{short}"
    yield f"\nfiles: {reached.intact} arrived with the SHA-256 of the original, {len(reached.wrong)} wrong"
    if reached.interrupted:
        yield "interrupted: no final comparison"
    elif reached.compared and not reached.differences:
        yield "journal, rules on the ToRs and cross-connects agree, with lit trees and without"
    yield from (f"FAILED: {failure}" for failure in reached.failures)


def _cells(one: Figures | None) -> str:
    if one is None or one.p50 is None or one.p99 is None:
        return f"{f'0/{one.due if one else 0}':>14}{'-':>9}{'-':>9}"
    return f"{f'{one.completed}/{one.due}':>14}{one.p50 * 1000:>9.1f}{one.p99 * 1000:>9.1f}"


def _bar(name: str, value: float | None, bar: float, sign: str) -> str:
    if value is None:
        return f"  {name:<26}not measured"
    met = value >= bar if sign == ">=" else value <= bar
    return f"  {name:<26}{value:<10.3f}{sign} {bar:g}{'' if met else '  MISSED'}"
