"""What the file says of light: powers, losses and prices, all optional; with them, trees hold a power budget.

Ranges are one number or three, in growing order: least, typical, most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from algorithms.power_budget import Amplifier, InvalidOptics, Light, Loss, Passive, Piece, Transceiver
from blast_controller.configuration.section import Section
from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.optics import Optics

PRICES = ((4, 40.0), (16, 80.0), (64, 250.0))
AMPLIFIER_PRICE = 1000.0
"""(ways, dollars), and dollars: section II-A of the Blast paper, for what has no price of its own."""

Numbers = tuple[float, float, float]


def _three(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (value, value, value)
    if isinstance(value, list | tuple) and len(value) == 3:
        return tuple(value)
    raise ValueError("must be one number or three")


def _growing(value: Numbers) -> Numbers:
    if list(value) != sorted(value):
        raise ValueError("must grow from least over typical to most")
    return value


def _not_negative(value: Numbers) -> Numbers:
    if value[0] < 0:
        raise ValueError("must not be below 0")
    return value


Span = Annotated[Numbers, BeforeValidator(_three), AfterValidator(_growing)]
Decibels = Annotated[Numbers, BeforeValidator(_three), AfterValidator(_growing), AfterValidator(_not_negative)]


class TransceiverKeys(Section):
    """What a transceiver launches and needs, and what the fibers between it and the optical switch cost, each way."""

    launch_dbm: Span | None = None
    sensitivity_dbm: float | None = None
    overload_dbm: float | None = None
    fiber_loss_db: Decibels | None = None


class SwitchKeys(Section):
    """What a pass through an optical switch costs, and the most light that it takes."""

    pass_loss_db: Decibels | None = None
    max_input_dbm: float | None = None


class AmplifierSection(Section):
    """An amplifier fixed before a splitter."""

    gain_db: Span
    max_output_dbm: float
    max_input_dbm: float | None = None


class SplitterKeys(Section):
    """What a splitter does to light between its input and any output, and what it costs in dollars."""

    insertion_loss_db: Decibels | None = None
    amplifier: AmplifierSection | None = None
    price: Annotated[float, Field(ge=0)] | None = None


class IncompleteOptics(ValueError):
    """The operator's fault: a power budget was begun, but something that it needs is missing or impossible."""


@dataclass(frozen=True)
class OpticsKeys:
    """Everything that the file says of light: the fabric's common transceiver, and each element's own keys."""

    common: TransceiverKeys
    ports: Iterable[tuple[OpticalPort, TransceiverKeys]]
    splitters: Iterable[tuple[Splitter, SplitterKeys]]
    switches: Iterable[tuple[str, SwitchKeys]]

    def build(self) -> Optics:
        """The optics of all optical switches with a `pass_loss_db`. Raises IncompleteOptics."""
        passes = {name: _pass(name, keys) for name, keys in self.switches if keys.pass_loss_db is not None}
        if not passes and self._begun():
            raise IncompleteOptics(f"{self._begun()} is given, but no optical switch has a pass_loss_db.")
        return Optics(
            {p.element: self._transceiver(p, keys) for p, keys in self.ports if p.switch in passes},
            {s.element: _piece(s, keys) for s, keys in self.splitters if s.switch in passes},
            passes,
        )

    def _begun(self) -> str | None:
        """The first key that makes sense with a power budget only."""
        rows: list[tuple[str, Section]] = [("fabric", self.common)]
        rows += [(f"rack {port.rack} port {port.port}", keys) for port, keys in self.ports]
        rows += [(f"splitter {splitter.name}", keys) for splitter, keys in self.splitters]
        for place, keys in rows:
            for key in (*TransceiverKeys.model_fields, "insertion_loss_db", "amplifier"):
                if getattr(keys, key, None) is not None:
                    return f"{key} of {place}"
        return None

    def _transceiver(self, port: OpticalPort, own: TransceiverKeys) -> Transceiver:
        place = f"rack {port.rack} port {port.port}"
        common = self.common

        def lacking(key: str) -> IncompleteOptics:
            return IncompleteOptics(
                f"{place} has no {key}, and neither has fabric, but the optical switch {port.switch} has a "
                "pass_loss_db: give all of launch_dbm, sensitivity_dbm and overload_dbm, or no pass_loss_db."
            )

        launch = own.launch_dbm or common.launch_dbm
        sensitivity = common.sensitivity_dbm if own.sensitivity_dbm is None else own.sensitivity_dbm
        overload = common.overload_dbm if own.overload_dbm is None else own.overload_dbm
        if launch is None:
            raise lacking("launch_dbm")
        if sensitivity is None:
            raise lacking("sensitivity_dbm")
        if overload is None:
            raise lacking("overload_dbm")
        loss = Loss(*(own.fiber_loss_db or common.fiber_loss_db or (0.0, 0.0, 0.0)))
        try:
            return Transceiver(port.element, Light(*launch), sensitivity, overload, loss, loss)
        except InvalidOptics as error:
            raise IncompleteOptics(f"{place}: {error}.") from error


def _pass(name: str, keys: SwitchKeys) -> Passive:
    most = float("inf") if keys.max_input_dbm is None else keys.max_input_dbm
    return Passive(f"switch:{name}", Loss(*(keys.pass_loss_db or (0.0, 0.0, 0.0))), most)


def _piece(splitter: Splitter, keys: SplitterKeys) -> Piece:
    if keys.insertion_loss_db is None:
        raise IncompleteOptics(
            f"the splitter {splitter.name} has no insertion_loss_db, but its optical switch {splitter.switch} has a "
            "pass_loss_db: give all splitters there one, or the switch none."
        )
    amplifier = None
    if keys.amplifier is not None:
        most = float("inf") if keys.amplifier.max_input_dbm is None else keys.amplifier.max_input_dbm
        gain, output = keys.amplifier.gain_db, keys.amplifier.max_output_dbm
        amplifier = Amplifier(f"amplifier:{splitter.name}", gain, output, most)
    usual = usual_price(splitter.fan_out) + (AMPLIFIER_PRICE if amplifier else 0.0)
    price = usual if keys.price is None else keys.price
    return Piece(splitter.element, splitter.fan_out, Loss(*keys.insertion_loss_db), amplifier, price)


def usual_price(fan_out: int) -> float:
    """Dollars for a 1:`ways` splitter: the paper's prices, and straight lines between and beyond them."""
    points = ((0, 0.0), *PRICES)
    for (low, cheap), (high, dear) in pairwise(points):
        if fan_out <= high or high == points[-1][0]:
            return cheap + (dear - cheap) * (fan_out - low) / (high - low)
    raise AssertionError("the last line has no end")
