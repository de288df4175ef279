"""Emulated ToRs: many OpenFlow 1.3 connections from one asyncio process.

Each ToR answers the controller and keeps its flow table as bytes, also while the controller restarts; it does not
forward packets. The process prints a JSON line when all ToRs are connected, answers each line on standard input with
counts as JSON, and exits at the end of standard input.

    python benchmarks/control_plane/emulated_tors.py --controller 127.0.0.1:6653 --count 100 --optical-ports 49,50
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.control_plane.child import print_json, serve_counts

VERSION = 4
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 3, 5, 6
FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 14, 18, 19, 20, 21
ROLE_REQUEST, ROLE_REPLY = 24, 25
FLOW_STATS, AGGREGATE_STATS, PORT_DESCRIPTIONS = 1, 2, 13
DELETE_STRICT = 4
LIVE = 1 << 2
RECONNECT_SECONDS = 0.05

HEADER = struct.Struct("!BBHI")
FLOW_MOD_FIXED = struct.Struct("!QQBBHHHIIIH2x")
STATS_FIXED = struct.Struct("!HBxIIHHHH4xQQQ")
PORT = struct.Struct("!I4x6s2x16sIIIIIIII")

Place = tuple[int, int, bytes]
"""(table, priority, padded match)"""


@dataclass
class Counts:
    """Counts of all ToRs together; times on the monotonic clock, which all processes of a machine share."""

    connected: int = 0
    last_connected_at: float = 0.0
    flow_mods: int = 0
    rules: int = 0


class Tor:
    """A ToR; its flow table outlives its connections."""

    def __init__(self, datapath: int, ports: Sequence[int], counts: Counts) -> None:
        self._ports = ports
        self._counts = counts
        self._rules: dict[Place, tuple[int, bytes]] = {}
        features = struct.pack("!QIBB2xII", datapath, 0, 254, 0, 0, 0)
        self._answers: dict[int, Callable[[int, bytes], bytes]] = {
            ECHO_REQUEST: lambda xid, body: message(ECHO_REPLY, xid, body),
            FEATURES_REQUEST: lambda xid, _body: message(FEATURES_REPLY, xid, features),
            FLOW_MOD: self._change_table,
            MULTIPART_REQUEST: self._statistics,
            BARRIER_REQUEST: lambda xid, _body: message(BARRIER_REPLY, xid),
            ROLE_REQUEST: lambda xid, body: message(ROLE_REPLY, xid, body),
        }

    def answer(self, kind: int, xid: int, body: bytes) -> bytes:
        """Return the answer to a message; empty if there is none."""
        reply = self._answers.get(kind)
        return reply(xid, body) if reply else b""

    def _change_table(self, _xid: int, body: bytes) -> bytes:
        self._counts.flow_mods += 1
        cookie, _mask, table, command, _idle, _hard, priority, *_ = FLOW_MOD_FIXED.unpack_from(body)
        rest = body[FLOW_MOD_FIXED.size :]
        (match_length,) = struct.unpack_from("!H", rest, 2)
        end = -(-match_length // 8) * 8
        place = table, priority, rest[:end]
        before = len(self._rules)
        if command == DELETE_STRICT:
            self._rules.pop(place, None)
        else:
            self._rules[place] = cookie, rest[end:]
        self._counts.rules += len(self._rules) - before
        return b""

    def _statistics(self, xid: int, body: bytes) -> bytes:
        (kind,) = struct.unpack_from("!H", body)
        found = {FLOW_STATS: self._entries, AGGREGATE_STATS: self._total, PORT_DESCRIPTIONS: self._descriptions}[kind]()
        return message(MULTIPART_REPLY, xid, struct.pack("!HH4x", kind, 0) + found)

    def _entries(self) -> bytes:
        """Return all entries: only the controller writes here, so they all match its cookie mask."""
        entries = []
        for (table, priority, match), (cookie, instructions) in self._rules.items():
            length = STATS_FIXED.size + len(match) + len(instructions)
            entries.append(
                STATS_FIXED.pack(length, table, 0, 0, priority, 0, 0, 0, cookie, 0, 0) + match + instructions
            )
        return b"".join(entries)

    def _total(self) -> bytes:
        return struct.pack("!QQI4x", 0, 0, len(self._rules))

    def _descriptions(self) -> bytes:
        return b"".join(PORT.pack(port, bytes(6), b"", 0, LIVE, 0, 0, 0, 0, 0, 0) for port in self._ports)


class Line(asyncio.Protocol):
    """One connection of a ToR."""

    def __init__(self, tor: Tor, counts: Counts) -> None:
        self._tor = tor
        self._counts = counts
        self._received = b""
        self.lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send HELLO first, as switches do."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counts.connected += 1
        self._counts.last_connected_at = time.monotonic()
        transport.write(message(HELLO, 0))

    def connection_lost(self, error: Exception | None) -> None:
        """Reconnect."""
        self._counts.connected -= 1
        self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Answer all complete messages with one write."""
        buffer, position, answers = self._received + data, 0, []
        while len(buffer) - position >= HEADER.size:
            _, kind, length, xid = HEADER.unpack_from(buffer, position)
            if len(buffer) - position < length:
                break
            answers.append(self._tor.answer(kind, xid, buffer[position + HEADER.size : position + length]))
            position += length
        self._received = buffer[position:]
        if any(answers):
            self._transport.write(b"".join(answers))


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """Return an OpenFlow 1.3 message."""
    return HEADER.pack(VERSION, kind, HEADER.size + len(body), xid) + body


async def _stay_connected(host: str, port: int, tor: Tor, counts: Counts) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            _, line = await loop.create_connection(lambda: Line(tor, counts), host, port)
        except OSError:
            await asyncio.sleep(RECONNECT_SECONDS)
            continue
        await line.lost


async def _serve(options: argparse.Namespace) -> None:
    counts = Counts()
    host, _, port = options.controller.rpartition(":")
    ports = [1, *options.optical_ports]
    tors = [Tor(number, ports, counts) for number in range(1, options.count + 1)]
    lines = [asyncio.create_task(_stay_connected(host, int(port), tor, counts)) for tor in tors]
    while counts.connected < options.count:
        await asyncio.sleep(0.01)
    print_json({"event": "ready"})
    await serve_counts(counts)
    for line in lines:
        line.cancel()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--count", type=int, required=True, help="number of ToRs, with datapath ids 1 to COUNT")
    parser.add_argument("--optical-ports", type=lambda text: [int(port) for port in text.split(",")], default=[49])
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
