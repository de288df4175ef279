"""The table `ssh` of an optical switch: TL1 by SSH, where the switch offers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from blast_controller.configuration.section import File, Milliseconds, Section

_Text = Annotated[str, Field(min_length=1)]


class SshSection(Section):
    """User, host authentication and TL1 channel of an SSH connection to a switch."""

    user: _Text
    password_file: File | None = None
    private_key: File | None = None
    host_key: File | None = None
    known_hosts: File | None = None
    subsystem: _Text | None = None
    command: _Text | None = None
    terminal: bool = False
    open_timeout_ms: Milliseconds = 10_000


def ssh_fault(section: SshSection) -> str | None:
    """Return the first thing that is wrong, as the end of a sentence."""
    return next(_faults(section), None)


def _faults(section: SshSection) -> Iterator[str]:
    if section.host_key is None and section.known_hosts is None:
        yield (
            "needs host_key or known_hosts to authenticate the switch: read the key on the switch's console or in "
            "its vendor's interface."
        )
    if section.host_key is not None and section.known_hosts is not None:
        yield "has both host_key and known_hosts: keep only one."
    if (section.password_file is None) == (section.private_key is None):
        yield "needs either password_file or private_key."
    if section.subsystem is not None and section.command is not None:
        yield "has both subsystem and command: keep only one, or neither if the user's shell speaks TL1."
