"""Files of hosts: the receivers, those with the data, and those without, which a next transfer can read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_client.send import hosts_file
from blast_client.send.hosts_file import MAX_BYTES, HostListError, HostLists, read_hosts
from blast_client.send.receivers import Receiver, parse_receiver
from blast_transport.base.errors import WrongInputError

HOSTS = [parse_receiver(text) for text in ("h2", "h3:7000", "h4=10.0.0.4:9", "node10", "node2")]


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "ok", tmp_path / "failed"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(paths: tuple[Path, Path], reasons: dict[str, str], hosts: list[Receiver] = HOSTS) -> None:
    with HostLists(*paths, "-").written_for(hosts, reasons):
        pass


def test_read_hosts_ignores_comments_and_expands_sets(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# all of them\n\nh2  # the first\n node[1-2,9],b=10.0.0.2:7000\n\th3:1\n")
    assert [name for name, _, _ in read_hosts(file)] == ["h2", "node1", "node2", "node9", "b", "h3"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "contains no host"),
        (b"# empty\n", "contains no host"),
        (b"h2\nh2\n", "h2 is named twice"),
        (b"h2 h3\n", "'h2 h3' is not HOST"),
        (b"node[1-99999999]\n", "more than 10000 hosts"),
        (b"h\xff\n", r"not UTF-8 text \(byte 1\)"),
        (b"h\n" * (MAX_BYTES // 2 + 1), "maximum of a list of hosts"),
    ],
)
def test_read_hosts_rejects_invalid_list(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "hosts").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_hosts(tmp_path / "hosts")
    with pytest.raises(ValueError, match=r"cannot read .*: No such file"):
        read_hosts(tmp_path / "none")


@settings(max_examples=30)
@given(st.sets(st.sampled_from(HOSTS)), st.text(max_size=400))
def test_failed_file_lists_receivers_of_next_transfer(
    tmp_path_factory: pytest.TempPathFactory, failed: set[Receiver], reason: str
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    write((folder / "ok", folder / "failed"), {name: reason for name, _, _ in failed})
    for file, expected in (
        ("ok", [h for h in HOSTS if h not in failed]),
        ("failed", [h for h in HOSTS if h in failed]),
    ):
        assert (folder / file).read_text().count("\n") == len(expected)
        if expected:
            assert read_hosts(folder / file) == expected
    assert files(folder) == ["failed", "ok"]


def test_interrupt_writes_confirmed_and_unconfirmed_hosts(paths: tuple[Path, Path]) -> None:
    reasons = {name: "not confirmed" for name, _, _ in HOSTS}
    with pytest.raises(KeyboardInterrupt), HostLists(*paths, "-").written_for(HOSTS, reasons):
        del reasons["h2"]
        raise KeyboardInterrupt
    assert paths[0].read_text() == "h2\n"
    assert paths[1].read_text().splitlines()[0] == "h3:7000\t# not confirmed"


def test_invalid_usage_leaves_lists_unchanged(paths: tuple[Path, Path]) -> None:
    paths[0].write_text("before\n")
    with pytest.raises(WrongInputError), HostLists(*paths, "-").written_for(HOSTS, {}):
        raise WrongInputError("wrong use")
    assert paths[0].read_text() == "before\n" and files(paths[0].parent) == ["ok"]


def test_failed_write_keeps_previous_list(paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    paths[0].write_text("before\n")
    lists = HostLists(*paths, "-")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hosts_file.os, "fsync", full)
    with pytest.raises(HostListError, match="No space left"), lists.written_for(HOSTS, {}):
        pass
    assert paths[0].read_text() == "before\n" and files(paths[0].parent) == ["ok"]


def test_unwritable_list_is_rejected_before_transfer(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    same = tmp_path / "same"
    (tmp_path / "link").symlink_to(same)
    for ok, failed, source, sentence in (
        (tmp_path / "none" / "ok", None, "-", "cannot write .*: No such file"),
        (tmp_path / "folder", None, "-", "is not a regular file"),
        (None, Path("/dev/null"), "-", "is not a regular file"),
        (same, tmp_path / "link", "-", "the same file"),
        (same, None, str(same), "is the file to send"),
    ):
        with pytest.raises(WrongInputError, match=sentence):
            HostLists(ok, failed, source)
    assert files(tmp_path) == ["folder", "link"]
