"""The machine room of the soak: a lab as an operator would run it, with TLS, tokens, tenants, a journal on disk."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from pathlib import Path

from blast_client import Client, TlsSettings
from blast_controller.rpc.clients.tokens import new_token, token_line
from mininet_topos.controller_config import Endpoints, Service, render
from mininet_topos.lab import Lab, blast_controller
from soak.places import EVIL_TENANT, HONEST_TENANTS, IDENTITIES, KEEP_ENTRIES, KEEP_WARM_MS, PLAN, REMEMBER_ENDED_MS

NICENESS = -10
"""The controller's, as its systemd unit has it."""


class Papers:
    """Certificates, tokens and the agents' secret, as files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "controller.pem", folder / "controller.key"
        _self_signed(self.certificate, self.key)
        self.secret = _write_secret(folder / "agent.secret", secrets.token_urlsafe(48))
        lines = []
        for name, identity in IDENTITIES.items():
            token = new_token()
            _write_secret(self.token(name), token)
            lines.append(token_line(token, identity))
        self.tokens = _write_secret(folder / "tokens", "\n".join(lines) + "\n")

    def token(self, name: str) -> Path:
        """The file with the token of one of `IDENTITIES`."""
        return self.folder / f"{name}.token"


class Room:
    """The lab, its papers and its controller, which is started again when it ends by itself, as a supervisor would.

    `folder` is on the controller's disk, `hosts` stands for the disks of all hosts.
    """

    def __init__(self, folder: Path, hosts: Path) -> None:
        self.folder, self.hosts = folder, hosts
        self.papers = Papers(folder)
        self.journal = folder / "journal.sqlite"
        self.lab = Lab(PLAN, controller=self._command)
        self.ends: list[str] = []
        """What was said of each end of the controller that nobody had asked for."""
        self.lab_id = ""
        self._ended = threading.Event()

    def __enter__(self) -> Room:
        self.lab.start()
        self.lab_id = self.lab.id
        self.lab.watch(self._note_end)
        return self

    def __exit__(self, *_: object) -> None:
        self.lab.stop()

    @property
    def bridges(self) -> dict[int, str]:
        """Open vSwitch's names by datapath."""
        return {datapath: self.lab.names.bridge(datapath) for datapath in PLAN.datapaths}

    @property
    def controller_log(self) -> Path:
        """What the controller writes."""
        return self.lab.directory / "controller.log"

    def client(self, name: str) -> Client:
        """A client of the controller that is one of `IDENTITIES`."""
        token = self.papers.token(name).read_text().strip()
        return Client(self.lab.thrift, tls=TlsSettings(self.papers.certificate), token=token)

    def supervise(self) -> None:
        """Start the controller again if it has ended. Raises `ProcessFault` when it does not come up."""
        if self._ended.is_set():
            self._ended.clear()
            self.lab.stop_controller()
            self.lab.start_controller(self._command)
            self.lab.watch(self._note_end)

    def _note_end(self, sentence: str) -> None:
        self.ends.append(sentence)
        self._ended.set()

    def _command(self, _config: Path) -> list[str]:
        """The lab's own configuration is for a controller that trusts everybody on the loopback."""
        config = self.folder / "controller.toml"
        endpoints = Endpoints(self.lab.thrift, self.lab.openflow, self.lab.tl1)
        text = render(PLAN, endpoints, Service(journal=self.journal, keep_warm_ms=KEEP_WARM_MS))
        text = text.replace("\n[journal]\n", f"\n[journal]\nkeep_entries = {KEEP_ENTRIES}\n")
        text = text.replace("\n[controller]\n", f"\n[controller]\nremember_ended_ms = {REMEMBER_ENDED_MS}\n")
        config.write_text(text + self._access())
        return ["nice", "-n", str(NICENESS), *blast_controller(config)]

    def _access(self) -> str:
        papers = self.papers
        tenants = "".join(f'[[tenant]]\nname = "{name}"\n' for name in (*HONEST_TENANTS, EVIL_TENANT))
        return (
            f'[access]\ncertificate = "{papers.certificate}"\nprivate_key = "{papers.key}"\n'
            f'token_file = "{papers.tokens}"\n{tenants}'
        )


def _write_secret(path: Path, text: str) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return path


def _self_signed(certificate: Path, key: Path) -> None:
    """For the address that the lab's controller listens on; clients trust this one certificate."""
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    files = ("-keyout", str(key), "-out", str(certificate))
    names = ("-subj", "/CN=controller", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    subprocess.run(["openssl", "req", "-x509", *kind, *files, *names], capture_output=True, check=True, timeout=60)
    key.chmod(0o600)
