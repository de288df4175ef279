"""Parts of the transport `multicast`: lost segments, reports, the log of what left, groups, parameters."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import RemoteProtocolError, WrongInputError
from blast_transport.blocks.block_map import BlockMap
from blast_transport.transports.choices import MulticastChoice
from blast_transport.transports.multicast.control import SentLog
from blast_transport.transports.multicast.feedback import (
    LossCounter,
    PathReport,
    Reporting,
    decode_order,
    decode_report,
    encode_order,
    encode_report,
)
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.groups import GroupParameters, GroupRange, group_parameters, parse_groups
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import MULTICAST

NUMBERS = st.integers(0, (1 << 64) - 1)
BLOCK = 4


# ------------------------------------------------------------------------------------------------------------ losses


@given(st.lists(st.integers(0, 60), max_size=80), st.sets(st.integers(0, 15)))
def test_losses_are_those_behind_which_three_segments_have_passed(arrivals: list[int], held: set[int]) -> None:
    """Against a count from the whole history; a late segment is no loss if it comes before that."""
    blocks = BlockMap()
    for block in held:
        blocks.add(block)
    counter = LossCounter(0, blocks, BLOCK)
    stop, missing, lost = 0, dict[int, int](), 0
    for segment in arrivals:
        counter.passed([(segment, segment + 1)])
        if segment >= stop:
            missing |= {one: segment + 3 for one in range(stop, segment) if one // BLOCK not in held}
            stop = segment + 1
        else:
            missing.pop(segment, None)
        due_now = [one for one, due in missing.items() if stop >= due]
        lost += len(due_now)
        for one in due_now:
            del missing[one]
        assert (counter.stop, counter.lost) == (stop, lost)


def test_losses_end_before_the_last_lost_segment() -> None:
    counter = LossCounter(8, BlockMap(), BLOCK)
    counter.passed([(8, 10), (12, 20), (25, 30)])
    assert (counter.lost, counter.lost_stop, counter.stop) == (7, 25, 30)


def test_report_is_due_at_once_then_in_steps_and_at_losses() -> None:
    reporting = Reporting(LossCounter(0, BlockMap(), BLOCK), 0.0)
    assert reporting.until_due is None
    reporting.order(0)
    assert reporting.take(0.0) is None, "nothing has arrived: the sender would count the receiver as reached"
    reporting.passed([(0, 5)], 0.0)
    assert reporting.take(0.0) == PathReport(5, 0, 0, 0)
    reporting.passed([(5, 15)], 0.1)
    assert reporting.take(0.1) is None, "no order, and not for 0.2 s"
    assert reporting.take(0.2) == PathReport(15, 0, 0, 0, 100_000)
    reporting.order(10)
    assert reporting.take(0.21) == PathReport(15, 0, 0, 0, 110_000), "an order is answered"
    assert reporting.until_due == 10
    reporting.passed([(15, 24)], 0.22)
    assert reporting.take(0.22) is None and reporting.until_due == 1
    reporting.passed([(26, 30)], 0.23)
    assert reporting.take(0.23) == PathReport(30, 2, 26, 0)
    reporting.order(0)
    assert reporting.take(0.24) is not None
    reporting.passed([(31, 40)], 0.25)
    assert reporting.take(0.25) is None, "every receiver may lose the same segment"
    assert reporting.take(0.29) == PathReport(40, 3, 31, 0, 40_000)


# ---------------------------------------------------------------------------------------------------------- feedback


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, (1 << 32) - 1))
def test_report_is_read_as_it_was_written(stop: int, lost: int, lost_stop: int, marked: int, delay: int) -> None:
    report = PathReport(stop, lost, lost_stop, marked, delay)
    assert decode_report(encode_report(report)) == report


@given(st.binary(max_size=64))
def test_other_bytes_are_rejected(body: bytes) -> None:
    for decode, size in ((decode_report, 36), (decode_order, 4)):
        if len(body) != size:
            with pytest.raises(RemoteProtocolError, match=f"{len(body)} bytes"):
                decode(body)


def test_order_is_read_as_it_was_written() -> None:
    assert [decode_order(encode_order(number)) for number in (0, 7, (1 << 32) - 1)] == [0, 7, (1 << 32) - 1]


# ---------------------------------------------------------------------------------------------------------- sent log


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=30))
def test_log_knows_how_many_segments_left_and_when(steps: list[tuple[int, int]]) -> None:
    """`steps`: segments that are skipped, then segments that leave, one in a second."""
    log, position, left = SentLog(), 0, dict[int, tuple[int, float]]()
    for skipped, count in steps:
        first = position + skipped
        before = log.sent
        log.record(first, first + count, float(before), float(before + count))
        for number in range(count):
            left[first + number + 1] = before + number + 1, float(before + number + 1)
        position = first + count
    assert log.sent == len(left)
    for stop, expected in left.items():
        found = log.find(stop)
        assert found is not None and found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1])


def test_empty_log_knows_nothing() -> None:
    assert SentLog().find(5) is None


# ------------------------------------------------------------------------------------------- groups and parameters


@given(
    st.sampled_from(["239.255.0.0/16", "232.1.0.0/24", "ff15::b1a5:0:0/96", "ff3e::8000:0/97", "239.1.1.1"]), NUMBERS
)
def test_picked_group_is_in_the_range(text: str, number: int) -> None:
    network = ipaddress.ip_network(text)
    source = "10.0.0.1" if network.version == 4 else "2001:db8::1"
    groups = parse_groups(text)
    group = groups.pick(source, lambda count: number % (1 << count))
    assert ipaddress.ip_address(group) in network
    assert groups.is_source_specific(group) == text.startswith(("232", "ff3"))


def test_default_groups_are_local() -> None:
    assert GroupRange().pick("10.0.0.1", lambda _: 7) == "239.255.0.7"
    assert GroupRange().pick("2001:db8::1", lambda _: 7) == "ff15::b1a5:0:7"


def test_range_of_one_ip_version_has_no_groups_of_the_other() -> None:
    both = parse_groups("ff15::/96, 239.7.0.0/16")
    assert (both.pick("10.0.0.1", lambda _: 7), both.pick("2001:db8::1", lambda _: 7)) == ("239.7.0.7", "ff15::7")
    for text, source in (("239.7.0.0/16", "2001:db8::1"), ("ff15::/96", "10.0.0.1")):
        with pytest.raises(WrongInputError, match="give one of each version"):
            parse_groups(text).pick(source, lambda _: 7)
    with pytest.raises(WrongInputError, match="several ranges of one IP version"):
        parse_groups("239.7.0.0/16,239.8.0.0/16")


@pytest.mark.parametrize("text", ["10.0.0.0/8", "fe80::/64", "239.255.0.1/16", "group", "224.0.0.0/3"])
def test_range_without_groups_is_rejected(text: str) -> None:
    with pytest.raises(WrongInputError, match=r"give one such as|the ranges are"):
        parse_groups(text)


@pytest.mark.parametrize("wrong", [{"hops": 0}, {"hops": 256}, {"dscp": -1}, {"dscp": 64}])
def test_choice_out_of_range_is_rejected(wrong: dict[str, int]) -> None:
    with pytest.raises(WrongInputError, match="not"):
        MulticastChoice(**wrong)  # type: ignore[arg-type]


PARAMETERS = GroupParameters("239.255.1.2", 9096, "10.0.0.1", 4000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 0},
        {"source_port": 1 << 16},
        {"group": "10.0.0.2"},
        {"group": "ff15::1"},
        {"source": "239.1.1.1"},
        {"group": "nowhere"},
        {"source": ""},
        {"source": "light.example"},
        {"port": "80"},
    ],
    ids=str,
)
def test_invalid_parameters_are_rejected(wrong: dict[str, object]) -> None:
    phase = Phase(7, 1, MULTICAST, 0, parameters=to_parameters(PARAMETERS))
    assert group_parameters(phase) == PARAMETERS
    with pytest.raises(RemoteProtocolError, match=r"multicast Phase|GroupParameters\.port"):
        group_parameters(replace(phase, parameters=phase.parameters | wrong))
