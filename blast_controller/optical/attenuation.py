"""Attenuators of an optical switch: the largest power at each output, and its setting when a session opens.

A level depends only on the receiver at the output, not on the light tree. So levels are set once in each session, and
no change of circuits waits for an attenuator.
"""

from __future__ import annotations

from collections.abc import Mapping

from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import SwitchId
from optical_switch.errors import OpticalSwitchError, RefusedError
from optical_switch.session import AttenuatingSession, SwitchSession

_REMEDY = "or remove attenuator_range_db of the switch and restart the controller"


class MissingAttenuatorsError(OpticalSwitchError):
    """The power budget has attenuators that the switch does not have."""


def output_levels(fabric: Fabric, switch: SwitchId) -> dict[int, float | None]:
    """Return the largest power in dBm at each output that the fabric uses; None: no attenuation."""
    levels: dict[int, float | None] = dict.fromkeys(splitter.input for splitter in fabric.splitters_on(switch))
    for port in fabric.ports_on(switch):
        if port.output:
            limiter = fabric.optics.ports[port.element].limiter
            levels[port.output] = None if limiter is None else limiter.level
    return levels


async def set_levels(session: SwitchSession, levels: Mapping[int, float | None]) -> None:
    """Limit the power at outputs. Raises an OpticalSwitchError, after which no circuit may be set."""
    if not session.capabilities.attenuates or not isinstance(session, AttenuatingSession):
        raise MissingAttenuatorsError(f"the switch has no variable attenuators: enable them at the switch, {_REMEDY}")
    try:
        await session.set_attenuation(levels)
    except RefusedError as error:
        advice = f"permit the user of the controller to set attenuators, {_REMEDY}"
        raise RefusedError(error.code, f"the attenuators are not set ({error.text}): {advice}", error.ports) from error
