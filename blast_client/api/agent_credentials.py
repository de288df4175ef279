"""Credentials that an application shows to agents: a shared secret, or certificates."""

from __future__ import annotations

from pathlib import Path

from blast_client.api.tls import CredentialsError
from blast_transport.base.errors import SettingsError
from blast_transport.credentials.material import SharedSecret, read_secret, refuse_readable_by_others
from blast_transport.credentials.tls import TlsFiles


def agent_secret(path: Path | str) -> SharedSecret:
    """Return the secret that all agents know.

    Parameters
    ----------
    path : Path | str
        File of the secret.

    Returns
    -------
    SharedSecret
        Value for `RoundSettings.credentials`.

    Raises
    ------
    CredentialsError
        The file cannot be read or is open to every user, or its secret is too short, too long or can be guessed.

    Examples
    --------
    >>> broadcast(weights, to=["r2h1"], settings=RoundSettings(credentials=agent_secret("/etc/blast/secret")))
    """
    try:
        return SharedSecret(read_secret(Path(path)))
    except SettingsError as error:
        raise CredentialsError(str(error)) from error


def agent_certificates(certificate: Path | str, private_key: Path | str, ca: Path | str) -> TlsFiles:
    """Return the certificates for a TLS connection to agents, all PEM files.

    Parameters
    ----------
    certificate : Path | str
        Certificate of this application.
    private_key : Path | str
        Private key of the certificate.
    ca : Path | str
        CA that signed the certificates of the agents.

    Returns
    -------
    TlsFiles
        Value for `RoundSettings.credentials`.

    Raises
    ------
    CredentialsError
        A file cannot be used, or the key is open to every user.
    """
    files = TlsFiles(Path(certificate), Path(private_key), Path(ca))
    try:
        refuse_readable_by_others(files.private_key)
        files.for_client()
    except SettingsError as error:
        raise CredentialsError(str(error)) from error
    return files
