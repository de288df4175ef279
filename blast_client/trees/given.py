"""Trees that somebody else has planned."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from blast_transport.base.errors import WrongInputError
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.plan_file import read_plan


def given_trees(path: Path, receivers: Collection[str]) -> Trees:
    """The trees in this file, each of which goes to these receivers and nobody else. Raises WrongInputError."""
    found = read_plan(path)
    for tree in found.trees:
        _check(tree, path, set(receivers))
    return found


def _check(tree: Tree, path: Path, wanted: set[str]) -> None:
    entered = set(tree.parents)
    if missing := sorted(wanted - entered):
        raise WrongInputError(f"{path}: a tree does not reach {', '.join(missing)}: plan for the hosts that --to names")
    if extra := sorted(entered - wanted):
        raise WrongInputError(f"{path}: a tree goes to {', '.join(extra)}, which --to does not name")
