"""The table of the configuration file about the ToRs: how they connect, where Blast's rules live on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from blast_base.settings import File, IpNetwork, Milliseconds, Section, is_loopback
from blast_controller.core.model.identifiers import DatapathId

LOCAL_CONTROL = IPv4Network("224.0.0.0/24")

CertificateName = Annotated[str, Field(min_length=1, max_length=256)]


class OpenFlowSection(Section):
    """Authentication of ToRs and the controller, and the place of Blast's rules on the ToRs."""

    certificate: File | None = None
    private_key: File | None = None
    switch_ca: File | None = None
    certificate_names: dict[str, CertificateName] = Field(default_factory=dict)
    group_network: IpNetwork = IPv4Network("239.77.0.0/16")
    group_port: Annotated[int, Field(ge=1, le=65535)] = 5001
    table: Annotated[int, Field(ge=0, le=254)] = 0
    priority: Annotated[int, Field(ge=2, le=65535)] = 40_000
    guard_priority: Annotated[int, Field(ge=1, le=65534)] = 30_000
    dscp: Annotated[int, Field(ge=0, le=63)] | Literal[False] = 46
    queue: Annotated[int, Field(ge=0)] | None = None
    step_timeout_ms: Milliseconds = 2_000
    echo_interval_ms: Milliseconds = 3_000
    max_missed_echoes: Annotated[int, Field(ge=1)] = 5


def required_names(section: OpenFlowSection, datapaths: Iterable[DatapathId]) -> dict[DatapathId, str] | None:
    """Return the required name in each ToR's certificate; None if ToRs have no certificates."""
    if section.switch_ca is None:
        return None
    named = {int(datapath, 16): name for datapath, name in section.certificate_names.items()}
    return {datapath: named.get(datapath, f"{datapath:016x}") for datapath in datapaths}


def openflow_fault(listen: str, trusts_network: bool, section: OpenFlowSection) -> str | None:
    """Return the first thing that is wrong, as one sentence."""
    return next(_faults(listen, trusts_network, section), None)


def _faults(listen: str, trusts_network: bool, section: OpenFlowSection) -> Iterator[str]:
    if (section.certificate is None) != (section.private_key is None):
        yield "openflow.certificate and openflow.private_key must be set together: set both."
    if section.switch_ca is not None and section.certificate is None:
        yield "openflow.switch_ca requires TLS: set openflow.certificate and openflow.private_key."
    if section.switch_ca is None and not trusts_network and not is_loopback(listen):
        yield (
            f"controller.openflow {listen} is reachable from other machines, and any peer that connects can claim "
            "to be a ToR: set openflow.switch_ca, certificate and private_key, or use a dedicated management "
            "network and set controller.allow_insecure_openflow = true."
        )
    if section.certificate_names and section.switch_ca is None:
        yield "openflow.certificate_names requires a CA to verify certificates: set openflow.switch_ca."
    if section.guard_priority >= section.priority:
        yield "openflow.guard_priority must be below openflow.priority."
    if not section.group_network.is_multicast or section.group_network.prefixlen > 30:
        yield f"openflow.group_network {section.group_network} must be multicast with at least 2 addresses."
    if section.group_network.overlaps(LOCAL_CONTROL):
        yield (
            f"openflow.group_network {section.group_network} contains {LOCAL_CONTROL}, which routing and host "
            "protocols use (RFC 5771): use a part of 239.0.0.0/8."
        )
