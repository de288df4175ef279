"""Operations that read, by raw bytes over SSH."""

from __future__ import annotations

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.model import Port
from tests.optical_switch.netconf_server.raw_client import (
    NAMES,
    OPSW,
    PLTS,
    PORTS,
    cross_connects,
    edit,
    get,
    get_config,
    netconf_lab,
    pairs_in,
)


async def test_get_returns_configuration_and_state() -> None:
    """RFC 6241 section 7.7."""
    async with netconf_lab(power=lambda _circuits: {Port("in", 1): -3.0, Port("out", 2): -7.256}) as lab:
        session = await lab.session()
        await session.connect((3, 9))
        data = await session.data(get())
        assert data.findtext("o:product-information/o:manufacturer", None, NAMES) == "Polatis"
        assert pairs_in(data) == {3: 9}
        ports = {one.findtext("o:port-id", "", NAMES): one for one in data.iterfind("o:port-config/o:port", NAMES)}
        assert list(ports) == [str(number) for number in range(1, 2 * PORTS + 1)]
        assert ports["1"].findtext("o:status", "", NAMES) == "ENABLED"
        powers = {
            one.findtext("o:port-id", "", NAMES): one.findtext("o:power", "", NAMES)
            for one in data.iterfind("o:opm-power/o:port", NAMES)
        }
        assert powers == {**dict.fromkeys(ports, "-48.5"), "1": "-3.0", "10": "-7.26"}
        deprecated = data.find("o:ports/o:port[o:port-id='10']", NAMES)
        assert deprecated is not None
        assert deprecated.findtext("o:port-status", "", NAMES) == "PO_ENABLED"
        assert deprecated.findtext("o:opm/o:power", "", NAMES) == "-7.26"


async def test_get_config_returns_configuration_only() -> None:
    """RFC 6241 section 7.1."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((3, 9))
        for source in ("running", "candidate"):
            data = await session.data(get_config(source))
            tags = [one.tag.partition("}")[2] for one in data]
            assert tags == ["port-config", "opm-alarm-config", "voa", "cross-connects", "system-config"]
            assert pairs_in(data) == {3: 9}
            assert data.find("o:port-config/o:port/o:status", NAMES) is None


async def test_defaults_are_returned() -> None:
    """The device does not announce `with-defaults` (RFC 6243): it may return them."""
    async with netconf_lab() as lab:
        session = await lab.session()
        data = await session.data(get_config())
        assert data.findtext("o:system-config/p:startup-mode", "", NAMES) == "MODE_PRESERVE"
        attenuator = data.find("o:voa/o:port[o:port-id='9']", NAMES)
        assert attenuator is not None
        assert [one.tag.partition("}")[2] for one in attenuator] == ["port-id", "atten-mode"]
        assert len(data.findall("o:voa/o:port", NAMES)) == PORTS
        alarm = data.find("o:opm-alarm-config/o:port[o:port-id='1']", NAMES)
        assert alarm is not None and alarm.findtext("o:signal-high-threshold", "", NAMES) == "25.0"


async def test_filter_selects_entries() -> None:
    """RFC 6241 section 6."""
    async with netconf_lab() as lab:
        session = await lab.session()
        await session.connect((3, 9), (4, 10))
        pair = f'<cross-connects xmlns="{OPSW}"><pair><ingress>4</ingress></pair></cross-connects>'
        for operation in (get(pair), get_config("running", pair), get_config("candidate", pair)):
            data = await session.data(operation)
            assert pairs_in(data) == {4: 10} and len(data) == 1
        status = f'<port-config xmlns="{OPSW}"><port><port-id>4</port-id><status/></port></port-config>'
        found = (await session.data(get(status))).find("o:port-config", NAMES)
        assert found is not None and ["".join(one.itertext()) for one in found] == ["4ENABLED"]
        startup = f'<system-config xmlns="{OPSW}"><startup-mode xmlns="{PLTS}"/></system-config>'
        assert "".join((await session.data(get(startup))).itertext()) == "MODE_PRESERVE"
        assert len(await session.data(get(""))) == 0


async def test_other_filters_are_refused() -> None:
    """RFC 6241 section 8.9: the device does not announce `xpath`."""
    async with netconf_lab() as lab:
        session = await lab.session()
        error = await session.error('<get><filter type="xpath" select="/"/></get>')
        assert (error.tag, error.info) == ("bad-attribute", {"bad-attribute": "type", "bad-element": "filter"})


async def test_source_of_get_config_must_exist() -> None:
    """RFC 6241 section 7.1."""
    async with netconf_lab(without=[AnnouncedFeature.CANDIDATE]) as lab:
        session = await lab.session()
        assert (await session.error("<get-config/>")).info == {"bad-element": "source"}
        assert (await session.error(get_config("startup"))).info == {"bad-element": "startup"}
        assert (await session.error(get_config("candidate"))).tag == "operation-not-supported"
        assert (await session.error("<get-config><source/></get-config>")).tag == "bad-element"
        source = "<source><running/></source>"
        assert (await session.error(f"<get-config>{source}{source}</get-config>")).tag == "bad-element"
        assert (await session.error(f"<get-config>{source}<x/></get-config>")).info == {"bad-element": "x"}


async def test_reading_does_not_wait_for_a_commit() -> None:
    async with netconf_lab() as lab:
        writer, reader = await lab.session(), await lab.session()
        await writer.ok(edit(cross_connects((1, 9))))
        lab.paths.released.clear()
        writer.request("<commit/>")
        assert await reader.pairs() == {}
        lab.paths.released.set()
        await writer.read()
        assert await reader.pairs() == {1: 9}


async def test_streams_are_listed() -> None:
    """RFC 5277 section 3.2.5.1."""
    space = "urn:ietf:params:xml:ns:netmod:notification"
    async with netconf_lab() as lab:
        data = await (await lab.session()).data(get(f'<netconf xmlns="{space}"><streams/></netconf>'))
        names = {"s": space}
        assert [one.text for one in data.iterfind("s:netconf/s:streams/s:stream/s:name", names)] == [
            "NETCONF",
            "Polatis",
        ]
        replays = {one.text for one in data.iterfind("s:netconf/s:streams/s:stream/s:replaySupport", names)}
        assert replays == {"false"}
