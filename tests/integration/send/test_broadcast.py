"""`broadcast` and `receive` with real agents on loopback: over the optical transport and along a chain."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blast_client
from blast_client import (
    CredentialsError,
    DeliveryError,
    InvalidArgumentError,
    RoundSettings,
    SendError,
    agent_certificates,
    agent_secret,
    async_broadcast,
    broadcast,
    receive,
)
from blast_client.api.base_error import BlastError
from blast_client.send import delivery, submitted
from blast_transport.base.report import Progress
from blast_transport.credentials.material import SharedSecret
from blast_transport.transports.choices import Chain
from blast_transport.wire.transports import OPTICAL, PIPELINE
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.controller.store_faults import before_writes
from tests.support.transport.transport_hosts import LOOPBACK, Agent, agent
from tests.support.waiting import HANGING, eventually

HOSTS = ("h21", "h31", "h41")
SENDER = "h11"
SECRET = b"0123456789abcdefghijklmnopqrstuvwxyz"
ALONG_A_CHAIN = RoundSettings(controller=None)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[list[Agent]]:
    with ExitStack() as stack:
        yield [stack.enter_context(agent(tmp_path / name)) for name in HOSTS]


@pytest.fixture
def controller() -> Iterator[RoundSettings]:
    with serving(MemoryController()) as (_, host, port):
        yield RoundSettings(controller=f"{host}:{port}", sender=SENDER, optical_address=LOOPBACK, via="optical")


def addresses(agents: Sequence[Agent]) -> list[tuple[str, str, int]]:
    return [one.address for one in agents]


def states(settings: RoundSettings) -> list[int]:
    assert settings.controller is not None
    with blast_client.Client(settings.controller) as client:
        return [request.state for request in client.list_requests()]


def test_broadcast_delivers_array_over_optical_transport(agents: list[Agent], controller: RoundSettings) -> None:
    array = np.arange(300_000.0).reshape(1000, 300)
    outcome = broadcast(array, addresses(agents), "weights-17", settings=replace(controller, via=OPTICAL)).check()
    assert outcome.transports == (OPTICAL,)
    assert (outcome.name, outcome.complete, outcome.no_optical_path) == ("weights-17", True, "")
    assert set(outcome.delivered) == set(HOSTS)
    for one in agents:
        got = receive("weights-17", one.directory, timeout=0)
        assert isinstance(got, np.memmap) and (got == array).all()
    assert states(controller) == [blast_client.PartState.DONE], "the request is finished"


@pytest.mark.parametrize(
    "data",
    [b"", memoryview(bytes(range(256)) * 300)[::3], {"layer": np.full((500, 100), 2.0, "f4"), "bias": np.arange(5)}],
)
def test_received_value_equals_sent_value(agents: list[Agent], controller: RoundSettings, data: Any) -> None:
    for settings, transport in ((replace(controller, via=OPTICAL), OPTICAL), (ALONG_A_CHAIN, PIPELINE)):
        outcome = broadcast(data, addresses(agents), settings=settings).check()
        assert outcome.transports in {(transport,), ()}
        for one in agents:
            got = receive(outcome.name, one.directory, timeout=0)
            if isinstance(data, dict):
                assert got.keys() == data.keys() and all((got[key] == data[key]).all() for key in data)
            else:
                assert bytes(got) == bytes(data)


def test_unresolvable_receivers_use_addresses_of_controller(agents: list[Agent], controller: RoundSettings) -> None:
    to = [f"{name}:{port}" for name, _, port in addresses(agents)]
    assert set(broadcast(b"x", to, "x", settings=controller).check().delivered) == set(HOSTS)
    with pytest.raises(InvalidArgumentError, match=r"cannot resolve the host h21 .*: write HOST=ADDRESS:PORT"):
        broadcast(b"x", to, "y", settings=RoundSettings(controller="127.0.0.1:9"))


def test_broadcast_delivers_files_and_folders(tmp_path: Path, agents: list[Agent]) -> None:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(b"a" * 100_000)
    (folder / "deep" / "b").write_bytes(b"b")
    broadcast(folder, addresses(agents), settings=ALONG_A_CHAIN).check()
    reported: list[Progress] = []
    broadcast(folder / "a", addresses(agents), folder="files", settings=ALONG_A_CHAIN, progress=reported.append).check()
    assert reported and reported[-1].bytes == 100_000
    for one in agents:
        assert receive("model", one.directory, timeout=0).joinpath("deep", "b").read_bytes() == b"b"
        assert receive("a", one.directory, timeout=0).read_bytes() == b"a" * 100_000


def test_unreachable_receiver_is_named_and_others_complete(agents: list[Agent]) -> None:
    absent = ("absent", LOOPBACK, 9)
    outcome = broadcast(b"x" * 100_000, [*addresses(agents), absent], "x", settings=ALONG_A_CHAIN)
    assert set(outcome.delivered) == set(HOSTS)
    assert list(outcome.failed) == ["absent"] and outcome.failed["absent"]
    with pytest.raises(DeliveryError, match="'x' was not delivered to absent") as raised:
        outcome.check()
    assert raised.value.outcome is outcome


def test_broadcast_uses_pipeline_without_grant_of_controller(agents: list[Agent], controller: RoundSettings) -> None:
    away = RoundSettings(controller="127.0.0.1:9", optical_address=LOOPBACK)
    outcome = broadcast(b"x" * 100_000, addresses(agents), settings=away).check()
    assert outcome.transports == (PIPELINE,)
    assert "no answer from a controller at 127.0.0.1:9" in outcome.no_optical_path
    unknown = RoundSettings(controller=controller.controller, sender="h99", optical_address=LOOPBACK)
    outcome = broadcast(b"x" * 100_000, addresses(agents), settings=unknown).check()
    assert outcome.transports == (PIPELINE,)
    assert "h99" in outcome.no_optical_path


def test_event_loop_must_use_async_broadcast(agents: list[Agent]) -> None:
    async def both() -> None:
        with pytest.raises(InvalidArgumentError, match="await async_broadcast"):
            broadcast(b"x", addresses(agents))
        calls = (async_broadcast(b"x" * 9, addresses(agents), f"x{n}", settings=ALONG_A_CHAIN) for n in range(20))
        assert all(outcome.complete for outcome in await asyncio.gather(*calls))

    asyncio.run(both())
    # More than an agent takes at once: the others wait here.
    assert {path.name for path in agents[0].directory.iterdir()} == {f"x{n}.bytes" for n in range(20)}


def test_cancelled_broadcast_withdraws_its_request(
    agents: list[Agent], controller: RoundSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        begun.set()
        assert ended.wait(HANGING)

    before_writes(monkeypatch, hold)
    monkeypatch.setattr(submitted, "_SECONDS", HANGING)

    async def cancelled() -> None:
        task = asyncio.create_task(async_broadcast(bytes(500_000), addresses(agents), "x", settings=controller))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert states(controller) == [blast_client.PartState.WITHDRAWN]
    ended.set()
    eventually(lambda: not any((one.directory / "x.bytes").exists() for one in agents), "nothing in place")


def test_broadcast_reads_secret_file_of_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_bytes(SECRET)
    monkeypatch.setenv("BLAST_SECRET_FILE", str(secret))
    monkeypatch.setenv("BLAST_CONTROLLER", "")
    with agent(tmp_path / "r", credentials=SharedSecret(SECRET)) as one:
        assert broadcast(b"x", [one.address], "x").complete
        assert not broadcast(b"x", [one.address], "x", settings=ALONG_A_CHAIN).complete
    secret.chmod(0o644)
    with pytest.raises((InvalidArgumentError, BlastError), match="chmod"):
        broadcast(b"x", [("r", LOOPBACK, 9)], "x")


def test_broadcast_uses_credentials_of_application(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    settings = RoundSettings(controller=None, credentials=agent_secret(secret))
    with agent(tmp_path / "r", credentials=SharedSecret(SECRET)) as one:
        assert broadcast(b"x", [one.address], "x", settings=settings).complete
    for wrong in (secret, str(secret), SECRET):
        with pytest.raises(InvalidArgumentError, match=r"must be the result of agent_secret\(path\)"):
            RoundSettings(credentials=wrong)  # type: ignore[arg-type]
    with pytest.raises(CredentialsError, match="cannot be read"):
        agent_secret(tmp_path / "none")
    with pytest.raises(CredentialsError, match=r"cannot be (used|read)"):
        agent_certificates(secret, secret, secret)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"to": "h2,h3"}, "to must be a list"),
        ({"to": []}, "to is empty"),
        ({"to": ["h2", "h2"]}, "named twice"),
        ({"to": ["h2"], "name": "../x"}, "cannot send '../x': the name"),
        (
            {"to": ["h2"], "name": "a" * 250, "settings": None},
            "cannot send 'a+': a file name|cannot send 'a+': the name",
        ),
        ({"to": ["h2"], "data": Path("/") / "\0"}, "cannot read .*null byte"),
        ({"to": ["h2"], "data": object()}, "cannot send a object"),
    ],
)
def test_broadcast_rejects_invalid_arguments(arguments: dict[str, Any], sentence: str) -> None:
    given = {"data": b"x", "settings": ALONG_A_CHAIN, **arguments}
    with pytest.raises(InvalidArgumentError, match=sentence):
        broadcast(**given)


def test_broadcast_fails_if_file_changes_during_transfer(tmp_path: Path, agents: list[Agent]) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100_000)

    def change(_: Progress) -> None:
        file.write_bytes(b"y" * 100_001)

    with pytest.raises(SendError, match="changed"):
        broadcast(file, addresses(agents), settings=ALONG_A_CHAIN, progress=change)


def test_broadcast_does_not_copy_large_array(tmp_path: Path) -> None:
    """The sender's process never allocates a second copy of the 60 MB that it sends."""
    program = """
import json, resource, sys
import numpy as np
from blast_client import RoundSettings, broadcast
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
along = RoundSettings(controller=None)
array = np.ones(7_500_000)
broadcast(array[:1], [tuple(json.loads(sys.argv[1]))], "warm", settings=along)
before = peak()
outcome = broadcast(array, [tuple(json.loads(sys.argv[1]))], "a", settings=along)
print(json.dumps([outcome.complete, (peak() - before) / array.nbytes]))
"""
    with agent(tmp_path / "r") as one:
        words = [sys.executable, "-c", program, json.dumps(one.address)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=4 * HANGING, check=True)
    complete, share = json.loads(done.stdout)
    assert complete
    assert share < 0.6


def test_chain_follows_rack_order_of_controller(
    agents: list[Agent], controller: RoundSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains: list[Chain] = []
    deliver = delivery.deliver

    async def spying(client: Any, request: Any, carry: Any, chain: Chain) -> Any:
        chains.append(chain)
        return await deliver(client, request, carry, chain)

    monkeypatch.setattr(delivery, "deliver", spying)
    broadcast(b"x", list(reversed(addresses(agents))), settings=replace(controller, via="auto")).check()
    assert chains[0].order == HOSTS


def test_settings_reject_unknown_transport() -> None:
    # Tests of the same process may have added transports.
    known = "auto, optical, multicast, pipeline, trees, unicast"
    with pytest.raises(InvalidArgumentError, match=f"via must be one of {known}"):
        RoundSettings(via="optic")


def test_unknown_host_does_not_prevent_delivery_to_others(agents: list[Agent], controller: RoundSettings) -> None:
    settings = RoundSettings(controller=controller.controller, sender=SENDER)
    to = [("h22", "no-such-host.invalid", 9095), *addresses(agents)]
    outcome = broadcast(b"x" * 100_000, to, "x", settings=settings)
    assert set(outcome.delivered) == set(HOSTS)
    assert list(outcome.failed) == ["h22"]
