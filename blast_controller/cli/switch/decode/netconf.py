"""Transcripts of NETCONF: hello, rpc, rpc-reply and notification as records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from blast_controller.cli.switch.decode.ncclient_log import ENTRY, NcclientLogScanner
from blast_controller.cli.switch.decode.netconf_text import Finding, NetconfTextScanner, StrayText
from blast_controller.cli.switch.decode.transcript import Record, unparsed
from optical_switch.errors import ProtocolError
from optical_switch.netconf.markup import child, children, local_name, parse, value

_FIRST_MESSAGE = re.compile(rb"<(?:[\w.-]{1,64}:)?(?:hello|rpc|notification)|\n#[1-9]|\]\]>\]\]>")
MAX_PROLOGUE = 1 << 16
"""Bytes before the first message in which an entry of a log is searched for."""
_ERROR_LEAVES = ("type", "tag", "severity", "app-tag", "path", "message")


class NetconfTranscriptDecoder:
    """A decoder of captured bytes, or of a log of ncclient."""

    def __init__(self) -> None:
        self._scanner: NetconfTextScanner | NcclientLogScanner | None = None
        self._beginning = b""
        """Text of which it is not known whether it is a log."""

    def feed(self, data: bytes) -> Iterator[Record]:
        """Return the messages that `data` completes."""
        if self._scanner is None:
            data = self._beginning = self._beginning + data
            entry, first = ENTRY.search(data), _FIRST_MESSAGE.search(data)
            if entry is None and first is None and len(data) <= MAX_PROLOGUE:
                return
            is_log = entry is not None and (first is None or entry.end() < first.end())
            self._scanner = NcclientLogScanner() if is_log else NetconfTextScanner()
        yield from _records(self._scanner.feed(data))

    def finish(self) -> Iterator[Record]:
        """Return the records at the end of the transcript."""
        if self._scanner is None:
            self._scanner = NetconfTextScanner()
            yield from _records(self._scanner.feed(self._beginning))
        yield from _records(self._scanner.finish())


def _records(found: Iterable[Finding]) -> Iterator[Record]:
    for one in found:
        yield unparsed(one.content, one.reason) if isinstance(one, StrayText) else netconf_record(one.content)


def netconf_record(message: bytes) -> Record:
    """Return a message as a record.

    Parameters
    ----------
    message : bytes
        Message without framing.

    Returns
    -------
    Record
        `hello`, `rpc`, `rpc-reply` or `notification`; `unparsed` if it is no XML that NETCONF permits.
    """
    try:
        root = parse(message)
    except ProtocolError as error:
        return unparsed(message, str(error).replace("the switch sends a message", "a message"))
    kind = local_name(root)
    match kind:
        case "hello":
            return _hello(root)
        case "rpc":
            return {"kind": kind, "message_id": root.get("message-id", ""), **_named(root)}
        case "rpc-reply":
            return {"kind": kind, "message_id": root.get("message-id", ""), **_result(root)}
        case "notification":
            return {"kind": kind, "time": _event_time(root), **_named(root, "event", skipped="eventTime")}
    return unparsed(message, f"{kind} is no message of NETCONF")


def _hello(root: Element) -> Record:
    listed = child(root, "capabilities")
    found = [] if listed is None else [(one.text or "").strip() for one in children(listed, "capability")]
    number = value(root, "session-id")
    # Only a server sends a session-id (RFC 6241, section 8.1).
    server = {"session_id": int(number)} if number.isascii() and number.isdecimal() and len(number) <= 10 else {}
    return {"kind": "hello", "from": "server" if number else "client", **server, "capabilities": found}


def _named(root: Element, role: str = "operation", skipped: str = "") -> Record:
    """Return the name and the content of the only element inside a message."""
    inside = next((one for one in root if local_name(one) != skipped), None)
    return {} if inside is None else {role: local_name(inside), "content": tree(inside)}


def _result(root: Element) -> Record:
    errors = [_error(one) for one in children(root, "rpc-error")]
    if errors:
        return {"errors": errors}
    if child(root, "ok") is not None:
        return {"ok": True}
    if (data := child(root, "data")) is not None:
        return {"data": tree(data)}
    # Other operations than those of RFC 6241 have output elements of their own.
    output = Element("output")
    output.extend(root)
    return {"data": tree(output)}


def _error(found: Element) -> Record:
    leaves = {name.replace("-", "_"): value(found, f"error-{name}") for name in _ERROR_LEAVES}
    info = child(found, "error-info")
    details = {} if info is None else {"info": tree(info)}
    return {**{name: text for name, text in leaves.items() if text}, **details}


def _event_time(root: Element) -> str:
    return next(((one.text or "").strip() for one in root if local_name(one) == "eventTime"), "")


def tree(element: Element) -> object:
    """Return the content of an element as JSON values.

    Names have no namespace, attributes begin with `@`, and elements of one name become a list.

    Parameters
    ----------
    element : Element
        The element, with the depth that `markup.parse` permits.

    Returns
    -------
    object
        Its text, if it has neither elements nor attributes; None if it is empty; else an object.
    """
    found: dict[str, object] = {f"@{name.rpartition('}')[2]}": text for name, text in element.attrib.items()}
    for one in element:
        _add(found, local_name(one), tree(one))
    text = (element.text or "").strip()
    if found and text:
        found["#text"] = text
    return found or text or None


def _add(found: dict[str, object], name: str, content: object) -> None:
    if name not in found:
        found[name] = content
        return
    present = found[name]
    if isinstance(present, list):
        present.append(content)
    else:
        found[name] = [present, content]
