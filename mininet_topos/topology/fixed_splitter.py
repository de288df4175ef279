"""A splitter fixed between fibers as a node of the Mininet topology: passive, without control."""

from __future__ import annotations

from collections.abc import Sequence

from mininet_topos.kernel.netdev import batch
from mininet_topos.topology.nodes import NamespaceSwitch
from mininet_topos.topology.optical_fabric import copied


class FixedSplitter(NamespaceSwitch):
    """A splitter: frames that enter by the netdev `feed` leave by all `outputs`.

    Frames that enter by an output are lost. All netdevs arrive as links of the topology.
    """

    def __init__(self, name: str, *, feed: str, outputs: Sequence[str], **params: object) -> None:
        self._feed, self._outputs = feed, outputs
        super().__init__(name, **params)

    def start(self, controllers: Sequence[object]) -> None:
        """Let light through. Raises `HostError`."""
        batch("ip", [f"link set {netdev} up" for netdev in (self._feed, *self._outputs)], self.pid)
        batch("tc", copied(self._feed, self._outputs), self.pid)
