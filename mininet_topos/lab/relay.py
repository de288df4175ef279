"""The hosts' way to the controllers: in a machine room a management network, here a passage into each host.

Controllers are found in the namespace where the lab was started; a host's own loopback gets a listener for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.gated_relays import GatedRelay, GatedRelays, here, listening_within
from mininet_topos.lab.lab import Lab

ADDRESS = ("127.0.0.1", 9090)
"""Of the first controller; those of the others follow."""


def addresses_of(lab: Lab) -> str:
    """Return the addresses at which a host finds the lab's controllers, with commas between."""
    address, first = ADDRESS
    return ",".join(f"{address}:{first + number}" for number in range(lab.controllers.count(",") + 1))


def relay(lab: Lab, hosts: Sequence[str]) -> GatedRelays:
    """Return the passages by which `hosts` find the controllers at `addresses_of(lab)`.

    They exist while the `with` block of the result runs.
    """
    return GatedRelays(list(_passages(lab, hosts)))


def _passages(lab: Lab, hosts: Sequence[str]) -> Iterator[GatedRelay]:
    address, first = ADDRESS
    for port, controller in enumerate(lab.controllers.split(","), first):
        host, far = parse_endpoint(controller)
        for name in hosts:
            yield GatedRelay(listening_within(lab.pid(name), address, port), here(host, far))
