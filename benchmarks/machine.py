"""The machine of a measurement, and the output of a script."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from blast_sim.measuring import machine


def describe() -> str:
    """Return CPU, cores, kernel, Python and Open vSwitch in one line."""
    said = subprocess.run(["ovs-vsctl", "--version"], capture_output=True, text=True, check=True).stdout
    return machine.describe(said.split("\n")[0])


def show(as_json: bool, found: dict[str, Any], lines: Iterable[str]) -> None:
    """Print what was found as JSON, or these lines; the machine comes first."""
    print(json.dumps({"machine": describe(), **found}, indent=2) if as_json else "\n".join([describe(), *lines]))
