"""Reports about devices that cannot be read: the real controller and the `blast` command, without devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest

from blast_client.cli import command
from blast_client.cli.command import main
from blast_controller.core.model.events import (
    CircuitsObserved,
    DeviceDisconnected,
    RequestSubmitted,
    TableObserved,
    WithdrawRequested,
)
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.memory_controller import serving
from tests.support.controller.runtime import Running, running

Blast = Callable[..., tuple[int, str]]


@pytest.fixture
def lab() -> Iterator[Running]:
    """Yield two racks, a switch and a splitter, whose devices report that they hold nothing."""
    with running(make_fabric(2, [3])) as lab:

        def read(device: str | int) -> None:
            seen = CircuitsObserved(device, frozenset()) if isinstance(device, str) else None
            lab.runtime.post(seen or TableObserved(int(device), frozenset(), 0))

        lab.devices.read = read
        yield lab


@pytest.fixture
def blast(lab, monkeypatch, capsys) -> Iterator[Blast]:
    """Yield a function that runs `blast` and returns its status and standard output."""
    ours = [
        EntryPoint(name, f"blast_client.{module}:register", command.GROUP)
        for name, module in (("drain", "cli.operator_commands"), ("fabric", "fabric.commands"))
    ]
    monkeypatch.setattr(command, "entry_points", lambda group: ours)
    with serving(lab.make_handler()) as (_, host, port):
        monkeypatch.setenv("BLAST_CONTROLLER", f"{host}:{port}")

        def run(*words: str) -> tuple[int, str]:
            return main(words), capsys.readouterr().out

        yield run


def lose(lab: Running, *devices: str | int) -> None:
    for device in devices:
        lab.runtime.post(DeviceDisconnected(device, "connection refused"))
    lab.settle()


def test_reconcile_lists_disconnected_device(lab, blast):
    lose(lab, 2)
    status, out = blast("reconcile")
    assert (status, out.splitlines()) == (
        3,
        [
            "2 devices compared: no differences on these",
            "not compared (1):",
            "  tor:0000000000000002: disconnected: connection refused",
        ],
    )
    status, out = blast("reconcile", "--json")
    assert status == 3 and json.loads(out)["compared"] == ["switch:ocs1", "tor:0000000000000001"]


def test_verify_lists_elements_of_disconnected_switch(lab, blast):
    lose(lab, "ocs1")
    status, out = blast("fabric", "verify")
    assert (status, out.splitlines()) == (
        1,
        [
            "no fiber was probed: differences from the configuration are unknown",
            "not probed (3):",
            "  port:r1/50: ocs1 is disconnected",
            "  port:r2/50: ocs1 is disconnected",
            "  splitter:s1: ocs1 is disconnected",
        ],
    )


def test_drain_is_not_complete_with_pending_request(lab, blast):
    # A drain still serves pending requests, which provision circuits.
    lose(lab, "ocs1")
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"])))
    lab.settle()
    assert blast("drain", "on") == (0, "draining: new requests are rejected, 0 active, 1 pending\n")
    lab.runtime.post(WithdrawRequested(key_of("a")))
    lab.settle()
    assert blast("drain", "status") == (0, "drained: new requests are rejected, none is active or pending\n")
