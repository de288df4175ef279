"""The faults of an emulated switch that only TL1 has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optical_switch.emulator.crossbar import RefusalError
from optical_switch.emulator.faults import Faults

Completion = Literal["DENY", "PRTL", "COMPLD"]
"""Completion codes of a response (GR-831): denied, done in part, done."""


@dataclass
class Tl1Faults(Faults):
    """Injectable faults of a switch that speaks TL1."""

    acknowledge_only: bool = False
    """A change is acknowledged (IP) and carried out, but never answered."""

    partial_code: Completion = "DENY"
    """Completion code of a partially executed bulk; COMPLD reports false success."""

    ctag_lost: bool = False
    """Refusals come under CTAG 0."""

    rows_per_part: int = 0
    """Rows in each part of an answer, all parts but the last ended by `>`; 0 sends answers whole."""

    alarm_before_answer: bool = False
    """An autonomous message goes out before every answer."""

    alarm_between_parts: bool = False
    """An autonomous message goes out between the parts of an answer."""

    def completion(self, refusal: RefusalError) -> Completion:
        """Return the completion code with which the switch answers a refused command."""
        return self.partial_code if refusal.partial else "DENY"
