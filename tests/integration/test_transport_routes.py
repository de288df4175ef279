"""One session by several ways, one after the other: light that pauses, ends and comes back, and streams."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from blast_transport.base.report import Progress
from blast_transport.carriers.choices import CarrierChoice, Chain, Light, Unicast
from blast_transport.session.route import GiveUp, Route
from blast_transport.session.settings import Destination
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import StreamSource, opened_file
from blast_transport.wire.messages import COMMAND, FILE, MEMORY
from tests.support.transport_hosts import (
    PATIENCE,
    PATIENT,
    Agent,
    FaultyLight,
    agent,
    agents,
    light,
    sender_to,
    sending,
)
from tests.support.waiting import eventually

SIZE = 12 << 20
SLOW = 100e6


@pytest.fixture(scope="module")
def content() -> bytes:
    return random.Random(78).randbytes(SIZE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content.bin"
    path.write_bytes(content)
    return path


def until_dark(route: Route) -> int:
    """How far the transfer is when it has stopped: no other sign of it than that nothing moves, for half a second."""
    reached = -1
    while reached != route.reached:
        reached = route.reached
        time.sleep(0.5)  # this is what is looked at
    return reached


CHANGES = [
    pytest.param(lambda: light(SLOW), [Chain], id="light then pipeline"),
    pytest.param(lambda: light(SLOW), [Unicast], id="light then unicast"),
    pytest.param(lambda: light(SLOW), [light], id="light then other light"),
    pytest.param(lambda: light(SLOW), [Chain, light], id="light, pipeline, light"),
    pytest.param(lambda: light(SLOW), [Unicast, light], id="light, unicast, light"),
]


@pytest.mark.parametrize("faults", [0.0, 0.02])
@pytest.mark.parametrize(("first", "later"), CHANGES)
def test_the_way_changes_in_mid_transfer(
    tmp_path: Path,
    file: Path,
    content: bytes,
    first: Callable[[], Light],
    later: list[Callable[[], CarrierChoice]],
    faults: float,
) -> None:
    with agents(tmp_path, 3, open_group=FaultyLight(faults)) as there, sender_to(there) as sender:
        route = Route(first())
        with sending(sender, file, route) as results:
            for way in later:
                at = route.reached
                eventually(lambda at=at: route.reached > at + (1 << 20) or route.reached == SIZE)
                route.go(way())
        (result,) = results
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert len(result.carriers) >= 2
        for one in there:
            event = one.received()
            assert one.files() == {file.name: content}
            # Of light that ends, a window may be under way.
            assert event.duplicates * 1456 <= (1 << 20) * len(later) or faults


def test_light_comes_while_a_pipeline_is_at_work(tmp_path: Path, content: bytes) -> None:
    """Slowed down by the source, so that it is still at work."""
    with agents(tmp_path, 3) as there, sender_to(there, PATIENT) as sender:
        reader, writer = os.pipe()
        route = Route(Chain())
        half = threading.Event()

        def produce() -> None:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(writer, rest[: 1 << 18]) :]
                if len(rest) < SIZE // 2 and not half.is_set():
                    half.set()
                    route.go(light())
                time.sleep(0.005)  # a slow producer
            os.close(writer)

        thread = threading.Thread(target=produce)
        thread.start()
        with StreamSource(reader) as source:
            result = sender.transmit(source, route, Destination("stream"))
        thread.join()
        os.close(reader)
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert result.carriers == ("pipeline", "optical")
        assert all(one.files() == {"stream": content} for one in there)


def test_light_ends_in_time_and_goes_on_at_another_group(tmp_path: Path, file: Path, content: bytes) -> None:
    """In three pieces, without anything repaired."""
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        seconds, rate = 1.5, 20e6
        route = Route(light(rate, until=time.monotonic() + seconds))
        with sending(sender, file, route) as results:
            time.sleep(seconds)  # the time of the light
            reached = until_dark(route)
            assert 0 < reached <= 1.05 * seconds * rate / 8
            route.shine(light(rate, until=time.monotonic() + seconds))
            time.sleep(seconds)  # the time of the light
            further = until_dark(route)
            assert reached < further <= reached + 1.05 * seconds * rate / 8
            route.shine(light())
        (result,) = results
        assert (result.complete, result.repaired_bytes, route.reached) == (2, 0, SIZE)
        # A block that has begun to leave when the light ends leaves once more as a whole.
        assert 0 <= result.datagrams - -(-SIZE // 1456) < 2 * 44
        assert result.carriers == ("optical",) * 3
        assert all(one.files() == {file.name: content} for one in there)


def test_the_same_light_goes_on_where_it_stopped(tmp_path: Path, file: Path, content: bytes) -> None:
    with agents(tmp_path, 2, open_group=FaultyLight(0.02)) as there, sender_to(there) as sender:
        way = light(SLOW)
        route = Route(way)
        with sending(sender, file, route) as results:
            eventually(lambda: route.reached > 1 << 20)
            route.darken()
            reached = until_dark(route)
            assert route.reached == reached < SIZE
            route.shine(Light(way.group, way.port, 400e6))
        (result,) = results
        assert (result.complete, result.carriers) == (2, ("optical",))
        assert all(one.files() == {file.name: content} for one in there)


def test_darkness_and_then_a_pipeline(tmp_path: Path, file: Path, content: bytes) -> None:
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        route = Route(light(SLOW))
        with sending(sender, file, route) as results:
            eventually(lambda: route.reached > 1 << 20)
            route.darken()
            until_dark(route)
            route.go(Chain())
        assert results[0].complete == 2
        assert all(one.files() == {file.name: content} for one in there)


@pytest.mark.parametrize("way", [light(50e6), Chain(), Unicast()], ids=["light", "pipeline", "unicast"])
def test_giving_up_ends_it_and_the_next_transfer_is_whole(
    tmp_path: Path, file: Path, content: bytes, way: CarrierChoice
) -> None:
    with agents(tmp_path, 2) as there, sender_to(there) as sender:
        reader, writer = os.pipe()
        os.write(writer, content[: 1 << 15])
        route = Route(way)
        with StreamSource(reader) as source:
            timer = threading.Timer(0.3, route.give_up, ["the request was withdrawn"])
            timer.start()
            result = sender.transmit(source, route, Destination("stream"))
            timer.join()
        os.close(reader)
        os.close(writer)
        assert [outcome.reason for outcome in result.receivers] == ["the request was withdrawn"] * 2
        for one in there:
            assert one.failed().reason
        eventually(lambda: all(one.files() == {} for one in there))
        assert sender.send_file(file, Route(light())).complete == 2
        assert all(one.files() == {file.name: content} for one in there)


def test_orders_before_the_start_are_obeyed(tmp_path: Path, file: Path) -> None:
    with agents(tmp_path, 1) as there, sender_to(there) as sender:
        route = Route(light())
        route.go(Unicast())
        assert sender.send_file(file, route).carriers == ("unicast",)
        route = Route(light())
        route.give_up("never mind")
        assert sender.send_file(file, route).receivers[0].reason == "never mind"
        assert route.take_order() is None
        route.give_up("too late")
        assert route.take_order() == GiveUp("too late")


# ----------------------------------------------------------------------------------------------------- streams


@contextmanager
def produced(content: bytes, piece: int = 1 << 20, pause: float = 0.0) -> Iterator[StreamSource]:
    reader, writer = os.pipe()

    def produce() -> None:
        try:
            for begin in range(0, len(content), piece):
                rest = memoryview(content)[begin : begin + piece]
                while rest:
                    rest = rest[os.write(writer, rest) :]
                time.sleep(pause)  # a slow producer
        except BrokenPipeError:
            """Nobody wants it any more."""
        os.close(writer)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        with StreamSource(reader, 2 << 20) as source:
            yield source
    finally:
        os.close(reader)
        thread.join(PATIENCE)


COLLECT = {"collect": ("/bin/dd", "of=collected", "status=none", "bs=64k")}


def stored(one: Agent, kind: str) -> bytes:
    if kind == MEMORY:
        target = cast("MemoryTarget", one.targets[-1])
        assert target.complete
        return bytes(target.data)
    return one.files()["stream" if kind == FILE else "collected"]


@pytest.mark.parametrize("kind", [FILE, COMMAND, MEMORY])
@pytest.mark.parametrize("carrier", ["light", "pipeline", "unicast"])
def test_streams_of_unknown_length(tmp_path: Path, content: bytes, carrier: str, kind: str) -> None:
    """Through a ring that holds a sixth of it."""
    ways: dict[str, Callable[[], CarrierChoice]] = {"light": light, "pipeline": Chain, "unicast": Unicast}
    name = "collect" if kind == COMMAND else "stream"
    with agents(tmp_path, 3, commands=COLLECT) as there, sender_to(there, PATIENT) as sender:
        for stream in (content, content[:1000], b""):
            with produced(stream) as source:
                result = sender.transmit(source, Route(ways[carrier]()), Destination(name, kind))
            assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
            assert result.bytes == len(stream)
            assert all(stored(one, kind) == stream for one in there)


@pytest.mark.parametrize("carrier", ["light", "pipeline", "unicast"])
def test_a_slow_producer_is_carried(tmp_path: Path, content: bytes, carrier: str) -> None:
    ways: dict[str, Callable[[], CarrierChoice]] = {"light": light, "pipeline": Chain, "unicast": Unicast}
    reports: list[Progress] = []
    with agents(tmp_path, 2) as there, sender_to(there, PATIENT) as sender:
        with produced(content[: 1 << 20], piece=1 << 17, pause=0.05) as source:
            result = sender.transmit(source, Route(ways[carrier]()), Destination("stream"), reports.append)
        assert result.complete == 2
        assert any(report.carrier for report in reports)
        assert all(one.files() == {"stream": content[: 1 << 20]} for one in there)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_lossy_stream_into_commands(tmp_path: Path, content: bytes, sealed: bool) -> None:
    settings = replace(PATIENT, sealed=sealed)
    with (
        agents(tmp_path, 3, commands=COLLECT, open_group=FaultyLight(0.01, 0.01, 0.0005)) as there,
        sender_to(there, settings) as sender,
    ):
        with produced(content) as source:
            result = sender.transmit(source, Route(light()), Destination("collect", COMMAND))
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert all(stored(one, COMMAND) == content for one in there)


def test_a_command_that_fails_is_that_receivers_reason(tmp_path: Path, content: bytes) -> None:
    failing = {"collect": ("/bin/sh", "-c", "head -c 100000 > /dev/null; exit 7")}
    with (
        agent(tmp_path / "good", commands=COLLECT) as good,
        agent(tmp_path / "bad", commands=failing) as bad,
        sender_to([good, bad]) as sender,
    ):
        for way in (light(), Chain(), Unicast()):
            with produced(content) as source:
                result = sender.transmit(source, Route(way), Destination("collect", COMMAND))
            assert [outcome.complete for outcome in result.receivers] == [True, False], result
            assert "collect" in result.receivers[1].reason
            assert stored(good, COMMAND) == content
            bad.failed()


def test_more_than_fits_into_memory_is_refused(tmp_path: Path, file: Path, content: bytes) -> None:
    with agents(tmp_path, 1, memory_bytes=1 << 20) as there, sender_to(there) as sender:
        with opened_file(file) as source:
            result = sender.transmit(source, Route(light()), Destination("m", MEMORY))
        assert "keeps in memory" in result.receivers[0].reason
        with produced(content) as source:
            result = sender.transmit(source, Route(light()), Destination("m", MEMORY))
        assert "kept in memory" in result.receivers[0].reason
