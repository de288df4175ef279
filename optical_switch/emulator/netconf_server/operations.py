"""The operations of all sessions, the rules for using them, and the operations that change nothing.

One operation that changes something runs at a time. Operations that only read do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.answers import OperationRule, RpcAnswer
from optical_switch.emulator.netconf_server.commits import CommitControl
from optical_switch.emulator.netconf_server.configuration import ConfigurationOperations
from optical_switch.emulator.netconf_server.data.device_model import MAX_UINT32
from optical_switch.emulator.netconf_server.data.subtree import select
from optical_switch.emulator.netconf_server.datastores import Datastore, DatastoreLocks
from optical_switch.emulator.netconf_server.device.events import STREAM_NAMES, EventSubscription
from optical_switch.emulator.netconf_server.device.polatis import PolatisDevice
from optical_switch.emulator.netconf_server.messages.names import (
    BASE,
    NOTIFICATION,
    AnnouncedFeature,
    qualified,
    split_tag,
)
from optical_switch.emulator.netconf_server.messages.rpc_errors import (
    ErrorTag,
    ServerRpcError,
    missing_element,
    not_supported,
)
from optical_switch.emulator.netconf_server.messages.xml_text import element
from optical_switch.emulator.netconf_server.parameters import RpcParameters, invalid_value, number_in
from optical_switch.emulator.netconf_server.registry import SessionRegistry
from optical_switch.emulator.netconf_server.session import ServedSession
from optical_switch.printable import printable

_CLOSE = qualified(BASE, "close-session")


class RpcOperations:
    """The operations of the device.

    Parameters
    ----------
    device : PolatisDevice
        The switch.
    locks : DatastoreLocks
        The candidate configuration and the locks.
    commits : CommitControl
        The commits.
    registry : SessionRegistry
        The sessions.
    """

    def __init__(
        self, device: PolatisDevice, locks: DatastoreLocks, commits: CommitControl, registry: SessionRegistry
    ) -> None:
        self._device = device
        self._locks = locks
        self._commits = commits
        self._registry = registry
        self.configuration = ConfigurationOperations(device, locks, commits, registry)
        subscribe = OperationRule(self._create_subscription, AnnouncedFeature.NOTIFICATION)
        self._rules = {
            **self.configuration.rules(),
            qualified(BASE, "get"): OperationRule(self._get),
            qualified(BASE, "get-config"): OperationRule(self._get_config),
            _CLOSE: OperationRule(self._close_session),
            qualified(BASE, "kill-session"): OperationRule(self._kill_session),
            qualified(NOTIFICATION, "create-subscription"): subscribe,
        }

    async def perform(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        """Carry out an operation of a session.

        Parameters
        ----------
        session : ServedSession
            The session.
        operation : ET.Element
            The element in the `rpc`.

        Returns
        -------
        RpcAnswer
            The answer.

        Raises
        ------
        ServerRpcError
            If the operation is refused.
        """
        if self._device.hardware.faults.refuse_all:
            raise ServerRpcError(ErrorTag.OPERATION_FAILED, "The device refuses all operations.")
        rule = self._rules.get(operation.tag)
        if rule is None or (rule.feature is not None and rule.feature not in session.features):
            raise not_supported(f"The device does not have the operation {printable(split_tag(operation.tag)[1])}.")
        if (
            session.subscription is not None
            and AnnouncedFeature.INTERLEAVE not in session.features
            and operation.tag != _CLOSE
        ):
            # RFC 5277 section 6.
            raise not_supported("A session with a subscription can only be closed: use another session.")
        if not rule.changes:
            return await rule.handle(session, operation)
        if session.user.group == "view":
            raise ServerRpcError(ErrorTag.ACCESS_DENIED, "Users of the group view can only read.", "protocol")
        async with self._commits.changing:
            return await rule.handle(session, operation)

    async def release(self, session: int) -> None:
        """Release everything of a session that ends: its unconfirmed commit, its locks, and its changes under them."""
        async with self._commits.changing:
            try:
                await self._commits.end_session(session)
            finally:
                self._locks.end_session(session)

    async def _get(self, _session: ServedSession, operation: ET.Element) -> RpcAnswer:
        filters = RpcParameters(operation, ("filter",)).filters()
        return _data(filters, self._device.listed_state)

    async def _get_config(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        parameters = RpcParameters(operation, ("source", "filter"))
        if parameters.datastore("source", session.features) is Datastore.RUNNING:
            return _data(parameters.filters(), self._device.listed_config)
        return _data(parameters.filters(), lambda: self._device.config_content(self._locks.candidate))

    async def _close_session(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        RpcParameters(operation, ())
        # Before the reply, so that the client can rely on it in another session (section 7.8).
        await self.release(session.number)
        return RpcAnswer(afterwards=lambda: self._registry.end(session.number, "the client has closed it"))

    async def _kill_session(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        if session.user.group != "admin":
            message = "Only users of the group admin can end the sessions of others."
            raise ServerRpcError(ErrorTag.ACCESS_DENIED, message, "protocol")
        number = number_in(RpcParameters(operation, ("session-id",)).required("session-id"), 1, MAX_UINT32)
        if number == session.number:
            # Section 7.9: a session cannot kill itself.
            raise invalid_value("session-id", "is that of this session: use close-session")
        if number not in self._registry.channels:
            raise invalid_value("session-id", "is that of no session")
        self._registry.end(number, f"session {session.number} has killed it")
        await self.release(number)
        return RpcAnswer()

    async def _create_subscription(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        parameters = RpcParameters(operation, ("stream", "filter", "startTime", "stopTime"))
        stream = parameters.text("stream")
        if stream is not None and stream not in STREAM_NAMES:
            raise invalid_value("stream", f"must be one of {', '.join(STREAM_NAMES)}")
        if parameters.element("startTime") is not None:
            raise ServerRpcError(ErrorTag.OPERATION_FAILED, "The device keeps no notifications to replay.", "protocol")
        if parameters.element("stopTime") is not None:
            # Section 2.1.1: it needs a replay.
            raise missing_element("startTime")
        if session.subscription is not None:
            raise ServerRpcError(ErrorTag.OPERATION_FAILED, "This session has a subscription already.", "protocol")
        subscription = EventSubscription(parameters.filters())

        def subscribe() -> None:
            session.subscription = subscription

        # Section 2.1.1: notifications follow the reply.
        return RpcAnswer(afterwards=subscribe)


def _data(filters: Iterable[ET.Element] | None, collect: Callable[[], Sequence[ET.Element]]) -> RpcAnswer:
    found = collect()
    selected = found if filters is None else select(filters, found)
    return RpcAnswer([element(BASE, "data", children=selected)])
