"""Trees from a plan file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from blast_transport.base.errors import WrongInputError
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.plan_file import read_plan


def given_trees(path: Path, receivers: Collection[str]) -> Trees:
    """Read the trees of a file. Raises WrongInputError unless each tree reaches exactly these receivers."""
    found = read_plan(path)
    for tree in found.trees:
        _check(tree, path, set(receivers))
    return found


def _check(tree: Tree, path: Path, receivers: set[str]) -> None:
    entered = set(tree.parents)
    if missing := sorted(receivers - entered):
        raise WrongInputError(f"{path}: a tree does not reach {', '.join(missing)}: plan trees for the hosts of --to")
    if extra := sorted(entered - receivers):
        raise WrongInputError(
            f"{path}: a tree reaches {', '.join(extra)}, not in --to: plan trees for the hosts of --to"
        )
