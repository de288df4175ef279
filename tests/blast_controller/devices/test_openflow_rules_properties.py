"""After any changes, a flow table with OpenFlow 1.3 semantics forwards exactly the desired packets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.commands import Forward, ForwardingChange
from blast_controller.openflow.audit import audit
from blast_controller.openflow.rules import (
    OWNER_MASK,
    AddRule,
    DeleteRule,
    DeleteStray,
    Match,
    Operation,
    Rule,
    RuleSettings,
    UnknownRule,
    additions,
    forward_rule,
    guards,
    removals,
)

GROUPS = IPv4Network("239.77.0.0/16")
OPTICAL = (8, 9)
PORTS = range(1, 10)
SOURCES = ("10.0.0.1", "10.0.0.2")
ADDRESSES = ("239.77.0.1", "239.77.0.2")
SETTINGS = RuleSettings(epoch=3)
FOREIGN = Rule(table=0, priority=100, cookie=0x1234, match=Match(), outputs=(7,))


@dataclass
class FlowTable:
    """OpenFlow 1.3.5 sections 5.2 and 6.4: a rule is identified by match and priority; the highest priority wins."""

    rules: dict[tuple[int, Match], Rule] = field(default_factory=dict)
    strays: list[UnknownRule] = field(default_factory=list)

    def apply(self, operation: Operation) -> None:
        match operation:
            case AddRule(rule):
                self.rules[rule.priority, rule.match] = rule
            case DeleteRule(rule):
                found = self.rules.get((rule.priority, rule.match))
                if found and found.cookie & OWNER_MASK == rule.cookie & OWNER_MASK:
                    del self.rules[rule.priority, rule.match]
            case DeleteStray(stray):
                self.strays.remove(stray)

    def outputs(self, in_port: int, source: str, group: str) -> tuple[int, ...]:
        hits = [rule for rule in self.rules.values() if _matches(rule.match, in_port, source, group)]
        best = max(hits, key=lambda rule: rule.priority, default=None)
        return best.outputs if best else ()


def _matches(match: Match, in_port: int, source: str, group: str) -> bool:
    return (
        match.ethertype is None
        and match.in_port in (None, in_port)
        and match.source in (None, IPv4Address(source))
        and (match.destination is None or IPv4Address(group) in match.destination)
    )


@st.composite
def forwards(draw: st.DrawFn) -> Forward:
    in_port = draw(st.sampled_from(PORTS))
    others = [port for port in PORTS if port != in_port]
    outputs = draw(st.lists(st.sampled_from(others), unique=True, max_size=3))
    return Forward(in_port, draw(st.sampled_from(SOURCES)), draw(st.sampled_from(ADDRESSES)), tuple(outputs))


def _operations(settings: RuleSettings, change: ForwardingChange) -> list[Operation]:
    return [*additions(settings, change), *removals(settings, change)]


changes = st.builds(
    ForwardingChange,
    reservation=st.integers(1, 3),
    step=st.just(1),
    remove=st.lists(forwards(), max_size=3).map(tuple),
    add=st.lists(forwards(), max_size=3, unique_by=lambda forward: forward.key).map(tuple),
)


def _prepared_table() -> FlowTable:
    table = FlowTable()
    for rule in (FOREIGN, *guards(SETTINGS, OPTICAL, GROUPS)):
        table.apply(AddRule(rule))
    return table


@given(st.lists(changes, max_size=12))
def test_table_forwards_exactly_the_desired_forwards(sequence: list[ForwardingChange]) -> None:
    table = _prepared_table()
    expected: dict[tuple[int, str, str], tuple[int, Forward]] = {}
    for change in sequence:
        for forward in change.remove:
            if expected.get(forward.key, (0,))[0] == change.reservation:
                del expected[forward.key]
        for forward in change.add:
            expected[forward.key] = (change.reservation, forward)
        for operation in _operations(SETTINGS, change):
            table.apply(operation)
        for in_port in PORTS:
            for source in SOURCES:
                for group in ADDRESSES:
                    held = expected.get((in_port, source, group))
                    assert table.outputs(in_port, source, group) == (held[1].outputs if held else ())


@given(st.lists(changes, max_size=8))
def test_changes_do_not_affect_other_traffic_and_rules(sequence: list[ForwardingChange]) -> None:
    table = _prepared_table()
    for change in sequence:
        for operation in _operations(SETTINGS, change):
            table.apply(operation)
            # Always: a foreign sender, an optical port without a forward, and packets outside our groups.
            assert table.outputs(1, "10.9.9.9", ADDRESSES[0]) == ()
            assert table.outputs(OPTICAL[0], "10.0.0.1", "10.0.0.7") == ()
            assert table.outputs(1, "10.0.0.1", "10.0.0.7") == FOREIGN.outputs
    assert FOREIGN in table.rules.values()


@given(forwards(), forwards(), st.integers(1, 2), st.integers(1, 2))
def test_replacing_a_forward_leaves_no_gap(old: Forward, new: Forward, owner: int, taker: int) -> None:
    new = Forward(*old.key, tuple(port for port in new.outputs if port != old.in_port))
    table = _prepared_table()
    for operation in _operations(SETTINGS, ForwardingChange(owner, 1, add=(old,))):
        table.apply(operation)
    for operation in _operations(SETTINGS, ForwardingChange(taker, 2, remove=(old,), add=(new,))):
        table.apply(operation)
        assert table.outputs(*old.key) in {old.outputs, new.outputs}
        assert (SETTINGS.priority, _key_match(old)) in table.rules
    assert table.outputs(*old.key) == new.outputs


def _key_match(forward: Forward) -> Match:
    return Match(forward.in_port, IPv4Address(forward.source), IPv4Network(forward.group))


GUARDS = guards(SETTINGS, OPTICAL, GROUPS)
OLDER = RuleSettings(epoch=2)


@st.composite
def found_tables(draw: st.DrawFn) -> tuple[FlowTable, set[tuple[int, Forward]]]:
    """Draw any mixture of rules with our magic, and the well-formed forwards among them."""
    table = FlowTable()
    right: dict[tuple[int, str, str], tuple[int, Forward]] = {}
    for reservation, forward in draw(st.lists(st.tuples(st.integers(1, 3), forwards()), max_size=6)):
        right[forward.key] = (reservation, forward)
        table.apply(AddRule(forward_rule(draw(st.sampled_from([SETTINGS, OLDER])), reservation, forward)))
    for guard in draw(st.lists(st.sampled_from([*GUARDS, *guards(OLDER, (*OPTICAL, 7), GROUPS)]), max_size=6)):
        spoilt = draw(
            st.sampled_from([guard, replace(guard, outputs=(3,)), replace(guard, priority=guard.priority + 1)])
        )
        table.apply(AddRule(spoilt))
    for reservation in draw(st.lists(st.integers(1, 3), max_size=2)):
        in_wrong_place = replace(forward_rule(SETTINGS, reservation, draw(forwards())), priority=123)
        table.apply(AddRule(in_wrong_place))
    table.strays = draw(
        st.lists(st.builds(UnknownRule, st.just(0), st.integers(1, 9), st.just(0xB1A5 << 48), st.binary()), max_size=2)
    )
    return table, set(right.values())


@given(found_tables())
def test_audit_restores_guards_and_found_forwards_in_one_pass(
    found: tuple[FlowTable, set[tuple[int, Forward]]],
) -> None:
    table, right = found
    untouched = {place: rule for place, rule in table.rules.items() if _is_right(rule, right)}
    judged = audit(SETTINGS, GUARDS, [*table.rules.values(), *table.strays])
    assert judged.forwards == right
    for operation in (*judged.deletions, *judged.additions):
        assert not isinstance(operation, AddRule) or (operation.rule.priority, operation.rule.match) not in untouched
        table.apply(operation)
    assert untouched.items() <= table.rules.items(), "the epoch alone is no difference"
    expected = {guard.place for guard in GUARDS} | {forward_rule(SETTINGS, r, f).place for r, f in right}
    assert {rule.place for rule in table.rules.values()} == expected
    assert table.strays == []
    again = audit(SETTINGS, GUARDS, table.rules.values())
    assert (again.forwards, again.deletions, again.additions) == (right, (), ())


def _is_right(rule: Rule, right: set[tuple[int, Forward]]) -> bool:
    expected = [*GUARDS, *(forward_rule(SETTINGS, r, f) for r, f in right)]
    return any(replace(rule, cookie=w.cookie) == w and rule.reservation == w.reservation for w in expected)


def test_audit_rewrites_forward_of_older_settings_in_place() -> None:
    forward = Forward(1, SOURCES[0], ADDRESSES[0], (2,))
    old = forward_rule(RuleSettings(dscp=10), 7, forward)
    judged = audit(SETTINGS, (), [old])
    assert judged.forwards == {(7, forward)}
    assert (judged.deletions, judged.additions) == ((), (AddRule(forward_rule(SETTINGS, 7, forward)),))
