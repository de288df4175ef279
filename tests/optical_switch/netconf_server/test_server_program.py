"""The program `python -m optical_switch.emulator.netconf_server`."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from optical_switch.emulator.netconf_server.__main__ import main
from tests.optical_switch.netconf_server.raw_client import RawSession
from tests.support.needs import ROOT

MODULE = "optical_switch.emulator.netconf_server"


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run the program, and yield it with its line of JSON."""
    command = [sys.executable, "-m", MODULE, "--ports", "8", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_program_serves_until_interrupted(number: signal.Signals) -> None:
    with running("--listen", "127.0.0.1:0", "--user", "operator", "--password", "a b") as (process, ready):
        assert ready["event"] == "ready"
        host, _, port = ready["netconf"].rpartition(":")
        known = ([asyncssh.import_public_key(ready["host_key"])], [], [])
        options = {"username": "operator", "password": "a b", "known_hosts": known, "config": None, "client_keys": None}
        async with asyncssh.connect(host, int(port), agent_path=None, **options) as connection:
            writer, reader, _ = await connection.open_session(subsystem="netconf", encoding=None)
            session = RawSession(writer, reader)
            await session.hello()
            await session.connect((1, 9))
            assert await session.pairs() == {1: 9}
            process.send_signal(number)
            await session.ended()
        output, errors = process.communicate(timeout=30)
        assert (process.returncode, output, errors) == (0, "", "")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


def test_host_key_of_a_file_is_used(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(tmp_path / "key")
    with running("--host-key", str(tmp_path / "key")) as (_, ready):
        assert asyncssh.import_public_key(ready["host_key"]).public_data == key.public_data


@pytest.mark.usefixtures("own_signals")
def test_address_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--ports", "8", "--listen", f"127.0.0.1:{port}"]) == 1
    assert capsys.readouterr().err == "cannot serve the switch: [Errno 98] Address already in use\n"


@pytest.mark.usefixtures("own_signals")
def test_file_without_key_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("no key")
    assert main(["--ports", "8", "--host-key", str(tmp_path / "key")]) == 1
    assert "key has no private key that can be used" in capsys.readouterr().err


@pytest.mark.parametrize("ports", ["0", "-1", "x", "32768"])
def test_number_of_ports_is_checked(ports: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--ports={ports}"])
    assert "whole number from 1 to 32767" in capsys.readouterr().err
