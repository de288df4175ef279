"""Coverage-guided fuzzing of decoders: half of the inputs are mutations, and what reaches a new branch is mutated on.

A small share of the inputs is watched line by line as it is decoded; one that takes a step from one line to another
that no input has taken before becomes a seed itself. Everything follows from a seed, so that a failure comes again.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Generic, TypeVar

Input = TypeVar("Input", bytes, str)
Step = tuple[str, int, int]

WATCHED = 32
"""One input in `WATCHED` is traced."""
MAX_SEEDS = 3000


def inputs(usual: int) -> int:
    """Return the number of inputs of a decoder: BLAST_FUZZ_INPUTS, or `usual`."""
    return int(os.environ.get("BLAST_FUZZ_INPUTS") or usual)


def mutated_bytes(rng: random.Random, seed: bytes, tokens: Sequence[bytes], longest: int) -> bytes:
    """Return a seed after up to three changes: a token or a part of the seed is inserted, bytes change or go."""
    changed = bytearray(seed)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0:
                changed[at:at] = rng.choice(tokens)
            case 1:
                del changed[at : at + rng.randint(1, 12)]
            case 2 if at < len(changed):
                changed[at] = rng.randrange(256)
            case _:
                changed[at:at] = changed[rng.randrange(len(changed) + 1) :][: rng.randint(1, 60)]
    return bytes(changed[:longest])


def pieces(rng: random.Random, data: bytes) -> Iterator[bytes]:
    """Yield data in pieces of random sizes."""
    at, largest = 0, rng.choice([1, 7, 100])
    while at < len(data):
        size = rng.randint(1, largest)
        yield data[at : at + size]
        at += size


@dataclass(frozen=True)
class Decoder(Generic[Input]):
    """A decoder under test: `check` decodes an input and names the outcome; any exception is a failure.

    `mutate` changes one of the seeds, `invent` makes an input from nothing; `files` are suffixes of the names of the
    modules whose branches count.
    """

    name: str
    seeds: Sequence[Input]
    mutate: Callable[[random.Random, Input], Input]
    invent: Callable[[random.Random], Input]
    check: Callable[[random.Random, Input], str]
    files: tuple[str, ...]


class Watch:
    """The line transitions that any traced input has taken."""

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files = files
        self._is_ours: dict[str, bool] = {}
        self.seen: set[Step] = set()
        self._fresh = False

    def is_new(self, call: Callable[[], str]) -> tuple[str, bool]:
        """Return the outcome of a call, and whether it has taken a new line transition."""
        before, self._fresh = sys.gettrace(), False
        sys.settrace(self._enter)
        try:
            outcome = call()
        finally:
            sys.settrace(before)
        return outcome, self._fresh

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        ours = self._is_ours.get(file)
        if ours is None:
            ours = self._is_ours[file] = file.endswith(self._files)
        return self._follower(file, frame.f_lineno) if ours else None

    def _follower(self, file: str, entered: int) -> Any:
        last = entered

        def follow(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last
            line = -1 if event == "return" else frame.f_lineno
            step = (file, last, line)
            if step not in self.seen:
                self.seen.add(step)
                self._fresh = True
            last = line
            return follow

        return follow


@dataclass
class Run:
    """The result of a number of inputs."""

    inputs: int = 0
    mutated: int = 0
    seeds: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)


def fuzz(decoder: Decoder[Input], count: int, seed: int = 0) -> Run:
    """Run a decoder with `count` inputs, every other one a mutation. Raises AssertionError that names the input."""
    rng, watch, run = random.Random(f"{decoder.name}/{seed}"), Watch(decoder.files), Run()
    seeds, began = list(decoder.seeds), time.process_time()
    for known in decoder.seeds:
        watch.is_new(lambda known=known: _checked(decoder, rng, known))
        # Run the input again for other coverage tools.
        _checked(decoder, rng, known)
    for number in range(count):
        from_seed = number % 2 == 0
        # The most recent seeds have been tried least often.
        parent = rng.choice(seeds[-50:] if rng.random() < 0.2 else seeds) if from_seed else None
        data = decoder.invent(rng) if parent is None else decoder.mutate(rng, parent)
        if number // 2 % WATCHED == 0 and len(seeds) < MAX_SEEDS:
            outcome, is_new = watch.is_new(lambda data=data: _checked(decoder, rng, data))
            if is_new:
                seeds.append(data)
        else:
            outcome = _checked(decoder, rng, data)
        run.outcomes[outcome] += 1
        run.mutated += from_seed
    run.inputs, run.seeds, run.seconds = count, len(seeds) - len(decoder.seeds), time.process_time() - began
    return run


def _checked(decoder: Decoder[Input], rng: random.Random, data: Input) -> str:
    try:
        return decoder.check(rng, data)
    except Exception as error:
        raise AssertionError(f"{decoder.name}: {error!r} from {data!r}") from error
