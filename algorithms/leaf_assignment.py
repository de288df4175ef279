"""A light tree for ports that differ: weak receivers on shallow leaves, other splitters where that helps.

First the given tree is tried: outputs are assigned from the weakest to the strongest, each to the receiver that it
still suits and that tolerates the least power (exact if more loss is worse in every respect). If a receiver falls
short, the exact program of `level_program` searches the cheapest tree that serves all receivers. If there is none, the
answer is the tree with the smallest shortfall in dB, with the receiver and the element that bind in it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from algorithms.level_program import DEEPEST, Level, LevelProgram, Levels
from algorithms.power_budget import (
    ROUNDING_DB,
    Amplifier,
    Certificate,
    Element,
    ElementLoss,
    Passive,
    Piece,
    PowerLevel,
    Transceiver,
    Window,
    certify,
)
from algorithms.splitter_tree import Output, Shape, choose_splitters, shallowest

MAX_KINDS = 4
"""Above this number of kinds of splitters (each may have been measured), splitters of one size are merged, at their
worst values.
"""

REMEMBERED = 1024
"""Results of the exact search to cache: ports of few kinds, and parts that are tried again, repeat the same queries."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The sender and the receivers of a tree.

    Parameters
    ----------
    sender : Transceiver
        The sender's optical port.
    receivers : tuple of Transceiver
        The optical ports of the receivers.
    loop_leaf : bool, optional
        True if the sender's own receiver needs a leaf too.
    """

    sender: Transceiver
    receivers: tuple[Transceiver, ...]
    loop_leaf: bool = False

    @property
    def leaves(self) -> tuple[Transceiver, ...]:
        """Every receiver that needs a leaf; the sender's own comes last."""
        return (*self.receivers, self.sender) if self.loop_leaf else self.receivers


