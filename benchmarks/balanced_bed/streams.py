"""Plain TCP streams by iperf3, to see what links carry."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from transport_bed.failures import CannotRun, RunFailed

from mininet_topos.sites.sites import Sites

_LIMIT_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def goodput(sites: Sites, sender: str, receiver: str, streams: int, size: int) -> float:
    """Bits of data per second that so many streams bring together, `size` bytes in all. Raises CannotRun, RunFailed."""
    address = sites.address(receiver)
    try:
        server = sites.popen(receiver, ["iperf3", "--server", "--one-off", "--json"], stdout=subprocess.PIPE, text=True)
        with server:
            try:
                _await_listening(sites.pid(receiver))
                words = ["iperf3", "--client", address, "--parallel", str(streams), "--bytes", str(size // streams)]
                client = sites.popen(sender, words, stdout=subprocess.DEVNULL)
                client.wait(_LIMIT_SECONDS)
                report = json.loads(server.communicate(timeout=_LIMIT_SECONDS)[0])
            finally:
                server.kill()
    except FileNotFoundError as missing:
        raise CannotRun(f"{missing.filename} is not installed: apt-get install iperf3 mininet") from None
    except (subprocess.TimeoutExpired, ValueError) as failure:
        raise RunFailed(f"iperf3 did not say what it measured: {failure}") from None
    return float(report["end"]["sum_received"]["bits_per_second"])


def _await_listening(pid: int) -> None:
    """Until somebody listens on iperf3's port (5201), as the kernel tells (proc(5), net/tcp; state 0A)."""
    deadline = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < deadline:
        for table in ("tcp", "tcp6"):
            path = Path(f"/proc/{pid}/net/{table}")
            if path.exists() and any(":1451 " in line and " 0A " in line for line in path.read_text().splitlines()):
                return
        time.sleep(_LOOK_SECONDS)
    raise RunFailed("iperf3 does not listen")
