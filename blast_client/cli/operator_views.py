"""Text of the controller's answers for operators, as pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from blast_api.ttypes import DrainStatus, ElementStatus, FiberReport, ReconcileReport
from blast_base.command_line import DONE, FAILED, PARTLY
from blast_client.cli.text_table import text_table


def describe_drain(status: DrainStatus) -> str:
    """Describe if the controller drains, and the numbers of active and pending requests."""
    pending = f", {status.pending} pending" if status.pending else ""
    if not status.draining:
        return f"not draining: new requests are accepted, {status.active} active{pending}"
    if status.active or status.pending:
        return f"draining: new requests are rejected, {status.active} active{pending}"
    return "drained: new requests are rejected, none is active or pending"


def describe_reconcile(report: ReconcileReport) -> str:
    """Describe the changes on devices, made or planned, and the circuits and rules that Blast did not make."""
    if report.commands:
        sent = "would be sent" if report.dryRun else "sent"
        lines = [f"{_count(report.commands, 'command')} {sent}:"]
        lines += [f"  {command}" for command in report.commands]
    elif report.compared is None:
        lines = ["no differences (this controller does not report which devices it compared)"]
    elif not report.compared:
        lines = ["no device was compared: differences are unknown"]
    elif report.notCompared:
        lines = [f"{_count(report.compared, 'device')} compared: no differences on these"]
    else:
        lines = [f"{_count(report.compared, 'device')} compared, all devices: no differences"]
    if report.foreign:
        lines.append("on devices, not made by Blast and not changed:")
        lines += [f"  {found}" for found in report.foreign]
    if report.notCompared:
        lines.append(f"not compared ({len(report.notCompared)}):")
        lines += [f"  {missed.element}: {missed.reason}" for missed in report.notCompared]
    return "\n".join(lines)


def reconcile_status(report: ReconcileReport) -> int:
    """Return the exit status: success only if every device was compared."""
    if report.compared is None or (report.compared and report.notCompared):
        return PARTLY
    return DONE if report.compared else FAILED


def describe_fibers(report: FiberReport) -> str:
    """Describe the differences between the configuration and the result of probe frames."""
    if report.faults:
        lines = [
            f"{_count(report.faults, 'difference')} from the configuration:",
            text_table(["ELEMENT", "FOUND"], [[fault.element, fault.message] for fault in report.faults]),
        ]
    elif report.probed == 0:
        lines = ["no fiber was probed: differences from the configuration are unknown"]
    elif report.skipped:
        lines = ["every probed fiber matches the configuration"]
    else:
        lines = ["every fiber matches the configuration"]
    if report.skipped:
        lines.append(f"not probed ({len(report.skipped)}):")
        lines += [f"  {skipped}" for skipped in report.skipped]
    return "\n".join(lines)


def fibers_status(report: FiberReport) -> int:
    """Return the exit status: failure for a difference, partial success if fibers were not probed."""
    if report.faults or report.probed == 0:
        return FAILED
    return PARTLY if report.skipped else DONE


def element_table(elements: Sequence[ElementStatus]) -> str:
    """Return a table of hardware elements."""
    if not elements:
        return "no such elements"
    rows = [[e.name, e.state, "" if e.reservation is None else str(e.reservation), e.reason or ""] for e in elements]
    return text_table(["ELEMENT", "STATE", "RESERVATION", "REASON"], rows)


def _count(found: Sequence[object], noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
