"""Check that this host has the resources that the configuration names: folders, devices, commands, optical address."""

from __future__ import annotations

import os
from pathlib import Path

from blast_transport.agent.settings import AgentAccessSection, CommandSection, DeviceSection, FolderSection, Settings
from blast_transport.base.errors import SettingsError, WrongInputError, sentence
from blast_transport.credentials.admission import Admission
from blast_transport.credentials.material import Credentials, SharedSecret, read_secret, refuse_readable_by_others
from blast_transport.credentials.tls import TlsFiles
from blast_transport.datagrams.interface import check_optical_interface
from blast_transport.store.targets.device_target import is_device


def check_host(settings: Settings) -> Credentials:
    """Check all resources that the configuration names; return the agent's credentials. Raise SettingsError."""
    for folder in settings.folder:
        _check_folder(folder)
    for device in settings.device:
        _check_device(device)
    for command in settings.command:
        _check_command(command)
    if settings.agent.optical_address is not None:
        try:
            check_optical_interface(settings.agent.optical_address)
        except WrongInputError as error:
            raise SettingsError(f"agent.optical_address: {error}.") from error
    credentials = credentials_of(settings.access)
    Admission(credentials)
    return credentials


def credentials_of(access: AgentAccessSection) -> Credentials:
    """Return the credentials that the configuration names. Raise SettingsError for files that cannot be used."""
    if access.secret_file is not None:
        return SharedSecret(read_secret(access.secret_file))
    if access.certificate is None or access.private_key is None or access.client_ca is None:
        return None
    refuse_readable_by_others(access.private_key)
    return TlsFiles(access.certificate, access.private_key, access.client_ca)


def _check_folder(folder: FolderSection) -> None:
    if not folder.path.is_dir():
        raise SettingsError(f"the folder {folder.name!r} is not there: mkdir -p {folder.path}")
    if not os.access(folder.path, os.W_OK | os.X_OK):
        raise SettingsError(f"the folder {folder.name!r} ({folder.path}) cannot be written by user {os.geteuid()}.")


def _check_device(device: DeviceSection) -> None:
    try:
        mode = device.path.stat().st_mode
    except OSError as error:
        raise SettingsError(f"the device {device.name!r} ({device.path}) is not there: {sentence(error)}.") from error
    if not is_device(mode):
        raise SettingsError(f"the device {device.name!r}: {device.path} is no device; files go into a [[folder]].")
    if not os.access(device.path, os.W_OK):
        raise SettingsError(f"the device {device.name!r} ({device.path}) cannot be written by user {os.geteuid()}.")


def _check_command(command: CommandSection) -> None:
    program = Path(command.run[0])
    if not program.is_file() or not os.access(program, os.X_OK):
        raise SettingsError(f"the command {command.name!r} cannot be run: {program} is no program.")
    if not command.folder.is_dir():
        raise SettingsError(f"the command {command.name!r} cannot be run: there is no folder {command.folder}.")
