"""The table `ssh` of an optical switch in the configuration: user, secrets and trusted host keys. Needs pydantic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from blast_base.extras import NotInstalledError, require
from blast_base.settings import File, Milliseconds, Section
from optical_switch.drivers import SwitchFiles, SwitchTarget
from optical_switch.errors import InvalidDriverSettingError

if TYPE_CHECKING:
    from optical_switch.ssh import SshTransport

Text = Annotated[str, Field(min_length=1)]

Transport = TypeVar("Transport", bound="SshTransport")
T = TypeVar("T")


class SshLoginSection(Section):
    """User and host authentication of an SSH connection to a switch."""

    user: Text
    password_file: File | None = None
    private_key: File | None = None
    host_key: File | None = None
    known_hosts: File | None = None
    open_timeout_ms: Milliseconds = 10_000

    def faults(self) -> Iterator[str]:
        """Yield faults beyond single values: each the end of a sentence about this table."""
        if self.host_key is None and self.known_hosts is None:
            yield (
                "needs host_key or known_hosts to authenticate the switch: read the key on the switch's console or in "
                "its vendor's interface."
            )
        if self.host_key is not None and self.known_hosts is not None:
            yield "has both host_key and known_hosts: keep only one."
        if (self.password_file is None) == (self.private_key is None):
            yield "needs either password_file or private_key."


def require_ssh(target: SwitchTarget) -> None:
    """Raise InvalidDriverSettingError if asyncssh is missing: call it before `optical_switch.ssh` is imported."""
    try:
        require("ssh-switches", "asyncssh")
    except NotInstalledError as error:
        raise InvalidDriverSettingError(f"{target.phrase} cannot use SSH: {error}.") from error


def read_transport(
    kind: type[Transport], section: SshLoginSection, target: SwitchTarget, files: SwitchFiles
) -> Transport:
    """Read the files of a table and return the transport to the switch.

    Parameters
    ----------
    kind : type[Transport]
        Class of the transport.
    section : SshLoginSection
        The table, without faults.
    target : SwitchTarget
        The switch.
    files : SwitchFiles
        Reader of the files.

    Returns
    -------
    Transport
        Transport that starts a shell.

    Raises
    ------
    InvalidDriverSettingError
        If a file has no usable key or password; the sentence names the switch and the file.
    """
    from optical_switch.ssh import host_keys, known_host_keys, private_key

    def made(path: Path, text: str, make: Callable[[str], T]) -> T:
        try:
            return make(text)
        except InvalidDriverSettingError as error:
            raise InvalidDriverSettingError(f"{target.phrase}: {path} {error}.") from error

    trusted = section.host_key or section.known_hosts
    assert trusted is not None, "configurations are checked when they are read"
    make = host_keys if section.host_key is not None else lambda text: known_host_keys(text, target.host, target.port)
    key = section.private_key
    return kind(
        section.user,
        made(trusted, files.read(trusted), make),
        password=_password(section, target, files),
        key=None if key is None else made(key, files.read_secret(key), private_key),
        seconds=section.open_timeout_ms / 1000,
    )


def _password(section: SshLoginSection, target: SwitchTarget, files: SwitchFiles) -> str:
    if (path := section.password_file) is None:
        return ""
    if password := files.read_secret(path).strip():
        return password
    raise InvalidDriverSettingError(f"{target.phrase}: {path} is empty: write the password on its first line.")
