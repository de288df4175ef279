"""Events of requests: the latest of each, and events that the journal does not have yet.

Each event is a separate row of the journal, so it is written once however often its request changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from blast_controller.core.journal.bodies import event_body, request_key
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import Request, RequestEvent, RequestKey

KIND = "event"
_Name = tuple[RequestKey, int]


class EventLog:
    """Appends events to requests, and drops the oldest beyond `max_events` of each.

    A client that reads dropped ones gets the oldest kept event; its number shows the gap.
    """

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._new: dict[_Name, RequestEvent] = {}
        self._dropped: dict[_Name, None] = {}

    def append(self, request: Request, event: RequestEvent) -> None:
        """Append an event, which has the number `latest_event` + 1."""
        request.latest_event = event.sequence
        request.events.append(event)
        self._new[request.current.id, event.sequence] = event
        self._trim(request)

    def adopt(self, request: Request, event: RequestEvent) -> None:
        """Take over an event that the journal has."""
        request.events.append(event)
        self._trim(request)

    def forget(self, request: Request) -> None:
        """Forget the events of a request."""
        for event in request.events:
            self._drop((request.current.id, event.sequence))

    def take_records(self) -> Iterator[Record]:
        """Return the records that the journal does not have yet, once."""
        dropped, self._dropped = self._dropped, {}
        new, self._new = self._new, {}
        for name in dropped:
            yield Record(KIND, _row(name), None, note="dropped")
        for name, event in new.items():
            yield Record(KIND, _row(name), event_body(name[0], event), note=event.kind.value)

    def _trim(self, request: Request) -> None:
        while len(request.events) > self._max_events:
            self._drop((request.current.id, request.events.pop(0).sequence))

    def _drop(self, name: _Name) -> None:
        if self._new.pop(name, None) is None:
            self._dropped[name] = None


def _row(name: _Name) -> str:
    request, sequence = name
    return f"{sequence}/{request_key(request)}"
