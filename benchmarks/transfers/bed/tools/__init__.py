"""The tools that are compared."""

from __future__ import annotations

from benchmarks.transfers.bed.tools import blast, peers
from benchmarks.transfers.bed.tools.tool import Tool

_ALL: tuple[type[Tool], ...] = (
    *(peers.Floor, peers.VerifyingFloor),
    *(blast.BlastOptical, blast.BlastMulticast, blast.BlastPipeline, blast.BlastUnicast),
    *(blast.OpticalByPython, blast.PipelineByPython),
    *(peers.NaiveTcp, peers.VerifyingTcp, peers.Udpcast, peers.Uftp, peers.OpenMpi, peers.BitTorrent),
    *(peers.TakTukChain, peers.TakTukTree),
)
TOOLS: dict[str, type[Tool]] = {tool.name: tool for tool in _ALL}
"""By name, in the order of tables."""
