"""Answers of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as ET

from optical_switch.emulator.netconf_server.messages.names import BASE, AnnouncedFeature
from optical_switch.emulator.netconf_server.messages.xml_text import element
from optical_switch.emulator.netconf_server.session import ServedSession


def _nothing() -> None:
    pass


class RpcAnswer(NamedTuple):
    """The answer of an operation.

    Parameters
    ----------
    content : Sequence[ET.Element]
        Content of the reply.
    moved : bool
        True if the operation set or removed circuits, or may have done so.
    afterwards : Callable[[], None]
        Function that is called when the reply has been sent.
    """

    content: Sequence[ET.Element] = (element(BASE, "ok"),)
    moved: bool = False
    afterwards: Callable[[], None] = _nothing


RpcHandler = Callable[[ServedSession, ET.Element], Awaitable[RpcAnswer]]
"""Function that carries out an operation of a session. Raises `ServerRpcError`."""


@dataclass(frozen=True, slots=True)
class OperationRule:
    """An operation that the device has.

    Parameters
    ----------
    handle : RpcHandler
        Function that carries it out.
    feature : AnnouncedFeature | None
        Feature to which it belongs. None: the base protocol.
    changes : bool
        True if it changes a configuration or a lock: one such operation runs at a time.
    """

    handle: RpcHandler
    feature: AnnouncedFeature | None = None
    changes: bool = False
