"""The session by gNMI with a scripted server, over real gRPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import (
    DeviceBusyError,
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SwitchUsageError,
    UnreachableError,
)
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, LossReading, Port, PortDescription
from optical_switch.session import Notice, SwitchSession
from optical_switch.sonic_ocs.access import GnmiAccess
from optical_switch.sonic_ocs.gnmi_session import GnmiSession
from optical_switch.sonic_ocs.model import CROSS_CONNECT_TABLE, FACTORY_TABLE, PORT_TABLE
from optical_switch.sonic_ocs.proto import gnmi_pb2 as api
from optical_switch.sonic_ocs.settings import Login, PemTexts
from tests.optical_switch.sonic_ocs.scripted_gnmi import SYNC, CallRefusedError, ScriptedTarget, path, reported, row
from tests.support.certificates import Authority
from tests.support.waiting import HANGING, eventually_async

CIRCUIT = Circuit(7, 9)
TIMEOUT = 0.2
"""Seconds that a test waits for an answer that never arrives."""
FIRST_STATE = (
    row(PORT_TABLE, "7A", oper_status="connected", target_simplex_port_id="9B"),
    row(PORT_TABLE, "9B", oper_status="connected", target_simplex_port_id="7A"),
    row(CROSS_CONNECT_TABLE, "7A-9B", status="enabled", insertion_loss_dB="1.25"),
    SYNC,
)
Opened = Callable[..., GnmiSession]


@pytest.fixture
async def target() -> AsyncIterator[ScriptedTarget]:
    target = ScriptedTarget()
    await target.start()
    yield target
    await target.stop()


def access_to(target: ScriptedTarget, timeout: float = HANGING) -> GnmiAccess:
    return GnmiAccess(SwitchTarget("ocs1", "127.0.0.1", target.port, 16, 16, timeout))


@pytest.fixture
async def new_session(target: ScriptedTarget) -> AsyncIterator[Opened]:
    sessions: list[GnmiSession] = []

    def new(access: GnmiAccess | None = None, check_seconds: float = HANGING) -> GnmiSession:
        sessions.append(GnmiSession(access or access_to(target), check_seconds))
        return sessions[-1]

    yield new
    for session in sessions:
        await session.close()


async def opened(target: ScriptedTarget, session: GnmiSession) -> list[Notice]:
    """Open a session with the first state; return the list to which it appends notices."""
    notices: list[Notice] = []
    session.subscribe(notices.append)
    target.report(*FIRST_STATE)
    await session.open()
    return notices


def session_tasks() -> set[asyncio.Task[object]]:
    """Return all tasks but those of the server."""
    return {task for task in asyncio.all_tasks() if "AioServer" not in repr(task)}


def server_tasks() -> set[asyncio.Task[object]]:
    """Return the tasks in which the server handles calls."""
    return {task for task in asyncio.all_tasks() if "aio/server" in repr(task)}


def test_session_has_interface_of_drivers() -> None:
    session: SwitchSession = GnmiSession(GnmiAccess(SwitchTarget("ocs1", "127.0.0.1", 1, 1, 1)))
    capabilities = session.capabilities
    assert capabilities.one_transaction and capabilities.atomic and not capabilities.confirms
    assert capabilities.light == "states" and capabilities.measures_loss


async def test_state_is_known_after_open_without_notices(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    notices = await opened(target, session)
    assert await session.read_circuits() == [CircuitReading(CIRCUIT, CircuitState.CONNECTED)]
    assert await session.read_losses() == [LossReading(CIRCUIT, 1.25)]
    assert await session.read_powers() == []
    assert notices == []


async def test_failed_ports_are_reported_at_open(target: ScriptedTarget, new_session: Opened) -> None:
    target.report(row(PORT_TABLE, "3B", oper_status="failed"))
    assert await opened(target, new_session()) == [Alarm(Port("out", 3), "3B", "failed")]


async def test_changes_are_reported_as_they_arrive(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    notices = await opened(target, session)
    target.report(row(PORT_TABLE, "9B", oper_status="tuning"), reported(delete=[path(CROSS_CONNECT_TABLE, "7A-9B")]))
    await eventually_async(lambda: len(notices) == 2, "both notices")
    assert [notice.state for notice in notices if isinstance(notice, CircuitReading)] == [
        CircuitState.TUNING,
        CircuitState.ABSENT,
    ]
    assert await session.read_circuits() == []


async def test_change_is_one_set(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    result = await session.apply([CIRCUIT], [Circuit(1, 2), Circuit(3, 4)])
    assert not result.refused and result.error is None
    (sent,) = target.sent(api.SetRequest)
    assert (len(sent.delete), len(sent.update), sent.prefix.target) == (1, 2, "CONFIG_DB")


async def test_empty_and_impossible_changes_are_not_sent(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    assert (await session.apply([], [])).error is None
    with pytest.raises(SwitchUsageError):
        await session.apply([], [Circuit(0, 1)])
    assert not target.sent(api.SetRequest)


async def test_refused_set_names_its_circuits_and_session_continues(
    target: ScriptedTarget, new_session: Opened
) -> None:
    session = new_session()
    await opened(target, session)
    target.set_answer = CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, "1A-2B: 2B has failed")
    result = await session.apply([], [Circuit(1, 2), Circuit(3, 4)])
    assert list(result.refused) == [Circuit(1, 2)]
    assert result.error is not None
    assert (result.error.code, result.error.ports) == ("INVALID_ARGUMENT", frozenset([Port("out", 2)]))
    target.set_answer = api.SetResponse()
    assert (await session.apply([], [Circuit(3, 4)])).error is None


async def test_refusal_in_answer_counts_as_well(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.set_answer = api.SetResponse(
        response=[api.UpdateResult(), api.UpdateResult(message=api.Error(code=3, message="1A-2B"))]
    )
    result = await session.apply([], [Circuit(1, 2), Circuit(3, 4)])
    assert list(result.refused) == [Circuit(1, 2)] and result.error is not None


async def test_set_that_device_does_not_support_is_refused(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.set_answer = CallRefusedError(grpc.StatusCode.UNIMPLEMENTED, "gNMI is read-only")
    result = await session.apply([], [CIRCUIT])
    assert result.error is not None and result.error.code == "UNIMPLEMENTED"
    assert len(await session.read_circuits()) == 1


async def test_busy_device_did_nothing_and_session_continues(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.set_answer = CallRefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "another writer")
    with pytest.raises(DeviceBusyError, match="another writer"):
        await session.apply([], [CIRCUIT])
    assert len(await session.read_circuits()) == 1


async def test_set_without_answer_ends_session(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session(access_to(target, TIMEOUT))
    await opened(target, session)
    target.silent = True
    with pytest.raises(UnreachableError, match="DEADLINE_EXCEEDED"):
        await session.apply([], [CIRCUIT])
    assert "DEADLINE_EXCEEDED" in await session.wait_closed()
    with pytest.raises(UnreachableError):
        await session.read_circuits()
    with pytest.raises(UnreachableError):
        await session.apply([], [CIRCUIT])


async def test_answer_that_is_not_gnmi_ends_session(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.set_answer = b"\xff\xff"
    with pytest.raises(ProtocolError, match="none of gNMI"):
        await session.apply([], [CIRCUIT])
    assert "none of gNMI" in await session.wait_closed()


@pytest.mark.parametrize(
    ("report", "reason", "kind"),
    [
        (None, "ended the subscription", UnreachableError),
        (CallRefusedError(grpc.StatusCode.UNAUTHENTICATED, "expired"), "UNAUTHENTICATED.*expired", UnreachableError),
        (row(PORT_TABLE, "7A", oper_status="lost"), "port status 'lost'", ProtocolError),
        (b"\xff\xff", "none of gNMI", ProtocolError),
        (api.SubscribeResponse(error=api.Error(message="overload")), "overload", UnreachableError),
    ],
)
async def test_end_of_subscription_ends_session(
    target: ScriptedTarget,
    new_session: Opened,
    report: api.SubscribeResponse | CallRefusedError | bytes | None,
    reason: str,
    kind: type[OpticalSwitchError],
) -> None:
    session = new_session()
    await opened(target, session)
    target.report(report)
    await session.wait_closed()
    for call in (session.read_circuits, session.read_losses, session.read_powers, session.read_ports):
        with pytest.raises(kind, match=reason):
            await call()


async def test_server_that_stops_ends_session(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    await target.stop()
    assert "UNAVAILABLE" in await session.wait_closed()


async def test_device_that_no_longer_answers_is_detected_without_changes(
    target: ScriptedTarget, new_session: Opened
) -> None:
    session = new_session(access_to(target, TIMEOUT), check_seconds=0.01)
    await opened(target, session)
    await eventually_async(lambda: len(target.sent(api.CapabilityRequest)) > 2, "two checks")
    target.silent = True
    assert "DEADLINE_EXCEEDED" in await session.wait_closed()


async def test_busy_answer_to_check_keeps_session(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session(check_seconds=0.01)
    await opened(target, session)
    target.capabilities = CallRefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
    checks = len(target.sent(api.CapabilityRequest))
    await eventually_async(lambda: len(target.sent(api.CapabilityRequest)) > checks + 2, "two checks")
    assert len(await session.read_circuits()) == 1
    target.capabilities = CallRefusedError(grpc.StatusCode.UNAUTHENTICATED, "the password has expired")
    assert "the password has expired" in await session.wait_closed()


async def test_ports_are_read_with_labels(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    label = api.Update(path=path("OCS_PORT", "7A", "label"), val=api.TypedValue(json_ietf_val=b'"rack 1"'))
    target.get_answer = api.GetResponse(notification=[api.Notification(update=[label])])
    ports = [PortDescription(Port("in", 7), "7A", "rack 1"), PortDescription(Port("out", 9), "9B")]
    assert await session.read_ports() == ports
    target.get_answer = CallRefusedError(grpc.StatusCode.NOT_FOUND)
    assert await session.read_ports() == [replace(ports[0], label=""), ports[1]]
    target.get_answer = CallRefusedError(grpc.StatusCode.PERMISSION_DENIED)
    with pytest.raises(RefusedError):
        await session.read_ports()


def factory_rows(accuracy: str) -> api.GetResponse:
    value = json.dumps({"7A-9B|229.100|25.00": {"loss_dB": "1.00", "accuracy_dB": accuracy}}).encode()
    found = api.Update(path=path(FACTORY_TABLE), val=api.TypedValue(json_ietf_val=value))
    return api.GetResponse(notification=[api.Notification(update=[found])])


async def test_losses_have_accuracy_that_is_read_once(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    target.get_answer = factory_rows("0.10")
    notices = await opened(target, session)
    expected = LossReading(CIRCUIT, 1.25, 0.1)
    await eventually_async(lambda: notices == [expected], "the accuracy")
    assert await session.read_losses() == [expected]
    assert len(target.sent(api.GetRequest)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        CallRefusedError(grpc.StatusCode.NOT_FOUND),
        CallRefusedError(grpc.StatusCode.PERMISSION_DENIED),
        CallRefusedError(grpc.StatusCode.UNAVAILABLE),
        factory_rows("good"),
        factory_rows("0.1" + " " * (5 << 20)),
    ],
)
async def test_losses_have_usual_accuracy_if_it_cannot_be_read(
    target: ScriptedTarget, new_session: Opened, answer: api.GetResponse | CallRefusedError
) -> None:
    session = new_session()
    target.get_answer = answer
    await opened(target, session)
    await eventually_async(lambda: target.sent(api.GetRequest), "the request")
    target.get_answer = api.GetResponse()
    # The answer to a later request follows the first one.
    assert len(await session.read_ports()) == 2
    assert await session.read_losses() == [LossReading(CIRCUIT, 1.25, 0.5)]


# -------------------------------------------------------------------------------------------------------------- open


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (CallRefusedError(grpc.StatusCode.UNAUTHENTICATED, "wrong password"), RefusedError),
        (CallRefusedError(grpc.StatusCode.PERMISSION_DENIED, "no such role"), RefusedError),
        (CallRefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many sessions"), DeviceBusyError),
        (CallRefusedError(grpc.StatusCode.UNIMPLEMENTED, "unknown service"), ProtocolError),
        (api.CapabilityResponse(), ProtocolError),
    ],
)
async def test_login_or_model_that_does_not_fit_ends_open(
    target: ScriptedTarget,
    new_session: Opened,
    answer: api.CapabilityResponse | CallRefusedError,
    kind: type[OpticalSwitchError],
) -> None:
    target.capabilities = answer
    with pytest.raises(kind):
        await new_session().open()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, RefusedError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, DeviceBusyError),
        (grpc.StatusCode.UNAVAILABLE, UnreachableError),
    ],
)
async def test_refused_subscription_ends_open(
    target: ScriptedTarget, new_session: Opened, code: grpc.StatusCode, kind: type[OpticalSwitchError]
) -> None:
    target.report(CallRefusedError(code, "no subscription"))
    with pytest.raises(kind, match="no subscription"):
        await new_session().open()


async def test_subscription_that_ends_before_state_is_complete_ends_open(
    target: ScriptedTarget, new_session: Opened
) -> None:
    target.report(*FIRST_STATE[:-1], None)
    with pytest.raises(UnreachableError, match="ended the subscription"):
        await new_session().open()


async def test_state_that_is_not_completed_in_time_ends_open(target: ScriptedTarget, new_session: Opened) -> None:
    target.report(*FIRST_STATE[:-1])
    with pytest.raises(UnreachableError, match="did not report its state"):
        await new_session(access_to(target, TIMEOUT)).open()
    await eventually_async(lambda: target.subscriptions == 0, "the subscription to end")


async def test_device_that_is_not_there_is_unreachable(target: ScriptedTarget, new_session: Opened) -> None:
    access = access_to(target)
    await target.stop()
    with pytest.raises(UnreachableError, match="UNAVAILABLE"):
        await new_session(access).open()


async def test_cancelled_open_leaves_nothing_running(target: ScriptedTarget, new_session: Opened) -> None:
    before = session_tasks()
    opening = asyncio.create_task(new_session().open())
    await eventually_async(lambda: target.subscriptions == 1, "the subscription")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually_async(lambda: target.subscriptions == 0, "the subscription to end")
    await eventually_async(lambda: session_tasks() <= before, "all tasks to end")


async def test_close_ends_subscription_and_tasks(target: ScriptedTarget) -> None:
    before = session_tasks()
    session = GnmiSession(access_to(target))
    await opened(target, session)
    await session.close()
    # A task that outlives the session is destroyed while it is pending if the loop is closed now. gRPC ends the one
    # that awaits the status of a call a moment after the call, and offers nothing to wait for.
    assert {task for task in session_tasks() - server_tasks() if "_AioCall" not in repr(task)} <= before
    await session.close()
    assert await session.wait_closed() == "the session was closed"
    await eventually_async(lambda: target.subscriptions == 0, "the subscription to end")
    await eventually_async(lambda: session_tasks() <= before, "all tasks to end")
    with pytest.raises(UnreachableError, match="was closed"):
        await session.apply([], [CIRCUIT])


async def test_cancelled_change_leaves_session_usable(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.silent = True
    applying = asyncio.create_task(session.apply([], [CIRCUIT]))
    await eventually_async(lambda: target.sent(api.SetRequest), "the request")
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    target.silent = False
    assert (await session.apply([], [CIRCUIT])).error is None


# ---------------------------------------------------------------------------------------------------------- security


async def test_user_and_password_go_with_every_call(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session(replace(access_to(target), login=Login("blast", "secret")))
    await opened(target, session)
    await session.apply([], [CIRCUIT])
    await session.read_ports()
    # With the reading of accuracies, which is not waited for.
    await eventually_async(lambda: len(target.metadata) == 5, "all calls")
    assert all((one["username"], one["password"]) == ("blast", "secret") for one in target.metadata)


async def test_tls_authenticates_both_sides(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "other", "other")
    server, client, foreign = ours.issue("/CN=ocs1", "IP:127.0.0.1"), ours.issue("/CN=blast"), other.issue("/CN=blast")
    pair = (server.key.read_bytes(), server.cert.read_bytes())
    target = ScriptedTarget()
    await target.start(grpc.ssl_server_credentials([pair], ours.cert.read_bytes(), require_client_auth=True))
    accepted = PemTexts(ours.cert.read_text(), client.cert.read_text(), client.key.read_text())
    refused = [
        replace(accepted, ca=other.cert.read_text()),
        replace(accepted, certificate=foreign.cert.read_text(), private_key=foreign.key.read_text()),
        PemTexts(ours.cert.read_text()),
        None,
    ]
    try:
        session = GnmiSession(replace(access_to(target), tls=accepted))
        await opened(target, session)
        assert len(await session.read_circuits()) == 1
        await session.close()
        calls = len(target.requests)
        for tls in refused:
            session = GnmiSession(replace(access_to(target), tls=tls))
            with pytest.raises(UnreachableError, match="UNAVAILABLE"):
                await session.open()
        assert len(target.requests) == calls
    finally:
        await target.stop()


async def test_message_beyond_bound_ends_session(target: ScriptedTarget, new_session: Opened) -> None:
    session = new_session()
    await opened(target, session)
    target.report(row(PORT_TABLE, "7A", connector_type="x" * (5 << 20)))
    assert "RESOURCE_EXHAUSTED" in await session.wait_closed()
