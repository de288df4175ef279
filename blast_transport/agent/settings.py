"""The agent's configuration: one TOML file, checked, frozen. Units stand in the key names."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from blast_base.endpoint import DEFAULT_ENDPOINT, Endpoint, parse_listening
from blast_transport.agent.schema import (
    flag,
    one_of,
    positive,
    read_section,
    section,
    sections,
    text,
    texts,
    whole,
)
from blast_transport.base.engines import AUTO, check_engine
from blast_transport.base.errors import SettingsError, WrongInputError
from blast_transport.credentials.roles import NEIGHBOR, SENDER
from blast_transport.links.connection_limits import MAX_CONNECTIONS, MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_PER_HOST
from blast_transport.measuring.limits import MeasuringLimits
from blast_transport.wire.measuring import MAX_BYTES, MAX_SECONDS
from blast_transport.wire.messages import MIN_RATE

FILE_NAME = "{file_name}"
"""The element of a command's `run` that stands for the name of the file that comes."""
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_MODE = re.compile(r"0?[0-7]{3}")
_OWNERS = 0o600
"""Owners must be able to read and write what the agent stores for them."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_BYTES = 1 << 60
_MAX_MILLISECONDS = 3_600_000
"""An hour; a longer time is a mistake of the unit."""
_LARGEST_CONNECTIONS = 1 << 16
"""Each needs a descriptor; a larger number is a mistake."""


def _name(written: str) -> str:
    if not _NAME.fullmatch(written):
        raise ValueError("must be up to 64 letters, digits, '.', '_' and '-'")
    return written


def _absolute(written: str) -> str:
    if not written.startswith("/") or not written.isprintable():
        raise ValueError("must be an absolute path")
    return written


def _ipv4(written: str) -> str:
    try:
        return str(ipaddress.IPv4Address(written))
    except ValueError:
        raise ValueError("must be an IPv4 address") from None


def _mode(written: str) -> str:
    if not _MODE.fullmatch(written) or int(written, 8) & _OWNERS != _OWNERS:
        raise ValueError('must be permission bits like "0640", of which the owner has 6')
    return written


def _engine(written: str) -> str:
    try:
        return check_engine(written)
    except WrongInputError as error:
        raise ValueError(f"cannot be used: {error}") from error


def _endpoint(value: object, place: str) -> Endpoint:
    return parse_listening(text()(value, place))


def _path(value: object, place: str) -> Path:
    return Path(text(_absolute)(value, place))


def _run(value: object, place: str) -> tuple[str, ...]:
    run = texts()(value, place)
    _absolute(run[0])
    if any("\0" in part for part in run):
        raise ValueError("must not contain a NUL character")
    if any(FILE_NAME in part and part != FILE_NAME for part in run):
        raise ValueError(f"{FILE_NAME} must stand alone, as one element")
    return run


@dataclass(frozen=True, slots=True)
class AgentSection:
    """Addresses and behavior of the agent.

    `optical_address` is this host's address on the optical network, None without one. Sessions get `stop_timeout_ms` to
    end when the agent stops. `durable`: write a file to disk before confirming it to its sender. `file_mode`:
    permission bits of files, in octal, regardless of the umask. `engine`: verifies and stores data.
    """

    listen: Annotated[Endpoint, _endpoint] = DEFAULT_ENDPOINT
    optical_address: Annotated[str | None, text(_ipv4)] = None
    stop_timeout_ms: Annotated[float, positive(_MAX_MILLISECONDS)] = 5_000.0
    durable: Annotated[bool, flag()] = True
    file_mode: Annotated[str, text(_mode)] = "0600"
    engine: Annotated[str, text(_engine)] = AUTO


@dataclass(frozen=True, slots=True)
class FolderSection:
    """Folder that files may be written below. `claimed`: unclaimed subfolders are removed."""

    name: Annotated[str, text(_name)]
    path: Annotated[Path, _path]
    claimed: Annotated[bool, flag()] = False


@dataclass(frozen=True, slots=True)
class DeviceSection:
    """A block or character device that a file may overwrite, for senders that name it as their folder."""

    name: Annotated[str, text(_name)]
    path: Annotated[Path, _path]


@dataclass(frozen=True, slots=True)
class CommandSection:
    """Command that data may be piped into, without a shell.

    `report_errors`: if it fails, send the last line of its standard error to the sender.
    """

    name: Annotated[str, text(_name)]
    run: Annotated[tuple[str, ...], _run]
    folder: Annotated[Path, _path] = Path("/")
    report_errors: Annotated[bool, flag()] = False


@dataclass(frozen=True, slots=True)
class LimitsSection:
    """Limits of the agent; None: no limit of its own."""

    sessions: Annotated[int, whole(1, 4096)] = 16
    connections: Annotated[int, whole(1, _LARGEST_CONNECTIONS)] = MAX_CONNECTIONS
    unauthenticated: Annotated[int, whole(1, 4096)] = MAX_UNAUTHENTICATED
    unauthenticated_per_host: Annotated[int, whole(1, 4096)] = MAX_UNAUTHENTICATED_PER_HOST
    file_bytes: Annotated[int | None, whole(1, _MAX_BYTES)] = None
    memory_bytes: Annotated[int, whole(0, _MAX_BYTES)] = 0
    max_rate_mbps: Annotated[float | None, positive(1e9, MIN_RATE / 1e6)] = None
    max_measurement_bytes: Annotated[int, whole(0, MAX_BYTES)] = MeasuringLimits().bytes
    max_measurement_ms: Annotated[float, positive(MAX_SECONDS * 1000)] = MeasuringLimits().seconds * 1000


@dataclass(frozen=True, slots=True)
class AgentClientSection:
    """Certificates with all of these names: their owners may connect as `role`."""

    common_name: Annotated[str | None, text()] = None
    organizational_unit: Annotated[str | None, text()] = None
    dns_name: Annotated[str | None, text()] = None
    uri: Annotated[str | None, text()] = None
    role: Annotated[str, one_of(SENDER, NEIGHBOR)] = SENDER

    def names(self) -> frozenset[tuple[str, str]]:
        """Return the names that a certificate must have."""
        kinds = ("common_name", "organizational_unit", "dns_name", "uri")
        return frozenset((kind, value) for kind in kinds if (value := getattr(self, kind)) is not None)


@dataclass(frozen=True, slots=True)
class AgentAccessSection:
    """Authentication of the agent and its clients: by certificates, or by a shared secret."""

    certificate: Annotated[Path | None, _path] = None
    private_key: Annotated[Path | None, _path] = None
    client_ca: Annotated[Path | None, _path] = None
    client: Annotated[tuple[AgentClientSection, ...], sections(AgentClientSection)] = ()
    secret_file: Annotated[Path | None, _path] = None
    handshake_timeout_ms: Annotated[float, positive(_MAX_MILLISECONDS)] = 5_000.0


@dataclass(frozen=True, slots=True)
class AgentLogSection:
    """Level and format of the log on standard error."""

    level: Annotated[str, one_of(*LEVELS)] = "info"
    format: Annotated[str, one_of(*FORMATS)] = "text"


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole file."""

    agent: Annotated[AgentSection, section(AgentSection)] = AgentSection()
    folder: Annotated[tuple[FolderSection, ...], sections(FolderSection)] = ()
    device: Annotated[tuple[DeviceSection, ...], sections(DeviceSection)] = ()
    command: Annotated[tuple[CommandSection, ...], sections(CommandSection)] = ()
    limits: Annotated[LimitsSection, section(LimitsSection)] = LimitsSection()
    access: Annotated[AgentAccessSection, section(AgentAccessSection)] = AgentAccessSection()
    log: Annotated[AgentLogSection, section(AgentLogSection)] = AgentLogSection()


