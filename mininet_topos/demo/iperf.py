"""Scene (f): the paper's test, an unmodified `iperf -u` to the granted group."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from blast_api.ttypes import Grant
from mininet_topos.demo.results import Quantity
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import DemoError

SHARE_OF_LIGHT = 0.95
SECONDS = 2
HEADERS = 28
"""Bytes of the IPv4 and UDP headers."""
_INTERVAL_SECONDS = 0.5
_INTERVAL_COLUMN, _LOSS_COLUMNS = 6, slice(10, 12)
_TIMEOUT_SECONDS = 60.0
"""Upper bound in seconds for servers to join, for the client to end, and for reports of servers."""
_SILENCE_SECONDS = 5.0
"""Seconds of silence after which a server that has received data is done: the final datagram of a test may be lost."""


@dataclass(frozen=True)
class MeasuredLoss:
    """Counters of the iperf servers; `deaf` is the number of servers without any datagram."""

    lost: int
    sent: int
    deaf: int


def play(stage: Stage) -> None:
    """Run iperf at 0.95 of the optical rate to seven racks."""
    stage.open_scene("f", f"The paper's test: unmodified iperf -u at {SHARE_OF_LIGHT} of the optical rate")
    sender, *others = stage.first_hosts()[:8]
    stage.wait_dark()
    request = stage.new_request(sender, others, 50_000_000, "iperf")
    with stage.granted(request) as grant:
        loss = _run(stage, grant, sender)
    reached = len(others) - loss.deaf
    stage.check(
        "every receiver receives unmodified iperf traffic", not loss.deaf, f"{reached} of {len(others)} receivers"
    )
    stage.measured("lost datagrams, all receivers", Quantity(loss.lost, "datagrams", {"sent": loss.sent}))


def _run(stage: Stage, grant: Grant, sender: str) -> MeasuredLoss:
    """Send once to the granted group. Raises DemoError."""
    servers = [_server(stage, host, grant.groupAddress, grant.groupPort) for host in grant.receivers]
    rate, length = stage.lab.plan.light_rate_mbps * SHARE_OF_LIGHT, stage.lab.plan.mtu - HEADERS
    command = f"iperf -u -c {grant.groupAddress} -p {grant.groupPort} -b {rate:g}M -l {length} -t {SECONDS}"
    try:
        for server in servers:
            _await_membership(server.pid, grant.groupAddress)
        stage.explain(f"{sender}$ {command}")
        _send(stage, sender, command)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        reports = [lost_and_sent(_lines(server, deadline)) for server in servers]
    finally:
        for server in servers:
            server.terminate()
            server.communicate()
    lost, sent = sum(lost for lost, _ in reports), sum(sent for _, sent in reports)
    return MeasuredLoss(lost, sent, deaf=sum(not sent for _, sent in reports))


def _await_membership(pid: int, group: str) -> None:
    """Wait until the host of a process has joined the group. Raises DemoError."""
    joined = f"{int.from_bytes(socket.inet_aton(group), 'little'):08X}"
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while joined not in Path(f"/proc/{pid}/net/igmp").read_text():
        if time.monotonic() > deadline:
            raise DemoError(f"an iperf server did not join {group} within {_TIMEOUT_SECONDS:g} s")
        time.sleep(0.01)


def _send(stage: Stage, sender: str, command: str) -> None:
    client = stage.lab.host(sender).popen(command.split(), stdout=subprocess.DEVNULL)
    try:
        client.wait(SECONDS + _TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()
        raise DemoError(f"iperf on {sender} did not end within {SECONDS + _TIMEOUT_SECONDS:g} s") from None


def _server(stage: Stage, host: str, group: str, port: int) -> subprocess.Popen[bytes]:
    command = ["iperf", "-s", "-u", "-B", group, "-p", str(port), "-y", "C", "-i", f"{_INTERVAL_SECONDS:g}"]
    server: subprocess.Popen[bytes] = stage.lab.host(host).popen(command, stdout=subprocess.PIPE)
    return server


def _lines(server: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """Yield the lines that a server prints, until it is silent."""
    assert server.stdout is not None
    output, rest = server.stdout.fileno(), b""
    until = deadline
    while select.select([output], [], [], max(0.0, until - time.monotonic()))[0]:
        received = os.read(output, 65536)
        if not received:
            return
        *lines, rest = (rest + received).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        until = min(deadline, time.monotonic() + _SILENCE_SECONDS)


def lost_and_sent(lines: Iterable[str]) -> tuple[int, int]:
    """Return lost and sent datagrams, from the line of the whole test, or from the intervals if that line is missing.

    Raises DemoError for any other line.
    """
    lost = sent = 0
    for line in lines:
        columns = line.split(",")
        try:
            begin, _, end = columns[_INTERVAL_COLUMN].partition("-")
            counts = tuple(map(int, columns[_LOSS_COLUMNS]))
            if float(begin) == 0.0 and float(end) > 1.5 * _INTERVAL_SECONDS:
                return counts[0], counts[1]
        except (IndexError, ValueError):
            raise DemoError(f"an iperf server printed {line.strip()!r} instead of its report") from None
        lost, sent = lost + counts[0], sent + counts[1]
    return lost, sent
