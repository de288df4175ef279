"""Certificates for tests, made by the openssl command."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A CA that signs whatever it is asked to sign."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name = folder, name
        self.pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
        _openssl("req", "-x509", *_NEW_KEY, "-keyout", self.pair.key, "-out", self.pair.cert, "-subj", f"/CN={name}")

    @property
    def cert(self) -> Path:
        return self.pair.cert

    def issue(self, subject: str, alternatives: str = "", days: int = 2) -> Pair:
        """Issue a certificate for `subject` ("/OU=x/CN=y"); a negative number of days makes an expired one."""
        stem = self._folder / f"{self._name}-{len(list(self._folder.iterdir()))}"
        pair, request = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key")), stem.with_suffix(".csr")
        extension = ("-addext", f"subjectAltName={alternatives}") if alternatives else ()
        _openssl("req", *_NEW_KEY, "-keyout", pair.key, "-out", request, "-subj", subject, *extension)
        signer = ("-CA", self.pair.cert, "-CAkey", self.pair.key, "-CAcreateserial", "-copy_extensions", "copy")
        _openssl("x509", "-req", "-in", request, "-out", pair.cert, *signer, "-days", str(days))
        return pair


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], capture_output=True, check=True, timeout=60)
