"""A fluid network in exact fractions, written from section VI-A of the Blast paper as a reference for the simulator.

Flows share links max-min fairly. A job is a list of stages: a stage begins a delay after the end of the one before it
and ends with the last of its flows. Background flows never end and are replaced at the start of each round.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Links = tuple[int, ...]


@dataclass(frozen=True)
class Flow:
    """`copies` equal flows over these links; a link named twice carries the flow twice."""

    links: Links
    weight: Fraction = Fraction(1)
    copies: int = 1
    cap: Fraction | None = None


@dataclass(frozen=True)
class Stage:
    """Flows as (links, size), which begin together."""

    flows: list[tuple[Links, Fraction]]
    delay: Fraction = Fraction(0)


def fair_rates(capacities: Sequence[Fraction], flows: Sequence[Flow]) -> list[Fraction]:
    """Return the rate of one copy of each flow: all levels rise together until a link is full or a cap is reached."""
    room, level = list(capacities), Fraction(0)
    rates: list[Fraction | None] = [None] * len(flows)
    while any(rate is None for rate in rates):
        rising = [flow for flow, rate in zip(flows, rates, strict=True) if rate is None]
        load: dict[int, Fraction] = {}
        for flow in rising:
            for link in flow.links:
                load[link] = load.get(link, Fraction(0)) + flow.weight * flow.copies
        steps = [room[link] / asked for link, asked in load.items()]
        steps += [flow.cap / flow.weight - level for flow in rising if flow.cap is not None]
        step = min(steps)
        level += step
        for link, asked in load.items():
            room[link] -= step * asked
        for place, flow in enumerate(flows):
            capped = flow.cap is not None and level * flow.weight >= flow.cap
            if rates[place] is None and (capped or any(not room[link] for link in flow.links)):
                rates[place] = level * flow.weight
    return [rate for rate in rates if rate is not None]


@dataclass
class _Job:
    stages: Iterator[Stage]
    begins: Fraction = Fraction(0)
    waiting: list[tuple[Links, Fraction]] = field(default_factory=list)
    left: dict[int, tuple[Links, Fraction]] = field(default_factory=dict)
    ended: Fraction | None = None

    def proceed(self, now: Fraction) -> None:
        """Start the next stage if the current one has ended, and begin due flows."""
        while self.ended is None and not self.left:
            if self.waiting and self.begins > now:
                return
            self.left, self.waiting = dict(enumerate(self.waiting)), []
            if not self.left:
                stage = next(self.stages, None)
                if stage is None:
                    self.ended = now
                else:
                    self.begins, self.waiting = now + stage.delay, stage.flows


def ends(
    capacities: Sequence[Fraction],
    jobs: Sequence[Sequence[Stage]],
    background: Callable[[int], Sequence[Links]] = lambda number: (),
    round_seconds: Fraction = Fraction(1),
) -> list[Fraction]:
    """Return the end of each job; all begin at 0, beside the background of each round."""
    states, now = [_Job(iter(stages)) for stages in jobs], Fraction(0)
    for state in states:
        state.proceed(now)
    while any(state.ended is None for state in states):
        number = now // round_seconds
        active = [(state, key) for state in states for key in state.left]
        own = [Flow(state.left[key][0]) for state, key in active]
        rates = fair_rates(capacities, own + [Flow(links) for links in background(int(number))])[: len(own)]
        moments = [(number + 1) * round_seconds]
        moments += [state.begins for state in states if state.waiting]
        moments += [now + state.left[key][1] / rate for (state, key), rate in zip(active, rates, strict=True) if rate]
        later = min(moments)
        for (state, key), rate in zip(active, rates, strict=True):
            links, size = state.left[key]
            size -= rate * (later - now)
            if size:
                state.left[key] = (links, size)
            else:
                del state.left[key]
        now = later
        for state in states:
            state.proceed(now)
    return [state.ended for state in states if state.ended is not None]
