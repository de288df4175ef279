"""TLS and tokens on the client's side: what is proved to the controller, and what the controller has to prove."""

from __future__ import annotations

import ssl
import stat
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from blast_client.address import Address
from blast_client.base_error import BlastError


class BadCredentials(BlastError, ValueError):
    """The caller's fault: a certificate, key or token that cannot be used, or must not be sent. One sentence."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Files (PEM) for TLS.

    `ca` says whose certificates the controller may have (None: whoever this machine trusts); `cert` and `key` are this
    client's own, where the controller wants one; `server_name` is the name that the controller's certificate must have
    (None: the host of its address).
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None

    def context(self) -> ssl.SSLContext:
        """The context of a client. Raises BadCredentials."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if self.ca is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(cafile=self.ca)
        except (ssl.SSLError, OSError) as error:
            raise BadCredentials(f"the CA file {self.ca} cannot be used: {tls_reason(error)}") from error
        if self.cert is not None:
            self._load_certificate(context, self.cert)
        elif self.key is not None:
            raise BadCredentials("a key without its certificate: give both")
        return context

    def _load_certificate(self, context: ssl.SSLContext, cert: Path) -> None:
        if self.key is not None:
            _refuse_readable_by_others(self.key)
        try:
            # Without a password of our own, OpenSSL would ask for one at the terminal.
            context.load_cert_chain(cert, self.key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            files = f"{cert} and the key {self.key}" if self.key else f"{cert} (with its key in the same file)"
            raise BadCredentials(f"the certificate {files} cannot be used: {tls_reason(error)}") from error


def read_token(path: Path) -> str:
    """The token in a file. Raises BadCredentials."""
    _refuse_readable_by_others(path)
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadCredentials(f"the token file {path} cannot be read: {error}") from error
    if not token:
        raise BadCredentials(f"the token file {path} is empty")
    return token


def refuse_open_token(address: Address) -> None:
    """Raises BadCredentials unless what is sent to `address` without TLS stays on this machine."""
    try:
        local = ip_address(address.host).is_loopback
    except ValueError:
        local = address.host == "localhost"
    if not local:
        raise BadCredentials(f"a token would travel to {address} for everybody to read: use TLS (--ca)")


def tls_reason(error: OSError) -> str:
    """What OpenSSL complains about, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error)


def _refuse_readable_by_others(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadCredentials(f"{path} cannot be read: {error.strerror}") from error
    if mode & stat.S_IRWXO:
        raise BadCredentials(f"{path} holds a secret, and every user of this machine may use it: chmod o= {path}")
