"""Receiver processes in the hosts, one each, for the whole demo."""

from __future__ import annotations

import hashlib
import json
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret
from blast_transport.session.settings import SenderSettings
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import ProcessError

CONTROL_PORT = 7000
_SECRET_BYTES = 32


class Receivers:
    """A `blast_transport receive` process in each host, with a directory of its own.

    Files are not synced: all hosts share one disk, which would be measured instead of the network.
    """

    def __init__(self, stage: Stage, hosts: Sequence[str]) -> None:
        self._stage = stage
        self.hosts = list(hosts)
        self._processes: list[subprocess.Popen[str]] = []
        self._secret = SharedSecret(secrets.token_hex(_SECRET_BYTES).encode())

    def __enter__(self) -> Receivers:
        self._secret_file.touch(mode=0o600)
        self._secret_file.write_bytes(self._secret.value)
        for host in self.hosts:
            self._processes.append(self._start(host))
        for host, process in zip(self.hosts, self._processes, strict=True):
            _await_listening(host, process.stdout)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.communicate()

    def _start(self, host: str) -> subprocess.Popen[str]:
        directory = self.directory(host)
        directory.mkdir(parents=True, exist_ok=True)
        address = self._stage.address(host)
        command = [sys.executable, "-m", "blast_transport", "receive", "--listen", f"{address}:{CONTROL_PORT}"]
        command += ["--interface-address", address, "--directory", str(directory), "--no-fsync"]
        command += ["--secret-file", str(self._secret_file)]
        process: subprocess.Popen[str] = self._stage.lab.host(host).popen(command, stdout=subprocess.PIPE, text=True)
        return process

    def directory(self, host: str) -> Path:
        """Return the folder of a host's received files."""
        return self._stage.lab.directory / "received" / host

    @property
    def _secret_file(self) -> Path:
        return self._stage.lab.directory / "receivers.secret"

    def settings_of(self, sender: str) -> SenderSettings:
        """Return the settings with which a host sends to the others."""
        return SenderSettings(self._stage.address(sender), dialer=dialer(self._secret), credentials=self._secret)

    def addresses(self, hosts: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return the addresses of some of the hosts for a sender."""
        return [(host, self._stage.address(host), CONTROL_PORT) for host in hosts]

    def hashes_equal(self, path: Path, hosts: Sequence[str]) -> bool:
        """Return whether every host has a copy of `path` with the same SHA-256; remove the copies."""
        return not self.without(path, hosts)

    def without(self, path: Path, hosts: Sequence[str]) -> list[str]:
        """Return the hosts without a copy of `path` with the same SHA-256; remove the copies."""
        digest, found = _sha256(path), []
        for host in hosts:
            copy = self.directory(host) / path.name
            if not copy.exists() or _sha256(copy) != digest:
                found.append(host)
            copy.unlink(missing_ok=True)
        return found


def _await_listening(host: str, output: IO[str] | None) -> None:
    line = output.readline() if output else ""
    if not line or json.loads(line).get("event") != "listening":
        raise ProcessError(f"the receiver on {host} did not start")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
