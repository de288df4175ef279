"""The table of the interface's methods: handler, minimum role, feature and cost of each.

A new method of the interface needs one more row here. Most have a kind (kinds.py), built from the event of the call and
its answer; the others name their function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from enum import Enum
from typing import TypeVar, TypeVarTuple

from blast_api.BlastOperator import Iface
from blast_controller.core.model.errors import RequestError
from blast_controller.rpc import request_calls as requests
from blast_controller.rpc import server_calls as server
from blast_controller.rpc.call_context import Services
from blast_controller.rpc.clients.identity import Role
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.convert import to_thrift_error
from blast_controller.rpc.kinds import awaits, changes, looks, sends_event

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class Cost(Enum):
    """The cost of a call for the server before its work is passed on."""

    WORKER = "work that may take a while: a worker does it"
    NOTHING = "short calls are made in the I/O thread, since waking a worker would take longer"
    COUNTED = "the same; and each counts against the calls that an account may make: it costs a decision"


class RpcMethod:
    """One method: `of` is the interface's, called as `does(services, connection, *arguments)`.

    An omitted argument is None. `role` is the minimum role of a caller, None: any client. `feature` is its name in
    `version`.
    """

    def __init__(
        self,
        of: Callable[[Iface, *Arguments], T],
        does: Callable[[Services, Connection, *Arguments], T | Future[T]],
        role: Role | None,
        cost: Cost = Cost.WORKER,
        feature: str | None = None,
    ) -> None:
        self.name = of.__name__
        self.role, self.cost, self.feature = role, cost, feature
        self._does: Callable[..., object] = does

    def call(self, services: Services, connection: Connection, *arguments: object) -> object:
        """Carry out a call; return the answer, or a future of it."""
        if self.cost is Cost.COUNTED:
            services.gate.admit(connection)
        try:
            return self._does(services, connection, *arguments)
        except RequestError as error:
            raise to_thrift_error(error) from error


def table(rows: Iterable[RpcMethod]) -> Mapping[str, RpcMethod]:
    """Return the methods by name."""
    return {row.name: row for row in rows}


def roles(methods: Mapping[str, RpcMethod]) -> Mapping[str, Role | None]:
    """Return the least role for each method."""
    return {name: method.role for name, method in methods.items()}


METHODS = table(
    (
        # A client must be able to ask whether it needs to log in, and then to do so.
        RpcMethod(Iface.ping, server.ping, None, Cost.NOTHING),
        RpcMethod(Iface.version, server.version, None),
        RpcMethod(Iface.login, server.login, None),
        RpcMethod(Iface.status, looks(requests.status), Role.VIEWER, Cost.NOTHING),
        RpcMethod(Iface.awaitEvent, requests.await_event, Role.VIEWER, Cost.NOTHING),
        RpcMethod(Iface.listRequests, requests.list_requests, Role.VIEWER, feature="list"),
        RpcMethod(Iface.explain, looks(requests.explain), Role.VIEWER, feature="explain"),
        RpcMethod(Iface.fabric, server.fabric, Role.VIEWER, feature="fabric"),
        RpcMethod(Iface.elements, server.elements, Role.VIEWER, feature="elements"),
        RpcMethod(Iface.submit, requests.submit, Role.USER, Cost.COUNTED),
        RpcMethod(Iface.request, requests.request_grant, Role.USER, Cost.COUNTED),
        RpcMethod(Iface.extend, requests.extend, Role.USER, Cost.COUNTED, "extend"),
        RpcMethod(Iface.finish, changes(requests.to_finish), Role.USER, Cost.NOTHING),
        RpcMethod(Iface.withdraw, requests.withdraw, Role.USER, Cost.NOTHING, "withdraw"),
        RpcMethod(Iface.drain, server.drain, Role.OPERATOR, feature="drain"),
        RpcMethod(Iface.reconcile, awaits(server.to_audit, server.AUDIT), Role.OPERATOR, feature="reconcile"),
        RpcMethod(Iface.verifyFabric, awaits(server.to_verify, server.PROBES), Role.OPERATOR, feature="verify"),
        RpcMethod(Iface.quarantine, sends_event(server.to_quarantine), Role.OPERATOR, feature="quarantine"),
        RpcMethod(Iface.releaseElement, sends_event(server.to_release), Role.OPERATOR, feature="quarantine"),
        RpcMethod(Iface.resume, server.resume, Role.OPERATOR, feature="safe_mode"),
        RpcMethod(Iface.stepDown, server.step_down, Role.OPERATOR, feature="standby"),
        RpcMethod(Iface.journal, server.journal, Role.OPERATOR, feature="journal"),
    )
)

ROLES = roles(METHODS)
"""The least role for each method of the interface."""
