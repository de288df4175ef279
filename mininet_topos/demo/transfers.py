"""Measured transfers in the lab: optical with a grant, and over the packet network."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from blast_api.ttypes import Grant, TransferReport
from blast_transport.base.host_order import by_racks
from blast_transport.base.report import TransferResult
from blast_transport.session.route import Route
from blast_transport.session.sender import Sender
from blast_transport.transports.choices import Chain
from blast_transport.wire.datagram import segment_size_for
from mininet_topos.demo.receivers import Receivers
from mininet_topos.demo.results import MeasuredTransfer, Quantity
from mininet_topos.demo.stage import GRANT_SECONDS, Stage
from mininet_topos.kernel.namespace import run_in_network_of

T = TypeVar("T")

MAX_COPIES = 1.05
"""Maximum copies of the file on the sender's optical uplink, headers included."""


@dataclass
class RepeatedTransfer:
    """A file that one host sends repeatedly to others, over persistent control connections.

    `result` is the result of the latest transfer.
    """

    stage: Stage
    receivers: Receivers
    host: str
    hosts: Sequence[str]
    path: Path

    def __enter__(self) -> RepeatedTransfer:
        addresses = self.receivers.addresses(self.hosts)
        self._sender = self._on_host(lambda: Sender(addresses, self.receivers.settings_of(self.host)))
        self._on_host(self._sender.connect)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sender.close()

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def by_optical(self, name: str) -> tuple[MeasuredTransfer, Grant]:
        """Request a grant, send once, and finish. Raises the client's errors."""
        request = self.stage.new_request(self.host, self.hosts, self.size, name)
        grant = self.stage.client.request(request, GRANT_SECONDS)
        transfer = self.under_grant(name, grant)
        report = TransferReport(bytesSent=self.size, durationMs=round(transfer.seconds * 1000))
        self.stage.client.finish(request.key, grant.part, report)
        return transfer, grant

    def under_grant(self, name: str, grant: Grant) -> MeasuredTransfer:
        """Send once to a granted group."""

        def send() -> TransferResult:
            return self._sender.send(self.path, grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond)

        return self._measured(name, send, lit=True)

    def by_unicast(self, name: str) -> MeasuredTransfer:
        """Send one TCP copy to each receiver in parallel, over the packet network."""
        return self._measured(name, lambda: self._sender.send_unicast(self.path), lit=False)

    def by_pipeline(self, name: str) -> MeasuredTransfer:
        """Send from host to host over the packet network, rack by rack."""
        racks = {host: str(self.stage.rack_number(host)) for host in (self.host, *self.hosts)}
        chain = Chain(tuple(by_racks(self.host, self.hosts, racks)))
        return self._measured(name, lambda: self._sender.send_file(self.path, Route(chain)), lit=False)

    def _measured(self, name: str, send: Callable[[], TransferResult], lit: bool) -> MeasuredTransfer:
        counters = self.stage.lab.counters
        rack = self.stage.rack_number(self.host)
        optical, core = counters.optical(rack), counters.core()
        result = self.result = self._on_host(send)
        optical, core = counters.optical(rack) - optical, counters.core() - core
        faults = self._faults(result)
        transfer = MeasuredTransfer(
            name=name,
            receivers=len(self.hosts),
            bytes=result.bytes,
            seconds=result.seconds,
            hashes_equal=not faults,
            uplink_copies=optical.sent_bytes / result.bytes if lit else None,
            core_share=core.sent_bytes / result.bytes,
            light_rate_mbps=self.stage.lab.plan.light_rate_mbps,
            repeated_copies=result.shared_repairs * segment_size_for(self.stage.lab.plan.mtu) / result.bytes,
            faults=faults,
        )
        self.stage.results.transfers.append(transfer)
        return transfer

    def _faults(self, result: TransferResult) -> tuple[str, ...]:
        """Return the receivers that have not confirmed the file, or do not have it."""
        failed = {one.name: one.reason for one in result.receivers if not one.complete}
        wrong = [host for host in self.receivers.without(self.path, self.hosts) if host not in failed]
        return *(f"{host}: {reason}" for host, reason in failed.items()), *(
            f"{host}: another SHA-256" for host in wrong
        )

    def _on_host(self, action: Callable[[], T]) -> T:
        return run_in_network_of(self.stage.lab.host(self.host).pid, action)


def check_optical(stage: Stage, transfers: Sequence[MeasuredTransfer]) -> None:
    """Check the data of optical transfers, which is machine-independent; report rates and repairs."""
    copies = max(t.first_copies for t in transfers)
    rates = [t.payload_mbps for t in transfers]
    beside = {"optical rate": stage.lab.plan.light_rate_mbps, "worst": min(rates)}
    check_intact(stage, "every file arrived intact", transfers, f"{len(transfers)} transfers")
    claim = f"the file leaves the sender once: uplink bytes without repairs / file size <= {MAX_COPIES}"
    stage.check(claim, copies <= MAX_COPIES, f"at most {copies:.4f}")
    stage.measured("optical payload rate, median", Quantity(statistics.median(rates), "Mbit/s", beside))
    repaired = max(t.core_share for t in transfers)
    stage.measured("share of a file through the packet core, maximum", Quantity(repaired * 100, "%"))
    repeated = max(t.repeated_copies for t in transfers)
    stage.measured("share of a file retransmitted over the optical path, maximum", Quantity(repeated * 100, "%"))


def check_intact(stage: Stage, claim: str, transfers: Sequence[MeasuredTransfer], seen: str) -> None:
    """Check that every receiver has every file, and report the receivers that do not, with the reason."""
    faults = [f"{transfer.name}: {fault}" for transfer in transfers for fault in transfer.faults]
    stage.check(claim, all(transfer.hashes_equal for transfer in transfers), "; ".join([seen, *faults]))
