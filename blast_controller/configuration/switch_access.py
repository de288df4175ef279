"""From the configuration and the files that it names to how an optical switch is reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from blast_base.endpoint import parse_endpoint
from blast_base.extras import NotInstalledError, require
from blast_controller.configuration.access_files import read_secret
from blast_controller.configuration.config import Config, ConfigError, OpticalSwitchSection
from blast_controller.configuration.reading import read
from tl1_driver.protocol.errors import InvalidSettingError
from tl1_driver.transport import Tcp, Tl1Transport

T = TypeVar("T")


def read_password(section: OpticalSwitchSection) -> str:
    """Return the TL1 password, empty without a user. Raises ConfigError."""
    return "" if section.password_file is None else read_secret(section.password_file).strip()


def read_way(section: OpticalSwitchSection) -> Tl1Transport:
    """Return the transport to the switch. Raises ConfigError for an unusable file, or if asyncssh is missing."""
    ssh = section.ssh
    if ssh is None:
        return Tcp()
    try:
        require("ssh-switches", "asyncssh")
    except NotInstalledError as error:
        raise ConfigError(f"the optical switch {section.name} cannot use SSH: {error}.") from error
    from tl1_driver.ssh import Ssh, host_keys, known_host_keys, private_key

    def made(path: Path, text: str, make: Callable[[str], T]) -> T:
        try:
            return make(text)
        except InvalidSettingError as error:
            raise ConfigError(f"the optical switch {section.name}: {path} {error}.") from error

    trusted = ssh.host_key or ssh.known_hosts
    assert trusted is not None, "configurations are checked when they are read"
    host, port = parse_endpoint(section.address)
    make = host_keys if ssh.host_key is not None else lambda text: known_host_keys(text, host, port)
    password = "" if ssh.password_file is None else read_secret(ssh.password_file).strip()
    if ssh.password_file is not None and not password:
        raise ConfigError(
            f"the optical switch {section.name}: {ssh.password_file} is empty: write the password on its first line."
        )
    return Ssh(
        ssh.user,
        made(trusted, read(trusted), make),
        password=password,
        key=None if ssh.private_key is None else made(ssh.private_key, read_secret(ssh.private_key), private_key),
        subsystem=ssh.subsystem or "",
        command=ssh.command or "",
        terminal=ssh.terminal,
        seconds=ssh.open_timeout_ms / 1000,
    )


def check_switch_files(config: Config) -> None:
    """Read all that the optical switches name. Raises ConfigError."""
    for section in config.optical_switch:
        read_password(section)
        read_way(section)
