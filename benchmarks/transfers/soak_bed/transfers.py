"""Files sent by `blast send` to real agents; after each transfer the copy of every receiver is hashed.

A copy with other bytes than the original is wrong, and so is a missing copy that the sender reports as delivered.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.transfers.soak_bed.report import SEND, Call
from benchmarks.transfers.soak_bed.room import Room
from benchmarks.transfers.soak_bed.scenario import HONEST_TENANTS
from mininet_topos.lab.agents import BLAST, PORT, Agents
from mininet_topos.lab.relay import ADDRESS

_FILE_BYTES = 8_000_000
"""1.6 s at the rate of the optical network."""
_TRANSPORTS = ("auto", "optical")
"""Transports by the number of the sender: optical, with a pipeline until the grant; and optical only."""
_LIMIT_SECONDS = 60.0


@dataclass
class Received:
    """The copies of one sender's files: `intact` copies, transfers over the optical network, faults of wrong copies."""

    intact: int = 0
    by_light: int = 0
    wrong: list[str] = field(default_factory=list)


class Sender(threading.Thread):
    """A client that sends a file every `seconds`, and passes each call to `done`."""

    def __init__(self, room: Room, agents: Agents, number: int, seconds: float, done: Callable[[Call], None]) -> None:
        super().__init__(name=f"sender-{number}", daemon=True)
        self._room, self._agents, self._number, self._seconds, self._done = room, agents, number, seconds, done
        self._chance = random.Random(f"soak/sender-{number}")
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._digests: dict[str, str] = {}
        self.received = Received()

    def run(self) -> None:
        """Send until `stop`."""
        due, count = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            count += 1
            self._done(self._send(f"sender{self._number}-{count}.bin"))
            due += self._seconds
            while due < time.monotonic():
                self._done(Call(SEND, due, 0.0, "skipped: the previous transfer took too long"))
                due += self._seconds

    def stop(self) -> None:
        """Start no more transfers."""
        self._stopped.set()

    def kill(self) -> None:
        """Start no more transfers, and kill the current one."""
        self.stop()
        if (process := self._process) is not None:
            process.kill()

    def sweep(self) -> None:
        """Check late copies: a file may get its name after its sender has given up."""
        for host in self._agents.hosts:
            for name, digest in self._digests.items():
                self._look(host, name, digest, reported=False)

    def _send(self, name: str) -> Call:
        path = self._room.hosts / name
        path.write_bytes(os.urandom(_FILE_BYTES))
        digest = self._digests[name] = sha256(path)
        sender, *receivers = self._chance.sample(self._agents.hosts, self._chance.randint(3, 5))
        begun = time.monotonic()
        status, words, light = self._run_send(path, sender, receivers)
        seconds = time.monotonic() - begun
        self.received.by_light += light
        for host in receivers:
            self._look(host, name, digest, reported=status == 0)
        path.unlink()
        return Call(SEND, begun, seconds, f"status {status}: {words}" if status else "")

    def _run_send(self, path: Path, sender: str, receivers: Sequence[str]) -> tuple[int, str, bool]:
        """Return exit status, reasons of failure, and whether the optical transport was used."""
        addresses, papers = self._agents.addresses, self._room.papers
        to = ",".join(f"{host}={addresses[host]}:{PORT}" for host in receivers)
        command = [BLAST, "send", str(path), "--to", to, "--via", _TRANSPORTS[self._number % len(_TRANSPORTS)]]
        command += ["--from", sender, "--optical-address", addresses[sender]]
        command += ["--controller", f"{ADDRESS[0]}:{ADDRESS[1]}", "--ca", str(papers.certificate), "--json"]
        command += ["--token-file", str(papers.token(HONEST_TENANTS[0])), "--secret-file", str(papers.secret)]
        process: subprocess.Popen[str] = self._room.lab.host(sender).popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._process = process
        try:
            lines, errors = process.communicate(timeout=_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            lines, _ = process.communicate()
            errors = f"not done after {_LIMIT_SECONDS:g} s"
        self._process = None
        words, light = outcome(lines)
        return process.returncode, words or (errors.strip().splitlines() or [""])[-1], light

    def _look(self, host: str, name: str, digest: str, *, reported: bool) -> None:
        copy = self._agents.folder(host) / name
        fault = verdict(f"{name} at {host}", digest, copy, reported=reported)
        if fault is not None:
            self.received.wrong.append(fault)
        elif copy.exists():
            self.received.intact += 1
        copy.unlink(missing_ok=True)


def verdict(name: str, digest: str, copy: Path, *, reported: bool) -> str | None:
    """Return the fault of a receiver's copy; None for a correct copy, and for a missing one that is not reported."""
    if not copy.exists():
        return f"{name}: the copy that the sender reports is missing" if reported else None
    return None if sha256(copy) == digest else f"{name}: the SHA-256 differs from the original's"


def outcome(lines: str) -> tuple[str, bool]:
    """Return from the JSON lines of `blast send` the distinct reasons of failure and whether optical was used."""
    messages: list[dict[str, Any]] = [found for line in lines.splitlines() if (found := json.loads(line))]
    result: dict[str, Any] = next((one for one in reversed(messages) if one.get("event") == "result"), {})
    transfers = result.get("transfers", ())
    failed = [one["reason"] for each in transfers for one in each.get("receivers", ()) if not one["complete"]]
    reasons = [*result.get("unreachable", {}).values(), *failed, *filter(None, [result.get("no_optical_path")])]
    return "; ".join(dict.fromkeys(reasons)), any("optical" in each["transports"] for each in transfers)


def sha256(path: Path) -> str:
    """Return the digest of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
