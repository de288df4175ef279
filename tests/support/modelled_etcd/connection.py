"""What stands in for a `Connection`: its methods and its patience, over the modelled server and any network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from blast_controller.store.errors import StoreFault
from blast_controller.store.etcd.access import Patience
from blast_controller.store.etcd.connection import PAUSE
from blast_controller.store.etcd.errors import StoreAway
from blast_controller.store.etcd.keys import LARGEST
from blast_controller.store.etcd.methods import Method
from blast_controller.store.etcd.proto import etcd_pb2 as api
from tests.support.modelled_etcd.server import ModelledEtcd

NAME = "modelled:2379"


class Unanswered(Exception):
    """No answer to one try; `is_surely_not_done` where the other side cannot have got it, nor will."""

    def __init__(self, reason: str, is_surely_not_done: bool = False) -> None:
        super().__init__(reason)
        self.is_surely_not_done = is_surely_not_done


class Network(Protocol):
    """What lies between a client and etcd, and the time that passes there."""

    def now(self) -> float:
        """Seconds of the clock that the client waits by."""

    def pause(self, seconds: float) -> None:
        """Let time pass."""

    def carry(self, act: Callable[[], Any], seconds: float) -> Any:
        """Have `act` done there, now, later, twice or never, and bring back what it gives or raises.

        Raises Unanswered after `seconds` at the latest.
        """

    def wait_for_change(self, until: float) -> None:
        """Until something at the server may have changed, or until then."""


_PATIENT = Patience()


class ModelledConnection:
    """As `Connection`. Answers cannot be told from those of the other kind, but for the words of faults."""

    def __init__(self, etcd: ModelledEtcd, network: Network, patience: Patience = _PATIENT) -> None:
        self.patience = patience
        self.is_closed = False
        self._etcd = etcd
        self._network = network

    def __str__(self) -> str:
        return NAME

    def call(self, method: Method[Any, Any], request: Any, seconds: float | None = None) -> Any:
        """As `Connection.call`."""
        network, may_be_done, reason = self._network, False, "no answer in time"
        end = network.now() + (self.patience.in_all if seconds is None else seconds)
        while (left := end - network.now()) > 0 and not self.is_closed:
            try:
                return network.carry(lambda: self._etcd.answer(method, request), min(left, self.patience.at_one))
            except Unanswered as fault:
                reason = str(fault)
                may_be_done = may_be_done or not fault.is_surely_not_done
            except StoreFault as fault:
                raise (StoreAway(NAME, reason) if may_be_done else fault) from fault
            network.pause(min(PAUSE, left))
        raise StoreAway(NAME, reason, may_be_done)

    first = call

    def stream(self, _: Method[Any, Any], request: api.WatchRequest, seconds: float) -> ModelledStream:
        """A watch of one key, as `Watching` makes it."""
        create = request.create_request
        return ModelledStream(self, create.key, create.start_revision, self._network.now() + seconds)

    def close(self) -> None:
        """Answer nothing any more."""
        self.is_closed = True

    def changed_since(self, key: bytes, revision: int) -> bool:
        """Whether a key was written, or went, at that revision or later; False where nobody says."""
        network = self._network
        try:
            return bool(network.carry(lambda: self._changed(key, revision), self.patience.at_one))
        except Unanswered:
            return False

    def _changed(self, key: bytes, revision: int) -> bool:
        self._etcd.run_out()
        return self._etcd.keys.last_change(key) >= revision


class ModelledStream(Iterator[api.WatchResponse]):
    """The events of one key; ends with its time, or when it is cancelled."""

    def __init__(self, connection: ModelledConnection, key: bytes, revision: int, until: float) -> None:
        self._connection = connection
        self._key, self._revision, self._until = key, revision, until

    def __next__(self) -> api.WatchResponse:
        network = self._connection._network
        while network.now() < self._until and not self._connection.is_closed:
            if self._connection.changed_since(self._key, self._revision):
                self._revision = LARGEST
                return api.WatchResponse(events=[api.Event()])
            network.wait_for_change(self._until)
        raise StopIteration

    def cancel(self) -> None:
        """End it."""
        self._until = float("-inf")
