"""Plug-in modules with policies and methods, written by a test; unique names prevent repeated imports."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest

_NUMBERS = itertools.count()

POLICY = """\
from algorithms.scheduling.policy import Dedicated

interface = 1


class Mine(Dedicated):
    def key(self, job, now, state):
        return {key}
"""

METHOD = """\
from blast_sim.flow.phases import Phase

interface = 1


def mine(world, multicast):
    sources = [multicast.sender] * len(multicast.receivers)
    return [Phase(world.network.unicast(sources, multicast.receivers), multicast.bits * {factor})]
"""

WIDEST, NARROWEST = "-float(job.group.racks)", "float(job.group.racks)"

# Groups that exclude each other: the policy decides which wait.
CONTENDED = """\
title = "Contended"

[network]
racks = 12
servers_per_rack = 2
uplink_gbps = { thin = 4.0 }

[light]
splitters = 2
fan_out = 4

[multicasts]
groups = 9
racks_per_group = [2, 6]
disjoint = false
megabytes = 300.0

[[run]]
methods = ["blast"]
networks = ["thin"]
backgrounds = ["none"]
policies = ["paper"]
"""


def new_name(stem: str = "plugged") -> str:
    """Return a module name that no other test uses."""
    return f"{stem}_{next(_NUMBERS)}"


def write_module(folder: Path, text: str, name: str | None = None) -> str:
    """Write a module into this folder, and return its new name."""
    name = name or new_name()
    (folder / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    return name


def imported(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> ModuleType:
    """Import the current content of a module, whatever was imported before."""
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop(name, None)
    # A file of the same size and second would be taken from its compiled copy.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module(name)
