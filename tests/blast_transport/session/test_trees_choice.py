"""Which trees can be given, and which plan a host believes its sender."""

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
def test_a_rate_that_carries_nothing(rate: float) -> None:
    with pytest.raises(WrongInputError, match="give each a rate above 0"):
        Tree(rate, {"a": SOURCE})


@pytest.mark.parametrize(
    ("parents", "says"),
    [
        ({}, "enters no host"),
        ({"a": "a"}, "cycle at 'a'"),
        ({"a": "b", "b": "c", "c": "a"}, "cycle"),
        ({"a": SOURCE, "b": "x"}, "host 'x' in a tree has no parent"),
    ],
)
def test_hosts_that_the_data_does_not_reach(parents: dict[str, str], says: str) -> None:
    with pytest.raises(WrongInputError, match=says):
        Tree(1.0, parents)


def test_no_tree_at_all() -> None:
    with pytest.raises(WrongInputError, match="name at least one"):
        Trees(())


def test_who_watches_makes_no_other_choice() -> None:
    tree = Tree(1.0, {"a": SOURCE})
    assert Trees((tree,), print) == Trees((tree,))
    assert Trees((tree,)) != Trees((replace(tree, rate=2.0),))


GOOD = TreesParameters(MEMBERS, ((5.0, (0, 1, 1)), (1e9, (3, NOWHERE, 0))), 2)


def test_a_phase_as_its_hosts_want_it() -> None:
    phase = trees_phase(Phase(7, 2, TREES, 9, token=b"t" * 16, parameters=to_parameters(GOOD)))
    assert phase == TreesPhase(
        7, 2, b"t" * 16, 9, MEMBERS, (PlacedTree(5.0, (0, 1, 1)), PlacedTree(1e9, (3, -1, 0))), 2
    )
    assert [tree.height() for tree in phase.trees] == [2, 2]
    assert phase.trees[0].children(1) == [2, 3]
    assert phase.trees[1].parent(2) == NOWHERE
    assert phase.planned() == {(0, 1): 5.0, (1, 2): 5.0, (1, 3): 5.0, (3, 1): 1e9, (0, 3): 1e9}


@pytest.mark.parametrize(
    "said",
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
def test_what_no_sender_may_say(said: TreesParameters) -> None:
    with pytest.raises(RemoteProtocolError):
        trees_phase(Phase(7, 2, TREES, 9, token=b"t" * 16, parameters=to_parameters(said)))
