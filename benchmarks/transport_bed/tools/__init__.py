"""The tools that are compared, one file each."""

from __future__ import annotations

from transport_bed.tools.bit_torrent import BitTorrent
from transport_bed.tools.blast import BlastOptical, BlastPipeline, BlastSealed, BlastUnicast
from transport_bed.tools.floor import Floor
from transport_bed.tools.naive_tcp import NaiveTcp
from transport_bed.tools.open_mpi import OpenMpi
from transport_bed.tools.taktuk import TakTukChain, TakTukTree
from transport_bed.tools.tool import Tool
from transport_bed.tools.udpcast import Udpcast
from transport_bed.tools.uftp import Uftp

TOOLS: dict[str, type[Tool]] = {
    tool.name: tool
    for tool in (
        Floor,
        BlastOptical,
        BlastPipeline,
        BlastUnicast,
        BlastSealed,
        NaiveTcp,
        Udpcast,
        Uftp,
        OpenMpi,
        BitTorrent,
        TakTukChain,
        TakTukTree,
    )
}
"""By name, in the order of tables."""
