"""What can go wrong in a lab, in one tree: first whose fault it is, then what happened."""

from __future__ import annotations


class LabError(Exception):
    """Base of everything that a lab raises on purpose; the text is one sentence for the user."""


class PlanError(LabError, ValueError):
    """The caller asked for a lab that cannot be built (our side's input is wrong)."""


class HostError(LabError):
    """This machine lacks something that a lab needs, or the kernel or Open vSwitch refused a command."""


class FabricRefused(LabError, ValueError):
    """A change to the optical fabric contradicts its state: unknown port, busy port, or no such circuit."""


class FabricFault(LabError):
    """The kernel refused a change to the optical fabric; the circuits are as they were before."""


class ProcessFault(LabError):
    """A process of the lab (TL1 agent, controller) did not start or died."""


class DemoError(LabError):
    """A scene of the demo did not go as it must, so that it cannot be played on."""


class RateTooHigh(LabError):
    """This machine cannot carry the planned light rate; `factor` is a rate factor (1:factor) that should fit."""

    def __init__(self, loss: float, rate_mbps: float, factor: int) -> None:
        super().__init__(
            f"{loss:.2%} of the packets were lost at {rate_mbps:g} Mbit/s of light: "
            f"this machine carries a rate factor of 1:{factor}, so plan --light-rate {10_000 / factor:g}"
        )
        self.loss = loss
        self.factor = factor
