"""A delivery round: request, transfer over the optical path or packets, confirmation, release.

A round without a controller or trees does not load their modules, which takes longer than sending a small file.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from thrift.Thrift import TException

from blast_client.api.address import DEFAULT_ADDRESS, AddressError
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.api.calls import ControllerUnreachableError, milliseconds
from blast_client.api.tls import CredentialsError, TlsSettings
from blast_client.api.unknown_hosts import CODE, addresses_of, hosts_of, meant
from blast_client.send.in_thread import Carry, carried, in_thread
from blast_client.send.option_values import AUTO, GIVEN, NAMES, RACKS
from blast_client.send.receivers import Receiver
from blast_transport.base.engines import AUTO as AUTO_ENGINE
from blast_transport.base.engines import check_engine
from blast_transport.base.errors import WrongInputError
from blast_transport.base.host_order import as_given, by_name, by_racks
from blast_transport.base.report import Progress, TransferResult
from blast_transport.blocks.digests import BEST
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.registry import default_choice
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import MAX_DIRECT, Destination, SenderSettings
from blast_transport.store.sources.source import Source
from blast_transport.transports.choices import Chain, MulticastChoice, TransportChoice
from blast_transport.wire.pipeline_bounds import NODE_TIMEOUT
from blast_transport.wire.transports import MULTICAST, OPTICAL, PIPELINE, TRANSPORTS, TREES

if TYPE_CHECKING:
    from blast_api.ttypes import MulticastRequest
    from blast_client.api.aio import AsyncClient
    from blast_client.send.part_sending import PartSent
    from blast_client.trees.guide import Probe, TreeGuide

Report = Callable[[Sequence[str], Progress], None]
"""Function (receivers, progress) that the sending thread calls several times a second."""

_VIAS = (AUTO, *TRANSPORTS)
_MAYBE_OPTICAL = (AUTO, OPTICAL)
_MULTICAST_BYTES = 16 << 20
"""Size from which "auto" multicasts files over packets. Three receivers on a bridge got 1 MiB in 32 ms by multicast and
in 15 ms by a pipeline, 4 MiB in 41 and 58 ms, 16 MiB in 68 and 93 ms. A group that reaches no receiver costs 0.2 s
first, little more than 16 MiB take at 1 Gbit/s."""
_ORDERS = (None, RACKS, NAMES, GIVEN)


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """Settings of a delivery, apart from the data and the receivers.

    Parameters
    ----------
    controller
        HOST:PORT of the controller, or of several with commas; None: no optical transport.
    tls, token
        TLS and login of the controller, as for `Client`.
    sender
        Name of this host in the controller's configuration. None: its host name.
    optical_address
        IPv4 address of this host on the optical path. None: its address on the route to the receivers.
    via
        "auto", "optical", "multicast", "pipeline", "trees" or "unicast".
    multicast
        Settings of the transport "multicast".
    order
        Order of a pipeline: "racks", "names" or "given". None: by racks if they are known.
    slowest_rate
        Rate in bits/s below which a node is excluded from the pipeline. 0: none is.
    node_timeout
        Time in seconds after which a silent node of the pipeline is dead.
    buffer
        Bytes that each node of a pipeline keeps for nodes behind it if they cannot be read again. 0: the default.
    network
        Network file (`blast trees`) for which trees are planned; "auto" uses them if they are faster than a pipeline.
    trees
        File with a plan of trees.
    priority
        Priority of the request; the highest is served first.
    pending_timeout
        Time in seconds after which a pending request expires. None: no limit.
    credentials
        Credentials for the agents, from `agent_secret` or `agent_certificates`.
    sealed
        Encrypt the data that is multicast.
    engine
        Implementation of the data path: "auto", "compiled" or "python".
    suite
        Digest suite.

    Raises
    ------
    InvalidArgumentError
        A setting is invalid, or settings exclude each other.
    """

    controller: str | None = DEFAULT_ADDRESS
    tls: TlsSettings | None = None
    token: str | None = field(default=None, repr=False)
    sender: str | None = None
    optical_address: str | None = None
    via: str = AUTO
    multicast: MulticastChoice = field(default_factory=MulticastChoice)
    order: str | None = None
    slowest_rate: float = 0.0
    node_timeout: float = NODE_TIMEOUT
    buffer: int = 0
    network: Path | None = None
    trees: Path | None = None
    priority: int | None = None
    pending_timeout: float | None = None
    credentials: Credentials = field(default=None, repr=False)
    sealed: bool = False
    engine: str = AUTO_ENGINE
    suite: str = BEST

    def __post_init__(self) -> None:
        for name, given, known in (("via", self.via, _VIAS), ("order", self.order, _ORDERS)):
            if given not in known:
                raise InvalidArgumentError(f"{name} must be one of {', '.join(filter(None, known))}, not {given!r}")
        if self.via == TREES and (self.network is None) == (self.trees is None):
            raise InvalidArgumentError("trees need a network file or a file with a plan: give one of them")
        if self.trees is not None and self.via != TREES:
            raise InvalidArgumentError(f"a plan of trees needs the transport {TREES!r}, not {self.via!r}")
        if self.network is not None and self.via not in (AUTO, TREES):
            raise InvalidArgumentError(f"a network file needs the transport {AUTO!r} or {TREES!r}, not {self.via!r}")
        if not isinstance(self.credentials, SharedSecret | TlsFiles | None):
            raise InvalidArgumentError(
                "credentials must be the result of agent_secret(path) or agent_certificates(certificate, private_key, "
                f"ca), not a {type(self.credentials).__name__}"
            )
        try:
            check_engine(self.engine)
        except WrongInputError as error:
            raise InvalidArgumentError(str(error)) from error

    @property
    def host(self) -> str:
        """Name of this host in the controller's configuration."""
        return self.sender or socket.gethostname()


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The result of a round: one for each transfer, reasons of `unreached` hosts, and why no grant was available."""

    results: tuple[TransferResult, ...]
    unreached: dict[str, str]
    refused: str


class DeliveryRound:
    """One delivery to receivers."""

    def __init__(self, receivers: Sequence[Receiver], settings: RoundSettings) -> None:
        self._addresses = {receiver[0]: receiver for receiver in receivers}
        self._settings = settings
        self._racks: dict[str, str] = {}
        self._guide: TreeGuide | None = None

    async def deliver(
        self, source: Source, destination: Destination, report: Report, size: int | None = None
    ) -> RoundResult:
        """Send a source; `size` in bytes if the source does not know its own.

        Raises TransportError; with the transport "optical" also BlastError.
        """
        settings, size = self._settings, source.size if source.size is not None else size
        await self._look_up_addresses()
        try:
            optical_address = self._optical_address()
        except WrongInputError as error:
            # No receiver can be resolved; the controller may know similar names.
            raise WrongInputError(await self._with_suggestion(str(error))) from error
        carry = self._carry(source, destination, report, optical_address)
        if optical_address is None or size is None or settings.controller is None:
            if settings.via == OPTICAL:
                raise WrongInputError(_missing_for_optical(size, settings.controller))
            route = await self._route_without_light(source)
            return RoundResult((await carried(carry, tuple(self._addresses), route),), {}, "")
        from blast_client.send.delivery import deliver

        async with self._client(settings.controller) as client:
            if len(self._addresses) > MAX_DIRECT:
                with suppress(TException, ControllerUnreachableError):
                    await self._find_racks(client)
            if settings.via == OPTICAL:
                return _of_parts(await self._send_optical(client, size, carry))
            packets = await self._packets(await self._order(client), source)
            delivered = await deliver(client, self._request(size, may_split=False), carry, packets)
            return _of_parts([delivered.sent], self._suggest_hosts(delivered.refused))

    async def _route_without_light(self, source: Source) -> Route:
        settings = self._settings
        if settings.via in (AUTO, MULTICAST, PIPELINE, TREES):
            return Route(await self._packets(await self._order(), source))
        return Route(default_choice(settings.via))

    async def _send_optical(self, client: AsyncClient, size: int, carry: Carry) -> list[PartSent]:
        from blast_client.api.errors import Rejected
        from blast_client.send.sending import send

        try:
            return await send(client, self._request(size, may_split=True), carry)
        except Rejected as error:
            if error.code == CODE:
                with suppress(TException, ControllerUnreachableError):
                    await self._find_racks(client)
                error.message = self._suggest_hosts(error.message)
            raise

    async def _with_suggestion(self, sentence: str) -> str:
        if self._settings.controller is not None:
            with suppress(TException, BlastError):
                async with self._client(self._settings.controller) as client:
                    await self._find_racks(client)
        return self._suggest_hosts(sentence)

    async def _look_up_addresses(self) -> None:
        """Look up at the controller the addresses of receivers whose names cannot be resolved."""
        named = [receiver for receiver in self._addresses.values() if receiver[0] == receiver[1]]
        unknown = await in_thread("name resolution", _unresolved, named)
        if not unknown or self._settings.controller is None:
            return
        with suppress(TException, BlastError):
            async with self._client(self._settings.controller) as client:
                known = addresses_of(await client.fabric())
            for name, _, port in unknown:
                self._addresses[name] = (name, known.get(name, name), port)

    def _suggest_hosts(self, refused: str) -> str:
        """Append similar host names to a reason if the fabric lacks one of the hosts."""
        question = meant([self._settings.host, *self._addresses], self._racks) if refused and self._racks else ""
        return f"{refused.rstrip('.')}; {question}" if question else refused

    def _carry(self, source: Source, destination: Destination, report: Report, optical_address: str | None) -> Carry:
        settings = self._settings
        sending = SenderSettings(
            interface_address=optical_address,
            timings=_timings(settings.node_timeout),
            sealed=settings.sealed,
            dialer=dialer(settings.credentials),
            credentials=settings.credentials,
            suite=settings.suite,
            engine=settings.engine,
        )

        def carry(receivers: Sequence[str], route: Route) -> TransferResult:
            addresses = [self._addresses[name] for name in receivers]
            guiding = nullcontext() if self._guide is None else self._guide.guiding(route)
            with guiding, Sender(addresses, replace(sending, racks=self._racks)) as sender:
                return sender.transmit(source, route, destination, lambda progress: report(receivers, progress))

        return carry

    def _request(self, size: int, *, may_split: bool) -> MulticastRequest:
        from blast_api.ttypes import MulticastRequest

        settings = self._settings
        return MulticastRequest(
            key=f"send-{secrets.token_hex(6)}",
            sender=settings.host,
            receivers=list(self._addresses),
            bytes=max(1, size),
            priority=settings.priority,
            pendingTimeoutMs=None if settings.pending_timeout is None else milliseconds(settings.pending_timeout),
            maySplit=may_split or None,
            mayPause=True,
        )

    async def _order(self, client: AsyncClient | None = None) -> list[str]:
        """Return the receivers in the order of a pipeline."""
        names, order, controller = list(self._addresses), self._settings.order, self._settings.controller
        if order == GIVEN:
            return as_given(names, names)
        if order == NAMES or controller is None or (client is None and order is None):
            return by_name(names)
        try:
            if client is not None:
                await self._find_racks(client)
            else:
                async with self._client(controller) as connected:
                    await self._find_racks(connected)
        except (TException, ControllerUnreachableError, AddressError, CredentialsError):
            if order == RACKS:
                raise
            return by_name(names)
        return by_racks(self._settings.host, names, self._racks)

    async def _find_racks(self, client: AsyncClient) -> None:
        self._racks = hosts_of(await client.fabric())

    async def _packets(self, order: list[str], source: Source) -> TransportChoice:
        """Return the transport over the packet network: multicast, a pipeline in this order, or trees."""
        settings, names = self._settings, list(self._addresses)
        chain = Chain(tuple(order), settings.slowest_rate, settings.node_timeout, settings.buffer)
        if settings.trees is not None:
            from blast_client.trees.given import given_trees

            return given_trees(settings.trees, names)
        if settings.via == MULTICAST or self._multicasts(source):
            return replace(settings.multicast, otherwise=chain)
        if settings.network is None:
            return chain
        from blast_client.trees.guide import TreeGuide
        from blast_client.trees.planner import planner_of

        planner = planner_of(settings.network)
        guide = await in_thread("tree planner", TreeGuide, planner, names, self._probe(planner.root))
        if settings.via == AUTO and not guide.are_worth_it(order):
            return chain
        self._guide = guide
        return guide.choice

    def _multicasts(self, source: Source) -> bool:
        """Return whether "auto" multicasts this source: several receivers get a file, which can be sent again."""
        settings, size = self._settings, source.size
        if settings.via != AUTO or settings.network is not None or size is None:
            return False
        return len(self._addresses) > 1 and size >= _MULTICAST_BYTES

    def _probe(self, root: str) -> Probe:
        """Return a function that measures a path by the agents at its ends; this process is the root's end."""
        from blast_transport.measuring.flows import HERE, measure_link

        def probe(start: str, end: str) -> float:
            source = HERE if start == root else self._addresses[start]
            # If the agents are busy with another measurement, the guide probes again in some seconds.
            return measure_link(source, self._addresses[end], dialer(self._settings.credentials), busy_timeout=0.0)

        return probe

    def _client(self, controller: str) -> AsyncClient:
        from blast_client.api.aio import AsyncClient

        return AsyncClient(controller, tls=self._settings.tls, token=self._settings.token)

    def _optical_address(self) -> str | None:
        """Return the address for the optical path, or None if only packets are used. Raises WrongInputError."""
        settings = self._settings
        if settings.via not in _MAYBE_OPTICAL or settings.controller is None:
            return None
        return settings.optical_address or _own_address(list(self._addresses.values()))


