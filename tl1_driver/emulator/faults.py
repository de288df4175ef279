"""Faults that a test or a demonstration injects while the emulated switch runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tl1_driver.circuits import Port


@dataclass
class Faults:
    """Set any of these at any time; each takes effect with the next command.

    A *change* is a command that makes or removes connections.
    """

    refused_inputs: set[int] = field(default_factory=set)
    """Connecting one of these inputs is denied, and with it the whole command."""

    refused_outputs: set[int] = field(default_factory=set)
    """Connecting one of these outputs is denied, and with it the whole command."""

    refuse_all: bool = False
    """Every command is denied and nothing is done."""

    silent: bool = False
    """Every command is swallowed: nothing is done and nothing answered."""

    acknowledge_only: bool = False
    """A change is acknowledged (IP) and carried out, but never answered."""

    cut_before_answer: bool = False
    """A change is carried out, then the connection is cut in place of the answer."""

    partial_bulk: bool = False
    """A connect that is to be denied makes the circuits before the offending one first."""

    partial_code: Literal["DENY", "PRTL", "COMPLD"] = "DENY"
    """What a partial bulk is answered with; COMPLD is a lie."""

    lose_answer: bool = False
    """A change is carried out, but its answer is lost."""

    ctag_lost: bool = False
    """Refusals come under CTAG 0."""

    slow_inputs: dict[int, float] = field(default_factory=dict)
    """The mirrors of these inputs take so many seconds more to settle."""

    dark_ports: set[Port] = field(default_factory=set)
    """No light is measured at these ports, nor where the light of a dark input would leave."""

    drift_db_per_second: dict[Port, float] = field(default_factory=dict)
    """The loss before these ports grows so quickly, from when it is first measured."""

    answer_delay: float = 0.0
    """Seconds every answer is held back after the work is done."""

    rows_per_part: int = 0
    """Answers are cut into parts of so many rows, all but the last ended by `>`; 0 sends them whole."""

    alarm_before_answer: bool = False
    """An autonomous message goes out before every answer."""

    alarm_between_parts: bool = False
    """An autonomous message goes out between the parts of an answer."""
