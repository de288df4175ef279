"""Transcripts of gNMI in the formats `json` and `event` of gnmic, the client that operators use.

Bytes captured on the network are of no use: gNMI is encrypted, its headers are compressed, and nothing in a message of
protocol buffers names its type. gnmic prints the same messages with their paths and values, requests included
(`--print-request`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from blast_controller.cli.switch.decode.json_text import JsonGarbage, JsonTextReader, JsonValue
from blast_controller.cli.switch.decode.transcript import Record, unparsed

_KINDS = {
    "sync-response": "sync_response",
    "results": "set_response",
    "supported-models": "capabilities",
    "subscribe": "subscribe_request",
    "paths": "get_request",
    "update": "set_request",
    "replace": "set_request",
    "delete": "set_request",
    "tags": "event",
    "updates": "notification",
    "deletes": "notification",
    "values": "event",
}
"""Kind of an object by a member that only this kind has; the first one counts."""
UNKNOWN = "a value of unknown kind"
_TITLE = re.compile(rb"(?:Capabilities|Get|Set|Subscribe) (?:Request|Response):")
"""A line that gnmic prints above each message with `--print-request`."""


class GnmicTranscriptDecoder:
    """A decoder of JSON as gnmic prints it, on one line or on several."""

    def __init__(self) -> None:
        self._reader = JsonTextReader()

    def feed(self, data: bytes) -> Iterator[Record]:
        """Return the records that `data` completes."""
        for found in self._reader.feed(data):
            yield from _records(found)

    def finish(self) -> Iterator[Record]:
        """Return the records at the end of the transcript."""
        for found in self._reader.finish():
            yield from _records(found)


def _records(found: JsonValue | JsonGarbage) -> Iterator[Record]:
    if isinstance(found, JsonGarbage):
        if not _TITLE.fullmatch(found.content):
            yield unparsed(found.content, found.reason)
        return
    # A `Get` is answered by a list of notifications, and events come in lists. Extensions put the list into an object.
    value = found.value
    if isinstance(value, dict) and isinstance(value.get("notifications"), list):
        value = value["notifications"]
    for one in value if isinstance(value, list) else [value]:
        yield _record(one)


def _record(value: object) -> Record:
    members = value if isinstance(value, dict) else {}
    kind = next((kind for member, kind in _KINDS.items() if member in members), None)
    if kind is None:
        return unparsed(repr(value).encode(), UNKNOWN)
    found = {name.replace("-", "_"): content for name, content in members.items()}
    updates = members.get("updates")
    if kind == "notification" and isinstance(updates, list):
        found["updates"] = [_update(one) for one in updates]
    # Last, so that no member takes its place.
    return {**{"kind": kind}, **found, "kind": kind}


def _update(update: object) -> object:
    """Return path and value of an update, which gnmic writes as an object with one member."""
    if not isinstance(update, dict) or not isinstance(values := update.get("values"), Mapping) or len(values) != 1:
        return update
    return {"path": update.get("Path", update.get("path", "")), "value": next(iter(values.values()))}
