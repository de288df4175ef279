"""Policies: which of the pending groups get light at a decision point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from algorithms.b_matching import paper_greedy
from algorithms.b_matching.residual import Choice, Group, Residual

Policy = Callable[[Iterable[Group], Residual], list[tuple[Group, Choice]]]

POLICIES: Mapping[str, Policy] = {"paper": paper_greedy.select}
