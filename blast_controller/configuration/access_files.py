"""From the configuration and the files that it names to what the servers of Thrift and OpenFlow are protected by."""

from __future__ import annotations

import stat
from pathlib import Path

from blast_controller.configuration.access import AccessSection, ClientSection
from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.openflow import OpenFlowSection
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy, CertificateRule
from blast_controller.rpc.clients.identity import DEFAULT_TENANT, Identity, Role
from blast_controller.rpc.clients.tokens import BadToken, parse_tokens
from blast_controller.serving.tls import BadTlsFile, TlsSettings, server_context

MAX_SECRET_BYTES = 1 << 20


def read_policy(config: Config) -> AccessPolicy:
    """Who is who. Raises ConfigError for a token file that cannot be used."""
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


def switch_tls(openflow: OpenFlowSection) -> TlsSettings | None:
    """How ToRs connect, if by TLS; as strict as `tls_settings`."""
    if openflow.certificate is None or openflow.private_key is None:
        return None
    refuse_readable_by_others(openflow.private_key)
    return TlsSettings(openflow.certificate, openflow.private_key, openflow.switch_ca)


def tls_settings(access: AccessSection | None) -> TlsSettings | None:
    """How the server speaks TLS, if it does. Raises ConfigError for a key that others may read."""
    if access is None or access.certificate is None or access.private_key is None:
        return None
    refuse_readable_by_others(access.private_key)
    return TlsSettings(
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
            except BadTlsFile as error:
                raise ConfigError(str(error)) from error


def read_secret(path: Path) -> str:
    """The text of a file that nobody else may read. Raises ConfigError."""
    refuse_readable_by_others(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > MAX_SECRET_BYTES:
        raise ConfigError(f"{path} has more than {MAX_SECRET_BYTES} bytes, too many for a file of secrets.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def refuse_readable_by_others(path: Path) -> None:
    """Raises ConfigError unless a file of secrets is kept from those who are neither its owner nor in its group."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if mode & stat.S_IRWXO:
        raise ConfigError(f"{path} holds secrets, and every user of this machine may use it: chmod o= {path}.")


def _tokens(path: Path, tenants: frozenset[str]) -> dict[bytes, Identity]:
    try:
        tokens = parse_tokens(read_secret(path))
    except BadToken as error:
        raise ConfigError(f"{path}: {error}") from error
    for identity in tokens.values():
        if identity.tenant not in tenants:
            raise ConfigError(f"{path} names the tenant {identity.tenant!r}, which no [[tenant]] declares.")
    return tokens


def _identity(client: ClientSection) -> Identity:
    return Identity(client.tenant, Role[client.role.upper()])
