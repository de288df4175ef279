"""The errors of a lab, in one hierarchy by responsible party."""

from __future__ import annotations


class LabError(Exception):
    """Base of all deliberate errors of a lab; the text is one sentence for the user."""


class PlanError(LabError, ValueError):
    """The requested lab cannot be built: the input is wrong."""


class HostError(LabError):
    """A requirement of a lab is missing on this machine, or the kernel or Open vSwitch refused a command."""


class FabricConflictError(LabError, ValueError):
    """A change to the optical fabric contradicts its state: unknown or busy port, no such circuit, or a loop."""


class FabricChangeError(LabError):
    """The kernel refused a change to the optical fabric; the circuits are as they were before."""


class ProcessError(LabError):
    """A process of the lab (switch's agent, controller) did not start or died."""


class DemoError(LabError):
    """A scene of the demo failed in a way that prevents further scenes."""


class RateTooHighError(LabError):
    """The planned optical rate is too high for this machine; `factor` is a rate factor (1:factor) that should fit."""

    def __init__(self, loss: float, rate_mbps: float, factor: int) -> None:
        super().__init__(
            f"{loss:.2%} of the packets were lost at an optical rate of {rate_mbps:g} Mbit/s: "
            f"this machine sustains a rate factor of 1:{factor}; use --light-rate {10_000 / factor:g}"
        )
        self.loss = loss
        self.factor = factor
