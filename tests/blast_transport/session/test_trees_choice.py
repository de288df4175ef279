"""Validation of trees that a user gives, and of plans that a sender sends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from blast_transport.base.errors import RemoteProtocolError, WrongInputError
from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.trees.parameters import TreesParameters, trees_phase
from blast_transport.transports.trees.plan import NOWHERE, PlacedTree, TreesPhase
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import TREES

MEMBERS = (("", "", 0), ("a", "10.0.0.1", 1), ("b", "10.0.0.2", 2), ("c", "10.0.0.3", 3))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_tree_requires_positive_finite_rate(rate: float) -> None:
    with pytest.raises(WrongInputError, match="give each a rate above 0"):
        Tree(rate, {"a": SOURCE})


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({}, "enters no host"),
        ({"a": "a"}, "cycle at 'a'"),
        ({"a": "b", "b": "c", "c": "a"}, "cycle"),
        ({"a": SOURCE, "b": "x"}, "host 'x' in a tree has no parent"),
    ],
)
def test_tree_with_unreachable_hosts_is_rejected(parents: dict[str, str], message: str) -> None:
    with pytest.raises(WrongInputError, match=message):
        Tree(1.0, parents)


def test_empty_list_of_trees_is_rejected() -> None:
    with pytest.raises(WrongInputError, match="name at least one"):
        Trees(())


def test_trees_choice_ignores_observer_in_comparison() -> None:
    tree = Tree(1.0, {"a": SOURCE})
    assert Trees((tree,), print) == Trees((tree,))
    assert Trees((tree,)) != Trees((replace(tree, rate=2.0),))


GOOD = TreesParameters(MEMBERS, ((5.0, (0, 1, 1)), (1e9, (3, NOWHERE, 0))), 2)


def test_trees_phase_converts_parameters() -> None:
    phase = trees_phase(Phase(7, 2, TREES, 9, token=b"t" * 16, parameters=to_parameters(GOOD)))
    assert phase == TreesPhase(
        7, 2, b"t" * 16, 9, MEMBERS, (PlacedTree(5.0, (0, 1, 1)), PlacedTree(1e9, (3, -1, 0))), 2
    )
    assert [tree.height() for tree in phase.trees] == [2, 2]
    assert phase.trees[0].children(1) == [2, 3]
    assert phase.trees[1].parent(2) == NOWHERE
    assert phase.planned() == {(0, 1): 5.0, (1, 2): 5.0, (1, 3): 5.0, (3, 1): 1e9, (0, 3): 1e9}


@pytest.mark.parametrize(
    "parameters",
    [
        replace(GOOD, place=4),
        replace(GOOD, place=-1),
        replace(GOOD, members=(*MEMBERS[:3], ("b", "10.0.0.3", 3))),
        replace(GOOD, members=(*MEMBERS[:3], ("c", "10.0.0.3", 0))),
        replace(GOOD, members=(("x", "", 0), *MEMBERS[1:])),
        replace(GOOD, trees=((5.0, (0, 1)),)),
        replace(GOOD, trees=((5.0, (0, 1, 4)),)),
        replace(GOOD, trees=((5.0, (0, 1, -2)),)),
        replace(GOOD, trees=((5.0, (0, 3, 2)),)),
        replace(GOOD, trees=((5.0, (1, 0, 0)),)),
        replace(GOOD, trees=((5.0, (NOWHERE, 1, 0)),)),
        replace(GOOD, trees=((0.0, (0, 0, 0)),)),
        replace(GOOD, trees=((1.0, (0, 0, 0)),) * 1025),
    ],
)
def test_invalid_trees_parameters_are_rejected(parameters: TreesParameters) -> None:
    with pytest.raises(RemoteProtocolError):
        trees_phase(Phase(7, 2, TREES, 9, token=b"t" * 16, parameters=to_parameters(parameters)))
