"""The guides of operators and agents: `blast` accepts their commands, and their keys and fields exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from blast_client.cli.command import build_parser
from blast_controller.configuration.reload import AT_ONCE
from blast_controller.core.model.requests import EventKind, RequestEvent
from blast_controller.ops.activity import request_line
from tests.support.declared_commands import declared_commands

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "operate.md").read_text()
NAMED_ONLY = {"blast request", "blast quarantine", "blast release", "blast element quarantine", "blast element release"}
"""Commands that a sentence names without their operands."""
SHELL = re.compile(r"\s(>>?|\|)\s.*$")


def commands(guide: str, pattern: str) -> list[str]:
    text = (ROOT / "docs" / guide).read_text()
    quoted = re.findall(r"`([^`\n]+)`", text)
    blocks = [line for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    found = (line.removeprefix("/opt/blast/bin/") for line in (*blocks, *quoted))
    return sorted({SHELL.sub("", line) for line in found if re.match(pattern, line)})


@pytest.mark.parametrize(
    ("guide", "pattern", "fewest"),
    [("how-to/operate.md", r"blast ", 20), ("how-to/agents.md", r"blast [a-z]+ [a-z]", 3)],
)
def test_every_command_of_the_guides_parses(guide, pattern, fewest):
    parser, found = build_parser(declared_commands()), commands(guide, pattern)
    assert len(found) > fewest
    for command in found:
        words = shlex.split(command)[1:]
        if command in NAMED_ONLY:
            with pytest.raises(SystemExit, match=r"^0$"):
                parser.parse_args([*words, "--help"])
        else:
            assert callable(parser.parse_args(words).run), command


def test_reload_table_equals_code():
    table = GUIDE[GUIDE.index("### Reload") : GUIDE.index("## Commands")]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    documented = {f"{name}.{key}" for name, keys in rows for key in re.findall(r"`(\w+)`", keys) if name != "tenant"}
    assert documented - {"tenant.access"} == AT_ONCE - {"tenant"}
    assert "tenant" in dict(rows)


def test_every_event_of_a_request_is_in_the_table_of_the_log():
    log = GUIDE[GUIDE.index("## Log") :]
    for kind in EventKind:
        event = RequestEvent(1, kind, 0, reason="why")
        if kind is not EventKind.GRANTED:
            assert f"`{request_line(('t', 'k'), event).event}`" in log
    devices = ("device_up", "device_down", "port_up", "port_down", "drift", "failure")
    for name in ("grant", "reload", "ready", "end", *devices):
        assert f"`{name}`" in log
