"""Transcripts of Redis: captured bytes of a real server, and lines of `redis-cli MONITOR`."""

from __future__ import annotations

import pytest

from blast_controller.cli.switch.decode.decoding import records
from blast_controller.cli.switch.decode.redis import HIDDEN
from blast_controller.cli.switch.decode.redis_monitor import monitored_command
from blast_controller.cli.switch.decode.resp import CUT_OFF, NO_VALUE
from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, Record, TranscriptProtocol


def command(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)


def decoded(text: bytes, size: int = 1 << 30) -> list[Record]:
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return list(records(pieces, TranscriptProtocol.REDIS))


def commanded(name: str, *arguments: str) -> Record:
    return {"kind": "command", "command": name, "arguments": list(arguments)}


def replied(value: object) -> Record:
    return {"kind": "reply", "value": value}


@pytest.mark.parametrize("size", [1, 7, 1 << 30])
def test_commands_and_replies_of_both_directions(size: int) -> None:
    text = (
        command("SELECT", "4")
        + b"+OK\r\n"
        + command("multi")
        + b"+OK\r\n"
        + command("HSET", "OCS_CROSS_CONNECT|1A-2B", "a_side", "1A", "b_side", "2B")
        + b"+QUEUED\r\n"
        + command("EXEC")
        + b"*2\r\n:2\r\n-WRONGTYPE Operation against a key\r\n"
        + command("HGETALL", "OCS_PORT|1A")
        + b"*2\r\n$5\r\nlabel\r\n$3\r\na\r\n\r\n*0\r\n$-1\r\n*-1\r\n"
        + command("PSUBSCRIBE", "__keyspace@6__:*")
        + b"*3\r\n$10\r\npsubscribe\r\n$16\r\n__keyspace@6__:*\r\n:1\r\n"
        + command("pmessage", "__keyspace@6__:*", "__keyspace@6__:OCS_PORT_TABLE|1A", "hset")
        + b"-NOAUTH Authentication required.\r\n"
    )
    assert decoded(text, size) == [
        commanded("SELECT", "4"),
        replied("OK"),
        commanded("MULTI"),
        replied("OK"),
        commanded("HSET", "OCS_CROSS_CONNECT|1A-2B", "a_side", "1A", "b_side", "2B"),
        replied("QUEUED"),
        commanded("EXEC"),
        replied([2, {"error": "WRONGTYPE Operation against a key"}]),
        commanded("HGETALL", "OCS_PORT|1A"),
        replied(["label", "a\r\n"]),
        replied([]),
        replied(None),
        replied(None),
        commanded("PSUBSCRIBE", "__keyspace@6__:*"),
        {"kind": "psubscribe", "channel": "__keyspace@6__:*", "content": 1},
        {
            "kind": "pmessage",
            "pattern": "__keyspace@6__:*",
            "channel": "__keyspace@6__:OCS_PORT_TABLE|1A",
            "content": "hset",
        },
        {"kind": "error", "code": "NOAUTH", "text": "Authentication required."},
    ]


def test_values_of_resp3_are_read() -> None:
    text = b"%1\r\n+proto\r\n:3\r\n~1\r\n#t\r\n_\r\n,1.5\r\n=5\r\ntxt:a\r\n!5\r\nERR x\r\n>2\r\n+a\r\n(12\r\n"
    assert [one.get("value", one.get("code")) for one in decoded(text)] == [
        ["proto", 3],
        [True],
        None,
        "1.5",
        "txt:a",
        "ERR",
        ["a", "12"],
    ]


