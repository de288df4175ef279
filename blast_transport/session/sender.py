"""The sending side: one file or stream to many receivers, by whatever ways its route names."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from blast_transport.base.engines import ENGINES, check_engine
from blast_transport.base.errors import UnsafeNameError, WrongInputError
from blast_transport.base.report import Progress, ReceiverOutcome, TransferResult
from blast_transport.blocks.digests import suite_named
from blast_transport.blocks.sealing import Sealer, new_key
from blast_transport.datagrams.interface import check_group, interface_mtu
from blast_transport.datagrams.pacing import check_rate
from blast_transport.links.dialling import Address
from blast_transport.links.racks import groups
from blast_transport.session.control_links import ControlLinks
from blast_transport.session.peers.peer import Peer, PeerState
from blast_transport.session.route import Route
from blast_transport.session.sender_core import SenderCore
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.session.transfer import Transfer
from blast_transport.store.files.file_names import checked_parts
from blast_transport.store.files.holes import blocks_within
from blast_transport.store.sources.block_reader import BlockReader
from blast_transport.store.sources.compiled_reader import open_reader
from blast_transport.store.sources.source import Source, StreamSource, opened_file
from blast_transport.transports.choices import MulticastChoice, OpticalChoice, Unicast
from blast_transport.wire.datagram import segment_size_for, segments_for
from blast_transport.wire.messages import FILE, FOLDER, MAX_HOLE_BLOCKS, MAX_HOLES, Hello

_ETHERNET_MTU = 1500
"""Without jumbo frames, which an interface announces."""
_LARGEST_FRAME = 9000
"""Switches seldom carry longer frames; the interface of a loopback has a much larger MTU."""
_OWNER_BYTES = 16
"""Drawn, so that no other session can use the connections of this one."""


class Sender:
    """Sender to a fixed set of receivers, one transfer after the other.

    `receivers` are (name, host, port) of their control addresses on the packet network. A context manager; not
    thread-safe. Raises WrongInputError if an argument cannot be used.
    """

    def __init__(self, receivers: Sequence[Address], settings: SenderSettings | None = None) -> None:
        self._names = [name for name, _, _ in receivers]
        if not receivers or len(set(self._names)) < len(self._names):
            raise WrongInputError("give at least one receiver, and each only once")
        if any(not 0 < port < 1 << 16 for _, _, port in receivers):
            raise WrongInputError("a receiver's port is not between 1 and 65535")
        self._settings = settings or SenderSettings()
        self._suite = suite_named(self._settings.suite)
        check_engine(self._settings.engine)
        self._path_mtu = self._mtu()
        units = groups(self._names, self._settings.racks, self._settings.max_direct)
        self._links = ControlLinks(receivers, self._settings.dialer, units)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connections(self) -> int:
        """Return the number of open control connections, to receivers and to leaders."""
        return self._links.connections

    def connect(self) -> dict[str, str]:
        """Open the missing control connections ahead of a transfer; return the failures, name to reason."""
        return self._links.connect(self._settings.timings.connect)

    def send(self, path: Path, group: str, port: int, rate: float) -> TransferResult:
        """Multicast a file to `group`:`port` at `rate` bits/s on the wire; wait until every receiver confirms.

        A receiver that fails does not disturb the others; its outcome has the reason. Raises WrongInputError if an
        argument cannot be used, SourceChangedError if the file changes, LightPathError if the interface fails and the
        route has no other transport.
        """
        return self.send_file(path, Route(OpticalChoice(group, port, rate)))

    def send_unicast(self, path: Path) -> TransferResult:
        """Send a file to every receiver over its own connection, for comparison. Raise as `send` does."""
        return self.send_file(path, Route(Unicast()))

    def send_file(
        self,
        path: Path,
        route: Route,
        destination: Destination | None = None,
        report: Callable[[Progress], None] | None = None,
    ) -> TransferResult:
        """Send a file by the transports of `route`, which may change meanwhile. Raise as `send` does."""
        with opened_file(path) as source:
            result = self.transmit(source, route, destination or Destination(path.name), report)
            source.check_unchanged()
            return result

    def transmit(
        self,
        source: Source,
        route: Route,
        destination: Destination,
        report: Callable[[Progress], None] | None = None,
    ) -> TransferResult:
        """Send what `source` gives; return when every receiver has confirmed or failed.

        `report` is called some times a second with the progress. Raises as `send` does.
        """
        self._check(route, destination)
        # An invitation that waits behind a flood of packets is late.
        self._links.expedite(by_light=isinstance(route.first, OpticalChoice))
        unreachable = self.connect()
        hello = self._hello(source, destination, self._segment_size(route))
        now = time.monotonic()
        core = SenderCore(hello, self._names, now, self._settings.timings)
        for name, reason in unreachable.items():
            core.disconnected(name, reason, now)
        for name in self._links.open:
            core.connected(name, now)
        sealer = Sealer(hello.key) if hello.key else None
        reader = open_reader(self._settings.engine, source, hello.layout, self._suite, sealer, hello.holes)
        transfer = Transfer(core, self._links, reader, route, self._settings)
        try:
            transfer.run(report)
        except BaseException:
            self._links.abort()
            raise
        finally:
            route.wake = lambda: None
        self._links.drop_failed(core)
        return self._result(destination, source, core, transfer, reader)

    def close(self) -> None:
        """Close the control connections."""
        self._links.close()

    def _mtu(self) -> int:
        address, mtu = self._settings.interface_address, self._settings.mtu
        if address is None:
            return mtu or _ETHERNET_MTU
        own = interface_mtu(address)
        if mtu is not None and mtu > own:
            raise WrongInputError(f"an MTU of {mtu} bytes is more than the {own} of {address}")
        return mtu or own

    def _segment_size(self, route: Route) -> int:
        """Return the bytes of a block in a datagram, so that every transport of the route can send it."""
        choices = [choice for choice in (route.first, route.otherwise) if isinstance(choice, MulticastChoice)]
        if not choices or not self._links.open:
            return segment_size_for(self._path_mtu)
        address = choices[0].interface_address or self._links.own_address()
        mtu = min(interface_mtu(address), _LARGEST_FRAME)
        if self._settings.mtu or self._settings.interface_address:
            mtu = min(mtu, self._path_mtu)
        return segment_size_for(mtu, ipv6=":" in address)

    def _check(self, route: Route, destination: Destination) -> None:
        if isinstance(route.first, OpticalChoice):
            if self._settings.interface_address is None:
                raise WrongInputError(
                    "the optical transport needs the address of this host's interface on the optical network; "
                    "set interface_address"
                )
            check_group(route.first.group, route.first.port)
            check_rate(route.first.rate)
        if destination.kind in (FILE, FOLDER):
            try:
                checked_parts(destination.name)
            except UnsafeNameError as error:
                raise WrongInputError(f"{destination.name!r} cannot be sent under its name: {error}") from error

    def _hello(self, source: Source, destination: Destination, segment_size: int) -> Hello:
        hello = Hello(
            session=secrets.randbits(32),
            size=None if isinstance(source, StreamSource) else source.size,
            segment_size=segment_size,
            block_segments=segments_for(segment_size),
            suite=self._suite.name,
            kind=destination.kind,
            name=destination.name,
            folder=destination.folder,
            file=destination.file,
            content=source.content,
            key=new_key() if self._settings.sealed else b"",
            owner=secrets.token_bytes(_OWNER_BYTES) if self._links.led else b"",
        )
        # A command or a program takes bytes, and has no holes.
        if destination.kind not in (FILE, FOLDER) or hello.size is None:
            return hello
        return replace(hello, holes=blocks_within(source.holes(), hello.layout, MAX_HOLES, MAX_HOLE_BLOCKS))

    def _result(
        self, destination: Destination, source: Source, core: SenderCore, transfer: Transfer, reader: BlockReader
    ) -> TransferResult:
        totals = transfer.totals
        return TransferResult(
            file=destination.name,
            session=core.hello.session,
            bytes=source.size or 0,
            digest=reader.whole(core.table()).hex() if core.ended else "",
            seconds=time.monotonic() - totals.began if totals.began is not None else 0.0,
            datagrams=totals.datagrams,
            repaired_bytes=transfer.repaired_bytes(),
            receivers=tuple(_outcome(name, peer, core) for name, peer in core.peers.items()),
            suite=self._suite.name,
            transports=tuple(totals.transports),
            offload=totals.offload,
            shared_repairs=core.shared_repairs,
            engine=reader.engine,
            notes=tuple(totals.notes),
            hole_bytes=min(core.hole_blocks * core.layout.block_size, source.size or 0),
        )


def _outcome(name: str, peer: Peer, core: SenderCore) -> ReceiverOutcome:
    return ReceiverOutcome(
        name=name,
        complete=peer.state is PeerState.COMPLETE,
        reason=peer.reason,
        repaired_bytes=peer.fin.repaired if peer.fin else 0,
        first_datagram=peer.fin.first_datagram if peer.fin else None,
        # The cause in the network comes first: a receiver may have been slow afterwards, too.
        demoted=peer.unreached or peer.demoted,
        refused=peer.fin.refused if peer.fin else 0,
        durable=peer.fin.durable if peer.fin else None,
        engine=peer.fin.engine if peer.fin and peer.fin.engine in ENGINES else "",
        # The last block may be shorter than the others.
        resumed_bytes=min(peer.resumed * core.layout.block_size, core.layout.size or 0),
    )
