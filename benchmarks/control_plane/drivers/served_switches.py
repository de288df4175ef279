"""The emulated optical switches that `emulated_switch.py` serves: one function for each kind of driver."""

from __future__ import annotations

import socket
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from benchmarks.control_plane.drivers.switch_endpoints import PASSWORD, USER
from optical_switch.emulator.hardware import Apply, OpticalHardware
from optical_switch.emulator.light import PowerModel, no_light
from optical_switch.model import Circuit, Port
from tl1_driver.emulator.agent import EmulatedSwitch

LIT_DBM = -5.0

Served = tuple[OpticalHardware, dict[str, str]]
"""The hardware, and the addresses for the line that reports the switch as ready."""


def serve(options: Namespace, apply: Apply) -> AbstractAsyncContextManager[Served]:
    """Serve the switch that the options of `emulated_switch.py` describe."""
    if options.driver == "tl1":
        return _tl1(options, apply)
    return _netconf(options, apply) if options.driver == "netconf" else _sonic_ocs(options, apply)


def _everywhere(circuits: Sequence[Circuit]) -> dict[Port, float]:
    """Return optical power at every connected output."""
    return {Port("out", circuit.output): LIT_DBM for circuit in circuits}


def _power(options: Namespace) -> PowerModel:
    return _everywhere if options.lit else no_light


@asynccontextmanager
async def _tl1(options: Namespace, apply: Apply) -> AsyncIterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    switch = EmulatedSwitch(
        options.ports,
        options.ports,
        apply=apply,
        dialect=options.dialect,
        connect_seconds=None if options.connect_ms < 0 else options.connect_ms / 1000,
        disconnect_seconds=0.0,
        power=_power(options),
    )
    server = await switch.serve(listener)
    yield switch.hardware, {"address": f"127.0.0.1:{listener.getsockname()[1]}"}
    server.close()


@asynccontextmanager
async def _sonic_ocs(options: Namespace, apply: Apply) -> AsyncIterator[Served]:
    # The drivers but TL1 need extras of the distribution.
    from optical_switch.emulator.gnmi_target.target import CONNECT_SECONDS, serve_sonic_ocs

    seconds = CONNECT_SECONDS if options.connect_ms < 0 else options.connect_ms / 1000
    with tempfile.TemporaryDirectory(prefix="blast-ocs-") as folder:
        async with serve_sonic_ocs(
            Path(folder), options.ports, options.ports, apply=apply, connect_seconds=seconds
        ) as target:
            yield target.hardware, {"address": target.address, "redis_socket": str(target.redis_socket)}


@asynccontextmanager
async def _netconf(options: Namespace, apply: Apply) -> AsyncIterator[Served]:
    from optical_switch.emulator.netconf_server.server import serve_netconf
    from optical_switch.emulator.netconf_server.settings import CONNECT_SECONDS, NetconfSwitchSettings, UserAccount

    seconds = CONNECT_SECONDS if options.connect_ms < 0 else options.connect_ms / 1000
    settings = NetconfSwitchSettings({USER: UserAccount(PASSWORD)}, connect_seconds=seconds)
    async with serve_netconf(
        options.ports, options.ports, apply=apply, settings=settings, power=_power(options)
    ) as switch:
        host, port = switch.address
        yield switch.hardware, {"address": f"{host}:{port}", "host_key": switch.host_key}
