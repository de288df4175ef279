"""Targets that Hellos request, if they are permitted, and the sessions that fill them."""

from __future__ import annotations

import hashlib

from blast_transport.agent.permissions import AllowedCommand, AllowedDevice, AllowedFile, AllowedFolder, Permissions
from blast_transport.agent.sessions import SessionFactory
from blast_transport.base.errors import StoreError, UnsafeNameError
from blast_transport.credentials.admission import AgentConnection
from blast_transport.session.receiver_session import HostResources, ReceiverSession
from blast_transport.session.registry import load_receivers
from blast_transport.store.targets.command_target import CommandTarget
from blast_transport.store.targets.device_target import DeviceTarget
from blast_transport.store.targets.file_target import ANY_PRIVATE, FileRules, FileTarget
from blast_transport.store.targets.folder_target import FolderTarget
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.store.targets.target import Target
from blast_transport.wire.messages import Hello


class Targets:
    """Factory of targets within `permissions`; `rules` apply to files."""

    def __init__(self, permissions: Permissions, rules: FileRules = ANY_PRIVATE) -> None:
        self._permissions, self._rules = permissions, rules

    def __call__(self, hello: Hello) -> Target:
        """Return the target of this session. Raise StoreError, NotAllowedError, UnsafeNameError."""
        allowed = self._permissions.allow(hello.kind, hello.name, hello.folder, hello.file)
        if isinstance(allowed, AllowedFile):
            name, content = allowed.name, _identity(hello)
            kind = FolderTarget if isinstance(allowed, AllowedFolder) else FileTarget
            try:
                return kind(allowed.directory, allowed.folder, name, hello.size, content, self._rules)
            except UnsafeNameError:
                allowed.close()
                raise
        if isinstance(allowed, AllowedDevice):
            return DeviceTarget(allowed.path, hello.size, self._rules.max_bytes)
        if isinstance(allowed, AllowedCommand):
            return CommandTarget(allowed)
        if (hello.size or 0) > allowed.max_bytes:
            raise StoreError(
                f"{hello.size} bytes are more than the {allowed.max_bytes} that this agent keeps in memory"
            )
        return MemoryTarget(hello.name, allowed.max_bytes)


def session_factory(surroundings: HostResources) -> SessionFactory:
    """Return the function by which an agent creates the session of a Hello; load all transports, once."""
    load_receivers()

    def make(connection: AgentConnection, hello: Hello) -> ReceiverSession:
        return ReceiverSession(connection.sock, hello, connection.peer, surroundings)

    return make


def _identity(hello: Hello) -> str:
    """Return an identity of the content, fit for a file name: equal for equal content with the same layout."""
    content = hello.content or f"session {hello.session}"
    cut = f"{content} {hello.size} {hello.segment_size} {hello.block_segments} {bool(hello.key)} {hello.suite}"
    return hashlib.sha256(cut.encode()).hexdigest()[:16]
