"""TLS for servers: settings, contexts, and names in certificates."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

CertificateNames = frozenset[tuple[str, str]]
"""The names in a certificate: ("common_name", "spark-1"), ("dns_name", "spark-1.example") …"""

_SUBJECT_KINDS = {"commonName": "common_name", "organizationalUnitName": "organizational_unit"}
_ALTERNATIVE_KINDS = {"DNS": "dns_name", "URI": "uri"}


class PeerCertificate(TypedDict, total=False):
    """A verified certificate as `ssl` decodes it; only what names its owner."""

    subject: tuple[tuple[tuple[str, str], ...], ...]
    subjectAltName: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServerTlsSettings:
    """Files (PEM) of the server's side of TLS. With `client_ca`, clients show certificates; they must if `required`."""

    certificate: Path
    private_key: Path
    client_ca: Path | None = None
    required: bool = True
    handshake_seconds: float = 5.0


class TlsFileError(Exception):
    """The operator's fault: a certificate or key cannot be used. One sentence."""


def server_context(settings: ServerTlsSettings) -> ssl.SSLContext:
    """Return the context of a server. Raises TlsFileError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Every connection authenticates again: no session outlives the certificate that opened it.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    _load_certificate(context, settings)
    if settings.client_ca is not None:
        try:
            context.load_verify_locations(cafile=settings.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise TlsFileError(f"the CA file {settings.client_ca} cannot be used: {reason_of(error)}.") from error
        context.verify_mode = ssl.CERT_REQUIRED if settings.required else ssl.CERT_OPTIONAL
    return context


def _load_certificate(context: ssl.SSLContext, settings: ServerTlsSettings) -> None:
    try:
        # Without a password of our own, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(settings.certificate, settings.private_key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise TlsFileError(
            f"the certificate {settings.certificate} and the key {settings.private_key} cannot be used: "
            f"{reason_of(error)} (PEM, and the key without a password)."
        ) from error


def certificate_names(certificate: PeerCertificate | None) -> CertificateNames:
    """Return the names in a verified certificate as decoded by `ssl`; empty without one."""
    if certificate is None:
        return frozenset()
    subject = [pair for group in certificate.get("subject", ()) for pair in group]
    found = {(_SUBJECT_KINDS[kind], value) for kind, value in subject if kind in _SUBJECT_KINDS}
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(found | {(_ALTERNATIVE_KINDS[kind], v) for kind, v in alternatives if kind in _ALTERNATIVE_KINDS})


def reason_of(error: OSError) -> str:
    """Return the reason of a TLS failure in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error)
