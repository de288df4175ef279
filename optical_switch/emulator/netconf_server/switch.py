"""An emulated Polatis switch: hardware, data models, and the sessions of its clients."""

from __future__ import annotations

import asyncio

from optical_switch.emulator.faults import Faults
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.netconf_server.channel import ChannelServices, NetconfChannel
from optical_switch.emulator.netconf_server.commits import CommitControl
from optical_switch.emulator.netconf_server.datastores import DatastoreLocks
from optical_switch.emulator.netconf_server.device.events import Activity
from optical_switch.emulator.netconf_server.device.polatis import PolatisDevice
from optical_switch.emulator.netconf_server.device.shutters import ShutteredPaths
from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.emulator.netconf_server.operations import RpcOperations
from optical_switch.emulator.netconf_server.registry import SessionRegistry
from optical_switch.emulator.netconf_server.session import ServedSession, SessionUser
from optical_switch.model import Circuit


class EmulatedNetconfSwitch:
    """A switch that serves NETCONF.

    Parameters
    ----------
    hardware : OpticalHardware
        The hardware, whose function `apply` is `shutters`.
    shutters : ShutteredPaths
        The shutters of the ports.
    features : frozenset[AnnouncedFeature]
        The features that it has and announces.
    """

    def __init__(
        self, hardware: OpticalHardware, shutters: ShutteredPaths, features: frozenset[AnnouncedFeature]
    ) -> None:
        self.hardware = hardware
        self.address = ("", 0)
        """Where it listens: host and port."""
        self.host_key = ""
        """The public host key in the format of OpenSSH."""
        self._features = features
        self._registry = SessionRegistry(hardware.clock)
        self._device = PolatisDevice(hardware, shutters, self._registry.publish)
        self._locks = DatastoreLocks(self._device.running)
        self._commits = CommitControl(self._device, self._locks)
        self._operations = RpcOperations(self._device, self._locks, self._commits, self._registry)
        self._channels: set[NetconfChannel] = set()
        self._is_restarting = False

    @property
    def faults(self) -> Faults:
        """Injected faults, which can be changed while the switch runs."""
        return self.hardware.faults

    @property
    def sessions(self) -> tuple[int, ...]:
        """The numbers of the sessions that are open."""
        return tuple(self._registry.channels)

    def takes_session(self) -> bool:
        """Return whether a further session can be opened now."""
        limit = self.faults.max_sessions
        return not self._is_restarting and (limit is None or len(self._channels) < limit)

    def new_channel(self, user: SessionUser) -> NetconfChannel:
        """Return a channel for an authenticated user."""

        def open_session(opened: NetconfChannel) -> ServedSession:
            session = ServedSession(self._registry.next_number(), user, self._features)
            self._channels.add(opened)
            self._registry.channels[session.number] = opened
            return session

        services = ChannelServices(self._operations.perform, self._end_session, self.faults, self.hardware.clock)
        return NetconfChannel(services, open_session)

    async def another_writer(self, circuit: Circuit, owner: str = "noc", *, locked: bool = False) -> None:
        """Set a circuit as an operator at the switch would, beside all sessions.

        Parameters
        ----------
        circuit : Circuit
            The circuit.
        owner : str
            Name of the operator in the activity log.
        locked : bool
            True if sessions cannot remove it.

        Raises
        ------
        RefusalError
            If it cannot be set.
        """
        await self.hardware.connect_by_hand(circuit, owner, locked=locked)
        text = f"connected {circuit.input}-{self._device.numbers.inputs + circuit.output}"
        self._operations.configuration.log_activity(Activity(owner, "", "front panel", text))

    def cut(self, reason: str = "an injected fault cuts the connection") -> None:
        """Drop all connections at once, as a pulled cable would; circuits stay, `reason` is logged."""
        for channel in list(self._channels):
            channel.cut(reason)

    async def reboot(self) -> None:
        """Restart: end all sessions, and keep or lose the configuration as `startup-mode` has it."""
        self._is_restarting = True
        try:
            self.cut("the switch restarts")
            await self._wait_for_sessions()
            async with self._commits.changing:
                await self._commits.restart()
                self._locks.discard()
                if self._device.leaf("startup-mode") == "MODE_VOLATILE":
                    await self._device.lose_configuration()
        finally:
            self._is_restarting = False

    async def stop(self) -> None:
        """End all sessions, their operations and all timers; nothing keeps running."""
        for channel in list(self._channels):
            if channel.worker is not None:
                channel.worker.cancel()
        await self._wait_for_sessions()
        await self._commits.stop()
        await self._device.stop()

    async def _wait_for_sessions(self) -> None:
        workers = [channel.worker for channel in self._channels if channel.worker is not None]
        if workers:
            await asyncio.wait(workers)

    async def _end_session(self, session: ServedSession) -> None:
        channel = self._registry.channels.pop(session.number, None)
        try:
            await self._operations.release(session.number)
        finally:
            self._channels = {other for other in self._channels if other is not channel}
