"""A network namespace for one process, tied to ours by one cable that can be pulled.

Who is in it listens on and connects to addresses of 127.0.0.1 only; relays on both sides of the cable carry that.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

_NUMBERS = itertools.count(1)
SECONDS = 60
LOCAL = "127.0.0.1"


class OwnNetwork:
    """`begin` before the process starts in it, by `command`; `end` whatever happens."""

    def __init__(self) -> None:
        number, process = next(_NUMBERS), os.getpid()
        self.name = f"blast{process}-{number}"
        self._cable = f"bl{process % 100_000}n{number}"
        network = f"10.{200 + process % 50}.{process // 50 % 250}"
        self._here, self._there = f"{network}.{4 * number + 1}", f"{network}.{4 * number + 2}"
        self._relays: list[subprocess.Popen[str]] = []

    def begin(self, inwards: Sequence[int], outwards: Sequence[int]) -> None:
        """`inwards` are ports that we reach there, `outwards` ports that are reached here from there."""
        self._ip("netns", "add", self.name)
        inside = ("-n", self.name)
        self._ip("link", "add", self._cable, "type", "veth", "peer", "name", "up0", "netns", self.name)
        self._ip("addr", "add", f"{self._here}/30", "dev", self._cable)
        self._ip("link", "set", self._cable, "up")
        self._ip(*inside, "addr", "add", f"{self._there}/30", "dev", "up0")
        for device in ("up0", "lo"):
            self._ip(*inside, "link", "set", device, "up")
        here = [f"{LOCAL}:{port}={self._there}:{port}" for port in inwards]
        here += [f"{self._here}:{port}={LOCAL}:{port}" for port in outwards]
        there = [f"{self._there}:{port}={LOCAL}:{port}" for port in inwards]
        there += [f"{LOCAL}:{port}={self._here}:{port}" for port in outwards]
        self._relay([], here)
        self._relay(self.command, there)

    @property
    def command(self) -> list[str]:
        """What to put before a command so that it runs there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Pull the cable: what is on its way is lost, and nobody is told."""
        self._ip("link", "set", self._cable, "down")

    def heal(self) -> None:
        """Plug it in again."""
        self._ip("link", "set", self._cable, "up")

    def end(self) -> None:
        """Nothing is left of it."""
        for relay in self._relays:
            relay.kill()
            relay.communicate(timeout=SECONDS)
        self._relays.clear()
        for what in (("link", "del", self._cable), ("netns", "del", self.name)):
            with suppress(subprocess.CalledProcessError):
                self._ip(*what)

    def _relay(self, before: list[str], pairs: list[str]) -> None:
        command = [
            *before,
            "setpriv",
            "--pdeathsig",
            "KILL",
            sys.executable,
            "-m",
            "tests.support.relay_program",
            *pairs,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._relays.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", pairs

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, timeout=SECONDS, capture_output=True)
