"""Faults that a test or a demonstration injects while the emulated switch runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tl1_driver.protocol.circuits import Port


@dataclass
class Faults:
    """Injectable faults. Set any of these at any time; each takes effect with the next command.

    A *change* is a command that sets or removes connections.
    """

    refused_inputs: set[int] = field(default_factory=set)
    """Connecting one of these inputs is denied, and with it the whole command."""

    refused_outputs: set[int] = field(default_factory=set)
    """Connecting one of these outputs is denied, and with it the whole command."""

    refuse_all: bool = False
    """Every command is denied and nothing is done."""

    silent: bool = False
    """Every command is dropped: nothing is done and nothing answered."""

    acknowledge_only: bool = False
    """A change is acknowledged (IP) and carried out, but never answered."""

    cut_before_answer: bool = False
    """A change is carried out, then the connection is cut in place of the answer."""

    partial_bulk: bool = False
    """A connect that is to be denied sets the circuits before the offending one first."""

    partial_code: Literal["DENY", "PRTL", "COMPLD"] = "DENY"
    """Completion code of a partially executed bulk; COMPLD reports false success."""

    lose_answer: bool = False
    """A change is carried out, but its answer is lost."""

    ctag_lost: bool = False
    """Refusals come under CTAG 0."""

    slow_inputs: dict[int, float] = field(default_factory=dict)
    """Additional settling time of the mirrors of these inputs, in seconds."""

    dark_ports: set[Port] = field(default_factory=set)
    """Ports that measure no power; the outputs connected to a dark input are dark too."""

    drift_db_per_second: dict[Port, float] = field(default_factory=dict)
    """Rate at which the loss before these ports grows, from their first measurement."""

    answer_delay: float = 0.0
    """Seconds by which every answer is delayed after the work is done."""

    rows_per_part: int = 0
    """Rows in each part of an answer, all parts but the last ended by `>`; 0 sends answers whole."""

    alarm_before_answer: bool = False
    """An autonomous message goes out before every answer."""

    alarm_between_parts: bool = False
    """An autonomous message goes out between the parts of an answer."""
