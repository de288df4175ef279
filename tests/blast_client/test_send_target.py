"""The destination at each host from the options of `blast send`, and the options that it rejects at once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_client.send.command import register
from blast_client.send.failures import sentences
from blast_client.send.progress import bar
from blast_client.send.target import SendTarget, names_stream, target_of
from blast_transport.base.errors import WrongInputError
from blast_transport.session.settings import Destination


def options(*words: str, file: str = "dir/myfile.tgz", to: tuple[str, ...] = ("--to", "n2")) -> Namespace:
    parser = ArgumentParser()
    register(parser.add_subparsers())
    return parser.parse_args(["send", file, *to, *words])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), SendTarget(Destination("myfile.tgz"))),
        (("--as", "a/b", "--folder", "in"), SendTarget(Destination("a/b", "file", "in"))),
        (("--command", "untar"), SendTarget(Destination("untar", "command", file="myfile.tgz"))),
        (("--ssh", "--ssh-folder", "/srv"), SendTarget(Destination("myfile.tgz"))),
        (
            ("--ssh", "--command", "tar -xzC /opt/"),
            SendTarget(Destination("sh", "command", file="myfile.tgz"), line="tar -xzC /opt/"),
        ),
        (("--ssh", "--as", "/dev/sdb"), SendTarget(Destination("sdb", "file", "target"), path="/dev/sdb")),
        (("--ssh", "--as", "/home/{host}/x"), SendTarget(Destination("x", "file", "target"), path="/home/{host}/x")),
    ],
)
def test_options_select_destination(words: tuple[str, ...], expected: SendTarget) -> None:
    assert target_of(options(*words)) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--command", "tar -xzC /opt/"), "agents run only commands of their configuration"),
        (("--command", "gunzip|dd"), "agents run only commands of their configuration"),
        (("--ssh",), "needs a destination"),
        (("--ssh-folder", "/srv"), "--ssh-folder needs --ssh"),
        (("--ssh-window", "4"), "--ssh-window needs --ssh"),
        (("--start-timeout", "4"), "--start-timeout needs --ssh"),
        (("--ssh", "--as", "/dev/sdb", "--command", "cat"), "is an absolute path"),
        (("--ssh", "--as", "/dev/sdb", "--ssh-folder", "/srv"), "is an absolute path"),
        (("--ssh", "--as", "/opt/"), "does not end with the name"),
        (("--ssh", "--as", "/opt/.."), "does not end with the name"),
        (("--ssh", "--as", "/opt/{host}"), "does not end with the name"),
    ],
)
def test_conflicting_options_are_rejected(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(WrongInputError, match=sentence):
        target_of(options(*words))


@pytest.mark.parametrize(
    ("words", "kept", "overwrites"),
    [
        (("--ssh", "--ssh-folder", "/srv"), True, False),
        (("--ssh", "--as", "/srv/x"), True, False),
        (("--ssh", "--as", "/dev/sdb"), False, True),
        (("--ssh", "--as", "/dev/null"), True, False),
        (("--ssh", "--command", "cat"), False, False),
    ],
)
def test_target_knows_if_partial_data_is_kept_or_overwritten(
    words: tuple[str, ...], kept: bool, overwrites: bool
) -> None:
    target = target_of(options(*words))
    assert (target.is_kept, target.overwrites) == (kept, overwrites)


def test_unnamed_stream_gets_generated_name() -> None:
    unnamed, named, fed = options(file="-"), options("--as", "x", file="-"), options("--command", "x", file="-")
    assert [names_stream(one) for one in (unnamed, named, fed, options())] == [True, False, False, False]
    assert unnamed.name.startswith("stdin-") and named.name == "x" and fed.name is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--node-timeout", "100ms"), "out of range: give 0.2 to 10 s"),
        (("--node-timeout", "11"), "out of range"),
        (("--buffer", "1MiB"), "8MiB to 64MiB"),
        (("--buffer", "65MiB"), "8MiB to 64MiB"),
        (("--ssh-window", "0"), "from 1 to 1024"),
        (("--ssh-window", "99999999999"), "from 1 to 1024"),
        (("--start-timeout", "0.5"), "give 1 to 3600 s"),
    ],
)
def test_out_of_range_option_error_shows_bounds(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "file", "--to", "h2", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_send_requires_valid_receivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hosts").write_text("h2\nh3\n")
    (tmp_path / "data").write_text("data")
    for words, sentence in (
        (("--hosts-file", str(tmp_path / "none")), "none: No such file"),
        ((), "name hosts with --to, or a file of hosts with --hosts-file"),
        (("--to", "h3", "--hosts-file", str(tmp_path / "hosts")), "h3 is named twice"),
        (("--to", "h1", "--ok-file", str(tmp_path)), "is not a regular file"),
    ):
        assert main(["send", str(tmp_path / "data"), *words]) == 2
        assert sentence in capsys.readouterr().err


def test_messages_fold_hosts_with_same_reason(capsys: pytest.CaptureFixture[str]) -> None:
    many = dict.fromkeys((f"n{number}" for number in range(1, 65)), "no agent")
    assert sentences({"a": "down", **many, "b": "down"}) == [("a", "down"), ("b", "down"), ("n[1-64]", "no agent")]
    bar(1, "data", 65).done([], {"a": "down", **many}, "")
    errors = capsys.readouterr().err.splitlines()
    assert errors == ["blast: a does not have it: down", "blast: n[1-64] do not have it: no agent"]
