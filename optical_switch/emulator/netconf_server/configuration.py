"""Operations that change configurations, locks and the ports (RFC 6241 sections 7.2, 7.5, 7.6, 8.3, 8.4 and 8.6)."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.answers import OperationRule, RpcAnswer
from optical_switch.emulator.netconf_server.commits import CONFIRM_SECONDS, CommitControl, CommitRequest
from optical_switch.emulator.netconf_server.data.device_model import MAX_UINT32
from optical_switch.emulator.netconf_server.data.edit import EditOperation, edited
from optical_switch.emulator.netconf_server.data.schema import Tree
from optical_switch.emulator.netconf_server.datastores import Datastore, DatastoreLocks
from optical_switch.emulator.netconf_server.device.events import Activity, activity_event
from optical_switch.emulator.netconf_server.device.polatis import PolatisDevice
from optical_switch.emulator.netconf_server.messages.names import BASE, OPTICAL_SWITCH, AnnouncedFeature, qualified
from optical_switch.emulator.netconf_server.messages.rpc_errors import (
    ErrorTag,
    ServerRpcError,
    missing_element,
    not_supported,
)
from optical_switch.emulator.netconf_server.parameters import DEFAULT_OPERATIONS, RpcParameters, number_in
from optical_switch.emulator.netconf_server.registry import SessionRegistry
from optical_switch.emulator.netconf_server.session import ServedSession

PROTOCOL = "NETCONF"
"""Name of this protocol in the activity log."""


class ConfigurationOperations:
    """The operations that change something; `operations.py` calls one at a time."""

    def __init__(
        self, device: PolatisDevice, locks: DatastoreLocks, commits: CommitControl, registry: SessionRegistry
    ) -> None:
        self._device = device
        self._locks = locks
        self._commits = commits
        self._registry = registry

    def rules(self) -> Mapping[str, OperationRule]:
        """Return the operations by their tags."""
        candidate, confirmed = AnnouncedFeature.CANDIDATE, AnnouncedFeature.CONFIRMED_COMMIT
        return {
            qualified(BASE, "edit-config"): OperationRule(self._edit_config, changes=True),
            qualified(BASE, "lock"): OperationRule(self._lock, changes=True),
            qualified(BASE, "unlock"): OperationRule(self._unlock, changes=True),
            qualified(BASE, "validate"): OperationRule(self._validate, AnnouncedFeature.VALIDATE),
            qualified(BASE, "commit"): OperationRule(self._commit, candidate, changes=True),
            qualified(BASE, "cancel-commit"): OperationRule(self._cancel_commit, confirmed, changes=True),
            qualified(BASE, "discard-changes"): OperationRule(self._discard_changes, candidate, changes=True),
            qualified(OPTICAL_SWITCH, "port-set-state"): OperationRule(self._port_set_state, changes=True),
        }

    def log_activity(self, activity: Activity) -> None:
        """Send a change to the subscribers that may read it, if the activity log is enabled."""
        if self._device.leaf("activity-log", "logging-enabled") != "true":
            return
        access = self._device.leaf("activity-log", "log-access")

        def may_read(session: ServedSession) -> bool:
            is_own = access == "SELF" and session.user.name == activity.user
            return session.user.group == "admin" or access == "ALL" or is_own

        self._registry.publish(activity_event(activity), may_read)

    async def _edit_config(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        known = ("target", "default-operation", "test-option", "error-option", "config", "url")
        parameters = RpcParameters(operation, known)
        target = parameters.datastore("target", session.features)
        if target is Datastore.RUNNING and AnnouncedFeature.WRITABLE_RUNNING not in session.features:
            raise not_supported("The running configuration changes by a commit of the candidate one only.")
        if parameters.element("url") is not None:
            raise not_supported("The device reads no configuration from a URL.")
        default = parameters.choice("default-operation", DEFAULT_OPERATIONS, EditOperation.MERGE)
        test = _test_option(parameters, session)
        _check_error_option(parameters, session)
        self._locks.check_changeable(session.number, target)
        before = self._device.running() if target is Datastore.RUNNING else self._locks.candidate
        after = edited(self._device.model, before, parameters.required("config"), default)
        self._check_access(session, before, after)
        if test != "set":
            self._device.check(after)
        if test == "test-only":
            return RpcAnswer()
        if target is Datastore.CANDIDATE:
            self._locks.change_candidate(after)
            return RpcAnswer()
        await self._device.set_running(after)
        self._log_changes(session, before)
        return RpcAnswer(moved=True)

    async def _lock(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        target = RpcParameters(operation, ("target",)).datastore("target", session.features)
        pending = self._commits.pending
        self._locks.lock(session.number, target, None if pending is None else pending.session)
        return RpcAnswer()

    async def _unlock(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        target = RpcParameters(operation, ("target",)).datastore("target", session.features)
        self._locks.unlock(session.number, target)
        return RpcAnswer()

    async def _validate(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        parameters = RpcParameters(operation, ("source",))
        source = parameters.required("source")
        config = source.find(qualified(BASE, "config"))
        if config is not None:
            tree = edited(self._device.model, {}, config, EditOperation.MERGE)
        elif parameters.datastore("source", session.features) is Datastore.CANDIDATE:
            tree = self._locks.candidate
        else:
            tree = self._device.running()
        self._device.check(tree)
        return RpcAnswer()

    async def _commit(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        has_confirmed = AnnouncedFeature.CONFIRMED_COMMIT in session.features
        known = ("confirmed", "confirm-timeout", "persist", "persist-id") if has_confirmed else ()
        parameters = RpcParameters(operation, known)
        request = CommitRequest(
            confirmed=parameters.element("confirmed") is not None,
            timeout=parameters.number("confirm-timeout", 1, MAX_UINT32) or CONFIRM_SECONDS,
            persist=parameters.text("persist"),
            persist_id=parameters.text("persist-id"),
        )
        if not request.confirmed and (parameters.text("confirm-timeout") or request.persist) is not None:
            raise missing_element("confirmed")
        before = self._device.running()
        await self._commits.commit(session.number, request)
        self._log_changes(session, before)
        return RpcAnswer(moved=True)

    async def _cancel_commit(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        before = self._device.running()
        await self._commits.cancel(session.number, RpcParameters(operation, ("persist-id",)).text("persist-id"))
        self._log_changes(session, before)
        return RpcAnswer(moved=True)

    async def _discard_changes(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        RpcParameters(operation, ())
        self._locks.check_changeable(session.number, Datastore.CANDIDATE)
        self._locks.discard()
        return RpcAnswer()

    async def _port_set_state(self, session: ServedSession, operation: ET.Element) -> RpcAnswer:
        parameters = RpcParameters(operation, ("port-enab", "port-disab"), repeated=True)
        count = len(self._device.numbers.all_ports)
        enabled = [number_in(port, 1, count) for port in parameters.elements("port-enab")]
        disabled = [number_in(port, 1, count) for port in parameters.elements("port-disab")]
        await self._device.set_ports(enabled, disabled)
        texts = [f"enabled port {number}" for number in enabled] + [f"disabled port {number}" for number in disabled]
        self._log(session, ", ".join(texts))
        return RpcAnswer(moved=True)

    def _check_access(self, session: ServedSession, before: Tree, after: Tree) -> None:
        if session.user.group != "admin" and before.get("system-config") != after.get("system-config"):
            message = "Only users of the group admin can change the system's configuration."
            raise ServerRpcError(ErrorTag.ACCESS_DENIED, message, paths=["/opsw:system-config"])

    def _log_changes(self, session: ServedSession, before: Tree) -> None:
        if before != self._device.running():
            self._log(session, self._device.activity_of(before))

    def _log(self, session: ServedSession, text: str) -> None:
        self.log_activity(Activity(session.user.name, session.user.address, PROTOCOL, text))


def _test_option(parameters: RpcParameters, session: ServedSession) -> str:
    """Return the test option. Without validation a candidate is tested by its commit."""
    if AnnouncedFeature.VALIDATE in session.features:
        return parameters.choice("test-option", ("test-then-set", "set", "test-only"), "test-then-set")
    if parameters.element("test-option") is not None:
        raise not_supported("The device has no test-option, since it does not announce validate.")
    return "set"


def _check_error_option(parameters: RpcParameters, session: ServedSession) -> None:
    options = ("stop-on-error", "continue-on-error", "rollback-on-error")
    option = parameters.choice("error-option", options, "stop-on-error")
    if option == "continue-on-error":
        raise not_supported("The device makes an edit as a whole, or none of it: use rollback-on-error.")
    if option == "rollback-on-error" and AnnouncedFeature.ROLLBACK_ON_ERROR not in session.features:
        raise not_supported("The device does not announce rollback-on-error.")
