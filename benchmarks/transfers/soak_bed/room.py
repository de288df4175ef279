"""The lab of the soak, configured like a production deployment: TLS, tokens, tenants, a journal on disk, agents."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from benchmarks.transfers.soak_bed.scenario import EVIL_TENANT, HONEST_TENANTS, IDENTITIES, PLAN, SETTINGS
from blast_client import Client, TlsSettings
from blast_controller.rpc.clients.tokens import new_token, token_line
from mininet_topos.lab import registry
from mininet_topos.lab.agents import AgentPlaces, Agents, write_new_secret
from mininet_topos.lab.cleanup import bridges_of, links_of, marked_processes
from mininet_topos.lab.controller_config import Endpoints, Service, render
from mininet_topos.lab.lab import Lab, blast_controller

NICENESS = -10
"""Of the controller, as in its systemd unit."""


class Papers:
    """Certificate, tokens and the secret of the agents, as files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "controller.pem", folder / "controller.key"
        _self_signed(self.certificate, self.key)
        self.secret = write_new_secret(folder / "agent.secret")
        lines = []
        for name, identity in IDENTITIES.items():
            token = new_token()
            _write_secret(self.token(name), token)
            lines.append(token_line(token, identity))
        self.tokens = _write_secret(folder / "tokens", "\n".join(lines) + "\n")

    def token(self, name: str) -> Path:
        """Return the file with the token of one of `IDENTITIES`."""
        return self.folder / f"{name}.token"


class Room:
    """The lab and its controller, which is restarted if it exits by itself, as a supervisor would do.

    `folder` is on the disk of the controller; `hosts` represents the disks of all hosts.
    """

    def __init__(self, folder: Path, hosts: Path) -> None:
        self.folder, self.hosts = folder, hosts
        self.papers = Papers(folder)
        self.journal = folder / "journal.sqlite"
        self.lab = Lab(PLAN, controller=self._command)
        self.ends: list[str] = []
        """A sentence for each unexpected exit of the controller."""
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

    def client(self, name: str) -> Client:
        """Return a client with the token of one of `IDENTITIES`."""
        token = self.papers.token(name).read_text().strip()
        return Client(self.lab.thrift, tls=TlsSettings(self.papers.certificate), token=token)

    def agents(self, hosts: Sequence[str]) -> Agents:
        """Return agents on these hosts."""
        return Agents(
            self.lab, hosts, AgentPlaces("incoming", self.hosts / "received", self.folder, self.papers.secret)
        )

    def supervise(self) -> None:
        """Restart the controller if it has exited. Raises ProcessError."""
        if self._ended.is_set():
            self._ended.clear()
            self.lab.stop_controller()
            self.lab.start_controller(self._command)
            self.lab.watch(self._note_end)

    def _note_end(self, sentence: str) -> None:
        self.ends.append(sentence)
        self._ended.set()

    def _command(self, _config: Path) -> list[str]:
        """Replace the configuration of the lab, whose controller trusts every client on the loopback."""
        config, papers = self.folder / "controller.toml", self.papers
        endpoints = Endpoints(self.lab.thrift, self.lab.openflow, self.lab.switch_address)
        text = render(PLAN, endpoints, Service(journal=self.journal, keep_warm_ms=SETTINGS["keep_warm_ms"]))
        for section, name in (("journal", "retention_entries"), ("controller", "ended_retention_ms")):
            text = text.replace(f"\n[{section}]\n", f"\n[{section}]\n{name} = {SETTINGS[name]}\n")
        tenants = "".join(f'[[tenant]]\nname = "{name}"\n' for name in (*HONEST_TENANTS, EVIL_TENANT))
        access = f'[access]\ncertificate = "{papers.certificate}"\nprivate_key = "{papers.key}"\n'
        config.write_text(f'{text}{access}token_file = "{papers.tokens}"\n{tenants}')
        return ["nice", "-n", str(NICENESS), *blast_controller(config)]


def left_by(lab: str) -> list[str]:
    """Return a sentence for each thing that a stopped lab has left on the machine."""
    found = [f"process {pid} of lab {lab} still runs" for pid in sorted(marked_processes(lab))]
    found += [f"bridge {bridge} is still there" for bridge in bridges_of(lab)]
    found += [f"interface {link} is still there" for link in links_of(lab)]
    if registry.directory(lab).exists():
        found.append(f"{registry.directory(lab)} is still there")
    return found


def _write_secret(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _self_signed(certificate: Path, key: Path) -> None:
    """Make a certificate for the loopback address, which clients trust."""
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    files = ("-keyout", str(key), "-out", str(certificate))
    names = ("-subj", "/CN=controller", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    subprocess.run(["openssl", "req", "-x509", *kind, *files, *names], capture_output=True, check=True, timeout=60)
    key.chmod(0o600)
