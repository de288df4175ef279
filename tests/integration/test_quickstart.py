"""docs/quickstart.md, "By hand", typed word for word: in two terminals, but for where files lie in /tmp."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mininet_topos import registry
from mininet_topos.cleanup import down
from tests.integration.test_lab_prompt import PROMPT, Terminal
from tests.support.waiting import eventually

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "quickstart.md").read_text()
BLAST = Path(sys.executable).with_name("blast")
STARTING_SECONDS = 120.0


@pytest.fixture
def blocks(tmp_path: Path) -> list[str]:
    """What is to be typed, block by block."""
    section = GUIDE[GUIDE.index("## By hand") : GUIDE.index("## A fabric of your own")]
    found: list[str] = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return [block.replace("/tmp/", f"{tmp_path}/").replace(".venv/bin/", f"{BLAST.parent}/") for block in found]


@pytest.fixture
def terminal(tmp_path: Path, blocks: list[str]) -> Iterator[Terminal]:
    (up,) = blocks[0].splitlines()
    terminal = Terminal(up.replace("blast", str(BLAST), 1).split(), {**os.environ, "HOME": str(tmp_path)}, ROOT)
    try:
        yield terminal
    finally:
        labs = registry.labs_built_by(terminal.process.pid)
        terminal.close()
        for lab in labs:
            down(lab)


def test_a_file_goes_by_light_by_hand(terminal: Terminal, blocks: list[str], tmp_path: Path) -> None:
    _, asking, configuring, transferring, ending, *_ = blocks
    greeting = terminal.read_to(PROMPT, STARTING_SECONDS)
    controller = re.search(r"controller at (\S+),", greeting)
    assert controller
    address, port = controller[1].split(":")
    environment = {**os.environ, "PATH": f"{BLAST.parent}:{os.environ['PATH']}", "BLAST_CONTROLLER": controller[1]}

    def second_terminal(lines: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", lines], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"{address}:PORT" in asking
    granted = second_terminal(asking.replace("PORT", port))
    assert "239.77.0.1:5001" in granted, "the group that the guide goes on with"
    second_terminal(configuring)
    start, send = transferring.splitlines()
    terminal.answer(start)
    eventually(lambda: ":9095" in terminal.answer("r2h1 ss -ltn"), "an agent that listens", within=60)
    assert '"complete": true' in terminal.answer(send)
    assert (tmp_path / "r2h1" / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()
    assert "done" in second_terminal(ending)
    os.write(terminal._master, b"exit\n")
    assert terminal.process.wait(60) == 0
