"""The optical switch as a node of the Mininet topology: a namespace full of fibers, and the agent that rules it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mininet_topos.kernel.names import Names
from mininet_topos.kernel.netdev import batch, veth_pair
from mininet_topos.kernel.process import LabProcess
from mininet_topos.topology.nodes import NamespaceSwitch
from mininet_topos.topology.optical_fabric import EmulatedSplitter
from mininet_topos.topology.switch_kinds import SwitchKind

_READY_SECONDS = 60.0
"""A Python process starts, on a busy machine."""


class OpticalSwitch(NamespaceSwitch):
    """An optical circuit switch of `ports` duplex ports and the splitters wired to it.

    ToRs' fibers arrive as links of the topology; the splitters' are created here. `agent` is the listening address of
    its agent (port 0: a free one), which serves a switch of this kind; without one the switch stays dark.
    """

    def __init__(  # noqa: PLR0913 - what a switch consists of, given by name only
        self,
        name: str,
        *,
        ports: int,
        splitters: Sequence[EmulatedSplitter],
        mtu: int,
        kind: SwitchKind,
        agent: str | None,
        log: Path,
        **params: object,
    ) -> None:
        self._port_count = ports
        self._splitters, self._mtu, self._listen, self._log = splitters, mtu, agent, log
        self._agent: LabProcess | None = None
        self.kind = kind
        self.address = ""
        super().__init__(name, **params)

    def start(self, controllers: Sequence[object]) -> None:
        """Lay the splitters' fibers and start the agent. Raises `HostError` or `ProcessError`."""
        names = Names(self.params["lab"])
        outputs = [output for splitter in self._splitters for output in splitter.outputs]
        pairs = [veth_pair(names.ocs_port(n), names.splitter_side(n), self._mtu) for n in outputs]
        ports = [names.ocs_port(n) for n in range(1, self._port_count + 1)]
        ups = [f"link set {netdev} up" for netdev in (*ports, *map(names.splitter_side, outputs))]
        batch("ip", [*pairs, *ups], self.pid)
        if self._listen is not None:
            self.start_agent()

    @property
    def faults(self) -> Path:
        """The Unix socket at which the agent takes faults."""
        return self._log.with_suffix(".faults")

    @property
    def folder(self) -> Path:
        """The folder of the agent's files."""
        return self._log.with_suffix("")

    @property
    def agent_pid(self) -> int | None:
        """The agent's process id, while there is one."""
        return self._agent.pid if self._agent is not None else None

    def start_agent(self) -> None:
        """Power the switch on: the agent serves at `address` (`host:port`) and every port is dark."""
        root = str(Path(__file__).resolve().parents[2])
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
        self._agent = LabProcess(f"{self.kind.protocol} agent", self._command(), self.params["lab"], self._log, env)
        self.address = str(self._agent.wait_ready(_READY_SECONDS)["address"])
        # The same address after a power cycle, so that the controller finds it again.
        self._listen = self.address

    def watch_agent(self, report: Callable[[str], None]) -> None:
        """Call back, on another thread, with a sentence when the agent that runs now ends by itself."""
        if self._agent is not None:
            self._agent.watch(report)

    def stop_agent(self) -> None:
        """Power the management of the switch off; the mirrors stay where they are."""
        if self._agent is not None:
            self._agent.stop()
            self._agent = None

    def terminate(self) -> None:
        """End the agent, then the namespace."""
        self.stop_agent()
        super().terminate()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "mininet_topos.topology.optical_switch"]
        command += ["--lab", self.params["lab"], "--namespace-of", str(self.pid)]
        command += ["--switch", self.kind.name, "--folder", str(self.folder)]
        command += ["--ports", str(self._port_count), "--listen", str(self._listen), "--faults", str(self.faults)]
        return command + [part for splitter in self._splitters for part in ("--splitter", splitter.wiring)]
