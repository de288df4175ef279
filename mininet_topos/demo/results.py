"""Results of the demo as data: checks, which determine the exit status; transfers, latencies and other measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from blast_sim.base.percentiles import percentile


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold, and the observation."""

    scene: str
    claim: str
    holds: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measurement in `unit`, and reference values in the same unit."""

    value: float
    unit: str
    beside: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        beside = ", ".join(f"{name} {_number(value)}" for name, value in self.beside.items())
        return f"{_number(self.value)} {self.unit}" + (f" ({beside})" if beside else "")


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 and value != int(value) else f"{value:.0f}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement that depends on the machine and its load; it has no effect on the exit status."""

    scene: str
    name: str
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class MeasuredTransfer:
    """The transfer of one file to several receivers; `faults` names receivers without the file, with the reason.

    `seconds` is the time from the first datagram (or byte) to the last receiver's verified file; `uplink_copies` is the
    traffic of the sender's optical uplink divided by the file size (None for packet transfers), `core_share` the same
    for all links of the packet core together, both from kernel interface counters. `repeated_copies` is the share of
    repairs in the uplink, which use the optical path if several receivers miss the same segment: their number depends
    on the machine.
    """

    name: str
    receivers: int
    bytes: int
    seconds: float
    hashes_equal: bool
    uplink_copies: float | None
    core_share: float
    light_rate_mbps: float
    repeated_copies: float = 0.0
    faults: tuple[str, ...] = ()

    @property
    def first_copies(self) -> float:
        """The first transmission on the optical uplink, divided by the file size; 0 for packet transfers."""
        return (self.uplink_copies or 0.0) - self.repeated_copies

    @property
    def payload_mbps(self) -> float:
        """Bits of the file per second at each receiver, in Mbit/s."""
        return self.bytes * 8 / self.seconds / 1e6


@dataclass(slots=True)
class Latencies:
    """Milliseconds of each step of many requests."""

    steps: dict[str, list[float]] = field(default_factory=dict)

    def add(self, sample: Mapping[str, float]) -> None:
        """Add one request's steps."""
        for step, milliseconds in sample.items():
            self.steps.setdefault(step, []).append(milliseconds)

    def percentile(self, step: str, percent: float) -> float:
        """Return the value that `percent` of the requests did not exceed (nearest rank)."""
        return percentile(self.steps[step], percent)

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return p50, p99 and n of each step."""
        return {
            step: {"p50": round(percentile(seen, 50), 3), "p99": round(percentile(seen, 99), 3), "n": len(seen)}
            for step, seen in self.steps.items()
        }


@dataclass(slots=True)
class Results:
    """All results of a demo."""

    scale: str
    checks: list[Check] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    transfers: list[MeasuredTransfer] = field(default_factory=list)
    latencies: Latencies = field(default_factory=Latencies)
    floor: Latencies = field(default_factory=Latencies)

    @property
    def holds(self) -> bool:
        """True if every check passed."""
        return all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, object]:
        """Return a JSON object."""
        return {
            "scale": self.scale,
            "latency_ms": self.latencies.to_json(),
            "floor_ms": self.floor.to_json(),
            "transfers": [asdict(transfer) for transfer in self.transfers],
            "measured": [asdict(one) for one in self.measured],
            "checks": [asdict(check) for check in self.checks],
            "holds": self.holds,
        }
