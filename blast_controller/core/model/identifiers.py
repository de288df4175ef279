"""Identifiers of devices, links and hardware: separate types, so that they cannot be confused.

This module alone defines their text form in configuration, journal and commands.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

SwitchId = NewType("SwitchId", str)
"""The name of an optical switch."""

DatapathId = NewType("DatapathId", int)
"""The OpenFlow datapath of a ToR, or of several that share one."""

Device = SwitchId | DatapathId
"""A device that receives commands and answers them."""


class LinkId(NamedTuple):
    """A ToR's OpenFlow port, as the end of a link."""

    datapath: DatapathId
    port: int


ElementId = NewType("ElementId", str)
"""A piece of hardware that is held and can be quarantined: a port, a splitter, an output of one, a static tree."""


def port_element(rack: str, port: int, side: str = "") -> ElementId:
    """Return a rack's optical port, or (`side` /tx or /rx) one of its fibers."""
    return ElementId(f"port:{rack}/{port}{side}")


def splitter_element(name: str) -> ElementId:
    """Return a splitter."""
    return ElementId(f"splitter:{name}")


def output_element(splitter: str, switch_input: int) -> ElementId:
    """Return the element of the splitter output at this input of its switch."""
    return ElementId(f"output:{splitter}/{switch_input}")


def static_element(name: str) -> ElementId:
    """Return a static tree."""
    return ElementId(f"static:{name}")


def is_splitter(element: ElementId) -> bool:
    """Return true for a splitter."""
    return element.startswith("splitter:")


def is_output(element: ElementId) -> bool:
    """Return true for an output of a splitter."""
    return element.startswith("output:")


def is_static(element: ElementId) -> bool:
    """Return true for a static tree."""
    return element.startswith("static:")


def device_name(device: Device) -> str:
    """Return the name of a switch or, by its datapath id, of a ToR."""
    return f"switch:{device}" if isinstance(device, str) else f"tor:{device:016x}"
