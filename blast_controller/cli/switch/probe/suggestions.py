"""The driver for the protocol of a peer, and the settings that it needs."""

from __future__ import annotations

from collections.abc import Mapping

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.discovery import DiscoveredPeer
from blast_controller.cli.switch.probe.failures import ProbeFailureError
from blast_controller.cli.switch.probe.first_bytes import PeerProtocol
from blast_controller.cli.switch.probe.settings import SwitchTable

_TABLES: Mapping[PeerProtocol, SwitchTable] = {
    PeerProtocol.TL1: {"driver": "tl1"},
    PeerProtocol.SSH: {"driver": "netconf"},
    PeerProtocol.GRPC: {"driver": "sonic-ocs", "access": "gnmi"},
    PeerProtocol.REDIS: {"driver": "sonic-ocs", "access": "redis"},
}
"""The driver for each protocol. TL1 over SSH looks like NETCONF, which is the usual case."""
SOCKET_TABLE = _TABLES[PeerProtocol.REDIS]
"""The driver for a switch at a Unix socket: no other protocol uses one."""
_LOGIN = "--set ssh.user=USER, and --set ssh.private_key=FILE or --set ssh.password_file=FILE"


def suggested_table(peer: DiscoveredPeer, endpoint: Endpoint) -> SwitchTable:
    """Return driver and access for a peer. Raises ProbeFailureError if there is none."""
    if peer.protocol in _TABLES:
        return _TABLES[peer.protocol]
    if peer.protocol is PeerProtocol.HTTP:
        raise ProbeFailureError(f"{endpoint} is a web server: give the port of TL1, NETCONF, gNMI or Redis")
    reason = f" ({peer.text})" if peer.text else ""
    raise ProbeFailureError(
        f"{endpoint} speaks TLS, but neither gNMI nor Redis in it{reason}: if it requires a certificate of the client, "
        "give --driver sonic-ocs and --set ca=FILE, certificate=FILE and private_key=FILE, each with an option of its "
        "own; else check the port"
    )


def missing_keys(peer: DiscoveredPeer, table: Mapping[str, object], endpoint: Endpoint) -> str:
    """Return which keys a table lacks without which no session to this peer is possible; empty: none."""
    if peer.protocol is PeerProtocol.SSH and "ssh" not in table:
        return (
            f"{endpoint} is an SSH server ({peer.text}): give the login for NETCONF by {_LOGIN}, and --set "
            "ssh.host_key=FILE; for TL1 over SSH give --driver tl1 as well"
        )
    if peer.is_tls and "ca" not in table:
        name = "gNMI" if peer.protocol is PeerProtocol.GRPC else "Redis"
        return (
            f"{endpoint} speaks {name} in TLS: give --set ca=FILE, the certificate (PEM) of the authority that has "
            "signed the switch's certificate"
        )
    return ""


def mismatch(peer: DiscoveredPeer, table: Mapping[str, object]) -> str:
    """Return why a table cannot fit a peer, with the remedy; empty if it can."""
    if peer.protocol is PeerProtocol.SSH:
        if "ssh" not in table:
            return f"the peer is an SSH server: give {_LOGIN}, or correct the port"
        return "if it speaks TL1 over SSH, give --driver tl1" if table.get("driver") == "netconf" else ""
    if "ssh" in table:
        return f"the peer speaks {peer.protocol}, not SSH: leave out the keys ssh, or correct the port"
    expected = _TABLES.get(peer.protocol, {})
    if expected and any(table.get(key, value) != value for key, value in expected.items()):
        return f"the peer speaks {peer.protocol}: leave out --driver, or correct the port"
    if peer.protocol is PeerProtocol.TLS and "ca" in table:
        return ""
    if peer.is_tls and "ca" not in table:
        return "the peer speaks TLS: give --set ca=FILE"
    if not peer.is_tls and "ca" in table:
        return "the peer does not speak TLS: leave out ca"
    return ""