def load(path: Path) -> Settings:
    """Read and check a configuration file. Raises SettingsError, which names the file."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse(written: str) -> Settings:
    """Check the text of a configuration file. Raises SettingsError."""
    settings = from_tables(_toml(written))
    listen, access = settings.agent.listen, settings.access
    if not listen.is_loopback and access.certificate is None and access.secret_file is None:
        raise SettingsError(
            f"agent.listen {listen} is reached from other machines: add [access] with certificates or a secret_file."
        )
    return settings


def from_tables(tables: object) -> Settings:
    """Check the tables of a configuration except for its access rules. Raise SettingsError."""
    settings = read_section(Settings, tables)
    fault = next(_faults(settings), None)
    if fault is not None:
        raise SettingsError(fault)
    return settings


def _toml(written: str) -> dict[str, object]:
    try:
        return tomllib.loads(written)
    except RecursionError as error:
        raise SettingsError("not TOML that can be read: nested too deeply.") from error
    except ValueError as error:
        # Not only TOMLDecodeError: Python refuses numbers of thousands of digits by itself.
        raise SettingsError(f"not TOML: {error}.") from error


def _faults(settings: Settings) -> Iterator[str]:
    # A sender names a device as it names a folder.
    devices = [device.name for device in settings.device]
    yield from _twice("folder", (*(folder.name for folder in settings.folder), *devices))
    yield from _twice("command", (command.name for command in settings.command))
    if not (settings.folder or settings.device or settings.command or settings.limits.memory_bytes):
        yield "the agent may write nowhere: give a [[folder]], [[device]] or [[command]], or limits.memory_bytes."
    if settings.limits.unauthenticated_per_host > settings.limits.unauthenticated:
        yield "limits.unauthenticated_per_host is more than limits.unauthenticated: lower it."
    yield from _access_faults(settings.access)


def _access_faults(access: AgentAccessSection) -> Iterator[str]:
    files = (access.certificate, access.private_key, access.client_ca)
    if any(files) and not all(files):
        yield "access.certificate, access.private_key and access.client_ca belong together: give all three."
    if all(files) and access.secret_file is not None:
        yield "access has both certificates and a secret_file: give one of them."
    if access.client and access.client_ca is None:
        yield "access.client needs a CA that certificates are checked against: give access.client_ca."
    if all(files) and not access.client:
        yield 'access permits no client: set access.client, for example to [{ common_name = "sender" }].'
    for number, client in enumerate(access.client, 1):
        if not client.names():
            kinds = "common_name, organizational_unit, dns_name or uri"
            yield f"access.client[{number}] fits every certificate: give {kinds}."


def _twice(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"two {kind}s have the name {name!r}: rename one."
