"""The base of all tables of a configuration file, and types of values that several tables share. Needs pydantic."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from blast_base.endpoint import Endpoint, parse_endpoint


def _text(value: object) -> object:
    # Python's address types would take numbers and truth values too.
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def _unicast(address: IPv4Address) -> IPv4Address:
    if address.is_multicast or address.is_reserved or address.is_unspecified:
        raise ValueError("must be the address of one host")
    return address


def _path(value: object) -> object:
    if isinstance(value, str) and (not value or "\0" in value):
        raise ValueError("must be a file path without NUL characters")
    return value


Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Milliseconds = Annotated[float, Field(gt=0)]
Ip = Annotated[IPv4Address, BeforeValidator(_text), AfterValidator(_unicast)]
File = Annotated[Path, BeforeValidator(_path)]
IpNetwork = Annotated[IPv4Network, BeforeValidator(_text)]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def endpoint_of(address: str) -> Endpoint:
    """Return the host and port of HOST:PORT, where 0 is any free port. Raises ValueError."""
    return parse_endpoint(address, min_port=0)


def _address(text: str) -> str:
    try:
        return str(endpoint_of(text))
    except ValueError:
        raise ValueError('must be "HOST:PORT" or "[IPv6]:PORT"') from None


Address = Annotated[str, AfterValidator(_address)]


def is_loopback(address: str) -> bool:
    """Return true if HOST:PORT is reachable from this machine only."""
    return endpoint_of(address).is_loopback