@pytest.mark.parametrize("size", [1, 7, 1 << 30])
def test_garbage_is_reported_once_and_skipped(size: int) -> None:
    text = b"hello\r\nworld\r\n" + command("PING") + b"$3\r\nabcd\r\n+PONG\r\n*2\r\n:1\r\nhi\r\n:2\r\n$9\r\nabc"
    assert decoded(text, size) == [
        {"kind": "unparsed", "lines": ["hello", "world"], "error": NO_VALUE},
        commanded("PING"),
        {"kind": "unparsed", "lines": ["$3", "abcd"], "error": "a text has another length than the one before it"},
        replied("PONG"),
        {"kind": "unparsed", "lines": ["hi"], "error": NO_VALUE},
        replied(2),
        {"kind": "unparsed", "lines": ["$9", "abc"], "error": CUT_OFF},
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"$9999999999\r\n",
        b"*9999999999\r\n",
        b"*1\r\n" * 20,
        b"*2000000\r\n" * 3,
        b"+" + b"x" * (1 << 17),
        b"*100\r\n" + (b"+" + b"x" * 60_000 + b"\r\n") * 100,
        b"*2\r\n$3000000\r\n" + b"x" * 3_000_000 + b"\r\n$3000000\r\n",
    ],
    ids=["text", "array", "nested", "arrays", "line", "many lines", "two texts"],
)
def test_announced_sizes_are_bounded(text: bytes) -> None:
    first = decoded(text)[0]
    assert first["kind"] == "unparsed" and len(str(first)) < 1000


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("AUTH", "admin", "secret"), [HIDDEN, HIDDEN]),
        (("auth", "secret"), [HIDDEN]),
        (("HELLO", "3", "auth", "admin", "secret", "SETNAME", "x"), ["3", "auth", HIDDEN, HIDDEN, "SETNAME", "x"]),
        (("CONFIG", "SET", "requirepass", "secret"), ["SET", "requirepass", HIDDEN]),
        (("CONFIG", "SET", "notify-keyspace-events", "AKE"), ["SET", "notify-keyspace-events", "AKE"]),
        (("ACL", "SETUSER", "admin", "on", ">secret", "~*"), ["SETUSER", "admin", "on", HIDDEN, "~*"]),
    ],
)
def test_passwords_are_left_out(words: tuple[str, ...], arguments: list[str]) -> None:
    assert decoded(command(*words)) == [commanded(words[0].upper(), *arguments)]


# ---------------------------------------------------------------------------------------------------------- MONITOR

LINE = r'1790012345.123456 [4 10.0.0.9:51324] "HSET" "OCS_PORT|1A" "label" "a \"b\" \\ \xc3\xa4 \x07\n"'


@pytest.mark.parametrize("size", [1, 7, 1 << 30])
def test_lines_of_monitor(size: int) -> None:
    text = f'OK\n{LINE}\n1790012345.200000 [6 unix:/run/redis.sock] "EXEC"\nerror: closed\n{LINE}'.encode()
    hset, execute, closed, last = list(records(text[at : at + size] for at in range(0, len(text), size)))
    assert (
        hset
        == last
        == {
            "kind": "command",
            "time": 1790012345.123456,
            "database": 4,
            "client": "10.0.0.9:51324",
            "command": "HSET",
            "arguments": ["OCS_PORT|1A", "label", 'a "b" \\ \\xc3\\xa4 \x07\n'],
        }
    )
    assert (execute["client"], execute["database"], execute["command"]) == ("unix:/run/redis.sock", 6, "EXEC")
    assert closed == {"kind": "unparsed", "lines": ["error: closed"], "error": "no line of redis-cli MONITOR"}


@pytest.mark.parametrize("line", ["", "OK", LINE[:-1], LINE.replace("[4", "[x"), LINE + " x", '1.000000 [0 a] "x"'])
def test_other_lines_are_none_of_monitor(line: str) -> None:
    assert monitored_command(line) is None


def test_line_without_end_is_bounded() -> None:
    pieces = [LINE.encode() + b"\n", *[b"x" * (1 << 16)] * (MAX_TEXT_MESSAGE // (1 << 16) + 1), b"\n"]
    _, long = records(pieces)
    assert long["kind"] == "unparsed" and len(str(long["lines"])) < 300
