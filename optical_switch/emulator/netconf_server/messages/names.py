"""Namespaces, and the features that a device can announce in its hello message."""

from __future__ import annotations

from enum import StrEnum

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
NOTIFICATION = "urn:ietf:params:xml:ns:netconf:notification:1.0"
STREAMS = "urn:ietf:params:xml:ns:netmod:notification"
OPTICAL_SWITCH = "http://www.polatis.com/yang/optical-switch"
POLATIS_SWITCH = "http://www.polatis.com/yang/polatis-switch"

PREFIXES = {OPTICAL_SWITCH: "opsw", POLATIS_SWITCH: "plts"}
"""The prefixes that the models declare for themselves, in the paths of errors."""

_CAPABILITY = "urn:ietf:params:netconf:capability:"


class AnnouncedFeature(StrEnum):
    """A feature of the device; the value is the URI that announces it."""

    BASE_1_0 = "urn:ietf:params:netconf:base:1.0"
    BASE_1_1 = "urn:ietf:params:netconf:base:1.1"
    WRITABLE_RUNNING = f"{_CAPABILITY}writable-running:1.0"
    CANDIDATE = f"{_CAPABILITY}candidate:1.0"
    CONFIRMED_COMMIT = f"{_CAPABILITY}confirmed-commit:1.1"
    ROLLBACK_ON_ERROR = f"{_CAPABILITY}rollback-on-error:1.0"
    VALIDATE = f"{_CAPABILITY}validate:1.1"
    NOTIFICATION = f"{_CAPABILITY}notification:1.0"
    INTERLEAVE = f"{_CAPABILITY}interleave:1.0"
    OPTICAL_SWITCH_MODEL = f"{OPTICAL_SWITCH}?module=optical-switch&revision=2018-03-22"
    POLATIS_SWITCH_MODEL = f"{POLATIS_SWITCH}?module=polatis-switch&revision=2018-01-19"


USUAL_FEATURES = frozenset(AnnouncedFeature) - {AnnouncedFeature.WRITABLE_RUNNING, AnnouncedFeature.VALIDATE}
"""A change of `running` that needs no commit, and a validation that a client can ask for, are the exceptions."""


def qualified(namespace: str, name: str) -> str:
    """Return the tag of an element as `xml.etree` writes it."""
    return f"{{{namespace}}}{name}" if namespace else name


def split_tag(tag: str) -> tuple[str, str]:
    """Return the namespace and the local name of a tag."""
    namespace, _, name = tag.rpartition("}")
    return namespace[1:], name
