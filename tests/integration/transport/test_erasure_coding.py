"""Parity segments repair the independent losses of several receivers, by the compiled engine."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.report import Progress
from blast_transport.datagrams.interface import open_group_socket
from blast_transport.session.route import Route
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.transports.choices import Chain, MulticastChoice
from blast_transport.transports.multicast import sender as multicast_sender
from blast_transport.transports.sending import ParityRun
from blast_transport.wire.messages import COMMAND
from tests.support.transport.transport_hosts import LOOPBACK, MTU, Agent, agent, sender_to

SIZE = 4 << 20
ONE_IN = 32
SO_ATTACH_FILTER = 26
LOAD_BYTE, MASK, JUMP_IF_EQUAL, JUMP_IF_SET, RETURN = 0x30, 0x54, 0x15, 0x45, 0x06
"""Classic BPF (linux/filter.h); offsets begin at the UDP header."""
LOW_BYTE, HIGH_BYTE = 8 + 8, 8 + 15
"""Bytes of the segment number, little-endian."""
ACCEPT = 0xFFFFFFFF


class LosingSegments:
    """Opens sockets of a receiver that lose each datagram of some segments, whenever it comes, but no parity.

    A super-packet counts as its first segment. Only the control connection and parity bring these segments.
    """

    def __init__(self, place: int) -> None:
        self._place = place

    def __call__(self, interface_address: str, group: str, port: int, source: str | None = None) -> socket.socket:
        sock = open_group_socket(interface_address, group, port, source)
        program = [
            (LOAD_BYTE, 0, 0, HIGH_BYTE),
            (JUMP_IF_SET, 3, 0, 0x80),
            (LOAD_BYTE, 0, 0, LOW_BYTE),
            (MASK, 0, 0, ONE_IN - 1),
            (JUMP_IF_EQUAL, 1, 0, self._place),
            (RETURN, 0, 0, ACCEPT),
            (RETURN, 0, 0, 0),
        ]
        steps = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HL", len(program), ctypes.addressof(steps)))
        return sock


@pytest.fixture
def parity(monkeypatch: pytest.MonkeyPatch) -> list[ParityRun]:
    """Return the parity segments that senders send."""
    sent = list[ParityRun]()
    send = multicast_sender.MulticastSender.send_parity

    def record(one: multicast_sender.MulticastSender, run: ParityRun) -> None:
        sent.append(run)
        send(one, run)

    monkeypatch.setattr(multicast_sender.MulticastSender, "send_parity", record)
    return sent


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "content"
    path.write_bytes(os.urandom(SIZE))
    return path


SLOW = MulticastChoice(max_rate=60e6)
"""So slow that a burst has few segments, each of which the filter sees."""


def lossy(undo: ExitStack, directory: Path, *engines: str) -> list[Agent]:
    return [
        undo.enter_context(agent(directory / f"r{index}", LosingSegments(3 * index + 1), engine=engine))
        for index, engine in enumerate(engines)
    ]


def test_parity_repairs_different_losses_of_all_receivers(tmp_path: Path, file: Path, parity: list[ParityRun]) -> None:
    with ExitStack() as undo:
        there = lossy(undo, tmp_path, *[COMPILED] * 4)
        sender = undo.enter_context(sender_to(there, SenderSettings(LOOPBACK, MTU, engine=COMPILED)))
        result = sender.send_file(file, Route(SLOW))
        assert [outcome.reason for outcome in result.receivers] == [""] * 4
        assert result.transports == ("multicast",) and result.notes == ()
        assert parity and result.shared_repairs >= sum(run.stop - run.first for run in parity)
        # All segments that the filter drops would be repairs without parity.
        assert result.repaired_bytes < len(there) * SIZE / ONE_IN / 2
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_pipeline_takes_over_while_parity_is_sent(tmp_path: Path, file: Path, parity: list[ParityRun]) -> None:
    with ExitStack() as undo:
        there = lossy(undo, tmp_path, *[COMPILED] * 3)
        sender = undo.enter_context(sender_to(there, SenderSettings(LOOPBACK, MTU, engine=COMPILED)))
        route = Route(SLOW)

        def leave(_progress: Progress) -> None:
            if parity:
                route.go(Chain())

        result = sender.send_file(file, route, Destination("copy"), leave)
        assert [outcome.reason for outcome in result.receivers] == [""] * 3
        assert parity and result.transports == ("multicast", "pipeline")
        assert all(one.files() == {"copy": file.read_bytes()} for one in there)


@pytest.mark.parametrize("engines", [(COMPILED, COMPILED, PYTHON), (PYTHON, COMPILED, COMPILED)])
def test_engine_of_python_gets_retransmissions(
    tmp_path: Path, file: Path, parity: list[ParityRun], engines: tuple[str, str, str]
) -> None:
    with ExitStack() as undo:
        there = lossy(undo, tmp_path, *engines[1:])
        sender = undo.enter_context(sender_to(there, SenderSettings(LOOPBACK, MTU, engine=engines[0])))
        result = sender.send_file(file, Route(SLOW))
        assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert parity == []
        (note,) = result.notes
        assert "compiled engine" in note
        assert all(one.files() == {file.name: file.read_bytes()} for one in there)


def test_data_in_order_is_repaired_at_once(tmp_path: Path, file: Path, parity: list[ParityRun]) -> None:
    commands: dict[str, tuple[str, ...]] = {"copy": ("/bin/dd", "of=content", "status=none", "bs=64k")}
    with ExitStack() as undo:
        there = [
            undo.enter_context(agent(tmp_path / f"r{place}", LosingSegments(place), engine=COMPILED, commands=commands))
            for place in (1, 2)
        ]
        sender = undo.enter_context(sender_to(there, SenderSettings(LOOPBACK, MTU, engine=COMPILED)))
        result = sender.send_file(file, Route(SLOW), Destination("copy", COMMAND))
        assert [outcome.reason for outcome in result.receivers] == ["", ""]
        assert parity == []
        assert all(one.files() == {"content": file.read_bytes()} for one in there)
