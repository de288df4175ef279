"""A whole round: ask for light, send by it or by packets, see it confirmed, and give the light back."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from thrift.Thrift import TException

from blast_api.ttypes import MulticastRequest
from blast_client.address import DEFAULT_ADDRESS, BadAddress
from blast_client.aio import AsyncClient
from blast_client.base_error import BlastError, WrongArgument
from blast_client.calls import ControllerUnreachable, milliseconds
from blast_client.delivery import deliver
from blast_client.errors import Rejected
from blast_client.in_thread import Carry, carried, in_thread
from blast_client.part_sending import PartSent
from blast_client.receivers import Receiver
from blast_client.send_words import AUTO, GIVEN, NAMES, RACKS
from blast_client.sending import send
from blast_client.tls import BadCredentials, TlsSettings
from blast_client.trees.given import given_trees
from blast_client.trees.guide import Probe, TreeGuide
from blast_client.trees.planner import planner_of
from blast_client.unknown_hosts import CODE, addresses_of, hosts_of, meant
from blast_transport.base.engines import AUTO as AUTO_ENGINE
from blast_transport.base.engines import check_engine
from blast_transport.base.errors import WrongInputError
from blast_transport.base.host_order import as_given, by_name, by_racks
from blast_transport.base.report import Progress, TransferResult
from blast_transport.blocks.digests import BEST
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.measuring.flows import HERE, measure_link
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.session.settings import MAX_DIRECT, Destination, SenderSettings
from blast_transport.store.source import Source
from blast_transport.transports.choices import Chain, TransportChoice, Unicast
from blast_transport.wire.pipeline_bounds import NODE_TIMEOUT
from blast_transport.wire.transports import OPTICAL, PIPELINE, TREES, UNICAST

Report = Callable[[Sequence[str], Progress], None]
"""Is told some times a second how far a transfer to these receivers is, from the thread that sends."""

_VIAS = (AUTO, OPTICAL, PIPELINE, TREES, UNICAST)
_BY_PACKETS = (PIPELINE, TREES, UNICAST)
_ORDERS = (None, RACKS, NAMES, GIVEN)


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """How a round goes, apart from what is sent and to whom.

    `controller`: HOST:PORT of who grants light, None for nobody, with `tls` and `token` as a `Client` has them.
    `sender`: this host as the controller knows it (None: its host name); `optical_address`: ours on the light path
    (None: the one towards the receivers). `via`: auto, optical, pipeline, trees or unicast; `order` of a pipeline:
    racks, names or given (None: racks where they are known); `slowest_rate` in bits/s excludes slower nodes of it,
    a silence of `node_timeout` seconds dead ones, and each keeps `buffer` bytes of what cannot be read again for
    those behind it (0: as many as it likes). Trees are planned for the `network` in this file (as `blast trees`
    reads it), and `auto` takes them where they are enough faster than a pipeline; or `trees` is a file with a plan.
    `priority` and `patience` (seconds) of the request. `credentials` prove us to the agents (`agent_secret`,
    `agent_certificates`); `sealed`: data of the optical transport is encrypted. `suite`: of digests; `engine`: what
    reads and digests here. Raises WrongArgument.
    """

    controller: str | None = DEFAULT_ADDRESS
    tls: TlsSettings | None = None
    token: str | None = field(default=None, repr=False)
    sender: str | None = None
    optical_address: str | None = None
    via: str = AUTO
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
        for what, given, known in (("via", self.via, _VIAS), ("order", self.order, _ORDERS)):
            if given not in known:
                raise WrongArgument(f"{what} must be one of {', '.join(filter(None, known))}, and not {given!r}")
        if self.via == TREES and (self.network is None) == (self.trees is None):
            raise WrongArgument("trees need either the network that they are planned for, or a plan of them")
        if self.trees is not None and self.via != TREES:
            raise WrongArgument(f"a plan of trees goes with the way {TREES!r}, and not with {self.via!r}")
        if self.network is not None and self.via not in (AUTO, TREES):
            raise WrongArgument(f"a network is what trees are planned for: it does not go with {self.via!r}")
        if not isinstance(self.credentials, SharedSecret | TlsFiles | None):
            raise WrongArgument(
                "credentials must be what agent_secret(path) or agent_certificates(certificate, private_key, ca) "
                f"gives, and not a {type(self.credentials).__name__}"
            )
        try:
            check_engine(self.engine)
        except WrongInputError as error:
            raise WrongArgument(str(error)) from error

    @property
    def host(self) -> str:
        """This host, as the controller knows it."""
        return self.sender or socket.gethostname()


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What became of it: a result for each transfer, why others were not `reached`, and why there was no light."""

    results: tuple[TransferResult, ...]
    unreached: dict[str, str]
    refused: str