def _timings(node_timeout: float) -> SenderTimings:
    """Return timings in which a node's stall limit exceeds the timeouts of two silent nodes before it in a chain."""
    timings = SenderTimings()
    return replace(timings, stall=timings.stall + 2 * max(0.0, node_timeout - NODE_TIMEOUT))


def _of_parts(parts: Sequence[PartSent], refused: str = "") -> RoundResult:
    unreached = {name: part.reason for part in parts if part.result is None for name in part.receivers}
    return RoundResult(tuple(part.result for part in parts if part.result is not None), unreached, refused)


def _missing_for_optical(size: int | None, controller: str | None) -> str:
    if size is None:
        return "the optical transport needs the size of the data: give --bytes"
    if controller is None:
        return "the optical transport needs a controller: name one with --controller"
    return "the optical transport needs IPv4, and no receiver has an IPv4 address: choose --via pipeline"


def _unresolved(receivers: Sequence[Receiver]) -> list[Receiver]:
    found = []
    for receiver in receivers:
        try:
            socket.getaddrinfo(receiver[1], receiver[2], type=socket.SOCK_STREAM)
        except OSError:
            found.append(receiver)
    return found


def _own_address(receivers: Sequence[Receiver]) -> str | None:
    """Return the local IPv4 address on the route to the first receiver that has one; None if all have only IPv6.

    Raises WrongInputError if no receiver can be resolved.
    """
    reasons, is_known = [], False
    for _, host, port in receivers:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            address = next((one[4] for one in found if one[0] == socket.AF_INET), None)
            if address is None:
                is_known = True
                continue
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError as error:
            reason = error.strerror or error
            reasons.append(f"cannot resolve the host {host} ({reason}): write HOST=ADDRESS:PORT")
    if is_known:
        return None
    raise WrongInputError(reasons[0])
