"""A controller whose optical switch, or who sits in its place, talks without end: bounded bytes, log and patience."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from blast_client import Client
from tests.support.waiting import eventually

BLAST = str(Path(sys.executable).with_name("blast"))
PATIENCE = 60.0
MIB = 1 << 20
ENOUGH = 48 * MIB
"""Bytes of one connection, after which the flood stops by itself."""
CONFIG = dedent("""
    [controller]
    thrift = "127.0.0.1:0"
    openflow = "127.0.0.1:0"
    [journal]
    file = "{journal}"
    [[optical_switch]]
    name = "ocs1"
    address = "127.0.0.1:{port}"
    inputs = 8
    outputs = 8
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    optical_ports = [{{ port = 9, optical_switch = "ocs1", input = 1, output = 1 }}]
    hosts = [{{ name = "h1", port = 1, ip = "10.0.0.1" }}, {{ name = "h2", port = 2, ip = "10.0.0.2" }}]
    """)
ALARM = b'\r\n\r\n   ocs 26-01-01 00:00:00\r\n*C 7 REPT ALM EQPT\r\n   "10101:CR,LOS,SA,,,RCV"\r\n;\r\n'
NONSENSE = b"this is not TL1, and there is very much of it, line after line after line after line\r\n"


class Flood:
    """Listens as an optical switch and says `text` to whoever connects, until that hangs up or has had enough."""

    def __init__(self, text: bytes) -> None:
        self._text = text * (65_536 // len(text))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.told: list[int] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                with connection:
                    self.told.append(self._talk(connection))

    def _talk(self, connection: socket.socket) -> int:
        told = 0
        with contextlib.suppress(OSError):
            while told < ENOUGH:
                told += connection.send(self._text)
        return told

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture(params=[ALARM, NONSENSE], ids=["alarms", "nonsense"])
def flood(request: pytest.FixtureRequest) -> Iterator[Flood]:
    flood = Flood(request.param)
    try:
        yield flood
    finally:
        flood.close()


def test_a_switch_that_talks_without_end_is_given_up(flood: Flood, tmp_path: Path) -> None:
    config, log = tmp_path / "blast.toml", tmp_path / "log"
    config.write_text(CONFIG.format(journal=tmp_path / "journal.sqlite", port=flood.port))
    with log.open("w") as output:
        command = [BLAST, "controller", "run", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, log.read_text()
        eventually(lambda: len(flood.told) >= 3, "that it was connected to three times", PATIENCE)
        with Client(json.loads(said)["thrift"], timeout=PATIENCE) as client:
            (switch,) = client.fabric().opticalSwitches
        assert not switch.connected
        # What lies in the sockets' buffers was sent, too.
        assert max(flood.told) < 24 * MIB
        assert log.stat().st_size < MIB
    finally:
        process.kill()
        process.communicate()
