"""The table `ssh` of an optical switch: TL1 by SSH, where the switch offers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from blast_controller.configuration.section import File, Milliseconds, Section

_Text = Annotated[str, Field(min_length=1)]


class SshSection(Section):
    """As whom we log in, what the switch proves itself by, and where TL1 is spoken."""

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
    """The first thing that is wrong, as the end of a sentence."""
    return next(_faults(section), None)


def _faults(section: SshSection) -> Iterator[str]:
    if section.host_key is None and section.known_hosts is None:
        yield (
            "needs host_key or known_hosts, for whoever answers at the address could say that it is the switch: take "
            "its key from its console or its vendor's interface."
        )
    if section.host_key is not None and section.known_hosts is not None:
        yield "has both host_key and known_hosts: leave one of them out."
    if (section.password_file is None) == (section.private_key is None):
        yield "needs either password_file or private_key."
    if section.subsystem is not None and section.command is not None:
        yield "has both subsystem and command: TL1 is spoken by one of them, or in the user's shell without either."
