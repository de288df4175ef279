"""TLS between senders and agents, and between agents: both sides show certificates, TLS 1.2 at least."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from blast_transport.base.errors import SettingsError

_SUBJECT = {"commonName": "common_name", "organizationalUnitName": "organizational_unit"}
_ALTERNATIVES = {"DNS": "dns_name", "URI": "uri"}


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM): this end's certificate with its chain, its key, and the CA of the other side's certificate."""

    certificate: Path
    private_key: Path
    ca: Path

    def for_agent(self) -> ssl.SSLContext:
        """Return the TLS context of the agent. Raise SettingsError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Every connection authenticates again: no session outlives the certificate that opened it.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_REQUIRED
        return self._loaded(context)

    def for_client(self) -> ssl.SSLContext:
        """Return the TLS context of a client, which checks the agent's name. Raise SettingsError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Names of hosts belong into subjectAltName (RFC 9525, section 2).
        context.hostname_checks_common_name = False
        return self._loaded(context)

    def _loaded(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Without a password callback, OpenSSL would prompt at the terminal.
            context.load_cert_chain(self.certificate, self.private_key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            raise SettingsError(
                f"the certificate {self.certificate} and the key {self.private_key} cannot be used: "
                f"{tls_reason(error)} (PEM, and the key without a password)."
            ) from error
        try:
            context.load_verify_locations(cafile=self.ca)
        except (ssl.SSLError, OSError) as error:
            raise SettingsError(f"the CA file {self.ca} cannot be used: {tls_reason(error)}.") from error
        return context


def _certificate(sock: ssl.SSLSocket) -> dict[str, Any]:
    return sock.getpeercert() or {}


def certificate_names(sock: ssl.SSLSocket) -> frozenset[tuple[str, str]]:
    """Return the names in the other side's verified certificate: (kind, value), with the kinds of the configuration."""
    certificate = _certificate(sock)
    subject = [pair for relative_name in certificate.get("subject", ()) for pair in relative_name]
    known = [(_SUBJECT.get(kind), value) for kind, value in subject]
    known += [(_ALTERNATIVES.get(kind), value) for kind, value in certificate.get("subjectAltName", ())]
    return frozenset((kind, value) for kind, value in known if kind is not None)


def is_certified(sock: ssl.SSLSocket, host: str) -> bool:
    """Return whether the other side's verified certificate names `host`: a DNS name or an IP address.

    The rules are those of OpenSSL (RFC 9525, section 6): `*` stands for one whole first label.
    """
    certificate = _certificate(sock)
    alternatives: list[tuple[str, str]] = list(certificate.get("subjectAltName", ()))
    try:
        address = ip_address(host)
    except ValueError:
        name, (_, dot, domain) = host.lower(), host.lower().partition(".")
        accepted = {name, f"*.{domain}"} if dot else {name}
        return any(kind == "DNS" and value.lower() in accepted for kind, value in alternatives)
    return any(kind == "IP Address" and ip_address(value) == address for kind, value in alternatives)


def tls_reason(error: OSError) -> str:
    """Return the reason of an OpenSSL error in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error)
