"""Waiting until a key is gone, or has changed, without asking again and again."""

from __future__ import annotations

import threading

from blast_controller.store.etcd.connection import AnswerStream, EtcdConnection
from blast_controller.store.etcd.methods import WATCH
from blast_controller.store.etcd.proto import etcd_pb2 as api

LONGEST = 2.0
"""Seconds of one watch; then the caller reads again, since a hanging member reports nothing."""


class Watching:
    """Waits for changes of keys; `give_up`, from any thread, ends all waiting for good."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection
        self._given_up = threading.Event()
        self._stream: AnswerStream[api.WatchResponse] | None = None

    @property
    def given_up(self) -> bool:
        """Return true if the wait was abandoned."""
        return self._given_up.is_set()

    def wait(self, key: bytes, after_revision: int, seconds: float = LONGEST) -> bool:
        """Wait until `key` is written or deleted after that revision; return false after the timeout or a failure."""
        create = api.WatchCreateRequest(key=key, start_revision=after_revision + 1)
        stream = self._connection.stream(WATCH, api.WatchRequest(create_request=create), min(seconds, LONGEST))
        self._stream = stream
        try:
            return not self._given_up.is_set() and any(answer.events for answer in stream)
        finally:
            self._stream = None
            stream.cancel()

    def pause(self, seconds: float) -> None:
        """Wait for nothing in particular."""
        self._given_up.wait(seconds)

    def give_up(self) -> None:
        """End the waiting."""
        self._given_up.set()
        stream = self._stream
        if stream is not None:
            stream.cancel()
