"""What a lab has left behind on the machine after it was stopped."""

from __future__ import annotations

from mininet_topos import registry
from mininet_topos.cleanup import bridges_of, links_of, marked_processes


def left_by(lab: str) -> list[str]:
    """A sentence for each thing that is still there."""
    found = [f"process {pid} of lab {lab} still runs" for pid in sorted(marked_processes(lab))]
    found += [f"bridge {bridge} is still there" for bridge in bridges_of(lab)]
    found += [f"interface {link} is still there" for link in links_of(lab)]
    if registry.directory(lab).exists():
        found.append(f"{registry.directory(lab)} is still there")
    return found
