"""The comparison as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from transport_bed.claims import Claim
from transport_bed.comparison import Row
from transport_bed.shape import Shape


def table(rows: Sequence[Row]) -> Iterator[str]:
    """One block for each cell; rates are size ÷ time of one receiver's copy."""
    for cell in dict.fromkeys(row["cell"] for row in rows):
        own = [row for row in rows if row["cell"] == cell]
        limit = Shape(own[0]["rate_mbps"]).udp_limit
        yield ""
        yield f"{cell}, {own[0]['bytes'] / 1e6:g} MB" + (f", payload limit {limit / 1e9:.3f} Gbit/s" if limit else "")
        yield f"  {'':<30}{'Gbit/s':>8}{'of floor':>10}{'median s':>10}{'min':>9}{'max':>9}{'runs':>6}"
        floor = next((row["gbps"] for row in own if row["tool"] == "floor" and "gbps" in row), None)
        for row in own:
            yield f"  {row['title']:<30}{_figures(row, floor)}{_repaired(row)}{_failed(row)}"


def verdicts(claims: Sequence[Claim]) -> Iterator[str]:
    """One line for each claim."""
    for claim in claims:
        yield f"{claim.words:<72}{claim.value:>8.3f}  bar {claim.bar:g}{'' if claim.kept else '  MISSED'}"


def _figures(row: Row, floor: float | None) -> str:
    if "gbps" not in row:
        return f"{'-':>8}"
    share = "" if floor is None else f"{row['gbps'] / floor:.2f}"
    spread = f"{min(row['seconds']):>9.3f}{max(row['seconds']):>9.3f}"
    return f"{row['gbps']:>8.3f}{share:>10}{row['median']:>10.3f}{spread}{len(row['seconds']):>6}"


def _repaired(row: Row) -> str:
    """What ours say of loss."""
    repaired = [notes["repaired_bytes"] for notes in row["notes"] if "repaired_bytes" in notes]
    return f"   {max(repaired)} bytes repaired" if any(repaired) else ""


def _failed(row: Row) -> str:
    return f"   {len(row['failures'])} failed: {row['failures'][-1]}" if row["failures"] else ""
