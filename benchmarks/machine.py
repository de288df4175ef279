"""The machine that a figure was taken on, as one line, with its Open vSwitch."""

from __future__ import annotations

import subprocess

from blast_sim.measuring import machine


def describe() -> str:
    """CPU, cores, kernel, Python and Open vSwitch."""
    said = subprocess.run(["ovs-vsctl", "--version"], capture_output=True, text=True, check=True).stdout
    return machine.describe(said.split("\n")[0])
