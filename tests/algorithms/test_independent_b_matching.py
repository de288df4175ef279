"""Allocations against all subsets of up to 8 requests, from section III-C of the Blast paper alone.

A selection is lawful if each rack is in at most b of its groups, no group of r racks violates r <= k(N + 1) - 2(k - 1)
(constraint 1), and the groups together consume no more than K splitters of N outputs, ceil((r - 2) / (N - 1)) each
(constraint 2). Its value is the sum of the volumes.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.b_matching import greedy
from algorithms.b_matching.budget import StepBudget
from algorithms.b_matching.exact import exact
from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import CompetingGroup, shared_ports
from algorithms.b_matching.optimized import total
from algorithms.b_matching.optimizer import optimize

RACKS, REQUESTS = 9, 8


@dataclass(frozen=True)
class Fabric:
    """Racks of `ports` (b) each, `splitters` (K) of `outputs` (N), at most `cascaded` (k) in a tree."""

    ports: int
    splitters: int
    outputs: int
    cascaded: int


@dataclass(frozen=True)
class Request:
    """A multicast between `racks`, the sender's first, of this `volume`."""

    racks: tuple[int, ...]
    volume: int

    def consumed(self, fabric: Fabric) -> int:
        """Return the splitters of constraint 2."""
        return -((len(self.racks) - 2) // -(fabric.outputs - 1))

    def allowed(self, fabric: Fabric) -> bool:
        """Return whether constraint 1 holds."""
        k = fabric.cascaded
        return len(self.racks) <= k * (fabric.outputs + 1) - 2 * (k - 1)


def _lawful(selection: Sequence[Request], fabric: Fabric) -> bool:
    at_racks = Counter(rack for request in selection for rack in request.racks)
    return (
        all(request.allowed(fabric) for request in selection)
        and all(count <= fabric.ports for count in at_racks.values())
        and sum(request.consumed(fabric) for request in selection) <= fabric.splitters
    )


def _subsets(requests: Sequence[Request]) -> Iterator[tuple[Request, ...]]:
    for size in range(len(requests) + 1):
        yield from combinations(requests, size)


def _optimum(requests: Sequence[Request], fabric: Fabric) -> int:
    lawful = (subset for subset in _subsets(requests) if _lawful(subset, fabric))
    return max(sum(request.volume for request in subset) for subset in lawful)


def _greedy(requests: Sequence[Request], fabric: Fabric) -> list[int]:
    """Return the places of the requests that section III-C.2 selects; equal scores in the order of the requests."""
    order = sorted(range(len(requests)), key=lambda at: -Fraction(requests[at].volume, len(requests[at].racks)))
    selected: list[int] = []
    for place in order:
        if _lawful([requests[at] for at in (*selected, place)], fabric):
            selected.append(place)
    return selected


FABRICS = st.builds(
    Fabric,
    ports=st.integers(1, 2),
    splitters=st.integers(0, 5),
    outputs=st.sampled_from([2, 3, 4]),
    cascaded=st.integers(1, 3),
)
ROUTES = st.lists(st.integers(0, RACKS - 1), min_size=2, max_size=RACKS, unique=True).map(tuple)
CROWDS = st.lists(st.builds(Request, ROUTES, st.integers(1, 30)), min_size=1, max_size=REQUESTS)
"""Small volumes, so that equal scores are frequent."""


def _groups(requests: Sequence[Request]) -> list[CompetingGroup]:
    return [
        CompetingGroup(
            name=place,
            ports=shared_ports(request.racks[0], request.racks[1:]),
            racks=len(request.racks),
            leaves=len(request.racks) - 1,
            weight=float(request.volume),
        )
        for place, request in enumerate(requests)
    ]


def _idle(fabric: Fabric) -> Feasibility:
    pool = {fabric.outputs: fabric.splitters}
    return Feasibility([fabric.ports] * RACKS, pool, by_count(max_splitters_per_tree=fabric.cascaded))


@settings(max_examples=120, deadline=None)
@given(requests=CROWDS, fabric=FABRICS)
def test_exact_equals_best_of_all_subsets(requests: list[Request], fabric: Fabric) -> None:
    best = exact(_groups(requests), _idle(fabric), 60.0)
    chosen = [requests[int(str(group.name))] for group, _ in best.selection]
    assert _lawful(chosen, fabric)
    assert best.certified
    assert best.value == sum(request.volume for request in chosen) == _optimum(requests, fabric)
    assert all(len(pieces) == requests[int(str(group.name))].consumed(fabric) for group, pieces in best.selection)


@settings(max_examples=300, deadline=None)
@given(requests=CROWDS, fabric=FABRICS)
def test_greedy_selects_as_paper_states(requests: list[Request], fabric: Fabric) -> None:
    selected = greedy.select(_groups(requests), _idle(fabric))
    assert [group.name for group, _ in selected] == _greedy(requests, fabric)


@settings(max_examples=120, deadline=None)
@given(requests=CROWDS, fabric=FABRICS)
def test_optimizer_lies_between_greedy_and_optimum(requests: list[Request], fabric: Fabric) -> None:
    found = optimize(_groups(requests), _idle(fabric), StepBudget(200), random.Random(0))
    chosen = [requests[int(str(group.name))] for group, _ in found.selection]
    optimum = _optimum(requests, fabric)
    assert _lawful(chosen, fabric)
    assert found.value == total(found.selection) == sum(request.volume for request in chosen)
    assert sum(requests[at].volume for at in _greedy(requests, fabric)) <= found.value <= optimum
    assert found.bound is not None
    assert found.bound >= optimum * (1 - 1e-9)
    assert found.value == optimum or not found.certified


@settings(max_examples=150, deadline=None)
@given(requests=CROWDS)
def test_greedy_reaches_share_of_widest_group(requests: list[Request]) -> None:
    """With one port a rack and splitters for all, a group excludes one of no better score for each of its racks."""
    fabric = Fabric(ports=1, splitters=RACKS * REQUESTS, outputs=4, cascaded=RACKS)
    greedy_value = total(greedy.select(_groups(requests), _idle(fabric)))
    widest = max(len(request.racks) for request in requests)
    assert greedy_value * widest >= _optimum(requests, fabric)


@pytest.mark.parametrize("outputs", [2, 4, 16, 64])
def test_constraint_1_limits_splitters_of_constraint_2(outputs: int) -> None:
    """The two constraints agree: a tree of k splitters reaches the racks that constraint 1 allows, and no more."""
    for cascaded in range(1, 12):
        fabric = Fabric(ports=1, splitters=0, outputs=outputs, cascaded=cascaded)
        for width in range(2, 12 * outputs):
            request = Request(tuple(range(width)), 1)
            assert request.allowed(fabric) == (request.consumed(fabric) <= cascaded)
            pieces = by_count(max_splitters_per_tree=cascaded)(width - 1, {outputs: 12 * outputs})
            assert (None if pieces is None else len(pieces)) == (
                request.consumed(fabric) if request.allowed(fabric) else None
            )
