"""The table of the configuration file about a journal in etcd, which several controllers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from blast_base.settings import Address, File, Section, is_loopback


class EtcdSection(Section):
    """Where etcd's members are, who we are to them, and under which keys the journal lies."""

    endpoints: Annotated[tuple[Address, ...], Field(min_length=1)]
    ca: File | None = None
    certificate: File | None = None
    private_key: File | None = None
    user: str | None = None
    password_file: File | None = None
    prefix: Annotated[str, Field(min_length=1)] = "/blast/"
    lease_s: Annotated[int, Field(ge=1, le=60)] = 1


def etcd_fault(section: EtcdSection) -> str | None:
    """Return the first thing that is wrong, as one sentence."""
    return next(_faults(section), None)


def _faults(section: EtcdSection) -> Iterator[str]:
    tls = (section.ca, section.certificate, section.private_key)
    if any(tls) and not all(tls):
        yield "journal.etcd.ca, certificate and private_key must be set together: set all three."
    if not any(tls) and not all(map(is_loopback, section.endpoints)):
        yield "journal.etcd.endpoints are on other machines: set ca, certificate and private_key in journal.etcd."
    if (section.user is None) != (section.password_file is None):
        yield "journal.etcd.user and password_file must be set together: set both."
    if not section.prefix.strip("/"):
        yield 'journal.etcd.prefix must not be empty: set a prefix that only Blast uses, such as "/blast/".'
