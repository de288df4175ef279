"""What names devices, links and pieces of hardware: types of their own, so that none is taken for another.

Their text is that of configuration, journal and commands; it is made here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

SwitchId = NewType("SwitchId", str)
"""The name of an optical switch."""

DatapathId = NewType("DatapathId", int)
"""The OpenFlow datapath of a ToR, or of several that share one."""

Device = SwitchId | DatapathId
"""What is told to do something, and answers."""


class LinkId(NamedTuple):
    """A ToR's OpenFlow port, as the end of a link."""

    datapath: DatapathId
    port: int


ElementId = NewType("ElementId", str)
"""A piece of hardware that is held and can be quarantined: a port, a splitter, an output of one, a static tree."""


def port_element(rack: str, port: int, side: str = "") -> ElementId:
    """A rack's optical port, or (`side` /tx or /rx) one of its fibers."""
    return ElementId(f"port:{rack}/{port}{side}")


def splitter_element(name: str) -> ElementId:
    """A splitter."""
    return ElementId(f"splitter:{name}")


def output_element(splitter: str, switch_input: int) -> ElementId:
    """The output of a splitter that leads to this input of its switch."""
    return ElementId(f"output:{splitter}/{switch_input}")


def static_element(name: str) -> ElementId:
    """A static tree."""
    return ElementId(f"static:{name}")


def is_splitter(element: ElementId) -> bool:
    """Whether this is a splitter."""
    return element.startswith("splitter:")


def is_output(element: ElementId) -> bool:
    """Whether this is an output of a splitter."""
    return element.startswith("output:")


def is_static(element: ElementId) -> bool:
    """Whether this is a static tree."""
    return element.startswith("static:")


def device_name(device: Device) -> str:
    """A switch, or a ToR by its datapath id, as people are told of it."""
    return f"switch:{device}" if isinstance(device, str) else f"tor:{device:016x}"
