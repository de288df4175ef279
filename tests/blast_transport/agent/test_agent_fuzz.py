"""Fuzz tests of an agent's input: nothing is opened outside the folders, and every error is typed."""

from __future__ import annotations

import os
import random
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blast_transport.agent
from blast_transport.agent.permissions import Allowed, AllowedCommand, AllowedFile, Permissions
from blast_transport.agent.settings import CommandSection, FolderSection, LimitsSection, Settings, parse
from blast_transport.base.errors import (
    AuthenticationError,
    NotAllowedError,
    RemoteProtocolError,
    SettingsError,
    UnsafeNameError,
)
from blast_transport.credentials.authentication import MAGIC, REFUSED, AgentHandshake, ClientHandshake
from blast_transport.links.first_message import read_first
from blast_transport.transports.pipeline.protocol.messages import encode as encode_join
from blast_transport.wire.codec import FRAME, encode
from blast_transport.wire.joining import TOKEN_BYTES, Join
from blast_transport.wire.messages import Abort, Hello
from tests.support.fuzzing import Decoder, fuzz, inputs
from tests.support.transport.pipeline_chain import open_descriptors
from tests.support.transport.transport_data import mutated
from tests.support.waiting import eventually

EXAMPLES = inputs(16_000) // 20
"""Each Hypothesis example costs as much as twenty inputs of the other fuzz tests."""

