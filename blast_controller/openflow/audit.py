"""Audit of a ToR's rules: a pure function from observed rules to repairs.

The driver owns the guards and the form of every rule with Blast's magic; the core owns the set of forwards. A
well-formed forward is therefore reported and left unchanged, whatever run wrote it and when: its cookie's epoch alone
is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from blast_controller.core.model.commands import Forward
from blast_controller.openflow.rules import (
    AddRule,
    DeleteRule,
    DeleteStray,
    InvalidForwardError,
    Rule,
    RuleSettings,
    UnknownRule,
    forward_of,
    forward_rule,
)


@dataclass(frozen=True, slots=True)
class Audit:
    """The forwards that are there, with their reservations, and what makes the rest right; nothing if all is."""

    forwards: frozenset[tuple[int, Forward]]
    deletions: tuple[DeleteRule | DeleteStray, ...] = ()
    additions: tuple[AddRule, ...] = ()


def audit(settings: RuleSettings, guards: Sequence[Rule], found: Iterable[Rule | UnknownRule]) -> Audit:
    """Audit the rules with Blast's magic that were found on a ToR.

    A correct rule at the right place is left unchanged. A rule at its right place with an outdated mark, or a guard
    with a wrong action, is overwritten in place, without a gap. All others are deleted.
    """
    missing = {guard.place: guard for guard in guards}
    forwards: set[tuple[int, Forward]] = set()
    deletions: list[DeleteRule | DeleteStray] = []
    additions: list[AddRule] = []
    for rule in found:
        if isinstance(rule, UnknownRule):
            deletions.append(DeleteStray(rule))
            continue
        required, forward = missing.get(rule.place), None
        if rule.reservation:
            required, forward = _as_written_now(settings, rule)
        if required is None or required.place != rule.place:
            deletions.append(DeleteRule(rule))
            continue
        if replace(rule, cookie=required.cookie) != required:
            additions.append(AddRule(required))
        if forward:
            forwards.add((rule.reservation, forward))
        else:
            del missing[rule.place]
    additions += map(AddRule, missing.values())
    return Audit(frozenset(forwards), tuple(deletions), tuple(additions))


def _as_written_now(settings: RuleSettings, rule: Rule) -> tuple[Rule | None, Forward | None]:
    """Return the rule that would be written today for the forward that `rule` does, and that forward."""
    forward = forward_of(rule)
    if forward is None:
        return None, None
    try:
        return forward_rule(settings, rule.reservation, forward), forward
    except InvalidForwardError:
        return None, None
