"""docs/tutorials/quickstart.md, "By hand", typed word for word: in two terminals, but for where files lie in /tmp."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_lab_prompt import PROMPT, Terminal, ended_with_its_labs

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "tutorials" / "quickstart.md").read_text()
BLAST = Path(sys.executable).with_name("blast")


@pytest.fixture
def blocks(tmp_path: Path) -> list[str]:
    """Return the commands to type, block by block."""
    section = GUIDE[GUIDE.index("## By hand") : GUIDE.index("## A fabric of your own")]
    found: list[str] = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return [block.replace("/tmp/", f"{tmp_path}/").replace(".venv/bin/", f"{BLAST.parent}/") for block in found]


@pytest.fixture
def terminal(tmp_path: Path, blocks: list[str]) -> Iterator[Terminal]:
    (up,) = blocks[0].splitlines()
    terminal = Terminal(up.replace("blast", str(BLAST), 1).split(), {**os.environ, "HOME": str(tmp_path)}, ROOT)
    yield from ended_with_its_labs(terminal)


def test_a_file_goes_by_light_by_hand(terminal: Terminal, blocks: list[str], tmp_path: Path) -> None:
    _, sending, breaking, asking, ending, *_ = blocks
    greeting = terminal.read_to(PROMPT)
    controller = re.search(r"controller at (\S+),", greeting)
    received = re.search(r"stores received files in (\S+)/HOST", greeting)
    assert controller and received
    address, port = controller[1].split(":")
    environment = {**os.environ, "PATH": f"{BLAST.parent}:{os.environ['PATH']}", "BLAST_CONTROLLER": controller[1]}

    def second_terminal(lines: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", lines], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    make, send = sending.splitlines()
    terminal.answer(make)
    said = terminal.answer(send)
    assert "2 of 2 receivers have it, verified" in said and "optical" in said
    sent = (tmp_path / "model.bin").read_bytes()
    assert [(Path(received[1]) / host / "model.bin").read_bytes() == sent for host in ("r2h1", "r3h1")] == [True, True]
    cut, again, mend = breaking.splitlines()
    assert "is cut" in terminal.answer(cut)
    assert "2 of 2 receivers have it, verified" in terminal.answer(again)
    assert (Path(received[1]) / "r3h1" / "again.bin").read_bytes() == sent
    assert "is restored" in terminal.answer(mend)
    assert f"{address}:PORT" in asking
    granted = second_terminal(asking.replace("PORT", port))
    assert re.search(r"239\.77\.0\.\d+:5001", granted), "a group as the guide shows"
    assert "done" in second_terminal(ending)
    os.write(terminal._master, b"exit\n")
    assert terminal.process.wait(60) == 0