PARTS = ["a", "b", "file", "new", "link", "up", "inner", "loop", "fifo", "..", ".", "", "~", "-x", ".blast-1", "etc"]
NAMES = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=6).map("/".join),
    st.lists(st.text(max_size=4) | st.sampled_from(PARTS), max_size=4).map("/".join),
    st.text(alphabet="ab./\\\0\n-ü \u202e\ud800", max_size=12),
    st.text(),
)
KINDS = st.sampled_from(["file", "command", "memory"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with links up, out and in circles, and a file beside it that must not change."""
    top = tmp_path_factory.mktemp("agent")
    inside = top / "in"
    (inside / "a" / "b").mkdir(parents=True)
    (top / "out" / "a").mkdir(parents=True)
    (inside / "file").touch()
    for folder in (inside, inside / "a", inside / "a" / "b"):
        (folder / "link").symlink_to(top / "out")
        (folder / "up").symlink_to("..")
        (folder / "inner").symlink_to(inside / "a")
        (folder / "loop").symlink_to("loop")
        os.mkfifo(folder / "fifo")
    return inside


@pytest.fixture(scope="module")
def permissions(tree: Path) -> Permissions:
    command = CommandSection("file", ("/bin/cat", "--", "{file_name}"))
    folder = FolderSection("a", tree)
    return Permissions(Settings(folder=(folder,), command=(command,), limits=LimitsSection(memory_bytes=1)))


def allowed(permissions: Permissions, kind: str, name: str, **more: str) -> Allowed | None:
    """Return the permission, or None if it is refused in one line."""
    try:
        return permissions.allow(kind, name, **more)
    except (NotAllowedError, UnsafeNameError) as error:
        assert str(error).isprintable()
        return None


@settings(max_examples=EXAMPLES)
@given(name=NAMES)
def test_allowed_files_stay_below_folder(tree: Path, permissions: Permissions, name: str) -> None:
    target = allowed(permissions, "file", name)
    if target is None:
        return
    assert isinstance(target, AllowedFile)
    try:
        really = Path(f"/proc/self/fd/{target.directory}").readlink()
        assert really.is_relative_to(tree)
        assert really / target.name == tree / name == target.folder / target.name, (
            "no part was followed, dropped or added"
        )
        at_work = os.open(f".blast-{target.name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=target.directory)
        os.close(at_work)
        os.unlink(f".blast-{target.name}", dir_fd=target.directory)
    finally:
        target.close()


@settings(max_examples=EXAMPLES)
@given(name=NAMES)
def test_command_gets_one_harmless_argument(permissions: Permissions, name: str) -> None:
    target = allowed(permissions, "command", "file", file=name)
    if target is not None:
        assert isinstance(target, AllowedCommand)
        assert target.arguments == ("/bin/cat", "--", name) and target.environment["BLAST_FILE_NAME"] == name
        assert "/" not in name and not name.startswith("-") and name.isprintable() and name


@settings(max_examples=EXAMPLES)
@given(kind=KINDS | NAMES, name=NAMES, folder=NAMES, file=NAMES)
def test_any_target_is_allowed_or_rejected_without_leak(
    tree: Path, permissions: Permissions, kind: str, name: str, folder: str, file: str
) -> None:
    found = allowed(permissions, kind, name, folder=folder, file=file)
    if isinstance(found, AllowedFile):
        found.close()
    # A coverage tool may open a file in the tests' folders for a moment.
    eventually(lambda: not any(link.startswith(str(tree)) for link in open_descriptors()), "no descriptor left open")


# ------------------------------------------------------------------------------------------- the configuration

TEXT = Path(blast_transport.agent.__file__).with_name("example.toml").read_text()
COMPACT = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#"))
COMMANDS = '[[command]]\nname = "c"\nrun = ["/bin/tar", "-x", "{file_name}"]\nfolder = "/srv"\n'
ACCESS = """
[agent]
listen = "0.0.0.0:9095"
optical_address = "10.0.0.1"
[access]
certificate = "/c"
private_key = "/k"
client_ca = "/a"
client = [{ common_name = "x", organizational_unit = "y", role = "neighbor" }, { uri = "u" }]
[limits]
file_bytes = 1
memory_bytes = 1
max_rate_mbps = 1.5
"""
SECRET = '[agent]\nlisten = "[::]:0"\n[access]\nsecret_file = "/s"\n'
WHOLE = [COMPACT, COMMANDS, ACCESS, SECRET + COMMANDS]
LINES = [line for text in WHOLE for line in text.splitlines()]
VALUES = ["true", "-1", "0", "1e400", "nan", "'x'", "''", "'/'", "[]", "[1]", "{}", "1979-05-27", "'\\u0000'", "'::1'"]


def mutation(rng: random.Random, text: str) -> str:
    """Return a configuration with a few lines or characters changed."""
    lines = text.splitlines() or [""]
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(lines))
        match rng.randrange(5):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, rng.choice(LINES))
            case 2:
                lines[at] = lines[at].partition("=")[0] + "= " + rng.choice(VALUES)
            case 3:
                cut = rng.randint(0, len(lines[at]))
                lines[at] = lines[at][:cut] + chr(rng.choice([0, 34, 44, 61, 91, 125, 97])) + lines[at][cut + 1 :]
            case _:
                lines = lines[at:] + lines[:at]
    return "\n".join(lines)[:5000]


def garbage(rng: random.Random) -> str:
    """Return lines of configurations in any order."""
    return "\n".join(rng.choice(LINES) for _ in range(rng.randint(0, 9)))


def check(_: random.Random, text: str) -> str:
    """Check that the text yields settings, or one sentence."""
    try:
        found = parse(text)
    except SettingsError as error:
        assert str(error).strip()
        return "refused: not TOML" if "not TOML" in str(error) else "refused: a sentence on a key"
    assert isinstance(found, Settings)
    Permissions(found)
    return "settings"


def test_settings_are_parsed_or_rejected_with_reason() -> None:
    files = ("agent/settings.py", "agent/schema.py", "base/endpoint.py")
    run = fuzz(Decoder("agent settings", WHOLE, mutation, garbage, check, files), inputs(2500))
    for outcome in ("settings", "refused: not TOML", "refused: a sentence on a key"):
        assert run.outcomes[outcome] > run.inputs // 100, run.outcomes


# ---------------------------------------------------------------------------------- first messages of unknown peers

HELLO = Hello(session=7, size=None, segment_size=1456, block_segments=44, suite="sha256", kind="file", name="a/b")
FIRST = [
    encode(HELLO),
    encode(replace(HELLO, size=1 << 40, folder="in", content="c", key=bytes(32))),
    encode_join(Join(7, 1, bytes(TOKEN_BYTES), "h2")),
    encode(Abort(7, "enough")),
]


def bytes_changed(rng: random.Random, data: bytes) -> bytes:
    """Return the data mutated at random or in a digit; the frame usually keeps its own length."""
    changed = bytearray(mutated(rng, data, (0, 1, 34, 125, 0x7F, 0xFF)) if rng.random() < 0.7 else data)
    if digits := [place for place, byte in enumerate(changed) if 48 <= byte < 58]:
        changed[rng.choice(digits)] = rng.choice(b"0123456789-")
    if len(changed) >= FRAME.size and rng.random() < 0.8:
        changed[:4] = (len(changed) - FRAME.size).to_bytes(4, "little")
    return bytes(changed)


def noise(rng: random.Random) -> bytes:
    """Return a frame's head with random bytes behind it."""
    return rng.choice(FIRST)[: FRAME.size] + rng.randbytes(rng.randrange(80))


def check_first(_: random.Random, data: bytes) -> str:
    """Check that data yields a first message, nothing, or one error, and that later bytes are not read."""
    near, far = socket.socketpair()
    with near, far:
        near.sendall(data + b"FOLLOWS")
        near.shutdown(socket.SHUT_WR)
        try:
            message = read_first(far, 5.0, 5.0)
        except RemoteProtocolError as error:
            assert str(error).strip()
            return "refused"
        assert isinstance(message, Hello | Join)
        length, *_ = FRAME.unpack_from(data + b"FOLLOWS")
        assert far.recv(1 << 20) == (data + b"FOLLOWS")[FRAME.size + length :]
        return type(message).__name__


def test_first_message_is_decoded_or_rejected_without_overread() -> None:
    files = (
        "links/first_message.py",
        "wire/codec.py",
        "wire/fields.py",
        "wire/joining.py",
        "pipeline/protocol/messages.py",
    )
    run = fuzz(Decoder("first message", FIRST, bytes_changed, noise, check_first, files), inputs(5000))
    for outcome in ("Hello", "Join", "refused"):
        assert run.outcomes[outcome] > run.inputs // 100, run.outcomes


def outcome_of(handshake: AgentHandshake | ClientHandshake, data: bytes, step: int) -> str:
    """Return the result of a handshake that receives `data`, `step` bytes at a time."""
    try:
        while data and handshake.expected_bytes:
            count = min(step, handshake.expected_bytes)
            handshake.receive(data[:count], 0.0)
            data = data[count:]
    except AuthenticationError as error:
        assert str(error).isprintable()
        return str(error)
    return "in" if handshake.done else "waits"


@settings(max_examples=EXAMPLES)
@given(
    data=st.one_of(
        st.binary(max_size=120),
        st.binary(max_size=80).map(lambda rest: MAGIC + rest),
        st.binary(max_size=80).map(lambda rest: REFUSED + rest),
        st.lists(st.binary(min_size=32, max_size=32), max_size=2).map(
            lambda rest: b"".join(MAGIC + one for one in rest)
        ),
    ),
    step=st.integers(1, 40),
    agent=st.booleans(),
)
def test_random_bytes_never_authenticate(data: bytes, step: int, agent: bool) -> None:
    kind = AgentHandshake if agent else ClientHandshake
    whole, cut = (outcome_of(kind(b"s" * 32, 1.0, nonce=b"n" * 32), data, count) for count in (1000, step))
    assert whole == cut != "in"
