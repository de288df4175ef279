"""The handler of the server: the methods of the table, and the end of a connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from blast_controller.rpc.call_context import History, Services, VersionInfo
from blast_controller.rpc.clients.gate import Gate
from blast_controller.rpc.condition import Condition, Healthy
from blast_controller.rpc.connections.connection import Connection
from blast_controller.rpc.methods import METHODS, Cost, RpcMethod
from blast_controller.runtime.runtime import Runtime

FIELD_FEATURES = frozenset({"deadlines", "pausing", "priorities", "splitting"})
"""Features that are fields of a request, and not methods."""


class BlastHandler:
    """Methods of `BlastOperator`, each under its own name. Most hand their work to the runtime and return a future."""

    methods: Mapping[str, RpcMethod] = METHODS

    def __init__(
        self,
        runtime: Runtime,
        openflow_framework: str,
        history: History,
        gate: Gate,
        condition: Condition | None = None,
    ) -> None:
        features = FIELD_FEATURES | {method.feature for method in self.methods.values() if method.feature}
        self._services = Services(
            runtime, gate, history, condition or Healthy(), VersionInfo(features, openflow_framework)
        )
        self.at_once = frozenset(name for name, method in self.methods.items() if method.cost is not Cost.WORKER)

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Return a method, to be called as `method(connection, *arguments)`."""
        if (method := self.methods.get(name)) is None:
            raise AttributeError(f"the interface has no method {name!r}")
        return partial(method.call, self._services)

    def disconnected(self, connection: Connection) -> None:
        """Handle the end of a client's connection: its waits by `request` end after a grace period."""
        self._services.vanished(connection)
