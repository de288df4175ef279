"""The prompt of `blast lab up`, typed at on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mininet_topos.lab import registry
from mininet_topos.lab.cleanup import bridges_of, down, links_of, marked_processes
from tests.support.waiting import HANGING

pytestmark = pytest.mark.lab

PROMPT = b"mininet> "


class Terminal:
    """A process on a pseudo terminal."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=folder, start_new_session=True
        )
        os.close(slave)

    def read_to(self, end: bytes, seconds: float = 4 * HANGING) -> str:
        """Return the output up to `end`."""
        read, deadline = b"", time.monotonic() + seconds
        while not read.endswith(end):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self._master], [], [], left)[0], f"no {end!r} after {read.decode()}"
            read += os.read(self._master, 4096)
        return read.decode().replace("\r", "")

    def answer(self, line: str) -> str:
        """Type a line at the prompt and return the output."""
        os.write(self._master, f"{line}\n".encode())
        return self.read_to(PROMPT).removeprefix(f"{line}\n").removesuffix(PROMPT.decode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


def ended_with_its_labs(terminal: Terminal) -> Iterator[Terminal]:
    try:
        yield terminal
    finally:
        labs = registry.labs_built_by(terminal.process.pid)
        terminal.close()
        for lab in labs:
            down(lab)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Yield the terminal of a two-rack lab without a controller; its home is empty, without the history of a prompt."""
    blast = str(Path(sys.executable).with_name("blast"))
    up = [blast, "lab", "up", "--racks", "2", "--no-controller", "--no-agents"]
    terminal = Terminal(up, {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}, tmp_path)
    yield from ended_with_its_labs(terminal)


REPLIES = {
    "cut r2 rx": "port:r2/91 is cut; undo with: mend r2 rx\n",
    "mend r2 rx": "port:r2/91 is restored\n",
    "loss s1/3 5dB": "circuits at output:s1/3 have 5 dB of additional loss\n",
    "deny ocs1 in 2": "ocs1 denies in 2\n",
    "reboot r9": "there is no 'r9'",
    "cutt r2 rx": "did you mean cut?",
    "r1h3 pwd": "unknown command or host 'r1h3': did you mean r1h",
    "r1h1": "name a command to run on r1h1",
}


def test_prompt_answers_commands_and_exit_removes_lab(terminal: Terminal, tmp_path: Path) -> None:
    greeting = terminal.read_to(PROMPT)
    lab = re.search(r"^lab (b[0-9a-f]{3}): 2 racks of 2", greeting, re.MULTILINE)[1]
    assert re.search(r"^optical switch tl1: TL1 at 127\.0\.0\.1:\d+$", greeting, re.MULTILINE)
    assert terminal.answer("r1h1 pwd") == f"{tmp_path}\n"
    assert set(terminal.answer("nodes").split()) >= {"r1h1", "r1h2", "r2h1", "r2h2", "t1", "t2", "core", "ocs1"}
    assert "0% dropped (12/12 received)" in terminal.answer("pingall")
    for line, reply in REPLIES.items():
        answer = terminal.answer(line)
        assert reply in answer and answer.count("\n") == 1
    os.write(terminal._master, b"exit\n")
    assert terminal.process.wait(HANGING) == 0
    assert [*marked_processes(lab), *bridges_of(lab), *links_of(lab)] == []


def test_prompt_reports_dead_optical_switch_and_lab_ends(terminal: Terminal) -> None:
    terminal.read_to(PROMPT)
    (lab,) = registry.labs_built_by(terminal.process.pid)
    command_lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked_processes(lab)}
    (agent,) = (pid for pid, words in command_lines.items() if b"mininet_topos.topology.optical_switch" in words)
    os.kill(agent, signal.SIGKILL)
    assert "blast lab: the TL1 agent ended with status -9" in terminal.read_to(b"\n")
    assert terminal.process.wait(HANGING) == 1
    assert [*marked_processes(lab), *bridges_of(lab), *links_of(lab)] == []


def test_closing_terminal_removes_lab(terminal: Terminal) -> None:
    terminal.read_to(PROMPT)
    (lab,) = registry.labs_built_by(terminal.process.pid)
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.process.wait(HANGING) == 0
    assert [*marked_processes(lab), *bridges_of(lab), *links_of(lab)] == []
