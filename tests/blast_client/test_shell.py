"""Shell completion and manual pages, generated from the parsers of the commands."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from blast_base.extras import NotInstalledError
from blast_client.cli import command
from blast_client.cli.command import main
from blast_client.cli.shell import command as shell_command
from blast_client.cli.shell import parsers
from blast_client.cli.shell.command import SHELLS
from blast_client.cli.shell.man_pages import man_pages
from blast_client.cli.shell.parsers import commands_of, every_parser, whole_parser
from blast_client.cli.summaries import SUMMARIES
from tests.support.declared_commands import declared_commands

ASKED = """
source /dev/stdin <<<"$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_shtab_blast
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(autouse=True)
def the_commands_of_this_tree(monkeypatch):
    monkeypatch.setattr(parsers, "entry_points", lambda group: declared_commands() if group == command.GROUP else [])


@pytest.fixture
def script(capsys):
    def made(shell: str) -> str:
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return made


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["st"], {"status", "step-down"}),
        (["status", "--al"], {"--all"}),
        (["status", "--all", "--lim"], {"--limit"}),
    ],
)
def test_bash_completes_commands_and_options(script, words, offered):
    typed = ["bash", "-c", ASKED, "bash", script("bash"), "blast", *words]
    assert set(subprocess.run(typed, capture_output=True, text=True, check=True).stdout.split()) == offered


def test_bash_completes_file_names(script, tmp_path):
    (tmp_path / "model.bin").touch()
    typed = ["bash", "-c", ASKED, "bash", script("bash"), "blast", "send", str(tmp_path / "mo")]
    assert subprocess.run(typed, capture_output=True, text=True, check=True).stdout.split() == [
        str(tmp_path / "model.bin")
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_contain_every_command_and_option(script, shell):
    text = script(shell)
    for parser in every_parser(whole_parser()):
        for name in [*commands_of(parser), *parser._option_string_actions]:
            # fish writes options without their dashes.
            assert name.lstrip("-") in text, (parser.prog, name)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_each_command_has_man_page_with_options_and_examples():
    pages, commands = man_pages(), commands_of(whole_parser())
    assert set(pages) == {"blast.1", *(f"blast-{name}.1" for name in commands)}
    for name, parser in commands.items():
        page = pages[f"blast-{name}.1"].replace("\\-", "-")
        assert f"blast-{name} - {SUMMARIES[name]}\n" in page
        for each in every_parser(parser):
            assert all(option in page for option in each._option_string_actions if option not in ("-h", "--help"))
        for line in (parser.epilog or "").splitlines()[1:]:
            assert line in page
    assert all(f"blast {name}" in pages["blast.1"].replace("\\-", "-") for name in commands)


@pytest.mark.test_all
def test_groff_renders_man_pages_without_warnings():
    for name, page in man_pages().items():
        words = ["groff", "-man", "-Tutf8", "-Kutf8", "-wall", "-z"]
        errors = subprocess.run(words, input=page, capture_output=True, text=True, check=True).stderr
        assert "warning" not in errors or "adjust" in errors or "break" in errors, (name, errors)


def test_man_creates_missing_directory(tmp_path, capsys):
    folder = tmp_path / "man" / "man1"
    assert main(["man", str(folder)]) == 0
    assert (folder / "blast-send.1").read_text().startswith(".TH BLAST")
    assert str(len(list(folder.iterdir()))) in capsys.readouterr().out


def test_man_reports_unwritable_directory(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["man", str(tmp_path / "file")]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("blast: ") and errors.count("\n") == 1 and "choose another directory" in errors


@pytest.mark.parametrize("words", [["completion", "bash"], ["man", "nowhere"]])
def test_missing_shell_libraries_error_names_extra(monkeypatch, capsys, words):
    def missing(extra: str, *modules: str) -> None:
        raise NotInstalledError(f"{modules} not installed: {extra}")

    monkeypatch.setattr(shell_command, "require", missing)
    assert main(words) == 1
    assert "not installed: shell" in capsys.readouterr().err


def test_completion_omits_command_with_missing_extra(monkeypatch, script):
    monkeypatch.setattr(
        parsers, "entry_points", lambda group: [*declared_commands(), command_of("absent", "no_such_package:register")]
    )
    assert "absent" not in script("bash")


def command_of(name: str, value: str):
    from importlib.metadata import EntryPoint

    return EntryPoint(name, value, command.GROUP)
