"""The common context of the scenes: the lab, a client of its controller, the output, and the results."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from tqdm import tqdm

from blast_api.ttypes import FabricStatus, Grant, MulticastRequest
from blast_client import Client
from mininet_topos.demo.results import Check, Measured, Quantity, Results
from mininet_topos.kernel.errors import DemoError

if TYPE_CHECKING:
    from mininet_topos.lab.lab import Lab

GRANT_SECONDS = _SETTLE_SECONDS = 60.0
"""Upper bound of waits, in seconds."""
_POLL_SECONDS = 0.002
"""Fine enough for latencies of some milliseconds."""
_IDLE = "idle"


class StageGrant:
    """A request's grant as a context manager."""

    def __init__(self, client: Client, request: MulticastRequest, timeout: float) -> None:
        self._client, self._request, self._timeout = client, request, timeout

    def __enter__(self) -> Grant:
        self._grant: Grant = self._client.request(self._request, self._timeout)
        return self._grant

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.finish(self._request.key, self._grant.part)


@dataclass
class Stage:
    """One running demo."""

    lab: Lab
    client: Client
    results: Results
    out: TextIO = sys.stdout
    scene: str = ""
    _keys: int = 0

    # -------------------------------------------------------------------------------------------- output

    def open_scene(self, letter: str, title: str) -> None:
        """Print the title of a scene."""
        self.scene = letter
        self.write_line(f"\n({letter}) {title}")

    def write_line(self, line: str) -> None:
        """Print a line."""
        self.out.write(line + "\n")
        self.out.flush()

    def explain(self, line: str) -> None:
        """Print an explanation within a scene."""
        self.write_line(f"    {line}")

    def check(self, claim: str, holds: bool, seen: str) -> None:
        """Record and print a check, which must hold on a slow and busy machine too."""
        self.results.checks.append(Check(self.scene, claim, holds, seen))
        self.explain(f"{'ok  ' if holds else 'FAIL'} {claim}: {seen}")

    def measured(self, name: str, quantity: Quantity) -> None:
        """Record and print a measurement."""
        self.results.measured.append(Measured(self.scene, name, quantity))
        self.explain(f"info {name}: {quantity}")

    def progress(self, steps: Iterable[int], title: str) -> Iterable[int]:
        """Return a progress bar, which is shown on terminals only."""
        return tqdm(steps, desc=f"    {title}", leave=False, disable=not sys.stderr.isatty(), file=sys.stderr)

    # -------------------------------------------------------------------------------------------- requests

    def new_request(self, sender: str, receivers: Sequence[str], size: int, name: str = "demo") -> MulticastRequest:
        """Return a request with a unique key."""
        self._keys += 1
        return MulticastRequest(key=f"{name}-{self._keys}", sender=sender, receivers=list(receivers), bytes=size)

    def granted(self, request: MulticastRequest, timeout: float = GRANT_SECONDS) -> StageGrant:
        """Return a grant for a `with` block, finished afterwards."""
        return StageGrant(self.client, request, timeout)

    def wait_devices(self) -> None:
        """Wait until all devices are connected to the controller. Raises DemoError."""
        self.wait_for(
            lambda fabric: (
                all(rack.connected for rack in fabric.racks)
                and all(switch.connected for switch in fabric.opticalSwitches)
            ),
            "all ToRs and the optical switch to connect",
        )

    def wait_dark(self) -> None:
        """Wait until no light tree is in use or changing. Raises DemoError."""
        self.wait_for(
            lambda fabric: all(tree.state == _IDLE for tree in fabric.lightTrees), "all light trees to be released"
        )

    def wait_for(self, condition: Callable[[FabricStatus], bool], description: str) -> FabricStatus:
        """Wait until the fabric satisfies a condition. Raises DemoError."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while not condition(fabric := self.client.fabric()):
            if time.monotonic() > deadline:
                raise DemoError(f"timed out after {_SETTLE_SECONDS:g} s waiting for {description}")
            time.sleep(_POLL_SECONDS)
        return fabric

    # ----------------------------------------------------------------------------------------------- hosts

    def first_hosts(self) -> list[str]:
        """Return the first host of every rack."""
        return [rack.hosts[0].name for rack in self.lab.plan.rack_plans]

    def address(self, host: str) -> str:
        """Return a host's IPv4 address."""
        return self._plans[host][1]

    def rack_number(self, host: str) -> int:
        """Return the number of a host's rack."""
        return self._plans[host][0]

    @property
    def _plans(self) -> dict[str, tuple[int, str]]:
        return {host.name: (rack.number, host.ip) for rack in self.lab.plan.rack_plans for host in rack.hosts}
