"""A plan of trees as `blast trees --json` prints it: {"trees": [{"rate": bits/s, "edges": [[from, to], …]}, …]}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from blast_transport.base.errors import WrongInputError, sentence
from blast_transport.links.dialling import SOURCE
from blast_transport.transports.choices import Tree, Trees

_MAX_BYTES = 64 << 20
"""Memory: a larger file is not a plan."""


class PlannedTree(TypedDict):
    """A tree of a plan."""

    rate: float
    edges: list[tuple[str, str]]


class PlanFile(TypedDict):
    """Contents of a plan file."""

    trees: list[PlannedTree]


def read_plan(path: Path) -> Trees:
    """Read the trees of a file; the host without a parent in all of them is the sender. Raise WrongInputError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise WrongInputError(f"{path} has more than {_MAX_BYTES} bytes, and is no plan of trees")
        return to_trees(json.loads(text))
    except OSError as error:
        raise WrongInputError(f"cannot read {path}: {sentence(error)}") from error
    except (ValueError, RecursionError):
        raise WrongInputError(f"{path} is not JSON; write it with blast trees --json") from None
    except (KeyError, TypeError, AttributeError):
        raise WrongInputError(f"{path} is no plan of trees; write it with blast trees --json") from None


def to_trees(plan: PlanFile) -> Trees:
    """Return the trees of a plan. Raise WrongInputError; KeyError, TypeError, ValueError for another format."""
    found = [(float(tree["rate"]), _parents(tree["edges"])) for tree in plan["trees"]]
    receivers = {host for _, parents in found for host in parents}
    senders = {parent for _, parents in found for parent in parents.values()} - receivers
    if len(senders) > 1:
        names = ", ".join(sorted(senders))
        raise WrongInputError(f"the plan has more than one sender ({names}); all but one have to receive")
    return Trees(
        tuple(
            Tree(rate, {host: SOURCE if parent in senders else parent for host, parent in parents.items()})
            for rate, parents in found
        )
    )


def _parents(edges: list[tuple[str, str]]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for parent, child in edges:
        if not isinstance(parent, str) or not isinstance(child, str):
            raise TypeError
        if child in parents:
            raise WrongInputError(f"a tree enters {child!r} twice; each host receives from one other")
        parents[child] = parent
    return parents
