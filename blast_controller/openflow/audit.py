"""What was found on a ToR against what the driver itself answers for: pure, observed rules in, repairs out.

The driver answers for the guards and for the form of every rule with our magic; which forwards there should be is the
core's business, so a well-formed forward is reported and left alone whoever wrote it and when: the epoch in its cookie
is by itself no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from blast_controller.core.model.commands import Forward
from blast_controller.openflow.rules import (
    AddRule,
    DeleteRule,
    DeleteStray,
    InvalidForward,
    Rule,
    RuleSettings,
    Stray,
    forward_of,
    forward_rule,
)


@dataclass(frozen=True, slots=True)
class Audit:
    """The forwards that are there, with their reservations, and what makes the rest right; nothing if all is."""

    forwards: frozenset[tuple[int, Forward]]
    deletions: tuple[DeleteRule | DeleteStray, ...] = ()
    additions: tuple[AddRule, ...] = ()


def audit(settings: RuleSettings, guards: Sequence[Rule], found: Iterable[Rule | Stray]) -> Audit:
    """Judge the rules with our magic that were found on a ToR.

    A right rule in the right place is left alone. One in its right place that an older setting marked otherwise, or a
    guard that does something else, is written anew in place, without a gap. Everything else is deleted.
    """
    missing = {guard.place: guard for guard in guards}
    forwards: set[tuple[int, Forward]] = set()
    deletions: list[DeleteRule | DeleteStray] = []
    additions: list[AddRule] = []
    for rule in found:
        if isinstance(rule, Stray):
            deletions.append(DeleteStray(rule))
            continue
        wanted, forward = missing.get(rule.place), None
        if rule.reservation:
            wanted, forward = _as_written_now(settings, rule)
        if wanted is None or wanted.place != rule.place:
            deletions.append(DeleteRule(rule))
            continue
        if replace(rule, cookie=wanted.cookie) != wanted:
            additions.append(AddRule(wanted))
        if forward:
            forwards.add((rule.reservation, forward))
        else:
            del missing[rule.place]
    additions += map(AddRule, missing.values())
    return Audit(frozenset(forwards), tuple(deletions), tuple(additions))


def _as_written_now(settings: RuleSettings, rule: Rule) -> tuple[Rule | None, Forward | None]:
    """The rule that would be written today for the forward that `rule` does, and that forward."""
    forward = forward_of(rule)
    if forward is None:
        return None, None
    try:
        return forward_rule(settings, rule.reservation, forward), forward
    except InvalidForward:
        return None, None
