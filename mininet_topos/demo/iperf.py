"""Scene (f): the paper's own test, an unmodified `iperf -u` to the granted group."""

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
from mininet_topos.errors import DemoError

SHARE_OF_LIGHT = 0.95
SECONDS = 2
HEADERS = 28
"""IPv4 and UDP."""
_INTERVAL_SECONDS = 0.5
_INTERVAL_COLUMN, _LOSS_COLUMNS = 6, slice(10, 12)
_TIMEOUT_SECONDS = 60.0
"""A guard against waiting for ever: for servers that listen, for the end of the client, for what servers heard."""
_SILENCE_SECONDS = 5.0
"""How long a server that has heard something is waited for: the datagram that ends a test may be lost, too."""


@dataclass(frozen=True)
class Loss:
    """What iperf servers counted; `deaf` is how many heard nothing."""

    lost: int
    sent: int
    deaf: int


def play(stage: Stage) -> None:
    """iperf at 0.95 of the light rate to seven racks."""
    stage.open_scene("f", f"The paper's own test: an unmodified iperf -u at {SHARE_OF_LIGHT} of the light rate")
    sender, *others = stage.first_hosts()[:8]
    stage.wait_dark()
    request = stage.new_request(sender, others, 50_000_000, "iperf")
    with stage.granted(request) as grant:
        loss = _run(stage, grant, sender)
    heard = len(others) - loss.deaf
    stage.check("every receiver hears an unmodified iperf", not loss.deaf, f"{heard} of {len(others)}")
    stage.measured("lost, at all receivers together", Quantity(loss.lost, "datagrams", {"sent": loss.sent}))


def _run(stage: Stage, grant: Grant, sender: str) -> Loss:
    """Send once to the granted group. Raises DemoError."""
    servers = [_server(stage, host, grant.groupAddress, grant.groupPort) for host in grant.receivers]
    rate, length = stage.lab.plan.light_rate_mbps * SHARE_OF_LIGHT, stage.lab.plan.mtu - HEADERS
    command = f"iperf -u -c {grant.groupAddress} -p {grant.groupPort} -b {rate:g}M -l {length} -t {SECONDS}"
    try:
        for server in servers:
            _await_membership(server.pid, grant.groupAddress)
        stage.tell(f"{sender}$ {command}")
        _send(stage, sender, command)
        patience = time.monotonic() + _TIMEOUT_SECONDS
        reports = [heard(_lines(server, patience)) for server in servers]
    finally:
        for server in servers:
            server.terminate()
            server.communicate()
    lost, sent = sum(lost for lost, _ in reports), sum(sent for _, sent in reports)
    return Loss(lost, sent, deaf=sum(not sent for _, sent in reports))


def _await_membership(pid: int, group: str) -> None:
    """Wait until the host of a process has joined the group. Raises DemoError."""
    wanted = f"{int.from_bytes(socket.inet_aton(group), 'little'):08X}"
    patience = time.monotonic() + _TIMEOUT_SECONDS
    while wanted not in Path(f"/proc/{pid}/net/igmp").read_text():
        if time.monotonic() > patience:
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


def _lines(server: subprocess.Popen[bytes], patience: float) -> Iterator[str]:
    """What a server says, until it is silent."""
    assert server.stdout is not None
    said, rest = server.stdout.fileno(), b""
    until = patience
    while select.select([said], [], [], max(0.0, until - time.monotonic()))[0]:
        received = os.read(said, 65536)
        if not received:
            return
        *lines, rest = (rest + received).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        until = min(patience, time.monotonic() + _SILENCE_SECONDS)


def heard(lines: Iterable[str]) -> tuple[int, int]:
    """Datagrams lost and sent: by the line of the whole, or by those of the intervals where it never came.

    Raises DemoError when a server says anything else.
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
            raise DemoError(f"an iperf server said {line.strip()!r} instead of its report") from None
        lost, sent = lost + counts[0], sent + counts[1]
    return lost, sent
