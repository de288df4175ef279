from __future__ import annotations

import queue
import threading
from pathlib import Path

import pytest

from blast_transport.base.errors import WrongInputError
from blast_transport.base.report import ReceiverEvent
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret
from blast_transport.datagrams.interface import open_sender_socket
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import SenderSettings
from blast_transport.standalone.command import main
from blast_transport.standalone.receiver import Receiver, ReceiverSettings
from blast_transport.transports.choices import Unicast
from blast_transport.wire.transports import TRANSPORTS, UNICAST, transport_named

TO = ["--to", "a=127.0.0.1:9"]
LOOPBACK = ["--interface-address", "127.0.0.1"]
LIGHT = ["--group", "239.9.9.9", "--port", "5000", "--rate-mbps", "100"]


def status(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        [*TO, *LOOPBACK],
        ["--to", "a", *LOOPBACK, *LIGHT],
        ["--to", "a=1.2.3.4:99999", *LOOPBACK, *LIGHT],
        ["--to", "a=127.0.0.1:9,a=127.0.0.1:10", *LOOPBACK, *LIGHT],
        [*TO, "--interface-address", "192.0.2.77", *LIGHT],
        [*TO, *LOOPBACK, *LIGHT, "--rate-mbps", "0"],
        [*TO, *LOOPBACK, *LIGHT, "--rate-mbps", "nan"],
        [*TO, *LOOPBACK, *LIGHT, "--group", "10.0.0.1"],
        [*TO, *LOOPBACK, *LIGHT, "--port", "70000"],
        [*TO, *LOOPBACK, *LIGHT, "--mtu", "100"],
        [*TO, *LOOPBACK, *LIGHT, "--repeat", "0"],
        [*TO, *LOOPBACK, *LIGHT, "--transport", "pigeon"],
        [*TO, *LIGHT],
        [*LOOPBACK, *LIGHT],
    ],
)
def test_invalid_arguments_print_one_line_and_exit_with_2(
    file: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["send", file, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("path", ["/nonexistent/file", "/dev/null", "/tmp"])
def test_send_rejects_path_that_is_no_file(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["send", path, *TO, *LOOPBACK, *LIGHT]) == 2
    assert path in capsys.readouterr().err


def test_send_without_reachable_receiver_exits_with_1(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["send", file, "--to", "a=127.0.0.1:1", *LOOPBACK, *LIGHT]) == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "127.0.0.1:0", "--directory", "/nonexistent", *LOOPBACK],
        ["--listen", "192.0.2.77:0", "--directory", "/tmp", *LOOPBACK],
        ["--listen", "127.0.0.1", "--directory", "/tmp", *LOOPBACK],
        ["--listen", "127.0.0.1:0", "--directory", "/tmp", "--interface-address", "192.0.2.77"],
    ],
)
def test_receiver_that_cannot_start_prints_reason(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["receive", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_sender_socket_requires_multicast_group() -> None:
    with pytest.raises(WrongInputError, match="multicast"):
        open_sender_socket("127.0.0.1", "10.0.0.1", 5000)


def test_sender_requires_valid_receivers() -> None:
    with pytest.raises(WrongInputError, match="at least one receiver"):
        Sender([], SenderSettings("127.0.0.1"))
    with pytest.raises(WrongInputError, match="not between 1 and 65535"):
        Sender([("a", "127.0.0.1", 0)], SenderSettings("127.0.0.1"))


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.77:0"])
def test_receiver_beyond_loopback_requires_authentication(
    listen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["receive", "--listen", listen, "--directory", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "from other machines" in error and "--secret-file" in error and error.count("\n") == 1


def test_only_sender_with_secret_may_write(tmp_path: Path) -> None:
    secret = SharedSecret(b"s" * 32)
    folder, file = tmp_path / "in", tmp_path / "file"
    folder.mkdir()
    file.write_bytes(b"content")
    events: queue.Queue[ReceiverEvent] = queue.Queue()
    receiver = Receiver(ReceiverSettings(("0.0.0.0", 0), folder, credentials=secret), events.put)
    thread = threading.Thread(target=receiver.run)
    thread.start()
    try:
        target = ("h2", "127.0.0.1", receiver.address[1])
        for credentials in (None, SharedSecret(b"t" * 32), secret):
            settings = SenderSettings(dialer=dialer(credentials), credentials=credentials)
            with Sender([target], settings) as sender:
                result = sender.send_file(file, Route(Unicast()))
            assert result.complete == (credentials is secret), result.receivers
        assert (folder / "file").read_bytes() == b"content"
    finally:
        receiver.stop()
        thread.join(30)
    assert not thread.is_alive()


def test_unicast_keeps_its_former_name() -> None:
    assert transport_named("packets") == UNICAST
    assert [transport_named(name) for name in TRANSPORTS] == list(TRANSPORTS)
