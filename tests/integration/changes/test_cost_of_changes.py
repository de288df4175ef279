"""Typical changes in a copy of the checkout: how many files a contributor edits, and that the tests still pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
Edit = tuple[str, str]
"""Text of a file, and its replacement; an empty text creates the file."""

METHOD: Mapping[str, Edit] = {
    "thrift/blast.thrift": (
        "  /** Return journal entries after",
        "  /** Return the text. */\n  string echo(1: string text) throws (1: Denied denied)\n"
        "  /** Return journal entries after",
    ),
    "blast_controller/rpc/methods.py": (
        "        RpcMethod(Iface.stepDown,",
        "        RpcMethod(Iface.echo, server.echo, Role.OPERATOR),\n        RpcMethod(Iface.stepDown,",
    ),
    "blast_controller/rpc/server_calls.py": (
        "def step_down(services",
        "def echo(services: Services, connection: Connection, text: str | None) -> str:\n"
        '    """Return the text."""\n    return text or ""\n\n\ndef step_down(services',
    ),
    "blast_client/api/methods.py": ('    "ping": True,', '    "ping": True,\n    "echo": True,'),
    "blast_client/api/aio.py": (
        "    async def step_down(self)",
        '    async def echo(self, text: str) -> str:\n        """Return the text."""\n'
        "        return await self._call(Iface.echo, text)\n\n    async def step_down(self)",
    ),
}
METRIC: Mapping[str, Edit] = {
    "blast_controller/ops/metrics.py": (
        "        self.failed_steps = Counter(",
        '        self.first_steps = Counter("blast_toy_total", "Failed first steps.", registry=registry)\n'
        "        self.failed_steps = Counter(",
    ),
    "blast_controller/ops/metering.py": (
        "            case StepFailed(device=device):",
        "            case StepFailed(step=0):\n                metrics.first_steps.inc()\n"
        "            case StepFailed(device=device):",
    ),
}

TRANSPORT: Mapping[str, Edit] = {
    "blast_transport/transports/star/__init__.py": ("", '"""A toy: one copy to every receiver."""\n'),
    "blast_transport/transports/star/sender.py": (
        "",
        '"""Transport `star` at the sender: blocks become repairs, as those of `unicast`."""\n\n'
        "from __future__ import annotations\n\n"
        "from dataclasses import dataclass\nfrom typing import ClassVar\n\n"
        "from blast_transport.transports.choices import TransportChoice, Unicast\n"
        "from blast_transport.transports.unicast.sender import UnicastSender\n\n\n"
        '@dataclass(frozen=True, slots=True)\nclass Star(Unicast):\n    """One copy to every receiver."""\n\n'
        '    transport: ClassVar[str] = "star"\n\n\n'
        'class StarSender(UnicastSender):\n    """Lets the connections do the work."""\n\n'
        "    def follow(self, choice: TransportChoice) -> bool:\n"
        '        """Return whether the choice is this transport."""\n        return isinstance(choice, Star)\n',
    ),
    "blast_transport/wire/transports.py": (
        "    UNICAST: Traits(",
        '    "star": Traits(f"{_TRANSPORTS}.star.sender:Star", f"{_TRANSPORTS}.star.sender:StarSender", apart=True),\n'
        "    UNICAST: Traits(",
    ),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the tracked files; scripts in it use the environment of this checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    copy = tmp_path / "checkout"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    (copy / ".venv").symlink_to(sys.prefix)
    return copy


def make(checkout: Path, change: Mapping[str, Edit]) -> None:
    for name, (text, replacement) in change.items():
        path = checkout / name
        before = path.read_text() if text else ""
        assert before.count(text) == 1 or not text, name
        path.parent.mkdir(exist_ok=True)
        path.write_text(before.replace(text, replacement) if text else replacement)


def run(checkout: Path, *command: str) -> str:
    # Scripts call the tools of the environment by name.
    environment = {**os.environ, "PATH": f"{checkout / '.venv/bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def run_tests(checkout: Path, *files: str) -> None:
    # The checkout comes first on the path of `python -m`, before that of the installation.
    run(checkout, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)


@pytest.mark.skipif(shutil.which("thrift") is None, reason="needs Debian's thrift-compiler")
def test_thrift_method_costs_five_files(checkout: Path) -> None:
    make(checkout, METHOD)
    assert len(METHOD) <= 5
    run(checkout, "scripts/generate-stubs")
    run(checkout, "scripts/generate-client")
    run_tests(checkout, "tests/blast_controller/rpc/test_api_tables.py", "tests/blast_client/test_operator_commands.py")
    code = "from blast_controller.rpc.methods import METHODS; print(METHODS['echo'].call(None, None, 'again'))"
    assert run(checkout, sys.executable, "-c", code) == "again\n"


def test_metric_costs_two_files(checkout: Path) -> None:
    make(checkout, METRIC)
    assert len(METRIC) <= 2
    run(checkout, "scripts/generate-reference")
    assert "blast_toy_total" in (checkout / "docs/reference/metrics.md").read_text()
    run_tests(checkout, "tests/blast_controller/ops", "tests/blast_controller/rpc/test_monitoring_files.py")


def test_transport_costs_its_folder_and_one_line(checkout: Path, tmp_path: Path) -> None:
    make(checkout, TRANSPORT)
    outside = [name for name in TRANSPORT if not name.startswith("blast_transport/transports/star/")]
    assert outside == ["blast_transport/wire/transports.py"]
    assert len(TRANSPORT[outside[0]][1].splitlines()) == 2, "the new line and the one before which it stands"
    content = tmp_path / "content"
    content.write_bytes(bytes(range(256)) * 4096)
    code = f"""
import sys
from pathlib import Path
from tests.support.transport.transport_hosts import agent, sender_to
from blast_transport.session.registry import default_choice
from blast_transport.session.route import Route
with agent(Path({str(tmp_path)!r}) / "there") as receiver, sender_to([receiver]) as sender:
    result = sender.send_file(Path({str(content)!r}), Route(default_choice("star")))
assert result.transports == ("star",) and not result.receivers[0].reason, result
"""
    run(checkout, sys.executable, "-c", code)
    assert "star" in run(checkout, sys.executable, "-m", "blast_transport", "send", "--help")
    run_tests(checkout, "tests/blast_transport/session", "tests/project/test_layout.py")
