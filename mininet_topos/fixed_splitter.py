"""A splitter fixed between fibers as a node of the Mininet topology: glass alone, which nobody switches or serves."""

from __future__ import annotations

from collections.abc import Sequence

from mininet_topos.netdev import batch
from mininet_topos.network import NamespaceSwitch
from mininet_topos.optical_fabric import copied


class FixedSplitter(NamespaceSwitch):
    """Light that enters by the netdev `feed` leaves by all `outputs`; what enters by an output goes nowhere.

    All of them arrive as links of the topology.
    """

    def __init__(self, name: str, *, feed: str, outputs: Sequence[str], **params: object) -> None:
        self._feed, self._outputs = feed, outputs
        super().__init__(name, **params)

    def start(self, controllers: Sequence[object]) -> None:
        """Let light through. Raises `HostError`."""
        batch("ip", [f"link set {netdev} up" for netdev in (self._feed, *self._outputs)], self.pid)
        batch("tc", copied(self._feed, self._outputs), self.pid)
