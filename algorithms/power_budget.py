"""How much light arrives at a receiver, at worst, typically and at best, and what binds.

Every element of a path has a range of losses; ranges are added end to end (no statistics: what is promised must hold
for the worst parts together). A receiver needs two margins: its sensitivity below the least light that may arrive, and
its overload above the most. Powers in dBm, losses and gains in dB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

MONITOR_ERROR_DB = 1.0
"""What the power monitors of optical switches are good for (Polatis, Glimmerglass data sheets)."""


ROUNDING_DB = 1e-6
"""Margins are not finer than this: sums of decimal fractions of a dB are not exact."""


class InvalidOptics(ValueError):
    """The caller's fault: a value that no piece of hardware can have."""


def _check_order(what: str, *values: float) -> None:
    if not all(map(math.isfinite, values)) or list(values) != sorted(values):
        raise InvalidOptics(f"{what} must be finite and in the order of growing values, not {list(values)}")


@dataclass(frozen=True, slots=True)
class Light:
    """Power at one place in dBm: at worst (least), typically, at best (most). Raises `InvalidOptics`."""

    worst: float
    typical: float
    best: float

    def __post_init__(self) -> None:
        _check_order("worst, typical and best power", self.worst, self.typical, self.best)

    @property
    def rounded(self) -> Light:
        """The same to a millionth of a dB, so that light over the same elements in another order is equal."""
        return Light(round(self.worst, 6), round(self.typical, 6), round(self.best, 6))


@dataclass(frozen=True, slots=True)
class Loss:
    """What an element takes in dB: at best (least), typically, at worst (most). Raises `InvalidOptics` below 0."""

    best: float = 0.0
    typical: float = 0.0
    worst: float = 0.0

    def __post_init__(self) -> None:
        _check_order("best, typical and worst loss, none below 0,", 0.0, self.best, self.typical, self.worst)

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.best + other.best, self.typical + other.typical, self.worst + other.worst)


def exactly(loss: float) -> Loss:
    """A loss that is known.

    Parameters
    ----------
    loss : float
        In dB, not below 0.

    Returns
    -------
    Loss

    Raises
    ------
    InvalidOptics
        It is below 0 or not finite.

    Examples
    --------
    >>> exactly(3.0)
    Loss(best=3.0, typical=3.0, worst=3.0)
    """
    return Loss(loss, loss, loss)


def measured(into: float, out_of: float, error: float = MONITOR_ERROR_DB) -> Loss:
    """The loss between two power monitors, each off by up to `error` dB of the reading between them.

    Parameters
    ----------
    into, out_of : float
        Power before and behind, in dBm.
    error : float, optional
        Of the difference, in dB.

    Returns
    -------
    Loss
        Never below 0.

    Examples
    --------
    >>> measured(-3.0, -10.0, error=0.5)
    Loss(best=6.5, typical=7.0, worst=7.5)
    """
    reading = into - out_of
    return Loss(max(0.0, reading - error), max(0.0, reading), max(0.0, reading + error))


@dataclass(frozen=True, slots=True)
class Passive:
    """Anything that only loses light: splitter output, attenuator, fiber with connectors, one pass through a switch.

    `max_input` is the most power that it may be fed.
    """

    name: str
    loss: Loss
    max_input: float = math.inf

    def after(self, light: Light) -> Light:
        """The light behind it."""
        loss = self.loss
        return Light(light.worst - loss.worst, light.typical - loss.typical, light.best - loss.best)


@dataclass(frozen=True, slots=True)
class Amplifier:
    """An optical amplifier: it adds its gain (least, typical, most), but gives no more than `max_output`."""

    name: str
    gain: tuple[float, float, float]
    max_output: float
    max_input: float = math.inf

    def __post_init__(self) -> None:
        _check_order("least, typical and most gain", *self.gain)

    def after(self, light: Light) -> Light:
        """The light behind it."""
        least, typical, most = self.gain
        return Light(
            min(light.worst + least, self.max_output),
            min(light.typical + typical, self.max_output),
            min(light.best + most, self.max_output),
        )


Element = Passive | Amplifier


def through(light: Light, elements: Sequence[Element]) -> Light:
    """The light behind a row of elements.

    Parameters
    ----------
    light : Light
        In dBm, before the first.
    elements : sequence of Passive or Amplifier
        In the order in which the light passes them.

    Returns
    -------
    Light
        In dBm. O(elements).

    Examples
    --------
    >>> through(Light(-1.0, 0.0, 1.0), [Passive("splitter", Loss(6.0, 6.5, 7.0)), Passive("fiber", exactly(1.0))])
    Light(worst=-9.0, typical=-7.5, best=-6.0)
    """
    for element in elements:
        light = element.after(light)
    return light


