"""What every table of the configuration file is, and the kinds of values that several tables have."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


def _text(value: object) -> object:
    # Python's address types would take numbers and truth values too.
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Milliseconds = Annotated[float, Field(gt=0)]
Ip = Annotated[IPv4Address, BeforeValidator(_text)]
IpNetwork = Annotated[IPv4Network, BeforeValidator(_text)]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError('must be "ADDRESS:PORT"')
    return text


Address = Annotated[str, AfterValidator(_address)]


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches HOST:PORT."""
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
