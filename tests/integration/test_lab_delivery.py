"""`auto` in the lab: real grants, light that comes late and goes early, a pipeline over real switches in between."""

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
from blast_client import Client, RoundSettings, broadcast, delivery, receive
from blast_client import round as whole_round
from blast_client.aio import AsyncClient
from blast_client.delivery import Delivered, deliver
from blast_transport.base.report import TransferResult
from blast_transport.carriers.choices import Chain
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.namespace import run_in_network_of
from mininet_topos.plan import LabPlan
from tests.support.waiting import HANGING, eventually_async

pytestmark = pytest.mark.lab

PLAN = LabPlan(racks=4, hosts_per_rack=1, splitters={4: 1}, light_rate_mbps=40.0, access_rate_mbps=20.0)
SIZE = 8_000_000
"""Bytes: 1.7 s by light, 3.4 s along the pipeline."""
WINDOW = 1 << 20
SENDER, RECEIVERS = "r1h1", ("r2h1", "r3h1", "r4h1")


@dataclass
class Bench:
    stage: Stage
    receivers: Receivers
    path: Path

    def request(self, key: str) -> MulticastRequest:
        return MulticastRequest(key=key, sender=SENDER, receivers=list(RECEIVERS), bytes=SIZE, mayPause=True)

    def deliver(self, key: str, story: object) -> Delivered:
        """Send by `auto` while `story(client)` happens."""

        async def both() -> Delivered:
            async with AsyncClient(self.stage.lab.thrift) as client:
                telling = asyncio.create_task(story(client))  # type: ignore[operator]
                delivered = await deliver(client, self.request(key), self._carry, Chain(RECEIVERS))
                try:
                    await telling
                except AssertionError as error:
                    error.add_note(f"The transfer has ended meanwhile: {delivered}")
                    raise
                return delivered

        return asyncio.run(both())

    def _carry(self, receivers: Sequence[str], route: Route) -> TransferResult:
        addresses = self.receivers.addresses(receivers)
        settings = self.receivers.settings_of(SENDER)

        def send() -> TransferResult:
            with Sender(addresses, settings) as sender:
                return sender.send_file(self.path, route)

        result: TransferResult = run_in_network_of(self.stage.lab.host(SENDER).pid, send)
        return result


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab import Lab

    with Lab(PLAN) as lab, Client(lab.thrift) as client:
        stage = Stage(lab, client, Results(PLAN.summary))
        stage.wait_devices()
        path = lab.directory / "data"
        path.write_bytes(os.urandom(SIZE))
        with Receivers(stage, stage.first_hosts()) as receivers:
            yield Bench(stage, receivers, path)


@pytest.fixture
def light_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transfers that wait for their light, however late a busy machine grants it: it is the first carrier."""
    monkeypatch.setattr(delivery, "GRANT_SECONDS", HANGING)


def result_of(delivered: Delivered) -> TransferResult:
    assert delivered.sent.result is not None, delivered
    assert delivered.sent.complete, delivered.sent.result.receivers
    return delivered.sent.result


@pytest.mark.usefixtures("light_first")
def test_light_that_is_withdrawn_is_followed_by_the_pipeline_and_nothing_is_sent_twice(bench: Bench) -> None:
    counters = bench.stage.lab.counters
    optical, core = counters.optical(1), counters.core()

    async def story(client: AsyncClient) -> None:
        await eventually_async(lambda: (counters.optical(1) - optical).sent_bytes > 0.3 * SIZE, "light in the middle")
        await client.withdraw("withdrawn")

    result = result_of(bench.deliver("withdrawn", story))
    assert result.carriers == ("optical", "pipeline")
    by_light = (counters.optical(1) - optical).sent_bytes
    along_core = (counters.core() - core).sent_bytes
    assert 0.1 * SIZE < by_light < 0.9 * SIZE
    # Every rack but the first is reached over the core once; what light carried is not carried again.
    again = along_core / len(RECEIVERS) * 0.93 + by_light * 0.96 - SIZE
    assert again < WINDOW, f"{again:.0f} bytes were sent twice"
    assert bench.receivers.hashes_equal(bench.path, RECEIVERS)


def test_the_pipeline_begins_and_light_takes_over_when_it_comes(bench: Bench) -> None:
    counters = bench.stage.lab.counters
    core = counters.core()
    holder = MulticastRequest(key="holder", sender="r2h1", receivers=["r3h1"], bytes=SIZE)

    async def story(client: AsyncClient) -> None:
        await eventually_async(lambda: (counters.core() - core).sent_bytes > 0.1 * SIZE, "a pipeline at work")
        await client.finish("holder")

    bench.stage.client.request(holder, 20.0)
    result = result_of(bench.deliver("late", story))
    assert result.carriers == ("pipeline", "optical")
    assert bench.receivers.hashes_equal(bench.path, RECEIVERS)


@pytest.mark.usefixtures("light_first")
def test_light_at_once(bench: Bench) -> None:
    async def story(client: AsyncClient) -> None:
        await client.ping()

    result = result_of(bench.deliver("at-once", story))
    assert result.carriers == ("optical",)
    assert result.repaired_bytes < SIZE // 20, "but for what a busy machine drops"
    assert bench.receivers.hashes_equal(bench.path, RECEIVERS)


class SenderInHost:
    """A sender that lives in the network of host `pid`, whoever calls it."""

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
def test_a_program_brings_an_array_to_all_racks_in_one_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, settings = bench.stage.lab, bench.receivers.settings_of(SENDER)
    monkeypatch.setattr(whole_round, "Sender", partial(SenderInHost, lab.host(SENDER).pid))
    array = np.frombuffer(bench.path.read_bytes(), "u4").reshape(1000, -1)
    optical, core = lab.counters.optical(1), lab.counters.core()
    outcome = broadcast(
        array,
        bench.receivers.addresses(RECEIVERS),
        "weights",
        settings=RoundSettings(
            controller=lab.thrift,
            sender=SENDER,
            light_address=settings.interface_address,
            credentials=settings.credentials,
        ),
    ).check()
    assert outcome.carriers == ("optical",)
    for host in RECEIVERS:
        assert (receive("weights", bench.receivers.directory(host), timeout=0) == array).all()
    assert (lab.counters.optical(1) - optical).sent_bytes < 1.15 * SIZE, "one copy"
    assert (lab.counters.core() - core).sent_bytes < 0.15 * SIZE, "and next to nothing beside it"
