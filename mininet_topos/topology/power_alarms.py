"""Power alarms of the lab's switch with NETCONF, which its operator enables by a session as at a real one.

Without them the switch only answers to readings, and a fiber that breaks under a lit tree is reported by none. An alarm
also begins at each output whose circuit is removed; the controller ignores those of trees that are being released.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element

from blast_base.endpoint import Endpoint
from mininet_topos.kernel.errors import ProcessError
from optical_switch.errors import OpticalSwitchError
from optical_switch.netconf.link import NetconfLink
from optical_switch.netconf.markup import element, text
from optical_switch.netconf.operations import close_session, commit, edit_config
from optical_switch.netconf.polatis import OPTICAL_SWITCH
from optical_switch.ssh import SshTransport

ANSWER_SECONDS = 30.0
"""For each answer of a switch in the same process, on a busy machine."""


async def enable_power_alarms(address: Endpoint, transport: SshTransport, ports: Iterable[int], min_dbm: float) -> None:
    """Have a switch report when the power at a port falls below a threshold, and when it rises again.

    Parameters
    ----------
    address : Endpoint
        Where it is served.
    transport : SshTransport
        SSH as a user who may change the configuration.
    ports : Iterable[int]
        The ports, by their numbers on the device.
    min_dbm : float
        The threshold in dBm.

    Raises
    ------
    ProcessError
        If the switch refuses or does not answer.
    """
    link = NetconfLink(ANSWER_SECONDS, _ignore)
    try:
        await transport.connect(link, *address)
        await link.greeted
        for operation in (edit_config("candidate", _alarms_edit(ports, min_dbm), rollback=False), commit()):
            for refusal in (await link.request(operation)).errors:
                raise ProcessError(f"the optical switch refuses power alarms: {refusal}")
        await link.request(close_session())
        link.leave("the alarms are enabled")
        await link.lost
    except OpticalSwitchError as error:
        link.fail(error)
        raise ProcessError(f"the power alarms of the optical switch cannot be enabled: {error}") from error


def _alarms_edit(ports: Iterable[int], min_dbm: float) -> str:
    leaves = element("mode", "POWER_ALARM_ENABLED") + element("signal-low-threshold", f"{min_dbm:.2f}")
    alarms = (element("port", element("port-id", text(port)) + leaves) for port in ports)
    return element("opm-alarm-config", *alarms, namespace=OPTICAL_SWITCH)


def _ignore(_event: Element) -> None:
    """Ignore an event: the session subscribes to none."""
