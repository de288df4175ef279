"""The rate of the links of a bed, and the share of it that a file can use."""

from __future__ import annotations

from dataclasses import dataclass

MTU = 1500
_ETHERNET = 14
_UDP_HEADERS = 20 + 8 + 16
"""IPv4, UDP, and the header of the transport."""
_TCP_HEADERS = 20 + 20 + 12
"""IPv4, TCP, and the time stamps that Linux sends."""
_BURST = 128 << 10
"""Above a super-packet of 64 KiB, so that it passes whole."""


@dataclass(frozen=True)
class Shape:
    """Links of `rate_mbps`, or as fast as the machine (None); `burst` bytes pass at once, and `latency_ms` queue."""

    rate_mbps: float | None
    burst: int = _BURST
    latency_ms: int = 20

    @property
    def name(self) -> str:
        """The name in tables."""
        return "unshaped" if self.rate_mbps is None else f"{self.rate_mbps:g} Mbit/s"

    @property
    def udp_limit(self) -> float | None:
        """Bits of a file per second in datagrams of a full MTU."""
        return self._share(MTU - _UDP_HEADERS)

    @property
    def tcp_limit(self) -> float | None:
        """Bits of a file per second in TCP segments of a full MTU."""
        return self._share(MTU - _TCP_HEADERS)

    def _share(self, payload: int) -> float | None:
        # The shaper counts a frame without preamble, checksum and gap.
        return None if self.rate_mbps is None else self.rate_mbps * 1e6 * payload / (MTU + _ETHERNET)

    def lines(self, interface: str) -> list[str]:
        """Return `tc -batch` lines for the transmitter of an interface."""
        if self.rate_mbps is None:
            return []
        bucket = f"rate {self.rate_mbps * 1000:.0f}kbit burst {self.burst}b latency {self.latency_ms}ms"
        return [f"qdisc replace dev {interface} root tbf {bucket}"]


UNSHAPED = Shape(None)


def shape(text: str) -> Shape:
    """Parse `unshaped`, or a rate in Mbit/s. Raises ValueError."""
    if text == "unshaped":
        return UNSHAPED
    rate = float(text)
    if not 0 < rate < 1e6:
        raise ValueError(text)
    return Shape(rate)
