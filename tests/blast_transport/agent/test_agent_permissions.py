"""Permissions of senders: nothing outside the folders or through a link, no shell, no options."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blast_transport.agent.permissions import AllowedCommand, AllowedFile, Permissions
from blast_transport.agent.settings import FILE_NAME, CommandSection, FolderSection, LimitsSection, Settings
from blast_transport.base.errors import NotAllowedError, UnsafeNameError

UNTAR = CommandSection("untar", ("/bin/tar", "-x", "--label", FILE_NAME))
PLAIN = CommandSection("plain", ("/bin/cat",), Path("/srv"))


@pytest.fixture
def tree(tmp_path):
    """Return a folder with files, folders and links of every kind, some of them to files outside."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "a" / "b").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    (inside / "file").write_text("old")
    (inside / "a" / "file").write_text("old")
    (inside / "link").symlink_to(outside)
    (inside / "inner").symlink_to("a")
    (inside / "a" / "up").symlink_to("..")
    (inside / "filelink").symlink_to(inside / "file")
    (inside / "dangling").symlink_to(outside / "new")
    (inside / "loop").symlink_to("loop")
    os.mkfifo(inside / "fifo")
    return inside


@pytest.fixture
def permissions(tree):
    folders = (FolderSection("in", tree), FolderSection("other", tree / "a"))
    return Permissions(Settings(folder=folders, command=(UNTAR, PLAIN), limits=LimitsSection(memory_bytes=10)))


def resolved(permissions: Permissions, **target: str) -> Path:
    """Return the path at which the file would really be written."""
    found = permissions.allow("file", **target)
    assert isinstance(found, AllowedFile)
    try:
        return Path(f"/proc/self/fd/{found.directory}").readlink() / found.name
    finally:
        found.close()


@pytest.mark.parametrize("name", ["new", "file", "a/b/new", "...", "-x", "a\\b"])
def test_names_below_folder_are_allowed(permissions, tree, name):
    assert resolved(permissions, name=name) == tree / name


def test_target_selects_folder_by_name(permissions, tree):
    assert resolved(permissions, folder="other", name="new") == tree / "a" / "new"
    with pytest.raises(NotAllowedError, match="this agent has no folder 'third': it has in, other"):
        permissions.allow("file", "x", "third")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../out/x", "has a part '..'"),
        (".", "has a part '.'"),
        ("a//x", "has a part ''"),
        ("/etc/passwd", "is an absolute path"),
        ("link/deep/x", "goes through the symbolic link 'link'"),
        ("a/up/x", "goes through the symbolic link 'up'"),
        ("loop/x", "goes through the symbolic link 'loop'"),
        ("filelink", "is that of a symbolic link"),
        ("dangling", "is that of a symbolic link"),
        ("a", "which is no file"),
        ("fifo", "which is no file"),
        ("file/x", "cannot be entered: Not a directory"),
        ("absent/x", "cannot be entered: No such file or directory"),
        (".blast-x", "begins like our own temporary files"),
        ("a/.blast-0000-x", "begins like our own temporary files"),
        ("a\0b", "characters that cannot be printed"),
        ("a\udc80b", "characters that cannot be printed"),
        ("ü" * 128, "a part of more than 255 bytes"),
        ("ü" * 513, "more than 1024 bytes"),
        ("/".join("x" * 17), "more than 16 parts"),
    ],
)
def test_unsafe_file_names_are_rejected(permissions, name, sentence):
    with pytest.raises(UnsafeNameError) as caught:
        permissions.allow("file", name)
    message = str(caught.value)
    assert sentence in message and message.isprintable() and len(message) < 250


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        ("", "x", "the kind '' is not known: file, folder, command or memory"),
        ("device", "x", "the kind 'device' is not known"),
        ("command", "sh", "does not run a command 'sh': it runs untar, plain"),
        ("command", "/bin/sh", "does not run a command '/bin/sh'"),
        ("command", "untar", "needs the name of a file, and none was given"),
    ],
)
def test_unconfigured_kinds_and_commands_are_rejected(permissions, kind, name, sentence):
    with pytest.raises(NotAllowedError) as caught:
        permissions.allow(kind, name)
    assert sentence in str(caught.value)


def test_agent_without_configuration_allows_nothing():
    bare = Permissions(Settings())
    for kind in ("file", "command", "memory"):
        with pytest.raises(NotAllowedError, match=r"writes no files|runs none|nothing in memory"):
            bare.allow(kind, "x")


def test_command_gets_file_name_as_one_argument_and_in_environment(permissions):
    name = "$(reboot); 'x' `y` *"
    target = permissions.allow("command", "untar", file=name)
    assert isinstance(target, AllowedCommand)
    assert target.arguments == ("/bin/tar", "-x", "--label", name)
    assert target.environment["BLAST_FILE_NAME"] == name
    assert set(target.environment) == {"PATH", "LANG", "BLAST_FILE_NAME"}, "nothing of the agent's own"


def test_command_without_placeholder_gets_no_file_name(permissions):
    target = permissions.allow("command", "plain")
    assert target == AllowedCommand("plain", ("/bin/cat",), target.environment, Path("/srv"))
    assert "BLAST_FILE_NAME" not in target.environment


@pytest.mark.parametrize("name", ["-x", "--to-command=sh", "a/b", "../x", "/x", "a\nb", ".blast-x"])
def test_command_file_name_must_not_be_option_or_path(permissions, name):
    with pytest.raises(UnsafeNameError):
        permissions.allow("command", "untar", file=name)


def test_missing_folder_is_named_in_rejection(tmp_path):
    permissions = Permissions(Settings(folder=(FolderSection("gone", tmp_path / "gone"),)))
    with pytest.raises(NotAllowedError, match=r"the folder .*/gone of this agent cannot be opened: No such file"):
        permissions.allow("file", "x")


def test_configured_folder_may_be_behind_symlink(tree):
    linked = tree / "a" / "up" / "a"
    assert resolved(Permissions(Settings(folder=(FolderSection("in", linked),))), name="new") == tree / "a" / "new"


@pytest.mark.parametrize("moment", range(5))
def test_swapped_in_symlink_does_not_escape_folder(permissions, tree, monkeypatch, moment):
    """Just before one of the folders is opened, a symbolic link to the outside replaces a folder of the path."""
    (tree / "a" / "flip" / "deep").mkdir(parents=True)
    opened, really_open = [], os.open

    def open_after_swap(path, *rest, **more):
        if len(opened) == moment:
            (tree / "a" / "flip").rename(tree / "flop")
            (tree / "a" / "flip").symlink_to(tree.parent / "out")
        opened.append(path)
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", open_after_swap)
    try:
        found = resolved(permissions, name="a/flip/deep/new")
    except UnsafeNameError as error:
        assert moment < 3 and "goes through the symbolic link 'flip'" in str(error)
    else:
        assert moment >= 3 and found.is_relative_to(tree), found
    assert not (tree.parent / "out" / "deep" / "new").exists()
