"""Suggestions for a misspelled command, option, choice or host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.api.nearest import nearest
from blast_client.api.unknown_hosts import meant
from blast_client.cli import command
from blast_client.cli.command import main
from blast_client.fabric import commands as fabric_commands
from tests.support.declared_commands import declared_commands


@pytest.fixture(autouse=True)
def the_commands_of_this_tree(monkeypatch):
    monkeypatch.setattr(command, "entry_points", lambda group: declared_commands() if group == command.GROUP else [])
    monkeypatch.setattr(fabric_commands, "entry_points", lambda group: [])


@pytest.mark.parametrize(
    ("words", "program", "sentence"),
    [
        (["statsu"], "blast", "there is no command 'statsu': did you mean status?"),
        (["fabric", "shwo"], "blast fabric", "there is no command 'shwo': did you mean show?"),
        (["lab", "pu"], "blast lab", "there is no command 'pu' (there are up, list, down,"),
        (["status", "--limt", "3"], "blast status", "there is no option --limt: did you mean --limit?"),
        (["status", "--zzz"], "blast status", "there is no option --zzz ("),
        (["status", "a", "b"], "blast status", "unexpected argument 'b'"),
        (["send", "f", "--to", "a", "--via", "pipelin"], "blast send", "argument --via: there is no choice 'pipelin'"),
        (["lab", "up", "--preset", "smal"], "blast lab up", "did you mean small?"),
    ],
)
def test_error_suggests_nearest_command_or_option(capsys, words, program, sentence):
    assert main(words) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"{program}: ") and sentence in errors and errors.count("\n") == 1
    assert f"`{program} --help`" in errors


def test_command_missing_in_older_installation_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(command, "entry_points", lambda group: [])
    assert main(["status"]) == 2
    assert "there is no command 'status'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sender", "receivers", "question"),
    [
        ("h11", "h21,h331", "did you mean h31 instead of h331?"),
        ("H12", "h21", "did you mean h12 instead of H12?"),
        ("h11", "h21,zebra", "no host is named zebra\n"),
    ],
)
def test_request_error_suggests_nearest_host(controller, capsys, sender, receivers, question):
    assert main(["request", "--from", sender, "--to", receivers, "--bytes", "1MB"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("blast: no host is named ") and question in errors and errors.count("\n") == 1


def test_extend_error_suggests_nearest_host(controller, capsys):
    main(["request", "--from", "h11", "--to", "h21", "--bytes", "1MB", "--key", "k", "--no-wait"])
    assert main(["extend", "k", "--add", "h331"]) == 2
    assert "; did you mean h31 instead of h331?\n" in capsys.readouterr().err


def test_send_error_suggests_nearest_host(controller, capsys, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x")
    # Port 1 is closed.
    assert main(["send", str(file), "--to", "h331=127.0.0.1:1", "--from", "h11"]) in (1, 2)
    assert "no host is named h331; did you mean h31 instead of h331?" in capsys.readouterr().err


def test_suggestions_are_limited_to_three_hosts():
    known = [f"h{number}" for number in range(50)]
    assert meant([f"{name}x" for name in known], known).count("instead of") == 3


@given(st.text(max_size=200), st.lists(st.text(max_size=100), max_size=20))
def test_nearest_returns_known_name_or_none(written, known):
    assert nearest(written, known) in {None, *known}
