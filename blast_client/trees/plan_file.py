"""Trees that somebody else has planned, as `blast trees --json` prints them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blast_transport.base.errors import WrongInputError, sentence
from blast_transport.carriers.choices import Tree, Trees
from blast_transport.links.dialling import SOURCE

MOST_BYTES = 16 << 20


def read_plan(path: Path, receivers: Sequence[str]) -> Trees:
    """The trees in this file, which reach exactly these receivers. Raises WrongInputError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise WrongInputError(f"cannot read {path}: {sentence(error)}") from error
    if len(data) > MOST_BYTES:
        raise WrongInputError(f"{path} is longer than {MOST_BYTES} bytes: that is no plan of trees")
    try:
        return parse_plan(data, receivers)
    except WrongInputError as error:
        raise WrongInputError(f"{path}: {error}") from error


def parse_plan(data: bytes, receivers: Sequence[str]) -> Trees:
    """The same of these bytes."""
    try:
        written = json.loads(data)["trees"]
        trees = tuple(_tree(float(tree["rate"]), tree["edges"]) for tree in written)
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise WrongInputError(
            'this is no plan of trees: it has to be {"trees": [{"rate": …, "edges": [[from, to], …]}, …]}, '
            f"as `blast trees --json` prints it ({error!r})"
        ) from error
    for tree in trees:
        _check(tree, receivers)
    return Trees(trees)


def _tree(rate: float, edges: Sequence[Any]) -> Tree:
    parents: dict[str, str] = {}
    for start, end in edges:
        if not isinstance(start, str) or not isinstance(end, str):
            raise ValueError("hosts are names")
        if end in parents:
            raise WrongInputError(f"{end!r} receives twice in one tree")
        parents[end] = start
    roots = {start for start in parents.values() if start not in parents}
    if not math.isfinite(rate) or rate <= 0 or len(roots) != 1:
        raise WrongInputError(
            f"a tree has a rate above 0 and one root, but here is one of rate {rate:g} with {len(roots)}"
        )
    return Tree(rate, {child: SOURCE if parent in roots else parent for child, parent in parents.items()})


def _check(tree: Tree, receivers: Sequence[str]) -> None:
    wanted, entered = set(receivers), set(tree.parents)
    if missing := sorted(wanted - entered):
        raise WrongInputError(f"a tree does not reach {', '.join(missing)}: plan for the hosts that --to names")
    if extra := sorted(entered - wanted):
        raise WrongInputError(f"a tree goes to {', '.join(extra)}, which --to does not name")
