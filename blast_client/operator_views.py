"""What an operator is shown: pure functions from what the controller said to text."""

from __future__ import annotations

from collections.abc import Sequence

from blast_api.ttypes import DrainStatus, ElementStatus, FiberReport, ReconcileReport
from blast_client.failures import DONE, FAILED, PARTLY
from blast_client.text_table import text_table


def describe_drain(status: DrainStatus) -> str:
    """Whether requests are taken, and how many are still being served."""
    waiting = f", {status.pending} waiting" if status.pending else ""
    if not status.draining:
        return f"not draining: requests are taken, {status.active} active{waiting}"
    if status.active or status.pending:
        return f"draining: nothing new is taken, {status.active} still active{waiting}"
    return "drained: nothing new is taken, nothing is active or waiting"


def describe_reconcile(report: ReconcileReport) -> str:
    """What was, or would be, changed on devices, and what there is not ours."""
    if report.commands:
        said = "would be sent" if report.dryRun else "sent"
        lines = [f"{_count(report.commands, 'command')} {said}:"]
        lines += [f"  {command}" for command in report.commands]
    elif report.compared is None:
        lines = ["nothing to do (which devices were compared this controller does not say)"]
    elif not report.compared:
        lines = ["nothing was compared: whether devices hold what they should is not known"]
    elif report.notCompared:
        lines = [f"{_count(report.compared, 'device')} compared: what was compared is as it should be"]
    else:
        lines = [f"{_count(report.compared, 'device')} compared, all there are: nothing to do"]
    if report.foreign:
        lines.append("on devices, not made by Blast and left alone:")
        lines += [f"  {found}" for found in report.foreign]
    if report.notCompared:
        lines.append(f"not compared ({len(report.notCompared)}):")
        lines += [f"  {missed.element}: {missed.reason}" for missed in report.notCompared]
    return "\n".join(lines)


def reconcile_status(report: ReconcileReport) -> int:
    """The exit status: devices that nobody looked at are no success."""
    if report.compared is None or (report.compared and report.notCompared):
        return PARTLY
    return DONE if report.compared else FAILED


def describe_fibers(report: FiberReport) -> str:
    """The differences between the config and what probe frames found."""
    if report.faults:
        lines = [
            f"{_count(report.faults, 'difference')} from the configuration:",
            text_table(["ELEMENT", "FOUND"], [[fault.element, fault.message] for fault in report.faults]),
        ]
    elif report.probed == 0:
        lines = ["nothing was probed: whether the fibers are wired as the configuration says is not known"]
    elif report.skipped:
        lines = ["what was probed is wired as the configuration says"]
    else:
        lines = ["every fiber is wired as the configuration says"]
    if report.skipped:
        lines.append(f"not probed ({len(report.skipped)}):")
        lines += [f"  {skipped}" for skipped in report.skipped]
    return "\n".join(lines)


def fibers_status(report: FiberReport) -> int:
    """The exit status: a difference is a failure, and what was not probed is no success."""
    if report.faults or report.probed == 0:
        return FAILED
    return PARTLY if report.skipped else DONE


def element_table(elements: Sequence[ElementStatus]) -> str:
    """Pieces of hardware, one a line."""
    if not elements:
        return "no such elements"
    rows = [[e.name, e.state, "" if e.reservation is None else str(e.reservation), e.reason or ""] for e in elements]
    return text_table(["ELEMENT", "STATE", "RESERVATION", "REASON"], rows)


def _count(found: Sequence[object], what: str) -> str:
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}"
