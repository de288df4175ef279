"""The fiber check at the first start of a controller; its report goes to the log."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from concurrent.futures import Future

from blast_controller.core.fiber_check import FiberReport
from blast_controller.core.model.errors import RejectedError, RequestError
from blast_controller.core.model.events import VerifyRequested
from blast_controller.ops.activity import LogLine, write_line
from blast_controller.runtime.runtime import CoreContext, Runtime
from blast_controller.runtime.waiting import Wait

DEVICES_TIMEOUT = 60.0
"""Seconds for which devices that are not there yet are waited for; then what needs them is left out."""
LONGEST_PROBING = 3600.0
"""Seconds for a check of all free fibers of a large fabric."""
NONCE_BYTES = 32
"""Unpredictable payload: no host can forge a probe."""


def check_fibers(runtime: Runtime) -> None:
    """Probe every free fiber once the devices are connected, and log the result."""

    def work(context: CoreContext) -> FiberReport | Future[FiberReport]:
        context.handle(VerifyRequested(secrets.token_bytes(NONCE_BYTES), DEVICES_TIMEOUT))
        return context.wait_announced(
            context.core.fiber_topic,
            LONGEST_PROBING,
            Wait(
                matches=lambda report: True,
                answer=lambda report: report,
                too_late=lambda: RejectedError("too_slow", "The fiber check did not finish."),
            ),
        )

    runtime.call(work).add_done_callback(_log_report)


def _log_report(checked: Future[FiberReport]) -> None:
    if checked.cancelled():
        return
    error = checked.exception()
    if isinstance(error, RequestError):
        write_line(LogLine(logging.WARNING, "fibers", f"the fiber check failed: {error}", {}))
    elif error is None:
        for line in report_lines(checked.result()):
            write_line(line)


def report_lines(report: FiberReport) -> Iterator[LogLine]:
    """Yield a report as log lines: each fault, what was not probed, and that it is done."""
    for fault in report.faults:
        known = {"element": fault.element, "reason": fault.sentence}
        yield LogLine(logging.WARNING, "fiber_fault", f"{fault.element}: {fault.sentence}", known)
    for skipped in report.skipped:
        yield LogLine(logging.INFO, "fiber_skipped", f"not probed: {skipped}", {"element": skipped.partition(": ")[0]})
    counts = {"faults": len(report.faults), "probed": report.probed, "skipped": len(report.skipped)}
    if not report.probed:
        yield LogLine(logging.WARNING, "fibers", "the fiber check probed nothing", counts)
        return
    count = len(report.faults)
    summary = f"{count} differ from the configuration" if count else "all probed fibers match the configuration"
    text = f"fiber check complete: {summary} ({report.probed} probed, {len(report.skipped)} not)"
    yield LogLine(logging.INFO, "fibers", text, counts)
