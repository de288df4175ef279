"""Standard error of a command with --json: notes, and the final error."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_client.cli import command
from blast_client.cli.command import main
from blast_client.cli.json_errors import ErrorLines, run_with_json_errors
from tests.support.declared_commands import declared_commands


@pytest.fixture(autouse=True)
def the_commands_of_this_tree(monkeypatch):
    monkeypatch.setattr(command, "entry_points", lambda group: declared_commands() if group == command.GROUP else [])


@pytest.fixture
def errors_of(capsys):
    """Return a function that runs `blast` and returns its exit status and standard error as JSON."""

    def run(*words: str) -> tuple[int, list[dict[str, object]]]:
        status = main(words)
        return status, [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return run


def test_json_error_has_code_sentence_and_exit_status(controller, errors_of):
    status, (error,) = errors_of("request", "--from", "h11", "--to", "nowhere", "--bytes", "1", "--json")
    assert status == 2
    assert error == {"error": "no host is named nowhere", "status": 2, "code": "unknown_host"}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["status", "--json", "--controller", "127.0.0.1:1"], 1),
        (["statsu", "--json"], 2),
        (["lab", "up", "--json", "--racks", "1"], 2),
        (["send", "/no/such/file", "--to", "127.0.0.1", "--via", "pipeline", "--json"], 2),
    ],
)
def test_error_of_every_command_is_json(errors_of, words, status):
    ended, (error,) = errors_of(*words)
    assert (ended, error["status"]) == (status, status)
    assert not str(error["error"]).startswith("blast")


def test_message_without_failure_is_json_note(controller, errors_of):
    for key in "ab":
        main(["request", "--from", "h11", "--to", "h21", "--bytes", "1", "--key", key, "--no-wait", "--json"])
    status, notes = errors_of("status", "--limit", "1", "--json")
    assert (status, notes) == (0, [{"note": "1 earlier requests are not shown: raise --limit"}])


def test_json_option_with_file_name_keeps_text_errors(capsys, tmp_path):
    assert main(["lab", "demo", "--json", str(tmp_path / "no" / "file")]) == 2
    assert capsys.readouterr().err.startswith("blast lab demo: ")


def test_crashing_command_restores_and_flushes_standard_error(capsys):
    def broken() -> int:
        sys.stderr.write("blast: as far as here\n")
        raise RuntimeError

    before = sys.stderr
    with pytest.raises(RuntimeError):
        run_with_json_errors(broken)
    assert sys.stderr is before
    assert json.loads(capsys.readouterr().err) == {"error": "as far as here", "status": 1}


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(0, 3))
def test_error_lines_are_json_and_only_last_may_be_error(pieces, status):
    into = io.StringIO()
    lines = ErrorLines(into)
    for piece in pieces:
        lines.write(piece)
    lines.end(status)
    written = [json.loads(line) for line in into.getvalue().split("\n")[:-1]]
    assert len(written) == len([line for line in "".join(pieces).split("\n") if line])
    assert ["error" in line for line in written] == [False] * (len(written) - 1) + [bool(status)] * bool(written)
