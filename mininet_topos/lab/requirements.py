"""Checks whether a lab can be built on this machine, before any part is built.

Mininet starts a shell in separate namespaces for every node, and waits for its prompt. If the kernel refuses the
namespaces, no prompt ever appears. So one throwaway node is created as Mininet creates them, and Open vSwitch is
queried, both with a timeout.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from functools import partial

from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.netdev import require_commands, require_root

_COMMANDS = ("ip", "tc", "bridge", "ethtool", "mnexec", "ovs-vsctl", "ovs-appctl", "ovs-ofctl", "ifconfig")
_TIMEOUT_SECONDS = 7.0
"""Time limit of all checks together."""

_NODE = """\
ip link set lo up
ip link add name blast0 type veth peer name blast1
for switch in /proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/net/ipv4/conf/all/rp_filter; do
    [ ! -e $switch ] || echo 0 >$switch
done
mnexec -a $$ true
"""
"""The commands of a lab in the namespace of a node."""

_ELSEWHERE = "run the lab as root on a machine of its own, or in a container with `--privileged`"
_START_SWITCH = "start Open vSwitch with `make setup`"


def require_lab_host() -> None:
    """Raise `HostError`, with the missing requirement and the remedy, unless this machine can run a lab."""
    require_root()
    require_commands(*_COMMANDS)
    ask = partial(_ask, time.monotonic() + _TIMEOUT_SECONDS)
    ask(["mnexec", "-n", "true"], "this machine refuses network namespaces", _ELSEWHERE)
    ask(["mnexec", "-n", "sh", "-e", "-c", _NODE], "this machine refuses interfaces in a namespace", _ELSEWHERE)
    # Done already wherever anything works: only whether it is allowed counts.
    ask(["ip", "link", "set", "lo", "up"], "this machine refuses changes of its interfaces", _ELSEWHERE)
    # Its database may answer while the switch itself is gone.
    for question in (["ovs-vsctl", "show"], ["ovs-appctl", "-t", "ovs-vswitchd", "version"]):
        ask(question, "Open vSwitch does not answer", _START_SWITCH)


def _ask(until: float, command: Sequence[str], sentence: str, advice: str) -> None:
    left = max(0.1, until - time.monotonic())
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=left
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"{sentence} ({command[0]} does not end): {advice}") from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        detail = words[-1].strip() if words else f"exit status {done.returncode}"
        raise HostError(f"{sentence} ({detail}): {advice}")
