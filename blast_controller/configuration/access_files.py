"""From the configuration and the files that it names to what the servers of Thrift and OpenFlow are protected by."""

from __future__ import annotations

import stat
from pathlib import Path

from blast_controller.configuration.access import AccessSection, ClientSection
from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.openflow import OpenFlowSection
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy, CertificateRule
from blast_controller.rpc.clients.identity import DEFAULT_TENANT, Identity, Role
from blast_controller.rpc.clients.tokens import InvalidTokenError, parse_tokens
from blast_controller.serving.tls import ServerTlsSettings, TlsFileError, server_context

MAX_SECRET_BYTES = 1 << 20
"""A file of secrets has a line for each client; a larger one is another file, named by mistake."""


def read_policy(config: Config) -> AccessPolicy:
    """Read the access policy. Raises ConfigError for an unusable token file."""
    access = config.access
    tenants = frozenset({DEFAULT_TENANT, *(tenant.name for tenant in config.tenant)})
    features = {"tenants"} if config.tenant else set()
    if access is None:
        return AccessPolicy(OPEN_POLICY.anonymous, tenants=tenants, features=frozenset(features))
    if access.token_file is not None:
        features.add("login")
    if access.certificate is not None:
        features.add("tls")
    return AccessPolicy(
        rules=tuple(CertificateRule(client.names(), _identity(client)) for client in access.client),
        tokens=_tokens(access.token_file, tenants) if access.token_file is not None else {},
        tenants=tenants,
        features=frozenset(features),
    )


def switch_tls(openflow: OpenFlowSection) -> ServerTlsSettings | None:
    """Return the TLS settings for ToRs, or None; as strict as `tls_settings`."""
    if openflow.certificate is None or openflow.private_key is None:
        return None
    refuse_readable_by_others(openflow.private_key)
    return ServerTlsSettings(openflow.certificate, openflow.private_key, openflow.switch_ca)


def tls_settings(access: AccessSection | None) -> ServerTlsSettings | None:
    """Return the server's TLS settings, or None. Raises ConfigError for a key that others may read."""
    if access is None or access.certificate is None or access.private_key is None:
        return None
    refuse_readable_by_others(access.private_key)
    return ServerTlsSettings(
        access.certificate,
        access.private_key,
        access.client_ca,
        access.client_certificate == "required",
        access.handshake_timeout_ms / 1000,
    )


def check_access_files(config: Config) -> None:
    """Read all that [access] and [openflow] name. Raises ConfigError."""
    read_policy(config)
    if (etcd := config.journal.etcd) is not None:
        for secret in filter(None, (etcd.private_key, etcd.password_file)):
            refuse_readable_by_others(secret)
    for settings in (tls_settings(config.access), switch_tls(config.openflow)):
        if settings is not None:
            try:
                server_context(settings)
            except TlsFileError as error:
                raise ConfigError(str(error)) from error


def read_secret(path: Path) -> str:
    """Read a secret file that only its owner and group may access. Raises ConfigError."""
    refuse_readable_by_others(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > MAX_SECRET_BYTES:
        raise ConfigError(f"{path} has more than {MAX_SECRET_BYTES} bytes, the limit for a file of secrets.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def refuse_readable_by_others(path: Path) -> None:
    """Raise ConfigError if users other than the owner and group may access a file of secrets."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if mode & stat.S_IRWXO:
        raise ConfigError(f"{path} contains secrets but is accessible to every local user: run chmod o= {path}.")


def _tokens(path: Path, tenants: frozenset[str]) -> dict[bytes, Identity]:
    try:
        tokens = parse_tokens(read_secret(path))
    except InvalidTokenError as error:
        raise ConfigError(f"{path}: {error}") from error
    for identity in tokens.values():
        if identity.tenant not in tenants:
            raise ConfigError(
                f"{path} names the tenant {identity.tenant!r}, which is not configured: add a "
                "[[tenant]] or correct the name."
            )
    return tokens


def _identity(client: ClientSection) -> Identity:
    return Identity(client.tenant, Role[client.role.upper()])
