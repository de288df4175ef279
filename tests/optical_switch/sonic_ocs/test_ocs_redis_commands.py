"""Commands to the databases, and rows in their replies."""

from __future__ import annotations

import pytest

from optical_switch.errors import ProtocolError
from optical_switch.model import Circuit
from optical_switch.sonic_ocs import redis_commands as redis
from optical_switch.sonic_ocs.model import CROSS_CONNECT_TABLE, PORT_TABLE
from optical_switch.sonic_ocs.state import RowsDeleted, RowUpdated


@pytest.mark.parametrize(
    ("flags", "missing"),
    [("AKE", ""), ("KA", ""), ("Kghxe", ""), ("", "Keghx"), ("AE", "K"), ("KEgx", "eh"), ("Kd", "eghx")],
)
def test_missing_events_are_named(flags: str, missing: str) -> None:
    assert redis.missing_events(flags) == missing


def test_change_deletes_before_it_sets() -> None:
    assert redis.change_commands([Circuit(1, 2)], [Circuit(7, 9)]) == [
        ("DEL", "OCS_CROSS_CONNECT|1A-2B"),
        ("HSET", "OCS_CROSS_CONNECT|7A-9B", "a_side", "7A", "b_side", "9B"),
    ]


def test_messages_of_subscription_name_keys() -> None:
    (_, pattern), _ = redis.subscriptions()
    channel = pattern.replace("*", "7A")
    assert redis.changed_key(["pmessage", pattern, channel, "hset"]) == f"{PORT_TABLE}|7A"
    for other in (["pong", ""], ["pmessage", pattern, "__keyspace@4__:x", "hset"], ["pmessage"], None, 1, "OK"):
        assert redis.changed_key(other) is None


def test_rows_are_replaced_by_their_columns_or_removed() -> None:
    keys = [f"{PORT_TABLE}|7A", f"{CROSS_CONNECT_TABLE}|7A-9B"]
    exists, read, *_ = redis.row_commands(keys)
    assert exists == ("EXISTS", keys[0])
    assert read == ("HMGET", keys[0], "oper_status", "state", "target_simplex_port_id")
    replies: list[redis.Reply] = [1, ["tuning", None, None], 0, [None, None, None, None]]
    assert list(redis.row_changes(keys, replies)) == [
        RowsDeleted((PORT_TABLE, "7A")),
        RowUpdated(PORT_TABLE, "7A", {"oper_status": "tuning"}),
        RowsDeleted((CROSS_CONNECT_TABLE, "7A-9B")),
    ]


def test_row_without_known_columns_exists() -> None:
    (_, change) = redis.row_changes([f"{PORT_TABLE}|7A"], [1, [None, None, None]])
    assert change == RowUpdated(PORT_TABLE, "7A", {})


@pytest.mark.parametrize("reply", [None, "OK", [], ["connected"], 1])
def test_reply_of_other_shape_is_refused(reply: redis.Reply) -> None:
    with pytest.raises(ProtocolError):
        list(redis.row_changes([f"{PORT_TABLE}|7A"], [1, reply]))


def test_keys_that_were_not_requested_are_refused() -> None:
    with pytest.raises(ProtocolError, match="not requested"):
        redis.row_commands(["PORT_TABLE|Ethernet0"])


def test_scan_continues_until_cursor_is_zero() -> None:
    assert redis.scan(PORT_TABLE, "0")[:4] == ("SCAN", "0", "MATCH", "OCS_PORT_TABLE|*")
    assert redis.scanned(["17", ["a", "b"]]) == ("17", ["a", "b"])
    for other in (None, [], ["0"], [0, []], "OK"):
        with pytest.raises(ProtocolError):
            redis.scanned(other)
