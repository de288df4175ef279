"""The parameters of operations, read from their XML."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.data.edit import EditOperation
from optical_switch.emulator.netconf_server.data.schema import whole_number
from optical_switch.emulator.netconf_server.datastores import Datastore
from optical_switch.emulator.netconf_server.messages.names import BASE, AnnouncedFeature, split_tag
from optical_switch.emulator.netconf_server.messages.rpc_errors import (
    ErrorTag,
    ServerRpcError,
    missing_element,
    not_supported,
    unknown_element,
)
from optical_switch.emulator.netconf_server.messages.xml_text import text_of
from optical_switch.printable import printable

ChoiceT = TypeVar("ChoiceT", bound=str)

DEFAULT_OPERATIONS = (EditOperation.MERGE, EditOperation.REPLACE, EditOperation.NONE)
"""Values of `default-operation`."""


class RpcParameters:
    """The parameters of one operation, of its namespace.

    Parameters
    ----------
    operation : ET.Element
        The operation.
    known : Collection[str]
        Names of the parameters that it may have.
    repeated : bool
        True if a parameter may occur several times.

    Raises
    ------
    ServerRpcError
        If it has others.
    """

    def __init__(self, operation: ET.Element, known: Collection[str], *, repeated: bool = False) -> None:
        namespace = split_tag(operation.tag)[0]
        self._found: dict[str, list[ET.Element]] = {}
        for child in operation:
            child_namespace, name = split_tag(child.tag)
            if name not in known or child_namespace != namespace:
                raise unknown_element(name)
            if name in self._found and not repeated:
                raise _bad_element(name, f"The element {name} occurs twice.")
            self._found.setdefault(name, []).append(child)

    def element(self, name: str) -> ET.Element | None:
        """Return a parameter, or None."""
        return self._found.get(name, [None])[0]

    def elements(self, name: str) -> list[ET.Element]:
        """Return all occurrences of a parameter."""
        return self._found.get(name, [])

    def required(self, name: str) -> ET.Element:
        """Return a parameter. Raises `ServerRpcError` if it is missing."""
        found = self.element(name)
        if found is None:
            raise missing_element(name)
        return found

    def text(self, name: str) -> str | None:
        """Return the text of a parameter, or None."""
        found = self.element(name)
        return None if found is None else text_of(found)

    def number(self, name: str, low: int, high: int) -> int | None:
        """Return the number in a parameter, or None. Raises `ServerRpcError` if it is not in the range."""
        found = self.element(name)
        return None if found is None else number_in(found, low, high)

    def choice(self, name: str, values: Collection[ChoiceT], default: ChoiceT) -> ChoiceT:
        """Return the value of a parameter among several ones. Raises `ServerRpcError` if it has another one."""
        text = self.text(name)
        found = default if text is None else next((value for value in values if value == text), None)
        if found is None:
            raise invalid_value(name, f"must be one of {', '.join(values)}")
        return found

    def filters(self) -> tuple[ET.Element, ...] | None:
        """Return the elements of the subtree filter; None: there is no filter. Raises `ServerRpcError`."""
        found = self.element("filter")
        if found is None:
            return None
        if found.get("type", "subtree") != "subtree":
            info = {"bad-attribute": "type", "bad-element": "filter"}
            message = "The device has subtree filters only."
            raise ServerRpcError(ErrorTag.BAD_ATTRIBUTE, message, "protocol", info=info)
        return tuple(found)

    def datastore(self, name: str, features: Collection[AnnouncedFeature]) -> Datastore:
        """Return the configuration that a parameter names. Raises `ServerRpcError` if the device lacks it."""
        inside = list(self.required(name))
        if len(inside) != 1:
            raise _bad_element(name, f"The element {name} must name one configuration.")
        namespace, found = split_tag(inside[0].tag)
        if namespace != BASE or found not in set(Datastore):
            raise unknown_element(found)
        if found == Datastore.CANDIDATE and AnnouncedFeature.CANDIDATE not in features:
            raise not_supported("The device has no candidate configuration.")
        return Datastore(found)


def number_in(node: ET.Element, low: int, high: int) -> int:
    """Return the number in an element. Raises `ServerRpcError` if it is not in the range."""
    try:
        return int(whole_number(low, high)(text_of(node)))
    except ValueError as error:
        raise invalid_value(split_tag(node.tag)[1], f"{error}, not {printable(text_of(node))!r}") from error


def invalid_value(name: str, fault: str) -> ServerRpcError:
    """Return the error for a parameter with a wrong value; `fault` ends a sentence that begins with its name."""
    message = f"The element {name} {fault}."
    return ServerRpcError(ErrorTag.INVALID_VALUE, message, "protocol", info={"bad-element": name})


def _bad_element(name: str, message: str) -> ServerRpcError:
    return ServerRpcError(ErrorTag.BAD_ELEMENT, message, "protocol", info={"bad-element": name})
