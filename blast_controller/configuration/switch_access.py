"""From the configuration and the files that it names to how an optical switch is reached."""

from __future__ import annotations

from pathlib import Path

from blast_controller.configuration.access_files import read_secret
from blast_controller.configuration.config import Config, ConfigError, OpticalSwitchSection
from blast_controller.configuration.reading import read
from optical_switch.drivers import SwitchAccess, drivers
from optical_switch.errors import InvalidDriverSettingError


class _Files:
    """The files of the configuration. Raises ConfigError."""

    def read(self, path: Path) -> str:
        return read(path)

    def read_secret(self, path: Path) -> str:
        return read_secret(path)


def read_access(section: OpticalSwitchSection) -> SwitchAccess:
    """Return how a switch is reached. Raises ConfigError for an unusable file, or if a library is missing."""
    try:
        return drivers()[section.driver].access(section, section.target(), _Files())
    except InvalidDriverSettingError as error:
        raise ConfigError(str(error)) from error


def check_switch_files(config: Config) -> None:
    """Read all that the optical switches name. Raises ConfigError."""
    for section in config.optical_switch:
        read_access(section)
