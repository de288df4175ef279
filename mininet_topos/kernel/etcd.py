"""An etcd of one member on the loopback, for the journal that a lab's controllers share."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from blast_base.endpoint import parse_endpoint
from mininet_topos.kernel.errors import ProcessError
from mininet_topos.kernel.names import MARK

_SECONDS = 60.0
_QUICK = {"heartbeat-interval": "20", "election-timeout": "200"}
"""Milliseconds: its members are near each other."""


class LabEtcd:
    """Serves `address` until it is stopped. Raises `ProcessError` where it is not installed or does not serve."""

    def __init__(self, address: str, peer: str, lab: str, folder: Path) -> None:
        if shutil.which("etcd") is None:
            raise ProcessError("several controllers need etcd: install it (Debian 12: apt-get install etcd-server)")
        self.address = address
        self._log = folder / "etcd.log"
        client, others = f"http://{address}", f"http://{peer}"
        options = {
            "name": "lab",
            "data-dir": str(folder / "etcd"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": others,
            "initial-advertise-peer-urls": others,
            "initial-cluster": f"lab={others}",
            **_QUICK,
        }
        command = ["etcd", *(f"--{name}={value}" for name, value in options.items())]
        with self._log.open("ab") as log:
            environment = {**os.environ, MARK: lab, "ETCD_UNSUPPORTED_ARCH": "arm64"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self._wait(address)

    def _wait(self, address: str) -> None:
        host, port = parse_endpoint(address)
        end = time.monotonic() + _SECONDS
        while self._process.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection((host, port), 1.0).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        raise ProcessError(f"etcd does not serve: see {self._log}")

    def stop(self) -> None:
        """End it; a second time there is nothing to do."""
        self._process.kill()
        self._process.wait()
