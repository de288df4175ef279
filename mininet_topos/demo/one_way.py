"""Scene (g): optical paths are unidirectional; frames that enter a fiber at the wrong end arrive nowhere."""

from __future__ import annotations

import socket
import struct

from blast_api.ttypes import FabricStatus, Grant
from mininet_topos.demo.capture import Captures
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.namespace import open_socket

PACKETS = 20
"""Enough to see that none, or all, arrive."""
_GROUP_MAC_PREFIX = b"\x01\x00\x5e"


def play(stage: Stage) -> None:
    """Inject frames of a lit group against the direction, at receivers' transmitters and splitter outputs."""
    stage.open_scene("g", "Optical paths are unidirectional")
    stage.wait_dark()
    hosts = stage.first_hosts()
    sender, *others = hosts[:4]
    with (
        stage.granted(stage.new_request(sender, others, 10_000_000, "one-way")) as grant,
        Captures(stage, hosts, grant.groupAddress) as captures,
    ):
        frame = _frame(stage.address(sender), grant)
        outputs = _outer_outputs(stage.client.fabric(), grant)
        for output in outputs:
            _inject(stage, stage.lab.names.ocs_port(output), frame, stage.lab.optical_switch.pid)
        backwards = captures.counts()
        stage.check("no frame passes backwards through the splitter", not backwards, _seen(len(outputs), backwards))
        for host in others:
            _inject(stage, stage.lab.names.optical_at_tor(stage.rack_number(host), 1), frame, None)
        upwards = captures.counts()
        stage.check("no frame passes from the receivers' transmitters", not upwards, _seen(len(others), upwards))
        captures.send(sender, grant, PACKETS)
        reached = captures.reached(PACKETS, others)
        stage.check(
            "control: frames from the sender reach the receivers", reached == set(others), " ".join(sorted(reached))
        )


def _outer_outputs(fabric: FabricStatus, grant: Grant) -> list[int]:
    """Return lit outputs of the tree's splitters, less the duplex port that each splitter's input shares."""
    (tree,) = [tree for tree in fabric.lightTrees if tree.reservation == grant.reservation]
    used = [s for s in fabric.splitters if s.name in tree.splitters]
    lit = {c.switchInput for c in tree.crossConnects}
    return [output for s in used for output in s.switchInputs if output in lit and output != s.switchOutput]


def _inject(stage: Stage, interface: str, frame: bytes, pid: int | None) -> None:
    family, kind = socket.AF_PACKET, socket.SOCK_RAW
    with open_socket(pid, family, kind) if pid is not None else socket.socket(family, kind) as sock:
        sock.bind((interface, 0))
        for _ in range(PACKETS):
            sock.send(frame)


def _frame(source: str, grant: Grant) -> bytes:
    """Return an Ethernet frame with an empty UDP datagram from `source` to the group."""
    group = socket.inet_aton(grant.groupAddress)
    ethernet = _GROUP_MAC_PREFIX + bytes([group[1] & 0x7F]) + group[2:] + b"\x02\x00\x00\x00\x00\x01" + b"\x08\x00"
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 1, 17, 0, socket.inet_aton(source), group)
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    udp = struct.pack("!HHHH", grant.groupPort, grant.groupPort, 8, 0)
    return (ethernet + header + udp).ljust(60, b"\0")


def _checksum(header: bytes) -> int:
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    folded: int = total + (total >> 16)
    return ~folded & 0xFFFF


def _seen(places: int, arrived: dict[str, int]) -> str:
    return f"{places * PACKETS} frames injected at {places} points, {sum(arrived.values())} arrived"