@dataclass(frozen=True, slots=True)
class FittedTree:
    """A tree that serves all receivers.

    Parameters
    ----------
    pieces : tuple of Piece
        The splitters, parents first.
    shape : Shape
        `shape.fan_out[i]` is that of `pieces[i]`, and `shape.leaves[j]` serves receiver j of `Ends`. The sender's own
        receiver comes last if there is a loop leaf.
    certificates : tuple of Certificate
        Power and margins of each receiver, in the order of the leaves.
    two_way : bool, optional
        True if there are no splitters, yet a loop leaf: the one receiver's transmitter lights it.
    """

    pieces: tuple[Piece, ...]
    shape: Shape
    certificates: tuple[Certificate, ...]
    two_way: bool = False

    @property
    def price(self) -> float:
        """The total price of its pieces."""
        return sum(piece.price for piece in self.pieces)

    @property
    def weakest(self) -> Certificate:
        """The receiver with the smallest margin."""
        return min(self.certificates, key=lambda certificate: certificate.margin)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why there is no tree.

    Parameters
    ----------
    sentence : str
        The reason in words.
    binding : Certificate, optional
        The receiver that falls short even in the best tree; None: there are too few outputs.
    """

    sentence: str
    binding: Certificate | None = None


def fit_tree(ends: Ends, pieces: Sequence[Piece], switch: Passive, first: Shape | None = None) -> FittedTree | Refusal:
    """Return a tree from `pieces` over `switch` in which every margin holds, or the receiver and element that bind.

    Parameters
    ----------
    ends : Ends
        Sender and receivers, powers in dBm.
    pieces : sequence of Piece
        The free splitters; each has a name of its own.
    switch : Passive
        One pass through the optical switch, losses in dB.
    first : Shape, optional
        The shape to try first (from `Catalog.tree` or `splitter_tree.shallowest`); without it the result is the
        cheapest tree.

    Returns
    -------
    FittedTree or Refusal
        The refusal names the receiver that falls short even in the best tree.

    Raises
    ------
    SolverError
        If the integer program fails.

    Notes
    -----
    O(receivers log receivers) if the first tree serves all receivers; otherwise an integer program over power levels,
    exponential in the worst case, with few variables if pieces are of few kinds.

    Examples
    --------
    >>> from algorithms.power_budget import PowerLevel, exactly
    >>> ports = [Transceiver(f"r{n}", PowerLevel(-1.0, 0.0, 1.0), -20.0, 0.5) for n in range(4)]
    >>> tree = fit_tree(Ends(ports[0], tuple(ports[1:])), [Piece("s1", 4, exactly(7.0))], Passive("ocs", exactly(1.0)))
    >>> [piece.name for piece in tree.pieces], tree.weakest.margin
    (['s1'], 8.5)
    """
    return deal_tree(ends, pieces, switch, first) or _cheapest(ends, pieces, switch)


def deal_tree(ends: Ends, pieces: Sequence[Piece], switch: Passive, shape: Shape | None) -> FittedTree | None:
    """Return the tree of one shape, or a two-way circuit where that suffices, in which every margin holds.

    Parameters
    ----------
    ends : Ends
        Sender and receivers, powers in dBm.
    pieces : sequence of Piece
        The free splitters, first ones preferred; each has a name of its own.
    switch : Passive
        One pass through the optical switch, losses in dB.
    shape : Shape or None
        The arrangement of splitters; None: only a two-way circuit is tried.

    Returns
    -------
    FittedTree or None
        None if a receiver falls short, or there are too few pieces. O(receivers squared).

    Examples
    --------
    >>> from algorithms.power_budget import PowerLevel, exactly
    >>> ports = [Transceiver(f"r{n}", PowerLevel(-1.0, 0.0, 1.0), -20.0, 0.5) for n in range(4)]
    >>> ends, pieces = Ends(ports[0], tuple(ports[1:])), [Piece("s1", 4, exactly(7.0)), Piece("s2", 4, exactly(7.0))]
    >>> tree = deal_tree(ends, pieces, Passive("ocs", exactly(1.0)), shallowest(3, [4]))
    >>> [piece.name for piece in tree.pieces]
    ['s1']
    """
    if len(ends.receivers) == 1 and ends.loop_leaf and (circuit := _two_way(ends, switch)):
        return circuit
    named = None if shape is None else _named(shape, pieces)
    return None if shape is None or named is None else _dealt(ends, named, shape, switch)


def _two_way(ends: Ends, switch: Passive) -> FittedTree | None:
    (receiver,) = ends.receivers
    both = (certify(ends.sender, [switch], receiver), certify(receiver, [switch], ends.sender))
    holds = all(certificate.holds for certificate in both)
    return FittedTree((), Shape((), (), (None, None)), both, two_way=True) if holds else None


# ----------------------------------------------------------------------------------------------- the tree at hand


def _named(shape: Shape, pieces: Sequence[Piece]) -> tuple[Piece, ...] | None:
    """Return pieces of the sizes that a shape has, or None if there are not enough."""
    left: defaultdict[int, list[Piece]] = defaultdict(list)
    for piece in reversed(pieces):
        left[piece.fan_out].append(piece)
    if any(count > len(left[fan_out]) for fan_out, count in Counter(shape.fan_out).items()):
        return None
    return tuple(left[fan_out].pop() for fan_out in shape.fan_out)


def _dealt(ends: Ends, pieces: tuple[Piece, ...], shape: Shape, switch: Passive) -> FittedTree | None:
    lights = _slots(ends.sender.entering, pieces, shape.feeds, switch)
    if lights is None:
        return None
    usable = (output for output in set(lights) - set(shape.feeds) if not _overdrives(lights[output], switch))
    outputs = sorted(usable, key=lambda output: (lights[output].worst, output or (-1, -1)))
    waiting = dict(enumerate(ends.leaves))
    feeds: dict[int, Output | None] = {}
    for output in outputs:
        seen = switch.after(lights[output])
        suited = [number for number, receiver in waiting.items() if receiver.needed.fits(seen)]
        if suited:
            number = min(suited, key=lambda n: (waiting[n].needed.max_power, waiting[n].needed.min_power))
            del waiting[number]
            feeds[number] = output
    if waiting:
        return None
    return _certified(ends, pieces, Shape(shape.fan_out, shape.feeds, tuple(feeds[n] for n in sorted(feeds))), switch)


def _slots(
    root: PowerLevel, pieces: Sequence[Piece], feeds: Iterable[Output | None], switch: Passive
) -> dict[Output | None, PowerLevel] | None:
    """Return the power at every slot, or None if any element is overdriven."""
    lights: dict[Output | None, PowerLevel] = {None: root}
    for index, (piece, feed) in enumerate(zip(pieces, feeds, strict=True)):
        below = piece.hung(lights[feed], switch)
        if below is None:
            return None
        lights |= {(index, output): below for output in range(piece.fan_out)}
    return lights


def _overdrives(slot: PowerLevel, switch: Passive) -> bool:
    # A receiver with a limiter may tolerate more power than the switch before it.
    return slot.best > switch.max_input + ROUNDING_DB


def _certified(ends: Ends, pieces: tuple[Piece, ...], shape: Shape, switch: Passive) -> FittedTree:
    def path(output: Output | None) -> list[Element]:
        if output is None:
            return [switch]
        return [*path(shape.feeds[output[0]]), *pieces[output[0]].elements, switch]

    leaves = zip(shape.leaves, ends.leaves, strict=True)
    return FittedTree(pieces, shape, tuple(certify(ends.sender, path(output), receiver) for output, receiver in leaves))


# ----------------------------------------------------------------------------------------------- the exact search


def _cheapest(ends: Ends, pieces: Sequence[Piece], switch: Passive) -> FittedTree | Refusal:
    kinds, leaves = _kinds(pieces), len(ends.leaves)
    # No tree has more splitters of a kind. With this bound the same search recurs although the supply changes.
    supply = tuple((kind, min(len(alike), DEEPEST * leaves)) for kind, alike in kinds.items())
    demands = tuple(sorted(Counter(receiver.needed for receiver in ends.leaves).items()))
    found = _searched(ends.sender.entering, switch, supply, demands)
    if found is None:
        return _too_few_outputs(ends)
    levels, shortfall = found
    tree = _built(ends, levels, kinds, switch)
    if not shortfall:
        return tree
    return Refusal(f"no tree reaches all receivers: {tree.weakest.sentence}", tree.weakest)


@lru_cache(REMEMBERED)
def _searched(
    root: PowerLevel, switch: Passive, supply: tuple[tuple[Piece, int], ...], demands: tuple[tuple[Window, int], ...]
) -> tuple[Levels, float] | None:
    """Return the cheapest tree that serves all receivers or, with its shortfall in dB, the one that lacks least.

    None if there are too few outputs.
    """
    kinds, windows = dict(supply), dict(demands)
    pool = Counter[int]()
    for kind, count in supply:
        pool[kind.fan_out] += count
    fan_out = choose_splitters(sum(windows.values()), pool)
    if fan_out is None:
        return None
    darkest = min(window.min_power for window in windows) - _shortfall_of(fan_out, root, kinds, windows, switch)
    program = LevelProgram(root, switch, kinds, windows, darkest)
    if (levels := program.solve()) is not None:
        return levels, 0.0
    shortfalls = program.shortfalls()
    place = bisect_left(range(len(shortfalls)), True, key=lambda n: program.solve(shortfalls[n]) is not None)
    min_bad = program.solve(shortfalls[place]) if place < len(shortfalls) else None
    return None if min_bad is None else (min_bad, shortfalls[place])


def _too_few_outputs(ends: Ends) -> Refusal:
    needed = len(ends.leaves)
    return Refusal(f"a tree of this group needs {needed} outputs, more than the splitters that can be used provide")


def _shortfall_of(
    fan_out: Sequence[int], root: PowerLevel, kinds: Iterable[Piece], windows: Mapping[Window, int], switch: Passive
) -> float:
    """Return the largest shortfall in dB of an easily built tree, an upper bound for the best tree."""
    shape = shallowest(sum(windows.values()), fan_out)
    worst = {size: max((k for k in kinds if k.fan_out == size), key=lambda kind: kind.loss.worst) for size in fan_out}
    slots = _slots(root, [worst[size] for size in shape.fan_out], shape.feeds, switch)
    if slots is None or any(_overdrives(slots[output], switch) for output in shape.leaves):
        return math.inf
    lights = {switch.after(slots[output]) for output in shape.leaves}
    return max(0.0, *(-window.margin(light) for window in windows for light in lights))


def _kinds(pieces: Sequence[Piece]) -> Mapping[Piece, list[Piece]]:
    alike: defaultdict[Piece, list[Piece]] = defaultdict(list)
    for piece in pieces:
        alike[piece.kind].append(piece)
    if len(alike) <= MAX_KINDS:
        return alike
    sizes: defaultdict[tuple[int, Amplifier | None], list[Piece]] = defaultdict(list)
    for piece in pieces:
        sizes[piece.fan_out, piece.kind.amplifier].append(piece)
    return {worst_of(same): same for same in sizes.values()}


def worst_of(pieces: Sequence[Piece]) -> Piece:
    """Return the kind that promises no more than any of these pieces of one size does.

    Parameters
    ----------
    pieces : sequence of Piece
        At least one, all with the same number of outputs and equal amplifiers.

    Returns
    -------
    Piece
        Without a name, losses in dB.

    Examples
    --------
    >>> worst_of([Piece("a", 4, ElementLoss(6.0, 6.5, 7.0)), Piece("b", 4, ElementLoss(6.2, 6.4, 7.5))]).loss
    ElementLoss(best=6.0, typical=6.5, worst=7.5)
    """
    loss = ElementLoss(
        min(piece.loss.best for piece in pieces),
        max(piece.loss.typical for piece in pieces),
        max(piece.loss.worst for piece in pieces),
    )
    return replace(pieces[0].kind, loss=loss, price=max(piece.price for piece in pieces))


def _built(ends: Ends, levels: Levels, kinds: Mapping[Piece, list[Piece]], switch: Passive) -> FittedTree:
    """Turn levels into named splitters and outputs, parents first."""
    left = {kind: iter(alike) for kind, alike in kinds.items()}
    slots: defaultdict[Level, list[Output | None]] = defaultdict(list)
    slots[0, ends.sender.entering.rounded].append(None)
    pieces: list[Piece] = []
    feeds: list[Output | None] = []
    for (level, kind), count in sorted(levels.hung.items(), key=lambda item: item[0][0][0]):
        below = kind.hung(level[1], switch)
        assert below is not None, "a level program hangs nothing that is overdriven"
        for _ in range(count):
            feeds.append(slots[level].pop())
            slots[level[0] + 1, below] += [(len(pieces), output) for output in range(kind.fan_out)]
            pieces.append(next(left[kind]))
    served: defaultdict[Window, list[Output | None]] = defaultdict(list)
    for (level, window), count in levels.served.items():
        served[window] += [slots[level].pop() for _ in range(count)]
    outputs = tuple(served[receiver.needed].pop() for receiver in ends.leaves)
    return _certified(ends, tuple(pieces), Shape(tuple(p.fan_out for p in pieces), tuple(feeds), outputs), switch)
