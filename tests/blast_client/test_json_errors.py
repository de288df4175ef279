"""What a command says on standard error with --json: notes, and the error that it ends with."""

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
def said(capsys):
    """Run `blast`; its exit status, and the lines of standard error as JSON."""

    def run(*words: str) -> tuple[int, list[dict[str, object]]]:
        status = main(words)
        return status, [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    return run


def test_a_refusal_has_its_code_its_sentence_and_the_exit_status(controller, said):
    status, (error,) = said("request", "--from", "h11", "--to", "nowhere", "--bytes", "1", "--json")
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
def test_every_command_s_error_is_json(said, words, status):
    ended, (error,) = said(*words)
    assert (ended, error["status"]) == (status, status)
    assert not str(error["error"]).startswith("blast")


def test_what_is_no_error_is_a_note(controller, said):
    for key in "ab":
        main(["request", "--from", "h11", "--to", "h21", "--bytes", "1", "--key", key, "--no-wait", "--json"])
    status, notes = said("status", "--limit", "1", "--json")
    assert (status, notes) == (0, [{"note": "1 earlier requests are not shown: raise --limit"}])


def test_json_that_is_the_name_of_a_file_changes_nothing(capsys, tmp_path):
    assert main(["lab", "demo", "--json", str(tmp_path / "no" / "file")]) == 2
    assert capsys.readouterr().err.startswith("blast lab demo: ")


def test_a_command_that_breaks_gives_standard_error_back_and_loses_nothing(capsys):
    def broken() -> int:
        sys.stderr.write("blast: as far as here\n")
        raise RuntimeError

    before = sys.stderr
    with pytest.raises(RuntimeError):
        run_with_json_errors(broken)
    assert sys.stderr is before
    assert json.loads(capsys.readouterr().err) == {"error": "as far as here", "status": 1}


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(0, 3))
def test_whatever_is_written_is_lines_of_json_of_which_the_last_may_be_an_error(pieces, status):
    into = io.StringIO()
    lines = ErrorLines(into)
    for piece in pieces:
        lines.write(piece)
    lines.end(status)
    told = [json.loads(line) for line in into.getvalue().split("\n")[:-1]]
    assert len(told) == len([line for line in "".join(pieces).split("\n") if line])
    assert ["error" in line for line in told] == [False] * (len(told) - 1) + [bool(status)] * bool(told)
