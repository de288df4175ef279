"""Settings of a sender, and the destination of the data at each receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blast_transport.base.engines import AUTO
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.blocks.digests import BEST
from blast_transport.credentials.material import Credentials
from blast_transport.links.dialling import Dialer, dial
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.wire.messages import FILE

MAX_DIRECT = 100
"""Receivers that a sender keeps a connection to each."""


class Destination(FrozenRecord):
    """Destination of the data at each receiver: a `kind` of target (`wire.messages.KINDS`) and its `name`.

    A file goes below the receiver's `folder`; a command is one that the receiver's configuration knows by this name,
    and may get the file name `file`.
    """

    name: str
    kind: str = FILE
    folder: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Settings of a sender other than its receivers.

    `interface_address`: of this host on the optical network, None without one. `mtu`: bytes, None for that of the
    interface. `suite`: of digests. `sealed`: encrypt the optical multicast. `dialer` opens control connections;
    `credentials` authenticate this host to connecting nodes. More than `max_direct` receivers are reached through
    leaders of their racks; `racks`: name to rack, where known. `engine`: reads and digests (`base/engines.py`).
    """

    interface_address: str | None = None
    mtu: int | None = None
    timings: SenderTimings = field(default_factory=SenderTimings)
    suite: str = BEST
    sealed: bool = False
    dialer: Dialer = dial
    credentials: Credentials = None
    racks: Mapping[str, str] = field(default_factory=dict)
    max_direct: int = MAX_DIRECT
    engine: str = AUTO
