"""An emulated switch with SONiC: `serve_sonic_ocs` starts its Redis, its agent and its gNMI target, and stops them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc

from blast_base.endpoint import Endpoint
from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.faults import Faults
from optical_switch.emulator.gnmi_target.admission import RpcAdmission, TargetLogin
from optical_switch.emulator.gnmi_target.agent import SwitchAgent
from optical_switch.emulator.gnmi_target.database import RowDatabase
from optical_switch.emulator.gnmi_target.edits import RowEdit
from optical_switch.emulator.gnmi_target.mirror import DatabaseMirror
from optical_switch.emulator.gnmi_target.ports import PortLayout, cross_connect_row
from optical_switch.emulator.gnmi_target.redis_server import SOCKET, redis_server
from optical_switch.emulator.gnmi_target.relay import ConnectionRelay
from optical_switch.emulator.gnmi_target.rpc_server import TargetTls, credentials_of, rpc_server
from optical_switch.emulator.gnmi_target.service import GnmiService
from optical_switch.emulator.gnmi_target.subscriptions import SubscriptionService
from optical_switch.emulator.gnmi_target.tables import CONFIG_DB, NUMBERS, STATE_DB
from optical_switch.emulator.hardware import Apply, OpticalHardware
from optical_switch.emulator.timing import Clock
from optical_switch.model import Circuit

log = logging.getLogger(__name__)

CONNECT_SECONDS = 0.02
"""Time to set circuits unless the caller gives another: a usual value in data sheets of MEMS switches."""


async def no_light_paths(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
    """Set no light paths: the `Apply` of a switch without a lab around it."""


class SonicOcsTarget:
    """A running emulated switch; see `serve_sonic_ocs`.

    Parameters
    ----------
    hardware : OpticalHardware
        The hardware, with its faults.
    address : str
        HOST:PORT of gNMI.
    redis_socket : Path
        Unix socket of Redis.
    """

    def __init__(self, hardware: OpticalHardware, address: str, redis_socket: Path, starter: _Starter) -> None:
        self.hardware = hardware
        self.address = address
        self.redis_socket = redis_socket
        self._starter = starter

    @property
    def faults(self) -> Faults:
        """The injected faults, which can be changed at any time."""
        return self.hardware.faults

    async def reboot(self) -> None:
        """Restart: sessions are cut and circuits lost; CONFIG_DB is kept, and the agent sets its circuits again.

        Returns when gNMI is served again; the circuits may not be set yet.
        """
        await self._starter.config.save()
        await self._starter.stop()
        await self.hardware.reset()
        await self._starter.start()

    async def flush_database(self) -> None:
        """Empty CONFIG_DB, as an operator may."""
        await self._starter.config.clear()

    async def another_writer(self, circuit: Circuit) -> None:
        """Set a circuit in CONFIG_DB without gNMI, as an operator or another controller would."""
        row, fields = cross_connect_row(circuit)
        await self._starter.config.write([RowEdit(row, fields)])

    def cut(self) -> None:
        """Cut all connections of gNMI at once, as a pulled cable would; circuits stay."""
        self._starter.relay.cut_all()


class _Starter:
    """Starts and stops the software of the switch: all but the hardware and the listening socket."""

    def __init__(  # noqa: PLR0913
        self,
        folder: Path,
        hardware: OpticalHardware,
        relay: ConnectionRelay,
        credentials: grpc.ServerCredentials | None,
        login: TargetLogin | None,
        *,
        mixed_schema: bool,
    ) -> None:
        self.relay = relay
        self._folder = folder
        self._hardware = hardware
        self._layout = PortLayout(hardware.crossbar.inputs, hardware.crossbar.outputs)
        self._credentials = credentials
        self._login = login
        self._mixed_schema = mixed_schema
        self._stack = AsyncExitStack()
        self._databases: dict[str, RowDatabase] = {}

    @property
    def config(self) -> RowDatabase:
        """CONFIG_DB."""
        return self._databases[CONFIG_DB]

    async def start(self) -> None:
        """Start all parts; return when gNMI is served. Raises `RedisStartError` if Redis does not start."""
        async with AsyncExitStack() as stack:
            socket = await stack.enter_async_context(redis_server(self._folder))
            self._databases = {name: RowDatabase(name, socket) for name in NUMBERS}
            for database in self._databases.values():
                stack.push_async_callback(database.close)
            agent = SwitchAgent(self._hardware, self._layout, self.config, self._databases[STATE_DB])
            await stack.enter_async_context(_background(agent.run(), agent.is_ready))
            mirrors = [DatabaseMirror(database) for database in self._databases.values()]
            for mirror in mirrors:
                await stack.enter_async_context(_background(mirror.run(), mirror.is_complete))
            port = await stack.enter_async_context(self._grpc_server(mirrors))
            self.relay.forward_to(port)
            self._stack = stack.pop_all()

    async def stop(self) -> None:
        """Cut all connections, and stop all parts."""
        self.relay.forward_to(None)
        self.relay.cut_all()
        await self._stack.aclose()

    def _grpc_server(self, mirrors: Sequence[DatabaseMirror]) -> AbstractAsyncContextManager[int]:
        """Return the gRPC server, which yields its port on loopback."""
        admission = RpcAdmission(self._hardware.faults, self._login)
        service = GnmiService(
            self._hardware, self._layout, self._databases, admission, self.relay.cut, mixed_schema=self._mixed_schema
        )
        subscriptions = SubscriptionService(mirrors, admission, service.delay)
        return rpc_server(service, subscriptions, self._credentials)


@asynccontextmanager
async def serve_sonic_ocs(  # noqa: PLR0913
    folder: Path,
    inputs: int,
    outputs: int,
    *,
    apply: Apply = no_light_paths,
    connect_seconds: float = CONNECT_SECONDS,
    listener: socket.socket | None = None,
    tls: TargetTls | None = None,
    login: TargetLogin | None = None,
    mixed_schema: bool = False,
    faults: Faults | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[SonicOcsTarget]:
    """Run an emulated switch until the block ends.

    Parameters
    ----------
    folder : Path
        Folder for Redis: its socket, its log, and the file in which CONFIG_DB outlives a reboot.
    inputs : int
        Number of inputs: ports 1A to nA.
    outputs : int
        Number of outputs: ports 1B to nB.
    apply : Apply
        Function that sets the light paths.
    connect_seconds : float
        Time to set circuits, longer only if `apply` takes longer.
    listener : socket.socket | None
        Socket that listens for gNMI; the target closes it. None: a free port of the loopback interface.
    tls : TargetTls | None
        Files for TLS. None: no encryption, which is possible on loopback only.
    login : TargetLogin | None
        User and password that each RPC needs. None: none.
    mixed_schema : bool
        True to announce SONiC's mixed schema, and to take changes by its origin `sonic-db` only.
    faults : Faults | None
        Injected faults.
    clock : Clock | None
        Source of time. None: the system's clocks.

    Yields
    ------
    SonicOcsTarget
        The switch.

    Raises
    ------
    ValueError
        If gNMI would be served without TLS beyond this machine.
    OSError
        If a file for TLS cannot be read.
    RedisStartError
        If Redis does not start.
    """
    hardware = OpticalHardware(
        Crossbar(inputs, outputs),
        apply,
        connect_seconds,
        faults=faults or Faults(),
        clock=clock or Clock(),
        # The agent reports failed circuits: a list of the hardware may lag behind.
        keeps_failed=False,
    )
    with listener or socket.create_server(("127.0.0.1", 0)) as sock:
        address = Endpoint(*sock.getsockname()[:2])
        if tls is None and not address.is_loopback:
            raise ValueError(f"gNMI on {address} needs TLS (gNMI 3.1): give a certificate, or listen on 127.0.0.1")
        credentials = None if tls is None else credentials_of(tls)
        relay = ConnectionRelay(sock)
        starter = _Starter(folder, hardware, relay, credentials, login, mixed_schema=mixed_schema)
        await starter.start()
        try:
            await relay.start()
            yield SonicOcsTarget(hardware, str(address), folder / SOCKET, starter)
        finally:
            await starter.stop()
            await relay.close()


@asynccontextmanager
async def _background(work: Coroutine[object, object, None], is_ready: asyncio.Event) -> AsyncIterator[None]:
    """Run a part of the switch until the block ends, which begins when the part is ready."""
    task = asyncio.create_task(work)
    ready = asyncio.create_task(is_ready.wait())
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        task.add_done_callback(_log_failure)
        yield
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.wait({task, ready})


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a part of the emulated switch has failed; restart it", exc_info=error)
