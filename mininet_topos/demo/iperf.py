"""Scene (f): the paper's own test, an unmodified `iperf -u` to the granted group."""

from __future__ import annotations

import select
import subprocess
import time
from dataclasses import dataclass

from blast_api.ttypes import Grant
from mininet_topos.demo.results import Quantity
from mininet_topos.demo.stage import Stage
from mininet_topos.errors import DemoError

SHARE_OF_LIGHT = 0.95
SECONDS = 2
HEADERS = 28
"""IPv4 and UDP."""
_LOSS_COLUMNS = slice(10, 12)
_PATIENCE_SECONDS = 60.0
"""A guard against waiting for ever, for the end of the client and then for all reports together."""


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
        stage.tell(f"{sender}$ {command}")
        _send(stage, sender, command)
        patience = time.monotonic() + _PATIENCE_SECONDS
        reports = [_report(server, patience) for server in servers]
    finally:
        for server in servers:
            server.terminate()
            server.communicate()
    lost, sent = sum(lost for lost, _ in reports), sum(sent for _, sent in reports)
    return Loss(lost, sent, deaf=sum(not sent for _, sent in reports))


def _send(stage: Stage, sender: str, command: str) -> None:
    client = stage.lab.host(sender).popen(command.split(), stdout=subprocess.DEVNULL)
    try:
        client.wait(SECONDS + _PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()
        raise DemoError(f"iperf on {sender} did not end within {SECONDS + _PATIENCE_SECONDS:g} s") from None


def _server(stage: Stage, host: str, group: str, port: int) -> subprocess.Popen[str]:
    command = ["iperf", "-s", "-u", "-B", group, "-p", str(port), "-y", "C"]
    server: subprocess.Popen[str] = stage.lab.host(host).popen(command, stdout=subprocess.PIPE, text=True)
    return server


def _report(server: subprocess.Popen[str], patience: float) -> tuple[int, int]:
    """Datagrams lost and sent, as the server counted. Raises DemoError when it says anything else."""
    # A server reports what it heard half a second after the end, and nothing at all when it heard nothing.
    output = server.stdout
    if output is None or not select.select([output], [], [], max(0.0, patience - time.monotonic()))[0]:
        return 0, 0
    line = output.readline()
    try:
        lost, sent = line.split(",")[_LOSS_COLUMNS]
        return int(lost), int(sent)
    except ValueError:
        raise DemoError(f"an iperf server said {line.strip()!r} instead of its report") from None
