"""Folders and several files by `blast send`: complete at every receiver over every transport, and resumable."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from blast_transport.agent.targets import Targets
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.store.sources.folder_source import FolderSource
from blast_transport.transports.choices import Chain, OpticalChoice, TransportChoice, Unicast
from blast_transport.wire.messages import FOLDER
from tests.support.controller.store_faults import before_writes
from tests.support.transport.folder_trees import names_in, seen, varied
from tests.support.transport.transport_hosts import LOOPBACK, MTU, Agent, agent, agents, light

BLAST = (str(Path(sys.executable).with_name("blast")), "send")


def blast(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BLAST, *map(str, words)], capture_output=True, text=True, check=False)


def to(*those: Agent) -> str:
    return ",".join(f"{name}={host}:{port}" for name, host, port in (one.address for one in those))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return varied(tmp_path / "data")


def test_folder_arrives_complete_at_every_receiver(tmp_path: Path, folder: Path) -> None:
    with agents(tmp_path, 3) as there:
        done = blast(folder, "--to", to(*there), "--via", "pipeline")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("3 of 3 receivers have it, verified")
        for one in there:
            assert names_in(one.directory) == ["data"]
            assert seen(one.directory / "data") == seen(folder)


def test_folder_is_sent_over_optical_transport(tmp_path: Path, folder: Path) -> None:
    by: OpticalChoice = light()
    with (
        agents(tmp_path, 2) as there,
        Sender([one.address for one in there], SenderSettings(LOOPBACK, MTU)) as sender,
    ):
        result = sender.transmit(FolderSource(folder), Route(by), Destination("data", FOLDER))
        assert (result.complete, result.transports) == (2, ("optical",))
        for one in there:
            assert seen(one.directory / "data") == seen(folder)


@pytest.mark.parametrize("way", [light, Chain, Unicast])
def test_folder_keeps_sparse_files_and_hard_links(
    tmp_path: Path, folder: Path, way: Callable[[], TransportChoice]
) -> None:
    with (folder / "image").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(40 << 20)
        file.write(b"x" * 5000)
    os.link(folder / "image", folder / "sub" / "same")
    with (
        agents(tmp_path, 2) as there,
        Sender([one.address for one in there], SenderSettings(LOOPBACK, MTU)) as sender,
    ):
        source = FolderSource(folder)
        result = sender.transmit(source, Route(way()), Destination("data", FOLDER))
        assert (result.complete, source.size) == (2, result.bytes)
        assert result.bytes < 65 << 20 and result.hole_bytes > 63 << 20
        for one in there:
            assert seen(one.directory / "data") == seen(folder)
            image = (one.directory / "data" / "image").stat()
            assert image.st_nlink == 2 and image.st_blocks * 512 < 1 << 20


def test_existing_folder_is_kept_and_another_name_accepted(tmp_path: Path, folder: Path) -> None:
    with agent(tmp_path / "a") as there:
        (there.directory / "data").mkdir()
        (there.directory / "data" / "precious").touch()
        refused = blast(folder, "--to", to(there), "--via", "pipeline")
        assert refused.returncode == 1 and refused.stdout == "0 of 1 receivers have it\n"
        assert "is left as it is: remove it there, or give another name with --as" in refused.stderr
        assert names_in(there.directory / "data") == ["precious"]
        assert blast(folder, "--to", to(there), "--via", "pipeline", "--as", "data-2").returncode == 0
        assert seen(there.directory / "data-2") == seen(folder)


def test_stopped_folder_stays_hidden_and_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    (folder / "large").write_bytes(os.urandom(4 << 20))
    reached, go = threading.Event(), threading.Event()

    def stuck(_place: str, offset: int, _size: int) -> None:
        if offset > 1 << 20:
            reached.set()
            go.wait(60)

    before_writes(monkeypatch, stuck)
    with agent(tmp_path / "a") as there:
        words = ["env", "--default-signal=INT", *BLAST, str(folder), "--to", to(there), "--via", "pipeline"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert reached.wait(60)
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == 130 and "run the same command to resume" in errors
        go.set()
        there.failed()
        assert not (there.directory / "data").exists()
        again = blast(folder, "--to", to(there), "--via", "pipeline", "--json")
        assert again.returncode == 0, again.stderr
        (transfer,) = json.loads(again.stdout.splitlines()[-1])["transfers"]
        assert transfer["receivers"][0]["resumed_bytes"] > 0
        assert seen(there.directory / "data") == seen(folder)
        assert names_in(there.directory) == ["data"]


def test_send_fails_if_folder_changes_during_transfer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    targets = Targets.__call__

    def changing(self: Targets, hello):  # type: ignore[no-untyped-def]
        (folder / "sub" / "tool").write_bytes(b"something else")
        return targets(self, hello)

    monkeypatch.setattr(Targets, "__call__", changing)
    with agent(tmp_path / "a") as there:
        done = blast(folder, "--to", to(there), "--via", "unicast")
        assert done.returncode == 1 and "was changed while it was sent" in done.stderr
        there.failed()
        assert not (there.directory / "data").exists()


def test_several_files_are_sent_under_their_own_names(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"x" * 5000)
    (tmp_path / "there").mkdir()
    with agents(tmp_path / "there", 2) as there:
        done = blast(folder / "a", tmp_path / "x.bin", folder, "--to", to(*there), "--via", "pipeline")
        assert done.returncode == 0, done.stderr
        assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["a", "x.bin", "data"]
        for one in there:
            assert (one.directory / "x.bin").read_bytes() == b"x" * 5000
            assert (one.directory / "a").read_bytes() == (folder / "a").read_bytes()
            assert seen(one.directory / "data") == seen(folder)


def test_receiver_lacking_one_of_several_files_has_failed(tmp_path: Path, folder: Path) -> None:
    with agent(tmp_path / "a") as there:
        (there.directory / "data").mkdir()
        (there.directory / "data" / "x").touch()
        lists = ["--ok-file", tmp_path / "ok", "--failed-file", tmp_path / "failed"]
        done = blast(folder / "a", folder, "--to", to(there), "--via", "pipeline", *lists)
        assert done.returncode == 3, done.stderr
        assert (tmp_path / "ok").read_text() == ""
        assert "data: " in (tmp_path / "failed").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a", "-"], "standard input cannot be combined"),
        (["a", "empty", "--as", "x"], "names one file"),
        (["a", "absent"], "cannot read absent: no such file"),
        (["a", "./a"], "two of the files have the name a"),
        ([".", "--command", "untar"], "a command reads a stream"),
        ([".", "--ssh", "--as", "/srv/x"], "give its parent by --ssh-folder"),
    ],
)
def test_send_rejects_contradictory_arguments(folder: Path, words: list[str], sentence: str) -> None:
    command = [*BLAST, *words, "--to", "127.0.0.1:1", "--via", "pipeline"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "") and sentence in done.stderr and done.stderr.count("\n") == 1
