"""Configuration of optical powers, losses and prices, all optional; with them, trees meet a power budget.

Ranges are one number or three, in ascending order: minimum, typical, maximum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from algorithms.power_budget import (
    MONITOR_ERROR_DB,
    Amplifier,
    ElementLoss,
    InvalidOpticsError,
    Passive,
    Piece,
    PowerLevel,
    Transceiver,
)
from blast_base.settings import Section
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
    raise ValueError("must be one number or three: minimum, typical, maximum")


def _growing(value: Numbers) -> Numbers:
    if list(value) != sorted(value):
        raise ValueError("must be in ascending order: minimum, typical, maximum")
    return value


def _not_negative(value: Numbers) -> Numbers:
    if value[0] < 0:
        raise ValueError("must not be negative")
    return value


Span = Annotated[Numbers, BeforeValidator(_three), AfterValidator(_growing)]
Decibels = Annotated[Numbers, BeforeValidator(_three), AfterValidator(_growing), AfterValidator(_not_negative)]


class TransceiverKeys(Section):
    """Launch power and requirements of a transceiver, and losses of its fibers to and from the optical switch."""

    launch_dbm: Span | None = None
    sensitivity_dbm: float | None = None
    overload_dbm: float | None = None
    fiber_loss_db: Decibels | None = None


class SwitchKeys(Section):
    """Pass loss of an optical switch, the maximum power that it accepts, and the range of its variable attenuators."""

    pass_loss_db: Decibels | None = None
    max_input_dbm: float | None = None
    attenuator_range_db: Annotated[float, Field(ge=MONITOR_ERROR_DB)] | None = None


class AmplifierSection(Section):
    """An amplifier fixed before a splitter."""

    gain_db: Span
    max_output_dbm: float
    max_input_dbm: float | None = None


class SplitterKeys(Section):
    """Insertion loss of a splitter between its input and any output, and its price in dollars."""

    insertion_loss_db: Decibels | None = None
    amplifier: AmplifierSection | None = None
    price: Annotated[float, Field(ge=0)] | None = None


class IncompleteOpticsError(ValueError):
    """The operator's fault: a power budget was begun, but something that it needs is missing or impossible."""


@dataclass(frozen=True)
class OpticsKeys:
    """All optical configuration: the fabric's default transceiver, and the keys of each element."""

    common: TransceiverKeys
    ports: Iterable[tuple[OpticalPort, TransceiverKeys]]
    splitters: Iterable[tuple[Splitter, SplitterKeys]]
    switches: Iterable[tuple[str, SwitchKeys]]

    def build(self) -> Optics:
        """Return the optics of all optical switches with a `pass_loss_db`. Raises IncompleteOpticsError."""
        passes = {name: _pass(name, keys) for name, keys in self.switches if keys.pass_loss_db is not None}
        if not passes and self._begun():
            raise IncompleteOpticsError(
                f"{self._begun()} is set, but no optical switch has pass_loss_db: set pass_loss_db, or remove the key."
            )
        attenuators = {name: keys.attenuator_range_db for name, keys in self.switches}
        for name, attenuation in attenuators.items():
            if attenuation is not None and name not in passes:
                raise IncompleteOpticsError(
                    f"attenuator_range_db of the optical switch {name} has no effect without pass_loss_db: set "
                    "pass_loss_db, or remove attenuator_range_db."
                )
        own = ((port, keys) for port, keys in self.ports if port.switch in passes)
        return Optics(
            {p.element: _limited(self._transceiver(p, keys), p, attenuators[p.switch]) for p, keys in own},
            {s.element: _piece(s, keys) for s, keys in self.splitters if s.switch in passes},
            passes,
        )

    def _begun(self) -> str | None:
        """Return the first key that makes sense with a power budget only."""
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

        def lacking(key: str) -> IncompleteOpticsError:
            return IncompleteOpticsError(
                f"{key} is set neither for {place} nor in fabric, but the optical switch {port.switch} has "
                "pass_loss_db: set launch_dbm, sensitivity_dbm and overload_dbm, or remove pass_loss_db."
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
        loss = ElementLoss(*(own.fiber_loss_db or common.fiber_loss_db or (0.0, 0.0, 0.0)))
        try:
            return Transceiver(port.element, PowerLevel(*launch), sensitivity, overload, loss, loss)
        except InvalidOpticsError as error:
            raise IncompleteOpticsError(f"{place}: {error}.") from error


def _limited(transceiver: Transceiver, port: OpticalPort, max_attenuation: float | None) -> Transceiver:
    # The transmitting side of a directional port has no output.
    if max_attenuation is None or not port.output:
        return transceiver
    return transceiver.limited(f"attenuator:{port.switch}/{port.output}", max_attenuation)


def _pass(name: str, keys: SwitchKeys) -> Passive:
    maximum = float("inf") if keys.max_input_dbm is None else keys.max_input_dbm
    return Passive(f"switch:{name}", ElementLoss(*(keys.pass_loss_db or (0.0, 0.0, 0.0))), maximum)


def _piece(splitter: Splitter, keys: SplitterKeys) -> Piece:
    if keys.insertion_loss_db is None:
        raise IncompleteOpticsError(
            f"the splitter {splitter.name} has no insertion_loss_db, but its optical switch {splitter.switch} has "
            "pass_loss_db: set insertion_loss_db for all splitters of the switch, or remove its pass_loss_db."
        )
    amplifier = None
    if keys.amplifier is not None:
        maximum = float("inf") if keys.amplifier.max_input_dbm is None else keys.amplifier.max_input_dbm
        gain, output = keys.amplifier.gain_db, keys.amplifier.max_output_dbm
        amplifier = Amplifier(f"amplifier:{splitter.name}", gain, output, maximum)
    usual = usual_price(splitter.fan_out) + (AMPLIFIER_PRICE if amplifier else 0.0)
    price = usual if keys.price is None else keys.price
    return Piece(splitter.element, splitter.fan_out, ElementLoss(*keys.insertion_loss_db), amplifier, price)


def usual_price(fan_out: int) -> float:
    """Return the price of a 1:`fan_out` splitter in dollars.

    The paper's prices, interpolated and extrapolated linearly.
    """
    points = ((0, 0.0), *PRICES)
    for (low, cheap), (high, dear) in pairwise(points):
        if fan_out <= high or high == points[-1][0]:
            return cheap + (dear - cheap) * (fan_out - low) / (high - low)
    raise AssertionError("the last line does not end with a newline")
