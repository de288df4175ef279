"""A lab with faults of its controller and devices, during a transfer that they must not disturb."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from blast_api.ttypes import FabricStatus, Grant, LightTreeStatus, MulticastRequest, PartState
from blast_client import Client
from mininet_topos.lab.lab import Lab
from mininet_topos.topology.plan import LabPlan
from tests.support.controller.fabric_truth import assert_converged, guards, held_circuits, held_rules
from tests.support.transport.live_transfer import LiveTransfer
from tests.support.waiting import look_until

GRANT_SECONDS = 30.0
TIMEOUT = 30.0
LEASE_MS = 600_000
LOG_TAIL = 8000
"""Characters of the controller's log that pytest shows where a test fails."""
ALIVE = [PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE]

EIGHT_RACKS = LabPlan(racks=8, hosts_per_rack=1, splitters={4: 2})
"""Two splitters: one for the transfer that goes on, one for what is broken."""


class FaultBench:
    """A running lab and a client of its controller, which is replaced whenever the controller restarts."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.client = Client(lab.thrift)
        self._keys = itertools.count(1)

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def reconnect(self) -> None:
        """Call the controller that serves now."""
        self.client.close()
        self.client = Client(self.lab.thrift)

    def restart_controller(self) -> None:
        """Start a controller where another was killed, and wait until it has all devices."""
        self.lab.start_controller()
        self.reconnect()
        self.wait_devices()

    def new_request(self, sender: str, *receivers: str, size: int = 10**6) -> MulticastRequest:
        """Return a request with a key of its own."""
        return MulticastRequest(f"fault-{os.getpid()}-{next(self._keys)}", sender, list(receivers), size)

    def grant(self, request: MulticastRequest) -> Grant:
        """Ask, or ask again with the same key, and wait for the grant."""
        return self.client.request(request, GRANT_SECONDS)

    def tree(self, request: MulticastRequest) -> LightTreeStatus | None:
        """Return the light tree of a request, if it is lit or being set up."""
        return next((tree for tree in self.client.fabric().lightTrees if tree.key == request.key), None)

    def wait_state(self, request: MulticastRequest, state: str | None) -> None:
        """Wait until the request's tree is in this state; None: until it has none."""
        self.wait_for(
            lambda fabric: next((t.state for t in fabric.lightTrees if t.key == request.key), None) == state,
            f"the tree of {request.key} to be {state or 'removed'}",
        )

    def wait_devices(self) -> None:
        """Wait until the controller has every device."""
        self.wait_for(lambda f: all(d.connected for d in (*f.racks, *f.opticalSwitches)), "all devices to connect")

    def wait_for(self, is_expected: Callable[[FabricStatus], bool], event: str) -> FabricStatus:
        """Wait until the controller's view of the fabric is as expected."""
        return wait_for(self.client.fabric, is_expected, event)

    def clear(self) -> None:
        """End every request and see that devices hold nothing of ours but guards."""
        for request in self.client.list_requests(ALIVE):
            self.client.withdraw(request.key)
        self.wait_for(lambda fabric: not fabric.lightTrees, "all light trees to go")
        assert_converged(self.lab, self.client)
        assert not held_circuits(self.lab) and not held_rules(self.lab)
        assert all(guards(self.lab).values()), "a ToR without guards"

    @contextmanager
    def bystander(self) -> Iterator[LiveTransfer]:
        """Run a transfer from rack 1 to racks 2 and 3 during the block; it must not lose a packet."""
        request = self.new_request("r1h1", "r2h1", "r3h1")
        with LiveTransfer(self.lab, "r1h1", self.grant(request)) as transfer:
            yield transfer
        assert transfer.sent > 50
        assert transfer.missed == {}, f"of {transfer.sent} datagrams on an untouched tree"


@contextmanager
def fault_bench(plan: LabPlan = EIGHT_RACKS, **options: object) -> Iterator[FaultBench]:
    """Start a lab, with leases longer than any test."""
    with Lab(plan, min_lease_ms=LEASE_MS, **options) as lab:
        bench = FaultBench(lab)
        try:
            bench.wait_devices()
            yield bench
        finally:
            bench.close()
            print((lab.directory / "controller.log").read_text()[-LOG_TAIL:])


def wait_for(look: Callable[[], FabricStatus], is_expected: Callable[[FabricStatus], bool], event: str) -> FabricStatus:
    """Poll until the condition holds. Raises AssertionError at the timeout."""
    return look_until(look, is_expected, event)
