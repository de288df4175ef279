"""An emulated Polatis switch without sessions: its data models, and the effect of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.etree import ElementTree as ET

from optical_switch.emulator.crossbar import RefusalError
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.light import DARK_DBM
from optical_switch.emulator.netconf_server.data.content import content
from optical_switch.emulator.netconf_server.data.device_model import config_model, state_model
from optical_switch.emulator.netconf_server.data.schema import (
    ModelContainer,
    ModelList,
    Tree,
    copied,
    entries_of,
    leaves_of,
    subtree,
    with_defaults,
)
from optical_switch.emulator.netconf_server.device.alarm_watch import AlarmWatch
from optical_switch.emulator.netconf_server.device.alarms import AlarmThresholds, PowerAlarm
from optical_switch.emulator.netconf_server.device.circuits import CircuitFailureError, set_circuits
from optical_switch.emulator.netconf_server.device.device_state import DeviceReadings, PortNumbers, add_state
from optical_switch.emulator.netconf_server.device.events import alarm_event, hardware_failure_event
from optical_switch.emulator.netconf_server.device.power import AttenuatedPowers, AttenuatorSetting
from optical_switch.emulator.netconf_server.device.shutters import ShutteredPaths
from optical_switch.emulator.netconf_server.messages.rpc_errors import ErrorTag, ServerRpcError, of_refusal
from optical_switch.model import Circuit, Port

PAIRS = "/opsw:cross-connects/opsw:pair"


class PolatisDevice:
    """The configuration and the state of the switch.

    Parameters
    ----------
    hardware : OpticalHardware
        The hardware, whose function `apply` is `shutters`.
    shutters : ShutteredPaths
        The shutters of the ports.
    publish : Callable[[ET.Element], None]
        Function that sends a notification to all subscribers.
    """

    def __init__(
        self, hardware: OpticalHardware, shutters: ShutteredPaths, publish: Callable[[ET.Element], None]
    ) -> None:
        self.hardware = hardware
        self.numbers = PortNumbers(hardware.crossbar.inputs, hardware.crossbar.outputs)
        self.model = config_model(self.numbers.inputs, self.numbers.outputs)
        self._readable = state_model(self.model)
        self._settings = self.model.empty()
        self._shutters = shutters
        self._publish = publish
        self._powers = AttenuatedPowers(hardware, shutters)
        self._alarms = AlarmWatch(hardware.clock, self._powers_by_number, self._report_alarm)
        hardware.listeners.append(self._alarms.look)

    # ------------------------------------------------------------------------------------------------- readings

    def running(self) -> Tree:
        """Return a copy of the running configuration, with the circuits that are set."""
        return self._with_pairs(self.hardware.crossbar.circuits)

    def config_content(self, tree: Tree) -> list[ET.Element]:
        """Return a configuration as XML."""
        return content(self.model, tree)

    def listed_config(self) -> list[ET.Element]:
        """Return the running configuration as XML; the list of circuits is late if that fault is injected."""
        return content(self.model, self._with_pairs(self.hardware.circuits))

    def listed_state(self) -> list[ET.Element]:
        """Return the running configuration and the state as XML."""
        tree = self._with_pairs(self.hardware.circuits)
        faults = self.hardware.faults
        add_state(
            tree,
            self.numbers,
            DeviceReadings(self._powers.readings(), frozenset(faults.dead_ports), self._shutters.closed),
        )
        return content(self._readable, tree)

    def leaf(self, *names: str) -> str:
        """Return the value of a leaf of `system-config`, by its path in that container."""
        tree, children = self._settings, self.model.children
        for name in ("system-config", *names[:-1]):
            inner, node = tree.get(name, {}), children[name]
            assert isinstance(inner, dict) and isinstance(node, ModelContainer)
            tree, children = inner, node.children
        return with_defaults(children, leaves_of(tree))[names[-1]]

    def activity_of(self, before: Tree) -> str:
        """Return the changes since the running configuration was `before`, in words."""
        former, present = (entries_of(tree, "cross-connects", "pair") for tree in (before, self.running()))
        removed = [pair for key, pair in former.items() if present.get(key) != pair]
        added = [pair for key, pair in present.items() if former.get(key) != pair]
        texts = [f"removed {pair['ingress']}-{pair['egress']}" for pair in removed]
        texts += [f"connected {pair['ingress']}-{pair['egress']}" for pair in added]
        names = sorted({*before, *self._settings} - {"cross-connects"})
        texts += [f"changed {name}" for name in names if before.get(name) != self._settings.get(name)]
        return ", ".join(texts)

    # -------------------------------------------------------------------------------------------------- changes

    def check(self, tree: Tree) -> None:
        """Raise `ServerRpcError` if a configuration is not complete, or uses an egress port twice."""
        used: dict[str, str] = {}
        for ingress, pair in entries_of(tree, "cross-connects", "pair").items():
            path = f"{PAIRS}[opsw:ingress='{ingress}']/opsw:egress"
            egress = pair.get("egress")
            if egress is None:
                raise ServerRpcError(ErrorTag.DATA_MISSING, "A pair needs an egress port.", paths=[path])
            if egress in used:
                message = f"Egress port {egress} is connected to ingress port {used[egress]} already."
                raise ServerRpcError(ErrorTag.IN_USE, message, paths=[path])
            used[egress] = ingress

    async def set_running(self, tree: Tree) -> None:
        """Set the running configuration, and return when the light paths are set.

        Raises
        ------
        ServerRpcError
            If it is refused; nothing has changed.
        """
        self.check(tree)
        pairs = entries_of(tree, "cross-connects", "pair")
        target = {int(pair["ingress"]): int(pair["egress"]) - self.numbers.inputs for pair in pairs.values()}
        try:
            await set_circuits(self.hardware, target)
        except RefusalError as refusal:
            if isinstance(refusal, CircuitFailureError):
                self._publish(hardware_failure_event(refusal.text))
            raise of_refusal(refusal, self._blamed(refusal, target)) from refusal
        self._settings = copied(tree)
        self._settings.pop("cross-connects", None)
        self._configure()

    async def set_ports(self, enabled: Iterable[int], disabled: Iterable[int]) -> None:
        """Enable ports, then disable others, by their numbers on the device."""
        await self._shutters.set_state(map(self.numbers.port, enabled), map(self.numbers.port, disabled))
        self.hardware.changed()

    async def lose_configuration(self) -> None:
        """Begin as a new device, as after a restart with the startup mode `MODE_VOLATILE`."""
        await self.hardware.reset()
        self._settings = self.model.empty()
        self._configure()

    async def stop(self) -> None:
        """Stop all timers."""
        self.hardware.listeners.remove(self._alarms.look)
        await self._alarms.stop()

    # -------------------------------------------------------------------------------------------------- details

    def _with_pairs(self, circuits: Iterable[Circuit]) -> Tree:
        tree = copied(self._settings)
        for circuit in circuits:
            key = str(circuit.input)
            pair: Tree = {"ingress": key, "egress": str(self.numbers.inputs + circuit.output)}
            subtree(subtree(tree, "cross-connects"), "pair")[key] = pair
        return tree

    def _configure(self) -> None:
        voa = self._entries("voa")
        self._powers.configure(
            {
                int(key) - self.numbers.inputs: AttenuatorSetting(
                    leaves["atten-mode"], float(leaves.get("atten-level", 0)), int(leaves.get("reference-port", 0))
                )
                for key, leaves in voa.items()
            }
        )
        enabled = {
            int(key): leaves
            for key, leaves in self._entries("opm-alarm-config").items()
            if leaves["mode"] == "POWER_ALARM_ENABLED"
        }
        thresholds = {
            number: AlarmThresholds(
                float(leaves["signal-low-threshold"]),
                float(leaves["signal-degrade-threshold"]),
                float(leaves["signal-high-threshold"]),
                float(leaves["alarm-clear-holdoff"]),
            )
            for number, leaves in enabled.items()
        }
        self._alarms.configure(thresholds, float(self.leaf("alarm-clear-hysteresis")))

    def _entries(self, container: str) -> dict[str, dict[str, str]]:
        """Return the settings of each port in a container, defaults included."""
        node = self.model.children[container]
        assert isinstance(node, ModelContainer)
        entry = node.children["port"]
        assert isinstance(entry, ModelList)
        found = entries_of(self._settings, container, "port")
        return {key: with_defaults(entry.children, leaves) for key, leaves in found.items()}

    def _powers_by_number(self) -> dict[int, float]:
        powers = self._powers.readings()
        return {self.numbers.number(port): powers.get(port, DARK_DBM) for port in self.numbers.all_ports}

    def _report_alarm(self, alarm: PowerAlarm) -> None:
        label = entries_of(self._settings, "port-config", "port")[str(alarm.port)].get("label", "")
        self._publish(alarm_event(alarm, label))

    def _blamed(self, refusal: RefusalError, target: dict[int, int]) -> list[str]:
        """Return the paths of the pairs whose ports the hardware blames, also of pairs to be removed."""
        sources = {source for source, output in target.items() if Port("out", output) in refusal.ports}
        sources |= {port.number for port in refusal.ports if port.side == "in"}
        return [f"{PAIRS}[opsw:ingress='{source}']" for source in sorted(sources)]
