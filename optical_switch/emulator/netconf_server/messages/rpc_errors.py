"""Errors in replies, as section 4.3 and appendix A of RFC 6241 define them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal
from xml.etree import ElementTree as ET

from optical_switch.emulator.crossbar import RefusalError, SwitchRefusal
from optical_switch.emulator.netconf_server.messages.names import BASE, PREFIXES
from optical_switch.emulator.netconf_server.messages.xml_text import element
from optical_switch.printable import printable

MAX_PATHS = 512
"""Errors in one reply: more than one for each port of the largest switches."""

ErrorLayer = Literal["transport", "rpc", "protocol", "application"]


class ErrorTag(StrEnum):
    """The conditions that this device reports."""

    IN_USE = "in-use"
    INVALID_VALUE = "invalid-value"
    MISSING_ATTRIBUTE = "missing-attribute"
    BAD_ATTRIBUTE = "bad-attribute"
    UNKNOWN_ATTRIBUTE = "unknown-attribute"
    MISSING_ELEMENT = "missing-element"
    BAD_ELEMENT = "bad-element"
    UNKNOWN_ELEMENT = "unknown-element"
    UNKNOWN_NAMESPACE = "unknown-namespace"
    ACCESS_DENIED = "access-denied"
    LOCK_DENIED = "lock-denied"
    DATA_EXISTS = "data-exists"
    DATA_MISSING = "data-missing"
    OPERATION_NOT_SUPPORTED = "operation-not-supported"
    OPERATION_FAILED = "operation-failed"
    MALFORMED_MESSAGE = "malformed-message"


class ServerRpcError(Exception):
    """A refused operation.

    Parameters
    ----------
    tag : ErrorTag
        The condition.
    message : str
        A sentence for an operator.
    layer : ErrorLayer
        Where it arose.
    paths : Sequence[str]
        Paths of the offending nodes, with the prefixes of the models: one error in the reply for each.
    info : Mapping[str, str]
        Elements of `error-info`, of the base namespace.
    """

    def __init__(
        self,
        tag: ErrorTag,
        message: str,
        layer: ErrorLayer = "application",
        *,
        paths: Sequence[str] = (),
        info: Mapping[str, str] | None = None,
    ) -> None:
        self.tag = tag
        self.message = message
        self.layer = layer
        self.paths = tuple(paths)[:MAX_PATHS]
        self.info = dict(info or {})
        super().__init__(f"{tag}: {message}")

    def elements(self) -> list[ET.Element]:
        """Return the `rpc-error` elements of the reply."""
        return [self._element(path) for path in self.paths or [""]]

    def _element(self, path: str) -> ET.Element:
        error = element(BASE, "rpc-error")
        error.append(element(BASE, "error-type", self.layer))
        error.append(element(BASE, "error-tag", self.tag))
        error.append(element(BASE, "error-severity", "error"))
        if path:
            node = element(BASE, "error-path", path)
            node.attrib |= {f"xmlns:{prefix}": uri for uri, prefix in PREFIXES.items() if f"{prefix}:" in path}
            error.append(node)
        error.append(element(BASE, "error-message", self.message))
        if self.info:
            details = [element(BASE, name, text) for name, text in self.info.items()]
            error.append(element(BASE, "error-info", children=details))
        return error


_TAGS = {
    SwitchRefusal.UNKNOWN_PORT: ErrorTag.INVALID_VALUE,
    SwitchRefusal.IN_USE: ErrorTag.IN_USE,
    SwitchRefusal.LOCKED: ErrorTag.ACCESS_DENIED,
}


def of_refusal(refusal: RefusalError, paths: Iterable[str]) -> ServerRpcError:
    """Return the error for a change that the hardware refuses."""
    tag = _TAGS.get(refusal.reason, ErrorTag.OPERATION_FAILED)
    return ServerRpcError(tag, refusal.text, paths=list(paths))


def unknown_element(name: str, path: str = "") -> ServerRpcError:
    """Return the error for an element that is not expected where it is; a client has chosen its name."""
    name = printable(name)
    layer: ErrorLayer = "application" if path else "protocol"
    message = f"There is no such element here: {name}."
    paths = [path] if path else []
    return ServerRpcError(ErrorTag.UNKNOWN_ELEMENT, message, layer, paths=paths, info={"bad-element": name})


def missing_element(name: str, path: str = "") -> ServerRpcError:
    """Return the error for an element that is expected and absent."""
    layer: ErrorLayer = "application" if path else "protocol"
    message = f"The element {name} is missing."
    paths = [path] if path else []
    return ServerRpcError(ErrorTag.MISSING_ELEMENT, message, layer, paths=paths, info={"bad-element": name})


def not_supported(message: str) -> ServerRpcError:
    """Return the error for an operation, or a parameter, that the device does not have."""
    return ServerRpcError(ErrorTag.OPERATION_NOT_SUPPORTED, message, "protocol")