@dataclass(frozen=True, slots=True)
class Piece:
    """A 1:`fan_out` splitter, with the amplifier that is fixed before it, if any; `price` in any one currency."""

    name: str
    fan_out: int
    loss: Loss
    amplifier: Amplifier | None = None
    price: float = 0.0
    elements: tuple[Element, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.fan_out < 2:
            raise InvalidOptics(f"the splitter {self.name} has {self.fan_out} outputs, but needs at least 2")
        # Looked at for every slot of every tree: made once.
        splitter = Passive(self.name, self.loss)
        object.__setattr__(self, "elements", (self.amplifier, splitter) if self.amplifier else (splitter,))

    @property
    def kind(self) -> Piece:
        """The piece without its name: pieces of one kind can stand in for each other."""
        amplifier = replace(self.amplifier, name="") if self.amplifier else None
        return replace(self, name="", amplifier=amplifier)

    def hung(self, slot: Light, switch: Passive) -> Light | None:
        """Return the power at its outputs when a switch input with power `slot` feeds it; None if overdriven."""
        light = slot
        for element in (switch, *self.elements):
            if light.best > element.max_input + ROUNDING_DB:
                return None
            light = element.after(light)
        return light.rounded


@dataclass(frozen=True, slots=True)
class Transceiver:
    """One optical port: what it launches, what it must receive, and the fibers between it and the optical switch.

    `to_switch` and `from_switch` are what fibers, connectors and fixed attenuators cost. A receiver that gets more than
    `overload` makes errors or is damaged, one that gets less than `sensitivity` makes errors.
    """

    name: str
    launch: Light
    sensitivity: float
    overload: float
    to_switch: Loss = Loss()
    from_switch: Loss = Loss()

    def __post_init__(self) -> None:
        _check_order("sensitivity and overload", self.sensitivity, self.overload)

    @property
    def entering(self) -> Light:
        """Its light where it enters the switch."""
        return Passive(self.name, self.to_switch).after(self.launch)

    @property
    def needed(self) -> Window:
        """The light that must leave the switch towards it."""
        return Window(self.sensitivity + self.from_switch.worst, self.overload + self.from_switch.best)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The light that a receiver can work with, in dBm: no less than `least` at worst, no more than `most` at best."""

    least: float
    most: float

    def margin(self, light: Light) -> float:
        """The smaller of the two margins in dB, negative where `light` is not good."""
        return min(light.worst - self.least, self.most - light.best)

    def fits(self, light: Light) -> bool:
        """Whether a receiver works with this light."""
        return self.margin(light) >= -ROUNDING_DB


@dataclass(frozen=True, slots=True)
class Certificate:
    """What one receiver gets: its light, both margins in dB, and the element that binds the smaller one.

    Too little light is blamed on the element that costs the most of it; too much on the element that is overdriven on
    the way, else on the last source of light: an amplifier, or the transmitter.
    """

    receiver: str
    received: Light
    sensitivity_margin: float
    overload_margin: float
    binding: str

    @property
    def margin(self) -> float:
        """The smaller margin in dB; the receiver works if it is not negative."""
        return min(self.sensitivity_margin, self.overload_margin)

    @property
    def holds(self) -> bool:
        """Whether the receiver works with what it gets."""
        return self.margin >= -ROUNDING_DB

    @property
    def sentence(self) -> str:
        """What is wrong, or how much there is to spare."""
        if self.margin >= 0:
            return f"{self.receiver} has {self.margin:.1f} dB to spare; {self.binding} binds"
        if self.sensitivity_margin <= self.overload_margin:
            return f"{self.receiver} lacks {-self.margin:.1f} dB of light; {self.binding} takes the most"
        return f"the light towards {self.receiver} is {-self.margin:.1f} dB too strong; {self.binding} is the cause"


def certify(sender: Transceiver, path: Sequence[Element], receiver: Transceiver) -> Certificate:
    """What `receiver` gets from `sender` over the elements between their fibers.

    Parameters
    ----------
    sender, receiver : Transceiver
        Powers in dBm, losses in dB.
    path : sequence of Passive or Amplifier
        In the order in which the light passes them.

    Returns
    -------
    Certificate
        Both margins in dB; it `holds` where neither is below 0.

    Notes
    -----
    O(elements). Worst cases are added end to end, without statistics.

    Examples
    --------
    >>> port = Transceiver("r1", Light(-1.0, 0.0, 1.0), sensitivity=-20.0, overload=0.5)
    >>> certify(port, [Passive("splitter", exactly(7.0))], port).sentence
    'r1 has 6.5 dB to spare; r1 binds'
    """
    row = (Passive(sender.name, sender.to_switch), *path, Passive(receiver.name, receiver.from_switch))
    light, source = sender.launch, sender.name
    overload, brightest = math.inf, sender.name
    for element in row:
        headroom = element.max_input - light.best
        if headroom < overload:
            overload, brightest = headroom, element.name
        light = element.after(light)
        source = element.name if isinstance(element, Amplifier) else source
    if receiver.overload - light.best < overload:
        overload, brightest = receiver.overload - light.best, source
    sensitivity = light.worst - receiver.sensitivity
    passive = (element for element in row if isinstance(element, Passive))
    darkest = max(passive, key=lambda element: element.loss.worst)
    binding = darkest.name if sensitivity <= overload else brightest
    return Certificate(receiver.name, light, sensitivity, overload, binding)
