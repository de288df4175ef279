"""Hostile receivers: every message field, changed in every way, on every transport; one or two among seven."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.soak.episodes import Effort, played
from tests.support.transport.hostile_members import KINDS, MEMBERS, Lie, lies, session

CONTENT = random.Random("hostile members").randbytes(8 << 20)
LIMIT_SECONDS = 60.0
"""A hang; the time that honest receivers need is printed, and compared with theirs among honest ones."""


@dataclass(frozen=True)
class Case:
    """Two lies on one transport, or the same one twice, in which case one receiver tries it."""

    transport: str
    lies: tuple[Lie, ...]

    def __str__(self) -> str:
        return f"{self.transport}: {' and '.join(map(str, self.lies))}"


@dataclass(frozen=True)
class Played:
    """The result of a case; `seconds` is None if an honest receiver lacks the file."""

    seed: int
    case: Case
    seconds: float | None
    failure: str | None


def cases() -> list[Case]:
    """Return each lie once, alone or with the previous one, in random order."""
    every = [(transport, lie) for transport, kinds in KINDS.items() for lie in lies(kinds)]
    random.Random("order").shuffle(every)
    found = []
    for number, (transport, lie) in enumerate(every):
        other = next((one for by, one in reversed(every[:number]) if by == transport), lie)
        found.append(Case(transport, (lie, other) if number % 2 else (lie,)))
    return found


def play(number: int) -> Played:
    """Run the case with this number, modulo their count."""
    every = cases()
    case = every[number % len(every)]
    places = random.Random(str(case)).sample(range(MEMBERS), len(case.lies))
    folder = Path(tempfile.mkdtemp(prefix="blast-members-"))
    try:
        found = session(folder, CONTENT, case.transport, dict(zip(places, case.lies, strict=True)), LIMIT_SECONDS)
    finally:
        shutil.rmtree(folder)
    wrong = [*found.lacking, *(f"{name} has another content" for name in found.wrong)]
    return Played(number, case, found.seconds, f"{case} (at {places}): {'; '.join(wrong)}" if wrong else None)


def honest(transport: str) -> float:
    """Return the seconds that seven honest receivers need, two of them behind relays."""
    folder = Path(tempfile.mkdtemp(prefix="blast-members-"))
    try:
        found = session(folder, CONTENT, transport, {1: None, 4: None}, LIMIT_SECONDS)
    finally:
        shutil.rmtree(folder)
    assert found.seconds is not None and not found.wrong, found
    return found.seconds


def run(effort: Effort) -> int:
    """Play the cases, print those above the bar, and return the number of failures."""
    bars = {transport: 3 * max(honest(transport) for _ in range(3)) + 2 for transport in KINDS}
    number, late, failures = 0, 0, 0
    for one in played(play, range(effort.seed, effort.seed + effort.units), effort):
        number, failures = number + 1, failures + (one.failure is not None)
        bar = bars[one.case.transport]
        if one.seconds is not None and one.seconds > bar:
            late += 1
            print(f"  {one.seconds:.1f} s, above 3 times the honest time and 2 s ({bar:.1f} s): {one.case}", flush=True)
    print(f"{number} of {len(cases())} cases: {failures} failed, {late} took long", flush=True)
    return failures
