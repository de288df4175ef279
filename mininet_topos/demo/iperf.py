"""Scene (f): the paper's own test, an unmodified `iperf -u` to the granted group."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from mininet_topos.demo.stage import Stage

SHARE_OF_LIGHT = 0.95
SECONDS = 2
HEADERS = 28
"""IPv4 and UDP."""
_LOSS_COLUMNS = slice(10, 12)


@dataclass(frozen=True)
class Loss:
    """What an iperf server counted."""

    lost: int
    sent: int


def play(stage: Stage) -> None:
    """iperf at 0.95 of the light rate to seven racks."""
    rate = stage.lab.plan.light_rate_mbps * SHARE_OF_LIGHT
    stage.open_scene("f", f"The paper's own test: an unmodified iperf -u at {SHARE_OF_LIGHT} of the light rate")
    sender, *others = stage.first_hosts()[:8]
    stage.wait_dark()
    request = stage.new_request(sender, others, 50_000_000, "iperf")
    with stage.granted(request) as grant:
        servers = {host: _server(stage, host, grant.groupAddress, grant.groupPort) for host in others}
        try:
            length = stage.lab.plan.mtu - HEADERS
            command = f"iperf -u -c {grant.groupAddress} -p {grant.groupPort} -b {rate:g}M -l {length} -t {SECONDS}"
            stage.tell(f"{sender}$ {command}")
            stage.lab.host(sender).popen(command.split(), stdout=subprocess.DEVNULL).wait(timeout=SECONDS + 20)
            losses = {host: _report(server) for host, server in servers.items()}
        finally:
            for server in servers.values():
                server.terminate()
                server.communicate()
    lost, sent = sum(loss.lost for loss in losses.values()), sum(loss.sent for loss in losses.values())
    heard = all(loss.sent > 0 for loss in losses.values())
    stage.check("iperf loses nothing", heard and lost == 0, f"{lost} of {sent} datagrams at {len(losses)} receivers")


def _server(stage: Stage, host: str, group: str, port: int) -> subprocess.Popen[str]:
    command = ["iperf", "-s", "-u", "-B", group, "-p", str(port), "-y", "C"]
    server: subprocess.Popen[str] = stage.lab.host(host).popen(command, stdout=subprocess.PIPE, text=True)
    return server


def _report(server: subprocess.Popen[str]) -> Loss:
    line = server.stdout.readline() if server.stdout else ""
    lost, sent = line.split(",")[_LOSS_COLUMNS]
    return Loss(int(lost), int(sent))
