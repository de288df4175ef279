"""`auto` in the lab: real grants that are late or withdrawn, and a pipeline over real switches in between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blast_api.ttypes import MulticastRequest
from blast_client import Client, RoundSettings, broadcast, receive
from blast_client.api.aio import AsyncClient
from blast_client.send import delivery
from blast_client.send import round as whole_round
from blast_client.send.delivery import deliver
from blast_transport.base.report import TransferResult
from blast_transport.session.route import Order, Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination
from blast_transport.store.sources.source import FileSource
from blast_transport.transports.choices import Chain, OpticalChoice
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.topology.plan import LabPlan
from tests.support.waiting import HANGING, eventually_async

pytestmark = [pytest.mark.lab, pytest.mark.component]

PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={4: 1}, light_rate_mbps=40.0, access_rate_mbps=20.0)
SIZE = 6_000_000
SENDER, RECEIVERS = "r1h1", ("r2h1", "r3h1", "r4h1")


class Halves(FileSource):
    """A file of which the second half is there once the transfer goes on by another transport."""

    def __init__(self, path: Path, descriptor: int, route: Route, second: type[Order]) -> None:
        super().__init__(path, descriptor)
        self.whole, change = False, route._order

        def note(order: Order) -> None:
            self.whole |= isinstance(order, second)
            change(order)

        route._order = note  # type: ignore[method-assign]

    @property
    def available(self) -> int:
        return self.size if self.whole else self.size // 2


@dataclass
class Bench:
    stage: Stage
    receivers: Receivers
    path: Path

    def deliver(self, key: str, second: type[Order], story: object) -> TransferResult:
        """Send by `auto` while `story(client)` happens; the second half waits for the `second` transport."""
        request = MulticastRequest(key=key, sender=SENDER, receivers=list(RECEIVERS), bytes=SIZE, mayPause=True)

        async def play() -> TransferResult:
            async with AsyncClient(self.stage.lab.thrift) as client, asyncio.TaskGroup() as both:
                delivery = deliver(client, request, partial(self._carry, second), Chain(RECEIVERS))
                delivering = both.create_task(delivery)
                both.create_task(story(client))  # type: ignore[operator]
            sent = delivering.result().sent
            assert sent.result is not None and sent.complete, sent
            return sent.result

        result = asyncio.run(play())
        assert self.receivers.hashes_equal(self.path, RECEIVERS)
        return result

    def _carry(self, second: type[Order], receivers: Sequence[str], route: Route) -> TransferResult:
        addresses, settings = self.receivers.addresses(receivers), self.receivers.settings_of(SENDER)

        def send() -> TransferResult:
            with self.path.open("rb") as file, Sender(addresses, settings) as sender:
                source = Halves(self.path, file.fileno(), route, second)
                return sender.transmit(source, route, Destination(self.path.name))

        result: TransferResult = run_in_network_of(self.stage.lab.host(SENDER).pid, send)
        return result


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab.lab import Lab

    with Lab(PLAN) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        path = lab.directory / "data"
        path.write_bytes(os.urandom(SIZE))
        with Receivers(stage, stage.first_hosts()) as receivers:
            yield Bench(stage, receivers, path)


@pytest.fixture
def light_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make transfers wait for their grant, however late a busy machine issues it."""
    monkeypatch.setattr(delivery, "grant_seconds", lambda size: HANGING)


@pytest.mark.usefixtures("light_first")
def test_pipeline_continues_transfer_after_grant_is_withdrawn(bench: Bench) -> None:
    counters = bench.stage.lab.counters
    optical, core = counters.optical(1), counters.core()

    async def story(client: AsyncClient) -> None:
        await eventually_async(
            lambda: (counters.optical(1) - optical).sent_bytes > 0.4 * SIZE,
            "most of the half over the optical transport",
        )
        await client.withdraw("withdrawn")

    result = bench.deliver("withdrawn", Chain, story)
    assert result.transports == ("optical", "pipeline")
    # The core carries the rest once to each other rack, and repairs; optically received data is not sent again.
    along_core = (counters.core() - core).sent_bytes / len(RECEIVERS)
    assert along_core < 0.75 * SIZE + result.repaired_bytes


def test_optical_transport_takes_over_from_pipeline_when_granted(bench: Bench) -> None:
    counters = bench.stage.lab.counters
    core = counters.core()
    holder = MulticastRequest(key="holder", sender="r2h1", receivers=["r3h1"], bytes=SIZE)

    async def story(client: AsyncClient) -> None:
        await eventually_async(lambda: (counters.core() - core).sent_bytes > 0.1 * SIZE, "a pipeline at work")
        await client.finish("holder")

    bench.stage.client.request(holder, HANGING)
    assert bench.deliver("late", OpticalChoice, story).transports == ("pipeline", "optical")


class SenderInHost:
    """A sender in the network namespace of the process `pid`, independent of its caller's."""

    def __init__(self, pid: int, *arguments: Any) -> None:
        self._pid = pid
        self._sender = run_in_network_of(pid, lambda: Sender(*arguments))

    def __enter__(self) -> SenderInHost:
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.close()

    def transmit(self, *arguments: Any) -> TransferResult:
        result: TransferResult = run_in_network_of(self._pid, lambda: self._sender.transmit(*arguments))
        return result


@pytest.mark.usefixtures("light_first")
def test_broadcast_sends_one_optical_copy_of_array(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, settings = bench.stage.lab, bench.receivers.settings_of(SENDER)
    monkeypatch.setattr(whole_round, "Sender", partial(SenderInHost, lab.host(SENDER).pid))
    array = np.frombuffer(bench.path.read_bytes(), "u4").reshape(1000, -1)
    optical = lab.counters.optical(1)
    round_settings = RoundSettings(
        controller=lab.thrift,
        sender=SENDER,
        optical_address=settings.interface_address,
        credentials=settings.credentials,
    )
    outcome = broadcast(array, bench.receivers.addresses(RECEIVERS), "weights", settings=round_settings).check()
    assert outcome.transports == ("optical",)
    for host in RECEIVERS:
        assert (receive("weights", bench.receivers.directory(host), timeout=0) == array).all()
    assert SIZE < (lab.counters.optical(1) - optical).sent_bytes < 2 * SIZE, "not a copy for each receiver"
