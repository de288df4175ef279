"""Files sent by `blast send` to real agents, and compared with the original by nobody but us.

Whatever sender, agents and exit status say: after each transfer the file of every receiver is read and hashed.
A file that has its name and not the original's bytes is wrong; one that the sender says is there and is not, too.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mininet_topos.agents import BLAST, PORT, Agents
from mininet_topos.relay import ADDRESS
from soak.files import Received, reasons, sha256, verdict, went_by_light
from soak.latencies import SEND, Call
from soak.places import HONEST_TENANTS
from soak.room import Room

FILE_BYTES = 8_000_000
"""A second and a half of light."""
WAYS = ("auto", "optical")
"""Of the clients in turn: by light if there is any, by a pipeline until then; and by light alone."""
FEWEST_RECEIVERS, MOST_RECEIVERS = 2, 4
PATIENCE_SECONDS = 60.0
DONE = 0


class Sender(threading.Thread):
    """A client that sends one file after another; tells `done` of each."""

    def __init__(self, room: Room, agents: Agents, number: int, seconds: float, done: Callable[[Call], None]) -> None:
        super().__init__(name=f"sender-{number}", daemon=True)
        self._room, self._agents, self._number, self._seconds, self._done = room, agents, number, seconds, done
        self._way = WAYS[number % len(WAYS)]
        self._chance = random.Random(f"soak/sender-{number}")
        self._told_to_stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._digests: dict[str, str] = {}
        self.received = Received()

    def run(self) -> None:
        """Send until `stop`."""
        due, count = time.monotonic(), 0
        while not self._told_to_stop.wait(max(0.0, due - time.monotonic())):
            count += 1
            self._done(self._send(f"sender{self._number}-{count}.bin"))
            # Who is late does not catch up: what it had to leave out was not completed.
            due += self._seconds
            while due < time.monotonic():
                self._done(Call(SEND, due, 0.0, "left out: the one before took too long"))
                due += self._seconds

    def stop(self) -> None:
        """Begin nothing any more."""
        self._told_to_stop.set()

    def kill(self) -> None:
        """Begin nothing any more, and end what is under way at once."""
        self._told_to_stop.set()
        process = self._process
        if process is not None:
            process.kill()

    def sweep(self) -> None:
        """Look at what has come since: a file may get its name after its sender has given up."""
        for host in self._agents.hosts:
            for name, digest in self._digests.items():
                self._look(host, name, digest, said_to_be_there=False)

    def _send(self, name: str) -> Call:
        path = self._room.hosts / name
        path.write_bytes(os.urandom(FILE_BYTES))
        digest = self._digests[name] = sha256(path)
        sender, *receivers = self._chance.sample(
            self._agents.hosts, 1 + self._chance.randint(FEWEST_RECEIVERS, MOST_RECEIVERS)
        )
        begun = time.monotonic()
        status, said, light = self._run_send(path, sender, receivers)
        seconds = time.monotonic() - begun
        self.received.by_light += light
        for host in receivers:
            self._look(host, name, digest, said_to_be_there=status == DONE)
        path.unlink()
        return Call(SEND, begun, seconds, "" if status == DONE else f"status {status}: {said}")

    def _run_send(self, path: Path, sender: str, receivers: Sequence[str]) -> tuple[int, str, bool]:
        """Exit status, last words, and whether light carried any of it."""
        addresses, papers = self._agents.addresses, self._room.papers
        to = ",".join(f"{host}={addresses[host]}:{PORT}" for host in receivers)
        command = [BLAST, "send", str(path), "--to", to, "--via", self._way]
        command += ["--from", sender, "--light-address", addresses[sender]]
        command += ["--controller", f"{ADDRESS[0]}:{ADDRESS[1]}", "--ca", str(papers.certificate), "--json"]
        command += ["--token-file", str(papers.token(HONEST_TENANTS[0])), "--secret-file", str(papers.secret)]
        process = self._room.lab.host(sender).popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._process = process
        try:
            result, said = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            result, said = process.communicate()
            said = f"not over after {PATIENCE_SECONDS:g} s"
        self._process = None
        words = reasons(result) or (said.strip().splitlines() or [""])[-1]
        return process.returncode, words, went_by_light(result)

    def _look(self, host: str, name: str, digest: str, *, said_to_be_there: bool) -> None:
        copy = self._agents.folder(host) / name
        fault = verdict(f"{name} at {host}", digest, copy, said_to_be_there)
        if fault is not None:
            self.received.wrong.append(fault)
        elif copy.exists():
            self.received.intact += 1
        copy.unlink(missing_ok=True)
