"""Transcripts of Redis: commands, replies and messages of subscriptions as records; passwords are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blast_controller.cli.switch.decode.redis_monitor import monitored_command
from blast_controller.cli.switch.decode.resp import RedisError, RedisValue, RespGarbage, RespReader, RespValue
from blast_controller.cli.switch.decode.transcript import MAX_TEXT_MESSAGE, UNPARSED_BYTES, Record, plain_text, unparsed

HIDDEN = "********"

_COMMANDS = frozenset(
    [
        "ACL", "AUTH", "CLIENT", "COMMAND", "CONFIG", "DBSIZE", "DEL", "DISCARD", "ECHO", "EVAL", "EVALSHA", "EXEC",
        "EXISTS", "EXPIRE", "FLUSHALL", "FLUSHDB", "GET", "HDEL", "HELLO", "HEXISTS", "HGET", "HGETALL", "HKEYS",
        "HLEN", "HMGET", "HMSET", "HSCAN", "HSET", "HSETNX", "HVALS", "INFO", "KEYS", "MGET", "MONITOR", "MULTI",
        "PERSIST", "PING", "PSUBSCRIBE", "PUBLISH", "PUNSUBSCRIBE", "QUIT", "SADD", "SCAN", "SCRIPT", "SELECT", "SET",
        "SMEMBERS", "SREM", "SUBSCRIBE", "TTL", "TYPE", "UNLINK", "UNSUBSCRIBE", "UNWATCH", "WATCH",
    ]
)  # fmt: skip
"""Commands that are sent to the databases of a switch. A reply that is a list of texts has the form of a command, so
that only a known name makes it one."""

_MESSAGES = {"message": 2, "pmessage": 3, "subscribe": 2, "psubscribe": 2, "unsubscribe": 2, "punsubscribe": 2}
"""Kinds of messages of a subscription, with the number of values after the kind."""


class RedisTranscriptDecoder:
    """A decoder of captured bytes, or of lines of `redis-cli MONITOR`."""

    def __init__(self) -> None:
        self._decoder: _CapturedBytes | _MonitoredLines | None = None
        self._beginning = b""

    def feed(self, data: bytes) -> Iterator[Record]:
        """Return the records that `data` completes."""
        if self._decoder is None:
            data = self._beginning = (self._beginning + data).lstrip(b"\r\n")
            if b"\n" not in data and len(data) <= UNPARSED_BYTES:
                return
            self._decoder = _decoder_for(data)
        yield from self._decoder.feed(data)

    def finish(self) -> Iterator[Record]:
        """Return the records at the end of the transcript."""
        if self._decoder is None:
            self._decoder = _decoder_for(self._beginning)
            yield from self._decoder.feed(self._beginning)
        yield from self._decoder.finish()


def _decoder_for(beginning: bytes) -> _CapturedBytes | _MonitoredLines:
    line = plain_text(beginning.partition(b"\n")[0]).strip()
    # `redis-cli` prints the reply to MONITOR first.
    return _MonitoredLines() if line == "OK" or monitored_command(line) else _CapturedBytes()


class _CapturedBytes:
    def __init__(self) -> None:
        self._reader = RespReader()

    def feed(self, data: bytes) -> Iterator[Record]:
        return map(_value_record, self._reader.feed(data))

    def finish(self) -> Iterator[Record]:
        return map(_value_record, self._reader.finish())


class _MonitoredLines:
    def __init__(self) -> None:
        self._line = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[Record]:
        self._line += data
        while (end := self._line.find(b"\n", self._searched)) >= 0:
            line = bytes(self._line[:end])
            del self._line[: end + 1]
            self._searched = 0
            yield from _line_records(line)
        self._searched = len(self._line)
        if len(self._line) > MAX_TEXT_MESSAGE:
            yield unparsed(bytes(self._line), f"a line of more than {MAX_TEXT_MESSAGE} bytes")
            self._line.clear()
            self._searched = 0

    def finish(self) -> Iterator[Record]:
        yield from self.feed(b"\n")


def _line_records(line: bytes) -> Iterator[Record]:
    text = plain_text(line).strip()
    if text in ("", "OK"):
        return
    found = monitored_command(text)
    if found is None:
        yield unparsed(line, "no line of redis-cli MONITOR")
        return
    place = {"time": found.time, "database": found.database, "client": found.client}
    yield {"kind": "command", **place, **_named(found.words)}


def _value_record(found: RespValue | RespGarbage) -> Record:
    match found:
        case RespGarbage(content, reason):
            return unparsed(content, reason)
        case RespValue(RedisError(text)):
            code, _, explanation = text.partition(" ")
            return {"kind": "error", "code": code, "text": explanation}
        case RespValue([str(kind), *values]) if len(values) == _MESSAGES.get(kind):
            pattern = {"pattern": values[0]} if kind == "pmessage" else {}
            return {"kind": kind, **pattern, "channel": values[-2], "content": _plain(values[-1])}
        case RespValue([str(name), *_] as words, is_words=True) if name.upper() in _COMMANDS:
            return {"kind": "command", **_named([str(word) for word in words])}
    return {"kind": "reply", "value": _plain(found.value)}


def _named(words: Sequence[str]) -> Record:
    return {"command": words[0].upper(), "arguments": _without_secrets(words[0].upper(), words[1:])}


def _without_secrets(command: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without passwords."""
    names = [argument.upper() for argument in arguments]
    match command:
        case "AUTH":
            return [HIDDEN] * len(arguments)
        case "HELLO" if "AUTH" in names:
            at = names.index("AUTH") + 1
            return [*arguments[:at], *(HIDDEN for _ in arguments[at : at + 2]), *arguments[at + 2 :]]
        case "CONFIG" if names[:1] == ["SET"]:
            secret = {at + 1 for at, name in enumerate(names) if name in ("REQUIREPASS", "MASTERAUTH")}
            return [HIDDEN if at in secret else argument for at, argument in enumerate(arguments)]
        case "ACL":
            return [HIDDEN if argument[:1] in ("<", ">", "#", "!") else argument for argument in arguments]
    return list(arguments)


def _plain(value: RedisValue) -> object:
    if isinstance(value, RedisError):
        return {"error": value.text}
    return [_plain(one) for one in value] if isinstance(value, list) else value
