"""Translation of forwards and guards into rules, and rejected input."""

from __future__ import annotations

import gc
from ipaddress import IPv4Address, IPv4Network

import pytest

from blast_controller.core.model.commands import Forward, ForwardingChange
from blast_controller.openflow.rules import (
    CONTROLLER,
    AddRule,
    DeleteRule,
    InvalidForwardError,
    Match,
    Rule,
    RuleSettings,
    additions,
    forward_rule,
    guards,
    merged,
    removals,
)

FORWARD = Forward(1, "10.0.0.1", "239.77.0.1", (2, 9))
GROUPS = 12_000


def test_a_forward_becomes_one_rule() -> None:
    settings = RuleSettings(table=3, priority=500, guard_priority=400, dscp=10, queue=2, epoch=0xABC)
    assert forward_rule(settings, 7, FORWARD) == Rule(
        table=3,
        priority=500,
        cookie=0xB1A5_0ABC_0000_0007,
        match=Match(1, IPv4Address("10.0.0.1"), IPv4Network("239.77.0.1/32")),
        outputs=(2, 9),
        dscp=10,
        queue=2,
    )


def test_guards_cover_the_groups_and_every_optical_port() -> None:
    rules = guards(RuleSettings(epoch=1), [8, 9], IPv4Network("239.77.0.0/16"))
    drops, probes = rules[:3], rules[3:]
    assert [rule.match for rule in drops] == [
        Match(destination=IPv4Network("239.77.0.0/16")),
        Match(in_port=8),
        Match(in_port=9),
    ]
    assert {(rule.cookie, rule.priority, rule.outputs) for rule in drops} == {(0xB1A5_0001_0000_0000, 30_000, ())}
    assert [rule.match for rule in probes] == [Match(in_port=8, ethertype=0x88B5), Match(in_port=9, ethertype=0x88B5)]
    assert {(rule.reservation, rule.priority, rule.outputs) for rule in probes} == {(0, 40_000, (CONTROLLER,))}


def test_forward_both_removed_and_added_is_only_added() -> None:
    settings = RuleSettings()
    other, replaced = Forward(3, "10.0.0.1", "239.77.0.1", ()), Forward(*FORWARD.key, (5,))
    change = ForwardingChange(7, 1, remove=(FORWARD, other), add=(replaced,))
    assert additions(settings, change) == [AddRule(forward_rule(settings, 7, replaced))]
    assert removals(settings, change) == [DeleteRule(forward_rule(settings, 7, other))]


def test_changes_of_one_step_are_merged() -> None:
    other = Forward(3, "10.0.0.1", "239.77.0.1", (4,))
    parts = [ForwardingChange(7, 1, remove=(FORWARD,)), ForwardingChange(8, 1), ForwardingChange(7, 1, add=(other,))]
    assert merged(parts) == {
        (7, 1): ForwardingChange(7, 1, remove=(FORWARD,), add=(other,)),
        (8, 1): ForwardingChange(8, 1),
    }


def test_forward_without_outputs_has_no_dscp_and_no_queue() -> None:
    rule = forward_rule(RuleSettings(dscp=46, queue=1), 7, Forward(*FORWARD.key, ()))
    assert (rule.outputs, rule.dscp, rule.queue) == ((), None, None)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (Forward(1, "10.0.0.1", "10.0.0.2", (2,)), "not a multicast address"),
        (Forward(1, "10.0.0", "239.77.0.1", (2,)), "Expected 4 octets"),
        (Forward(1, "10.0.0.1", "ff02::1", (2,)), "Only decimal digits|Expected 4 octets"),
        (Forward(0, "10.0.0.1", "239.77.0.1", (2,)), "0 is not a port number"),
        (Forward(1, "10.0.0.1", "239.77.0.1", (1,)), "arrived on"),
        (Forward(1, "10.0.0.1", "239.77.0.1", (2, 2)), "twice"),
        (Forward(1, "10.0.0.1", "239.77.0.1", (0xFFFF_FFFB,)), "outputs must be port numbers"),
    ],
)
def test_invalid_forward_is_rejected(forward: Forward, message: str) -> None:
    with pytest.raises(InvalidForwardError, match=message):
        forward_rule(RuleSettings(), 7, forward)


@pytest.mark.parametrize("reservation", [-1, 0, 1 << 32])
def test_reservation_out_of_the_cookie_range_is_rejected(reservation: int) -> None:
    with pytest.raises(InvalidForwardError, match="reservation"):
        forward_rule(RuleSettings(), reservation, FORWARD)


@pytest.mark.parametrize(
    "wrong",
    [
        {"table": 255},
        {"priority": 30_000},
        {"priority": 0x1_0000},
        {"guard_priority": 0},
        {"dscp": 64},
        {"queue": -1},
        {"epoch": 0x1_0000},
    ],
)
def test_settings_out_of_range_are_rejected(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        RuleSettings(**wrong)


def test_addresses_of_single_use_groups_are_not_cached_for_ever() -> None:
    """Each request uses one of 65,536 addresses; a cache of all would grow to 65 MB within hours."""
    settings = RuleSettings(table=3, priority=500, guard_priority=400, dscp=10, queue=2, epoch=0xABC)
    gc.collect()
    for number in range(GROUPS):
        forward_rule(settings, 7, Forward(1, "10.0.0.1", f"239.77.{number >> 8}.{number & 255}", (2,)))
    gc.collect()
    assert sum(isinstance(one, IPv4Network) for one in gc.get_objects()) < GROUPS // 2
