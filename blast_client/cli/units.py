"""Parsing and formatting of quantities. Prefixes are decimal (MB = 10^6 bytes); KiB, MiB … are binary."""

from __future__ import annotations

import re

_BYTES = {"": 1, "b": 1, **{f"{p}b": 1000**n for n, p in enumerate("kmgtp", 1)}}
_BYTES |= {f"{p}ib": 1024**n for n, p in enumerate("kmgtp", 1)}
_RATES = {"": 1.0, **{f"{p}b": 1000.0**n for n, p in enumerate(("", *"kmgt"))}}
_MAX_SECONDS, _MAX_RATE = 1e12, 1e18
"""Larger times exceed the interface's milliseconds; larger rates are mistakes (a petabit per second is 1e15)."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")


def parse_bytes(text: str) -> int:
    """Read a number of bytes, for example 300MB, 1.5 GiB or 4096.

    Raises ValueError with a sentence.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _BYTES.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size: write for example 300MB, 1.5GiB or a number of bytes")
    size: int = round(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor
    if not 0 < size < 1 << 63:
        raise ValueError(f"{text!r} is out of range: a size has at least one byte and less than 2^63 bytes")
    return size


def parse_seconds(text: str) -> float:
    """Read a duration in seconds, for example 2.5, 2.5s, 200ms, 5min or 1h.

    Raises ValueError with a sentence.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0}.get(match[2].lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a time: write for example 2.5s, 200ms, 5min or a number of seconds")
    seconds = float(match[1]) * factor
    if not seconds <= _MAX_SECONDS:
        raise ValueError(f"{text!r} is out of range: a time is at most {_MAX_SECONDS:.0e} s")
    return seconds


def parse_rate(text: str) -> float:
    """Read a rate in bits/s, for example 200Mbit/s, 1.5 Gbit/s or 1000000.

    Raises ValueError with a sentence.
    """
    match = _SIZE.fullmatch(text.strip().lower().removesuffix("/s").removesuffix("it"))
    factor = _RATES.get(match[2]) if match else None
    if match is None or factor is None or not float(match[1]):
        raise ValueError(f"{text!r} is not a rate: write for example 200Mbit/s, 1.5Gbit/s or a number of bits/s")
    rate = float(match[1]) * factor
    if not rate <= _MAX_RATE:
        raise ValueError(f"{text!r} is out of range: a rate is at most {_MAX_RATE:.0e} bit/s")
    return rate


def format_bytes(count: int) -> str:
    """Return a number of bytes with a decimal prefix: 300 MB."""
    return _scaled(count, "B")


def format_rate(bits_per_second: float) -> str:
    """Return a rate with a decimal prefix: 100 Mbit/s."""
    return _scaled(bits_per_second, "bit/s")


def format_ms(milliseconds: float) -> str:
    """Return a duration as text: 14.2 ms, 24 s, 3 min 5 s, 2 h 4 min."""
    if milliseconds < 1000:
        return f"{milliseconds:.3g} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, seconds_left = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds_left} s"
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min"


def _scaled(value: float, unit: str) -> str:
    for prefix in ("", "k", "M", "G", "T"):
        # A value that rounds to 1000 gets the next prefix.
        if value < 999.5 or prefix == "T":
            break
        value /= 1000
    return f"{value:.3g} {prefix}{unit}" if value < 999.5 else f"{value:.0f} {prefix}{unit}"
