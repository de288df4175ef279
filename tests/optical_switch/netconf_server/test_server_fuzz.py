"""Random messages: the device refuses them by an error of NETCONF, or ends the session; nothing else happens."""

from __future__ import annotations

import asyncio
import contextlib
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from optical_switch.emulator.crossbar import Crossbar
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.emulator.netconf_server.device.shutters import ShutteredPaths
from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from optical_switch.emulator.netconf_server.messages.rpc_errors import ServerRpcError
from optical_switch.emulator.netconf_server.session import ServedSession, SessionUser, SessionViolationError
from optical_switch.emulator.netconf_server.switch import EmulatedNetconfSwitch
from tests.optical_switch.netconf_server.raw_client import (
    BASE,
    BASE_1_0,
    BASE_1_1,
    NAMES,
    OPSW,
    PLTS,
    LightPaths,
    ManualClock,
    errors_of,
)

FEATURES = frozenset(AnnouncedFeature)
USER = SessionUser("admin", "admin", "127.0.0.1")
HELLO = f'<hello xmlns="{BASE}"><capabilities><capability>%s</capability></capabilities></hello>]]>]]>'


@given(st.sampled_from([BASE_1_0, BASE_1_1]), st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_end_session_or_are_answered(version: str, pieces: list[bytes]) -> None:
    session = ServedSession(1, USER, FEATURES)
    assert not list(session.receive((HELLO % version).encode()))
    with contextlib.suppress(SessionViolationError):
        for piece in pieces:
            for request in session.receive(b"\n#%d\n%b\n##\n" % (len(piece) or 1, piece or b" ")):
                assert (request.operation is None) is (request.error is not None)
                if request.error is not None:
                    session.reply(request, request.error.elements())


OPERATIONS = [
    f"{{{BASE}}}{name}"
    for name in (
        "get", "get-config", "edit-config", "lock", "unlock", "commit", "cancel-commit", "discard-changes", "validate",
        "kill-session",
    )
] + [f"{{{NAMES['n']}}}create-subscription", f"{{{OPSW}}}port-set-state"]  # fmt: skip
PARAMETERS = (
    "source", "target", "config", "filter", "running", "candidate", "default-operation", "test-option", "error-option",
    "confirmed", "confirm-timeout", "persist", "persist-id", "session-id", "stream", "port-enab", "port-disab",
)  # fmt: skip
NODES = (
    "cross-connects", "pair", "ingress", "egress", "voa", "opm-alarm-config", "port-config", "port", "port-id", "label",
    "atten-mode", "atten-level", "mode", "system-config", "activity-log", "logging-enabled", "startup-mode",
)  # fmt: skip
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "0",
        "1",
        "9",
        "17",
        "x",
        "merge",
        "none",
        "replace",
        "true",
        "VOA_MODE_ABSOLUTE",
        "VOA_MODE_FIXED",
        "-3.5",
    ]
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from([f"{{{BASE}}}operation", "type", "{urn:x}y"]),
    st.sampled_from(["delete", "create", "replace", "xpath"]),
).filter(lambda found: len(found) < 2)


def _element(tag: str, attributes: dict[str, str], content: str | list[ET.Element]) -> ET.Element:
    made = ET.Element(tag, attributes)
    if isinstance(content, str):
        made.text = content
    else:
        made.extend(content)
    return made


def _tags(names: tuple[str, ...], spaces: list[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda space, name: f"{{{space}}}{name}", st.sampled_from(spaces), st.sampled_from(names))


DATA = st.recursive(
    st.builds(_element, _tags(NODES, [OPSW, OPSW, PLTS]), ATTRIBUTES, TEXTS),
    lambda inner: st.builds(_element, _tags(NODES, [OPSW, OPSW, PLTS]), ATTRIBUTES, st.lists(inner, max_size=3)),
    max_leaves=8,
)
PARAMETER_TAGS = _tags(PARAMETERS, [BASE, BASE, NAMES["n"], OPSW])
INSIDE = st.builds(_element, PARAMETER_TAGS, ATTRIBUTES, st.one_of(TEXTS, st.lists(DATA, max_size=2)))
DATASTORES = st.builds(
    lambda name, store: _element(f"{{{BASE}}}{name}", {}, [ET.Element(f"{{{BASE}}}{store}")]),
    st.sampled_from(["source", "target"]),
    st.sampled_from(["running", "candidate"]),
)
OPERATION = st.builds(
    _element, st.sampled_from(OPERATIONS), st.just({}), st.lists(st.one_of(INSIDE, DATASTORES), max_size=4)
)


@given(st.lists(OPERATION, min_size=1, max_size=6))
def test_any_operation_is_carried_out_or_refused(operations: list[ET.Element]) -> None:
    asyncio.run(_perform(operations))


async def _perform(operations: list[ET.Element]) -> None:
    shutters = ShutteredPaths(LightPaths().apply)
    hardware = OpticalHardware(Crossbar(8, 8), shutters, 0.0, clock=ManualClock().clock, keeps_failed=False)
    switch = EmulatedNetconfSwitch(hardware, shutters, FEATURES)
    session = ServedSession(1, USER, FEATURES)
    for operation in operations:
        try:
            answer = await switch._operations.perform(session, operation)
        except ServerRpcError as error:
            reply = ET.Element("reply")
            reply.extend(error.elements())
            assert errors_of(reply)
        else:
            assert answer.content
            answer.afterwards()
    await switch.stop()