class Round:
    """One delivery to these receivers."""

    def __init__(self, receivers: Sequence[Receiver], settings: RoundSettings) -> None:
        self._addresses = {receiver[0]: receiver for receiver in receivers}
        self._settings = settings
        self._racks: dict[str, str] = {}
        self._guide: TreeGuide | None = None

    async def deliver(
        self, source: Source, destination: Destination, report: Report, size: int | None = None
    ) -> RoundResult:
        """Send it; `size` in bytes where the source does not know its own.

        Raises what the client raises where only light will do, and TransportError.
        """
        settings, size = self._settings, source.size if source.size is not None else size
        await self._look_up_addresses()
        try:
            optical_address = self._light_address()
        except WrongInputError as error:
            # No name of a receiver leads anywhere: a controller may know what is meant.
            raise WrongInputError(await self._with_hosts_asked_for(str(error))) from error
        carry = self._carry(source, destination, report, optical_address)
        if optical_address is None or size is None or settings.controller is None:
            if settings.via == OPTICAL:
                raise WrongInputError(_no_light_without(size, settings.controller))
            way = Unicast() if settings.via == UNICAST else await self._packets(await self._order())
            return RoundResult((await carried(carry, tuple(self._addresses), Route(way)),), {}, "")
        async with self._client(settings.controller) as client:
            if len(self._addresses) > MAX_DIRECT:
                with suppress(TException, ControllerUnreachable):
                    await self._find_racks(client)
            if settings.via == OPTICAL:
                return _of_parts(await self._by_light(client, size, carry))
            packets = await self._packets(await self._order(client))
            delivered = await deliver(client, self._request(size, may_split=False), carry, packets)
            return _of_parts([delivered.sent], self._with_hosts_meant(delivered.refused))

    async def _by_light(self, client: AsyncClient, size: int, carry: Carry) -> list[PartSent]:
        try:
            return await send(client, self._request(size, may_split=True), carry)
        except Rejected as error:
            if error.code == CODE:
                with suppress(TException, ControllerUnreachable):
                    await self._find_racks(client)
                error.message = self._with_hosts_meant(error.message)
            raise

    async def _with_hosts_asked_for(self, sentence: str) -> str:
        if self._settings.controller is not None:
            with suppress(TException, BlastError):
                async with self._client(self._settings.controller) as client:
                    await self._find_racks(client)
        return self._with_hosts_meant(sentence)

    async def _look_up_addresses(self) -> None:
        """Take from the controller the addresses of receivers that are given by name and that no resolver knows."""
        named = [receiver for receiver in self._addresses.values() if receiver[0] == receiver[1]]
        unknown = await in_thread("name resolution", _unresolved, named)
        if not unknown or self._settings.controller is None:
            return
        with suppress(TException, BlastError):
            async with self._client(self._settings.controller) as client:
                known = addresses_of(await client.fabric())
            for name, _, port in unknown:
                self._addresses[name] = (name, known.get(name, name), port)

    def _with_hosts_meant(self, refused: str) -> str:
        """Why there was no light, with the hosts that may be meant where the fabric does not have one of ours."""
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
        """The receivers in the order of a pipeline."""
        names, wanted, controller = list(self._addresses), self._settings.order, self._settings.controller
        if wanted == GIVEN:
            return as_given(names, names)
        if wanted == NAMES or controller is None or (client is None and wanted is None):
            return by_name(names)
        try:
            if client is not None:
                await self._find_racks(client)
            else:
                async with self._client(controller) as asked:
                    await self._find_racks(asked)
        except (TException, ControllerUnreachable, BadAddress, BadCredentials):
            if wanted == RACKS:
                raise
            return by_name(names)
        return by_racks(self._settings.host, names, self._racks)

    async def _find_racks(self, client: AsyncClient) -> None:
        self._racks = hosts_of(await client.fabric())

    async def _packets(self, order: list[str]) -> TransportChoice:
        """The way over the packet network: a pipeline in this order, or trees."""
        settings, names = self._settings, list(self._addresses)
        chain = Chain(tuple(order), settings.slowest_rate, settings.node_timeout, settings.buffer)
        if settings.trees is not None:
            return given_trees(settings.trees, names)
        if settings.network is None:
            return chain
        planner = planner_of(settings.network)
        guide = await in_thread("tree planner", TreeGuide, planner, names, self._probe(planner.root))
        if settings.via == AUTO and not guide.are_worth_it(order):
            return chain
        self._guide = guide
        return guide.choice

    def _probe(self, root: str) -> Probe:
        """A look at what a path has, by the agents at its ends; the root's end is this process."""

        def probe(start: str, end: str) -> float:
            source = HERE if start == root else self._addresses[start]
            # Where others measure there is another look in some seconds.
            return measure_link(source, self._addresses[end], dialer(self._settings.credentials), patience=0.0)

        return probe

    def _client(self, controller: str) -> AsyncClient:
        return AsyncClient(controller, tls=self._settings.tls, token=self._settings.token)

    def _light_address(self) -> str | None:
        """The address from which to send by light, None where packets alone are used. Raises WrongInputError."""
        settings = self._settings
        if settings.via in _BY_PACKETS or settings.controller is None:
            return None
        return settings.optical_address or _own_address(list(self._addresses.values()))


def _timings(node_timeout: float) -> SenderTimings:
    """Nobody is given up while those before it in a chain may still wait for a silent node, and for one behind that."""
    timings = SenderTimings()
    return replace(timings, stall=timings.stall + 2 * max(0.0, node_timeout - NODE_TIMEOUT))


def _of_parts(parts: Sequence[PartSent], refused: str = "") -> RoundResult:
    unreached = {name: part.reason for part in parts if part.result is None for name in part.receivers}
    return RoundResult(tuple(part.result for part in parts if part.result is not None), unreached, refused)


def _no_light_without(size: int | None, controller: str | None) -> str:
    if size is None:
        return "light is granted for a number of bytes: say how many come with --bytes"
    if controller is None:
        return "light is granted by a controller: name one"
    return "light is IPv4 multicast, and every receiver has an IPv6 address only: choose --via pipeline"


def _unresolved(receivers: Sequence[Receiver]) -> list[Receiver]:
    found = []
    for receiver in receivers:
        try:
            socket.getaddrinfo(receiver[1], receiver[2], type=socket.SOCK_STREAM)
        except OSError:
            found.append(receiver)
    return found


def _own_address(receivers: Sequence[Receiver]) -> str | None:
    """The IPv4 address from which packets to the first host leave that has one; None if all have IPv6 addresses only.

    Raises WrongInputError if no host is known.
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
            reasons.append(f"the host {host} is not known ({reason}): give it as HOST=ADDRESS:PORT")
    if is_known:
        return None
    raise WrongInputError(reasons[0])
