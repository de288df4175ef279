"""The tables of the configuration file about who may connect and do what, and what is wrong with them, if anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from blast_base.settings import File, Milliseconds, Name, Section, is_loopback
from blast_controller.core.model.settings import TenantLimits
from blast_controller.rpc.clients.identity import DEFAULT_TENANT

CertificateText = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=0)]


class ClientSection(Section):
    """Client certificates with all names given here belong to a tenant and a role."""

    common_name: CertificateText | None = None
    organizational_unit: CertificateText | None = None
    dns_name: CertificateText | None = None
    uri: CertificateText | None = None
    tenant: Name = DEFAULT_TENANT
    role: Literal["viewer", "user", "operator"]

    def names(self) -> frozenset[tuple[str, str]]:
        """Return the names that a certificate must have."""
        kinds = ("common_name", "organizational_unit", "dns_name", "uri")
        return frozenset((kind, value) for kind in kinds if (value := getattr(self, kind)) is not None)


class AccessSection(Section):
    """Authentication of the Thrift server and its clients."""

    certificate: File | None = None
    private_key: File | None = None
    client_ca: File | None = None
    client_certificate: Literal["required", "optional"] = "required"
    token_file: File | None = None
    handshake_timeout_ms: Milliseconds = 5_000
    login_timeout_ms: Milliseconds = 20_000
    client: tuple[ClientSection, ...] = ()


class TenantSection(Section):
    """Limits of one tenant at a time, and its lit time within an hour; absent: no limit.

    `share` is its weight relative to other tenants in the policy "fair-share".
    """

    name: Name
    max_pending: Count | None = None
    max_splitters: Count | None = None
    max_light_seconds_per_hour: Annotated[float, Field(ge=0)] | None = None
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0

    def limits(self) -> TenantLimits:
        """Return the core's view of it."""
        return TenantLimits(self.max_pending, self.max_splitters, self.max_light_seconds_per_hour, self.share)


def access_fault(
    listens: Mapping[str, str], access: AccessSection | None, tenants: Iterable[TenantSection]
) -> str | None:
    """Return the first fault of the access settings as one sentence, or None.

    `listens` are the addresses where clients are served, by key.
    """
    declared = {DEFAULT_TENANT, *(tenant.name for tenant in tenants)}
    return next(_faults(listens, access, declared), None)


def _faults(listens: Mapping[str, str], access: AccessSection | None, declared: set[str]) -> Iterator[str]:
    beyond = [f"{key} {address}" for key, address in listens.items() if not is_loopback(address)]
    if access is None:
        if beyond:
            yield (
                f"{beyond[0]} is reachable from other machines without authentication: add [access] with TLS "
                "and clients."
            )
        return
    if (access.certificate is None) != (access.private_key is None):
        yield "access.certificate and access.private_key must be set together: set both."
    if access.certificate is None and beyond:
        yield (
            f"{beyond[0]} is reachable from other machines without TLS: set access.certificate and access.private_key."
        )
    if access.client_ca is not None and access.certificate is None:
        yield "access.client_ca requires TLS: set access.certificate and access.private_key."
    if access.client and access.client_ca is None:
        yield "access.client requires a CA to verify certificates: set access.client_ca."
    if not access.client and access.token_file is None:
        yield "access admits no client: set access.token_file, or access.client_ca and access.client."
    if access.client_ca is not None and access.client_certificate == "optional" and access.token_file is None:
        yield "access.client_certificate is optional, but clients have no other credential: set access.token_file."
    for number, client in enumerate(access.client, 1):
        if not client.names():
            kinds = "common_name, organizational_unit, dns_name or uri"
            yield f"access.client[{number}] matches every certificate: set {kinds}."
        if client.tenant not in declared:
            yield (
                f"access.client[{number}] names the tenant {client.tenant!r}, which is not configured: add a "
                "[[tenant]] or correct the name."
            )
