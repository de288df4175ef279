"""Operations of NETCONF (RFC 6241, section 7) as XML text, ready for `messages.rpc`."""

from __future__ import annotations

from typing import Literal

from optical_switch.netconf.markup import element, text

Datastore = Literal["running", "candidate"]
"""A configuration of the device: the one in effect, or a draft that a commit puts into effect."""

NOTIFICATIONS = "urn:ietf:params:xml:ns:netconf:notification:1.0"
"""Namespace of notifications (RFC 5277)."""


def lock(datastore: Datastore) -> str:
    """Lock a datastore against other sessions."""
    return element("lock", element("target", element(datastore)))


def unlock(datastore: Datastore) -> str:
    """Release a lock of this session."""
    return element("unlock", element("target", element(datastore)))


def get_config(content: str) -> str:
    """Read the running configuration; `content` is a subtree filter."""
    return element("get-config", element("source", element("running")), _subtree(content))


def get(content: str) -> str:
    """Read the running configuration and the state; `content` is a subtree filter."""
    return element("get", _subtree(content))


def edit_config(datastore: Datastore, content: str, *, rollback: bool) -> str:
    """Edit a datastore.

    Parameters
    ----------
    datastore : Datastore
        The datastore.
    content : str
        Elements with operations.
    rollback : bool
        True to have the device undo a part that was done before an error (capability `rollback-on-error`).

    Returns
    -------
    str
        The operation.
    """
    options = element("error-option", "rollback-on-error") if rollback else ""
    return element("edit-config", element("target", element(datastore)), options, element("config", content))


def commit() -> str:
    """Put the candidate into effect."""
    return element("commit")


def discard_changes() -> str:
    """Make the candidate equal to the running configuration."""
    return element("discard-changes")


def create_subscription(stream: str) -> str:
    """Have the notifications of a stream sent to this session (RFC 5277)."""
    return element("create-subscription", element("stream", text(stream)), namespace=NOTIFICATIONS)


def close_session() -> str:
    """End this session; the device releases its locks."""
    return element("close-session")


def _subtree(content: str) -> str:
    return f'<filter type="subtree">{content}</filter>'
