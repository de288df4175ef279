"""Transfers between hosts that have IPv6 addresses: every transport that needs no multicast, and the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_client.cli.command import main
from blast_transport.session.route import Route
from blast_transport.transports.choices import Chain, TransportChoice, Unicast
from tests.integration.transport.test_streams import chains
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.transport.transport_hosts import Agent, agents, sender_to


@pytest.fixture
def there(tmp_path: Path) -> Iterator[list[Agent]]:
    with agents(tmp_path, 2, listens="::1") as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(300_000))
    return path


TRANSPORTS: dict[str, Callable[[], TransportChoice]] = {
    "unicast": Unicast,
    "pipeline": Chain,
    "trees": lambda: chains(("r0", "r1"), ("r1", "r0")),
}


@pytest.mark.parametrize("choice", TRANSPORTS.values(), ids=TRANSPORTS)
def test_transport_reaches_hosts_with_ipv6_addresses(
    there: list[Agent], file: Path, choice: Callable[[], TransportChoice]
) -> None:
    with sender_to(there) as sender:
        assert sender.send_file(file, Route(choice())).complete == 2
    assert [one.files()["file"] for one in there] == [file.read_bytes()] * 2


@pytest.mark.parametrize("via", ["auto", "pipeline", "unicast"])
def test_command_sends_to_ipv6_addresses(there: list[Agent], file: Path, via: str, capsys) -> None:
    """Light is IPv4 multicast: with a controller, too, nothing of it is asked for."""
    hosts = ",".join(f"{one.name}={Endpoint(*one.address[1:])}" for one in there)
    with serving(MemoryController()) as (_, host, port):
        words = ["send", str(file), "--to", hosts, "--via", via, "--controller", f"{host}:{port}", "--json"]
        assert main(words) == 0, capsys.readouterr().err
    assert [one.files()["file"] for one in there] == [file.read_bytes()] * 2


def test_optical_transport_rejects_ipv6_only_receivers(there: list[Agent], file: Path, capsys) -> None:
    words = ["send", str(file), "--to", f"r0={Endpoint(*there[0].address[1:])}", "--via", "optical"]
    assert main([*words, "--controller", "127.0.0.1:1"]) == 2
    assert "the optical transport needs IPv4, and no receiver has an IPv4 address" in capsys.readouterr().err
