"""Messages of NETCONF (RFC 6241 and 5277): hello, request, reply with errors, notification."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from optical_switch.errors import ProtocolError
from optical_switch.netconf.markup import BASE, child, children, element, local_name, parse, text, value
from optical_switch.netconf.operations import NOTIFICATIONS
from optical_switch.printable import printable

BASE_1_0 = "urn:ietf:params:netconf:base:1.0"
BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
_NUMBER = re.compile(r"[0-9]{1,10}")
"""Session numbers are 32 bits wide."""


@dataclass(frozen=True, slots=True)
class ServerHello:
    """The first message of a device.

    Parameters
    ----------
    capabilities : frozenset[str]
        URIs of the capabilities and modules.
    session_id : int
        Number of the session at the device.
    """

    capabilities: frozenset[str]
    session_id: int


@dataclass(frozen=True, slots=True)
class RpcError:
    """An error in a reply (RFC 6241, section 4.3).

    Parameters
    ----------
    tag : str
        Kind of the error, such as `lock-denied`.
    message : str
        Explanation of the device. Empty: none.
    path : str
        Path of the element that is wrong. Empty: the device names none.
    bad_element : str
        Name or value of the element that is wrong. Empty: the device names none.
    session_id : int | None
        Session that holds the lock, for `lock-denied`; 0 if it is no session of NETCONF. None: not named.
    """

    tag: str
    message: str = ""
    path: str = ""
    bad_element: str = ""
    session_id: int | None = None

    def __str__(self) -> str:
        """Return tag and message in printable characters and limited length."""
        return printable(f"{self.tag}: {self.message}" if self.message else self.tag)


@dataclass(frozen=True, slots=True)
class RpcReply:
    """The reply to a request.

    Parameters
    ----------
    message_id : str
        Identifier of the request. Empty: none, as if the device could not read the request.
    errors : tuple[RpcError, ...]
        Errors; warnings are left out. Empty: the request was carried out.
    data : Element | None
        Content of a reading.
    """

    message_id: str
    errors: tuple[RpcError, ...] = ()
    data: Element | None = None


@dataclass(frozen=True, slots=True)
class NetconfNotification:
    """An event that the device reports on its own.

    Parameters
    ----------
    event : Element
        The event as its model describes it.
    """

    event: Element


Message = ServerHello | RpcReply | NetconfNotification


def hello() -> bytes:
    """Return the hello message of a client that has both framings."""
    capabilities = (element("capability", one) for one in (BASE_1_0, BASE_1_1))
    return element("hello", element("capabilities", *capabilities), namespace=BASE).encode()


def rpc(message_id: str, operation: str) -> bytes:
    """Return a request.

    Parameters
    ----------
    message_id : str
        Identifier that the reply repeats.
    operation : str
        Operation as XML text.

    Returns
    -------
    bytes
        Message without framing.
    """
    return f'<rpc xmlns="{BASE}" message-id="{text(message_id)}">{operation}</rpc>'.encode()


def read_message(message: bytes) -> Message:
    """Read a message of a device.

    Parameters
    ----------
    message : bytes
        Message without framing.

    Returns
    -------
    Message
        The message.

    Raises
    ------
    ProtocolError
        If it is no message that a device may send.
    """
    root = parse(message)
    match root.tag:
        case str(tag) if tag == f"{{{BASE}}}rpc-reply":
            return _reply(root)
        case str(tag) if tag == f"{{{NOTIFICATIONS}}}notification":
            return _notification(root)
        case str(tag) if tag == f"{{{BASE}}}hello":
            return _hello(root)
    raise ProtocolError(f"the switch sends {printable(root.tag)}, which is no message of a NETCONF server")


def _hello(root: Element) -> ServerHello:
    listed = child(root, "capabilities")
    number = _session_id(root)
    if listed is None or number is None:
        raise ProtocolError("the switch sends a hello without capabilities or session-id (RFC 6241, section 8.1)")
    return ServerHello(frozenset((one.text or "").strip() for one in children(listed, "capability")), number)


def _reply(root: Element) -> RpcReply:
    errors = [_error(one) for one in children(root, "rpc-error") if value(one, "error-severity") != "warning"]
    return RpcReply(root.get("message-id", ""), tuple(errors), child(root, "data"))


def _error(found: Element) -> RpcError:
    info = child(found, "error-info")
    if info is None:
        info = Element("error-info")
    return RpcError(
        tag=value(found, "error-tag") or "operation-failed",
        message=value(found, "error-message"),
        path=value(found, "error-path"),
        bad_element=value(info, "bad-element"),
        session_id=_session_id(info),
    )


def _notification(root: Element) -> NetconfNotification:
    event = next((one for one in root if local_name(one) != "eventTime"), None)
    if event is None:
        raise ProtocolError("the switch sends a notification without an event (RFC 5277, section 4)")
    return NetconfNotification(event)


def _session_id(parent: Element) -> int | None:
    number = value(parent, "session-id")
    return int(number) if _NUMBER.fullmatch(number) else None
