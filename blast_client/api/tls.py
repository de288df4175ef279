"""TLS and tokens of clients."""

from __future__ import annotations

import ssl
import stat
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from blast_client.api.address import Address
from blast_client.api.base_error import BlastError


class CredentialsError(BlastError, ValueError):
    """A certificate, key or token that cannot be used, or that the client must not send."""


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The TLS context of a client, and the name in the controller's certificate (None: the host of its address)."""

    context: ssl.SSLContext
    server_name: str | None


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Files (PEM) and names for TLS.

    Parameters
    ----------
    ca : Path | None
        CA certificates for the controller's certificate. None: the certificates that this machine trusts.
    cert : Path | None
        Certificate of this client, if the controller requires one.
    key : Path | None
        Private key of the certificate. None: it is in the same file.
    server_name : str | None
        Name in the controller's certificate. None: the host of its address.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None

    def for_client(self) -> ClientTls:
        """Load the files.

        Returns
        -------
        ClientTls
            TLS context of a client, and the name to expect in the controller's certificate.

        Raises
        ------
        CredentialsError
            A file cannot be used, the key is open to every user, or its certificate is missing.
        """
        return ClientTls(self.context(), self.server_name)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a client.

        Returns
        -------
        ssl.SSLContext
            Context for TLS 1.2 or later.

        Raises
        ------
        CredentialsError
            A file cannot be used, the key is open to every user, or its certificate is missing.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if self.ca is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(cafile=self.ca)
        except (ssl.SSLError, OSError) as error:
            raise CredentialsError(f"cannot use the CA file {self.ca}: {tls_reason(error)}") from error
        if self.cert is not None:
            self._load_certificate(context, self.cert)
        elif self.key is not None:
            raise CredentialsError("the certificate of the key is missing: give both")
        return context

    def _load_certificate(self, context: ssl.SSLContext, cert: Path) -> None:
        if self.key is not None:
            _refuse_readable_by_others(self.key)
        try:
            # Without a password function OpenSSL would ask at the terminal.
            context.load_cert_chain(cert, self.key, password=lambda: "")
        except (ssl.SSLError, OSError) as error:
            files = f"{cert} and the key {self.key}" if self.key else f"{cert} (with its key in the same file)"
            raise CredentialsError(f"cannot use the certificate {files}: {tls_reason(error)}") from error


def read_token(path: Path) -> str:
    """Read a token from a file. Raises CredentialsError."""
    _refuse_readable_by_others(path)
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"cannot read the token file {path}: {error}") from error
    if not token:
        raise CredentialsError(f"the token file {path} is empty: write the token to it")
    return token


def refuse_open_token(address: Address) -> None:
    """Raise CredentialsError unless `address` is on this machine: without TLS others could read a token."""
    try:
        local = ip_address(address.host).is_loopback
    except ValueError:
        local = address.host == "localhost"
    if not local:
        raise CredentialsError(f"a token would be sent to {address} without encryption: use TLS (--ca)")


def tls_reason(error: OSError) -> str:
    """Return the reason of an OpenSSL or OS error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error)


def _refuse_readable_by_others(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise CredentialsError(f"cannot read {path}: {error.strerror}") from error
    if mode & stat.S_IRWXO:
        raise CredentialsError(f"{path} is a secret that every user of this machine can access: chmod o= {path}")
