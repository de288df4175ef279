"""What a client's certificate says of its owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blast_controller.rpc.access import CertificateNames

_SUBJECT_KINDS = {"commonName": "common_name", "organizationalUnitName": "organizational_unit"}
_ALTERNATIVE_KINDS = {"DNS": "dns_name", "URI": "uri"}


def certificate_names(certificate: Mapping[str, Any]) -> CertificateNames:
    """What a verified certificate, as `ssl` decodes it, says of its owner."""
    subject = [pair for group in certificate.get("subject", ()) for pair in group]
    found = {(_SUBJECT_KINDS[kind], value) for kind, value in subject if kind in _SUBJECT_KINDS}
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(found | {(_ALTERNATIVE_KINDS[kind], v) for kind, v in alternatives if kind in _ALTERNATIVE_KINDS})
