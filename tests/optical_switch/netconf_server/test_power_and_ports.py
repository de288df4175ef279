"""Power meters, attenuators and shutters, by raw bytes over SSH."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from optical_switch.model import Circuit, Port
from tests.optical_switch.netconf_server.raw_client import (
    NAMES,
    OPSW,
    PORTS,
    NetconfLab,
    RawSession,
    cross_connects,
    edit,
    get,
    netconf_lab,
    removed,
)


class Transmitters:
    """A model of the power: transmitters at some inputs, and 1.5 dB of loss in the switch."""

    def __init__(self, **dbm: float) -> None:
        self.dbm = {int(name[1:]): power for name, power in dbm.items()}

    def __call__(self, circuits: Sequence[Circuit]) -> dict[Port, float]:
        powers = {Port("in", number): power for number, power in self.dbm.items()}
        lit = [circuit for circuit in circuits if circuit.input in self.dbm]
        return powers | {Port("out", circuit.output): self.dbm[circuit.input] - 1.5 for circuit in lit}


async def power(session: RawSession, port: int) -> float:
    """Return the reading of a power meter."""
    data = await session.data(get(f'<opm-power xmlns="{OPSW}"><port><port-id>{port}</port-id></port></opm-power>'))
    return float(data.findtext("o:opm-power/o:port/o:power", "", NAMES))


async def attenuate(session: RawSession, mode: str, level: str = "", reference: str = "") -> None:
    """Set the attenuator of port 9."""
    leaves = f"<atten-mode>VOA_MODE_{mode}</atten-mode>"
    leaves += f"<atten-level>{level}</atten-level>" if level else ""
    leaves += f"<reference-port>{reference}</reference-port>" if reference else ""
    await session.ok(edit(f'<voa xmlns="{OPSW}"><port><port-id>9</port-id>{leaves}</port></voa>'))
    await session.ok("<commit/>")


@pytest.mark.parametrize(
    ("mode", "level", "reference", "expected"),
    [
        ("NONE", "", "", -4.5),
        ("ABSOLUTE", "-10", "", -10.0),
        pytest.param("ABSOLUTE", "-2", "", -4.5, id="an attenuator does not amplify"),
        pytest.param("ABSOLUTE", "-40", "", -24.5, id="limit of the attenuator"),
        ("RELATIVE", "-6.5", "", -9.5),
        pytest.param("RELATIVE", "-6.5", "2", -14.5, id="other reference port"),
        ("MAXIMUM", "", "", -24.5),
        ("CONVERGED", "-10", "", -10.0),
    ],
)
async def test_attenuator_limits_power(mode: str, level: str, reference: str, expected: float) -> None:
    async with netconf_lab(power=Transmitters(p1=-3.0, p2=-8.0)) as lab:
        session = await lab.session()
        await session.connect((1, 9))
        await attenuate(session, mode, level, reference)
        assert await power(session, 9) == expected
        assert await power(session, 1) == -3.0


@pytest.mark.parametrize(("mode", "expected"), [("ABSOLUTE", -10.0), ("CONVERGED", -11.0), ("FIXED", -11.0)])
async def test_modes_differ_after_input_power_changes(mode: str, expected: float) -> None:
    """`ABSOLUTE` follows the input; `CONVERGED` and `FIXED` keep the attenuation."""
    transmitters = Transmitters(p1=-3.0)
    async with netconf_lab(power=transmitters) as lab:
        session = await lab.session()
        await session.connect((1, 9))
        await attenuate(session, "ABSOLUTE", "-10")
        await attenuate(session, mode, "" if mode == "FIXED" else "-10")
        assert await power(session, 9) == -10.0
        transmitters.dbm[1] = -4.0
        assert await power(session, 9) == expected
        # A commit of other settings is no new setting of the attenuator.
        await session.connect((2, 10))
        assert await power(session, 9) == expected


async def test_dark_egress_shows_dark_current_whatever_its_attenuator() -> None:
    async with netconf_lab(power=Transmitters(p1=-3.0)) as lab:
        session = await lab.session()
        await attenuate(session, "MAXIMUM")
        assert await power(session, 9) == -48.5


async def test_meters_show_injected_faults() -> None:
    async with netconf_lab(power=Transmitters(p1=-3.0)) as lab:
        session = await lab.session()
        await session.connect((1, 9))
        faults = lab.switch.faults
        faults.power_error_db[Port("out", 1)] = 0.25
        faults.extra_loss_db[Circuit(1, 1)] = 2.0
        assert await power(session, 9) == -6.25
        faults.dark_ports.add(Port("in", 1))
        assert (await power(session, 1), await power(session, 9)) == (-48.5, -48.5)


async def status(session: RawSession, port: int) -> str:
    """Return the status of a port."""
    data = await session.data(get(f'<port-config xmlns="{OPSW}"><port><port-id>{port}</port-id></port></port-config>'))
    return data.findtext("o:port-config/o:port/o:status", "", NAMES)


def set_state(*, enabled: Sequence[int] = (), disabled: Sequence[int] = ()) -> str:
    inside = "".join(f"<port-enab>{one}</port-enab>" for one in enabled)
    inside += "".join(f"<port-disab>{one}</port-disab>" for one in disabled)
    return f'<port-set-state xmlns="{OPSW}">{inside}</port-set-state>'


async def ready(lab: NetconfLab) -> RawSession:
    session = await lab.session()
    await session.connect((1, 9), (2, 10))
    return session


@pytest.mark.parametrize("port", [1, 9])
async def test_disabled_port_blocks_light_path_and_keeps_circuit(port: int) -> None:
    async with netconf_lab(power=Transmitters(p1=-3.0)) as lab:
        session = await ready(lab)
        await session.ok(set_state(disabled=[port]))
        assert await status(session, port) == "DISABLED"
        assert lab.circuits == {1: 9, 2: 10} and lab.paths.lit == {Circuit(2, 2)}
        assert (await power(session, 1), await power(session, 9)) == (-3.0, -48.5)
        await session.ok(set_state(enabled=[port]))
        assert await status(session, port) == "ENABLED"
        assert lab.paths.lit == {Circuit(1, 1), Circuit(2, 2)} and await power(session, 9) == -4.5


async def test_circuit_at_disabled_port_is_lit_once_it_is_enabled() -> None:
    async with netconf_lab() as lab:
        session = await ready(lab)
        await session.ok(set_state(disabled=[3]))
        await session.connect((3, 11))
        assert lab.circuits == {1: 9, 2: 10, 3: 11} and Circuit(3, 3) not in lab.paths.lit
        await session.ok(edit(removed(2)))
        await session.ok("<commit/>")
        await session.ok(set_state(enabled=[3]))
        assert lab.paths.lit == {Circuit(1, 1), Circuit(3, 3)}
        await session.ok(set_state(disabled=[3]))
        await session.ok(edit(removed(3) + cross_connects((1, 11))))
        await session.ok("<commit/>")
        assert lab.paths.lit == {Circuit(1, 3)}


@pytest.mark.parametrize("port", ["0", str(2 * PORTS + 1), "x"])
async def test_state_of_unknown_port_is_refused(port: str) -> None:
    async with netconf_lab() as lab:
        session = await ready(lab)
        operation = set_state(disabled=[1]).replace("</port-set", f"<port-disab>{port}</port-disab></port-set")
        assert (await session.error(operation)).tag == "invalid-value"
        assert await status(session, 1) == "ENABLED"


async def test_failed_port_shows_its_status() -> None:
    async with netconf_lab() as lab:
        session = await ready(lab)
        lab.switch.faults.dead_ports.add(Port("out", 1))
        assert await status(session, 9) == "FAILED"
