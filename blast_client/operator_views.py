"""What an operator is shown: pure functions from what the controller said to text."""

from __future__ import annotations

from collections.abc import Sequence

from blast_api.ttypes import DrainStatus, ElementStatus, FibreReport, ReconcileReport
from blast_client.text_table import shortened, text_table


def describe_drain(status: DrainStatus) -> str:
    """Whether requests are taken, and how many are still being served."""
    if not status.draining:
        return f"not draining: requests are taken, {status.active} active"
    if status.active:
        return f"draining: nothing new is taken, {status.active} still active"
    return "drained: nothing new is taken, nothing is active"


def describe_reconcile(report: ReconcileReport) -> str:
    """What was, or would be, changed on devices, and what there is not ours."""
    if report.commands:
        said = "would be sent" if report.dryRun else "sent"
        lines = [f"{_count(report.commands, 'command')} {said}:"]
        lines += [f"  {command}" for command in report.commands]
    else:
        lines = ["devices hold exactly what they should: nothing to do"]
    if report.foreign:
        lines.append("on devices, not made by Blast and left alone:")
        lines += [f"  {found}" for found in report.foreign]
    return "\n".join(lines)


def describe_fibres(report: FibreReport) -> str:
    """The differences between the config and what probe frames found."""
    if report.faults:
        lines = [
            f"{_count(report.faults, 'difference')} from the configuration:",
            text_table(["ELEMENT", "FOUND"], [[fault.element, fault.sentence] for fault in report.faults]),
        ]
    elif report.skipped:
        lines = ["what was probed is wired as the configuration says"]
    else:
        lines = ["every fibre is wired as the configuration says"]
    if report.skipped:
        lines.append(f"not probed, because in use or away ({len(report.skipped)}): {shortened(report.skipped)}")
    return "\n".join(lines)


def element_table(elements: Sequence[ElementStatus]) -> str:
    """Pieces of hardware, one a line."""
    if not elements:
        return "no elements"
    rows = [[e.name, e.state, "" if e.reservation is None else str(e.reservation), e.reason or ""] for e in elements]
    return text_table(["ELEMENT", "STATE", "RESERVATION", "REASON"], rows)


def _count(found: Sequence[object], what: str) -> str:
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}"
