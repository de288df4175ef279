"""docs/how-to/agents.md: its lists are those of the code; test_operator_guide.py tries its commands."""

from __future__ import annotations

import re
from pathlib import Path

from blast_transport.agent.reload import WAITS
from blast_transport.agent.reporting import RefusalReason
from blast_transport.agent.settings import Settings, parse
from blast_transport.store.files.file_names import DEEPEST, LONGEST_NAME, PARTIAL_PREFIX

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "agents.md").read_text()


def test_guide_explains_every_refusal_reason():
    explanation = GUIDE[GUIDE.index("`category` is one of") :].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", explanation)) - {"category"} == {one.value for one in RefusalReason}


def test_every_key_that_needs_a_restart_exists():
    settings = Settings()
    assert all(hasattr(getattr(settings, key.partition(".")[0]), key.partition(".")[2]) for key in WAITS)


def test_guide_states_name_limits_of_the_code():
    assert f"more than {LONGEST_NAME} bytes or {DEEPEST} parts" in GUIDE and f"begin with `{PARTIAL_PREFIX}`" in GUIDE


def test_files_that_are_installed_exist():
    for path in re.findall(r"packaging/\S+?\.(?:service|conf)", GUIDE):
        assert (ROOT / path).is_file()
    assert "blast_transport.remote.start.started_agents" in GUIDE


def test_the_keys_of_the_two_kinds_of_credentials_are_those_of_the_configuration():
    keys = re.search(r"^\| \| `(.*)` \| `(\w+)` \|$", GUIDE, re.MULTILINE)
    assert keys is not None
    certificates = keys[1].split("`, `")
    assert certificates == ["certificate", "private_key", "client_ca", "client"]
    text = (
        "".join(f'{key} = "/x"\n' for key in certificates[:3]) + 'client = [{ common_name = "x", role = "neighbor" }]\n'
    )
    folder = '[[folder]]\nname = "in"\npath = "/in"\n'
    assert parse(f"{folder}[access]\n{text}").access.client
    assert parse(f'{folder}[access]\n{keys[2]} = "/x"\n').access.secret_file
