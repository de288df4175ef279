"""One NETCONF session without IO: hello messages, framing, requests in, replies and notifications out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.device.events import EventSubscription
from optical_switch.emulator.netconf_server.messages.framing import MessageReader, ServerFramingError, framed
from optical_switch.emulator.netconf_server.messages.names import BASE, AnnouncedFeature, qualified
from optical_switch.emulator.netconf_server.messages.rpc_errors import (
    ErrorTag,
    ServerRpcError,
    missing_element,
    unknown_element,
)
from optical_switch.emulator.netconf_server.messages.xml_text import XmlTextError, element, parse_xml, text_of, to_xml

UserGroup = Literal["admin", "user", "view"]
"""Users of the group `view` change nothing, and those of `user` not the system's configuration."""


class SessionViolationError(Exception):
    """A client violates the protocol so that the session must end."""


@dataclass(frozen=True, slots=True)
class SessionUser:
    """The user of a session, and the address of the client."""

    name: str
    group: UserGroup
    address: str = ""


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request: its operation, or why it is refused before any operation; and the attributes of the reply."""

    operation: ET.Element | None = None
    error: ServerRpcError | None = None
    attributes: dict[str, str] = field(default_factory=dict)


class ServedSession:
    """A session.

    Parameters
    ----------
    number : int
        The session id, which no other session of the device has had.
    user : SessionUser
        The authenticated user.
    features : frozenset[AnnouncedFeature]
        The features that the device announces.
    """

    def __init__(self, number: int, user: SessionUser, features: frozenset[AnnouncedFeature]) -> None:
        self.number = number
        self.user = user
        self.features = features
        self.subscription: EventSubscription | None = None
        self._reader = MessageReader()
        self._greeted = False

    def greeting(self) -> bytes:
        """Return the hello message of the device (section 8.1)."""
        uris = [element(BASE, "capability", feature) for feature in AnnouncedFeature if feature in self.features]
        capabilities = element(BASE, "capabilities", children=uris)
        number = element(BASE, "session-id", str(self.number))
        return framed(to_xml(element(BASE, "hello", children=[capabilities, number])), chunked=False)

    def receive(self, data: bytes) -> Iterator[ServerRequest]:
        """Yield the requests that `data` completes. Raises `SessionViolationError`; then the session must end."""
        try:
            for message in self._reader.feed(data):
                if self._greeted:
                    yield self._request(message)
                else:
                    self._greet(message)
        except ServerFramingError as error:
            raise SessionViolationError(str(error)) from error

    def reply(self, request: ServerRequest, content: Iterable[ET.Element]) -> bytes:
        """Return the reply to a request. It has all attributes of the request (section 4.2)."""
        reply = element(BASE, "rpc-reply", children=content)
        reply.attrib.update(request.attributes)
        return self.message(reply)

    def message(self, root: ET.Element) -> bytes:
        """Return the bytes of a message."""
        return framed(to_xml(root), chunked=self._reader.chunked)

    def _greet(self, message: bytes) -> None:
        try:
            hello = parse_xml(message)
        except XmlTextError as error:
            raise SessionViolationError(f"the hello message cannot be read: {error}") from error
        if hello.tag != qualified(BASE, "hello"):
            raise SessionViolationError("the first message is no hello message")
        if hello.find(qualified(BASE, "session-id")) is not None:
            raise SessionViolationError("the hello message of a client has a session-id")
        path = f"{qualified(BASE, 'capabilities')}/{qualified(BASE, 'capability')}"
        common = {text_of(uri) for uri in hello.iterfind(path)} & self.features
        if AnnouncedFeature.BASE_1_1 in common:
            self._reader.chunked = True
        elif AnnouncedFeature.BASE_1_0 not in common:
            raise SessionViolationError("the client has no base version that the device has")
        self._greeted = True

    def _request(self, message: bytes) -> ServerRequest:
        try:
            rpc = parse_xml(message)
        except XmlTextError as error:
            return self._malformed(f"The message cannot be read: {error}.")
        if rpc.tag != qualified(BASE, "rpc"):
            return self._malformed("The message is no rpc.")
        attributes = dict(rpc.attrib)
        if "message-id" not in attributes:
            info = {"bad-attribute": "message-id", "bad-element": "rpc"}
            missing = ServerRpcError(ErrorTag.MISSING_ATTRIBUTE, "The rpc has no message-id.", "rpc", info=info)
            return ServerRequest(error=missing, attributes=attributes)
        if not len(rpc):
            return ServerRequest(error=missing_element("operation"), attributes=attributes)
        if len(rpc) > 1:
            return ServerRequest(error=unknown_element(rpc[1].tag), attributes=attributes)
        return ServerRequest(rpc[0], attributes=attributes)

    def _malformed(self, text: str) -> ServerRequest:
        # Appendix A: clients of the older base version do not know the tag, so their session ends.
        if not self._reader.chunked:
            raise SessionViolationError(text)
        return ServerRequest(error=ServerRpcError(ErrorTag.MALFORMED_MESSAGE, text, "rpc"))
