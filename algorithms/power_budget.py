"""Optical power at a receiver, at worst, typically and at best, and the element that binds.

Every element of a path has a range of losses; ranges are added end to end (no statistics: a promise must hold for the
combination of the worst parts). A receiver needs two margins: its sensitivity below the lowest power that may arrive,
and its overload above the highest. A limiter before a receiver keeps the power below its overload, so that the receiver
accepts more power at the switch. Powers are in dBm, losses and gains in dB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

MONITOR_ERROR_DB = 1.0
"""Error of the power monitors of optical switches in dB (Polatis, Glimmerglass data sheets)."""


ROUNDING_DB = 1e-6
"""Resolution of margins in dB: sums of decimal fractions of a dB are not exact."""


class InvalidOpticsError(ValueError):
    """The caller passed a value that no hardware can have."""


def _check_order(name: str, *values: float) -> None:
    if not all(map(math.isfinite, values)) or list(values) != sorted(values):
        raise InvalidOpticsError(f"{name} must be finite and in ascending order, not {list(values)}")


@dataclass(frozen=True, slots=True)
class PowerLevel:
    """Power at one place in dBm.

    Parameters
    ----------
    worst, typical, best : float
        Minimum, typical and maximum power.

    Raises
    ------
    InvalidOpticsError
        If the powers are not finite or not in ascending order.
    """

    worst: float
    typical: float
    best: float

    def __post_init__(self) -> None:
        _check_order("worst, typical and best power", self.worst, self.typical, self.best)

    @property
    def rounded(self) -> PowerLevel:
        """The power rounded to a millionth of a dB, so that the same elements in another order have equal power."""
        return PowerLevel(round(self.worst, 6), round(self.typical, 6), round(self.best, 6))


@dataclass(frozen=True, slots=True)
class ElementLoss:
    """Loss of an element in dB.

    Parameters
    ----------
    best, typical, worst : float, optional
        Minimum, typical and maximum loss, not below 0.

    Raises
    ------
    InvalidOpticsError
        If the losses are below 0, not finite or not in ascending order.
    """

    best: float = 0.0
    typical: float = 0.0
    worst: float = 0.0

    def __post_init__(self) -> None:
        _check_order("best, typical and worst loss, none below 0,", 0.0, self.best, self.typical, self.worst)

    def __add__(self, other: ElementLoss) -> ElementLoss:
        return ElementLoss(self.best + other.best, self.typical + other.typical, self.worst + other.worst)


def exactly(loss: float) -> ElementLoss:
    """Return a loss that is known exactly.

    Parameters
    ----------
    loss : float
        In dB, not below 0.

    Returns
    -------
    Loss

    Raises
    ------
    InvalidOpticsError
        If the loss is below 0 or not finite.

    Examples
    --------
    >>> exactly(3.0)
    ElementLoss(best=3.0, typical=3.0, worst=3.0)
    """
    return ElementLoss(loss, loss, loss)


def measured(into: float, out_of: float, error: float = MONITOR_ERROR_DB) -> ElementLoss:
    """Return the loss between two power monitors whose difference is off by up to `error` dB.

    Parameters
    ----------
    into, out_of : float
        Power before and behind the element, in dBm.
    error : float, optional
        Error of the difference, in dB.

    Returns
    -------
    Loss
        Never below 0.

    Examples
    --------
    >>> measured(-3.0, -10.0, error=0.5)
    ElementLoss(best=6.5, typical=7.0, worst=7.5)
    """
    reading = into - out_of
    return ElementLoss(max(0.0, reading - error), max(0.0, reading), max(0.0, reading + error))


@dataclass(frozen=True, slots=True)
class Passive:
    """A passive element: splitter output, attenuator, fiber with connectors, or one pass through a switch.

    Parameters
    ----------
    name : str
        Name of the element in a certificate.
    loss : Loss
        Its loss in dB.
    max_input : float, optional
        Maximum power at its input in dBm.
    """

    name: str
    loss: ElementLoss
    max_input: float = math.inf

    def after(self, light: PowerLevel) -> PowerLevel:
        """Return the power behind the element.

        Parameters
        ----------
        light : Light
            Power before the element in dBm.

        Returns
        -------
        Light
            Power in dBm.
        """
        loss = self.loss
        return PowerLevel(light.worst - loss.worst, light.typical - loss.typical, light.best - loss.best)


@dataclass(frozen=True, slots=True)
class Amplifier:
    """An optical amplifier: it adds its gain, up to its maximum output.

    Parameters
    ----------
    name : str
        Name of the amplifier in a certificate.
    gain : (float, float, float)
        Minimum, typical and maximum gain in dB.
    max_output : float
        Maximum power at its output in dBm.
    max_input : float, optional
        Maximum power at its input in dBm.

    Raises
    ------
    InvalidOpticsError
        If the gains are not finite or not in ascending order.
    """

    name: str
    gain: tuple[float, float, float]
    max_output: float
    max_input: float = math.inf

    def __post_init__(self) -> None:
        _check_order("minimum, typical and maximum gain", *self.gain)

    def after(self, light: PowerLevel) -> PowerLevel:
        """Return the power behind the amplifier.

        Parameters
        ----------
        light : Light
            Power before the amplifier in dBm.

        Returns
        -------
        Light
            Power in dBm, not above `max_output`.
        """
        low, typical, high = self.gain
        return PowerLevel(
            min(light.worst + low, self.max_output),
            min(light.typical + typical, self.max_output),
            min(light.best + high, self.max_output),
        )


@dataclass(frozen=True, slots=True)
class PowerLimiter:
    """A variable attenuator that a power monitor controls: it attenuates only power above its level.

    Parameters
    ----------
    name : str
        Name of the attenuator in a certificate.
    level : float
        Power in dBm to which it limits the reading of its monitor.
    max_attenuation : float
        Maximum attenuation in dB, not below `error`: with less, the receiver alone tolerates more power.
    error : float, optional
        Error of its monitor in dB.

    Raises
    ------
    InvalidOpticsError
        If a value is not finite, or `error` is below 0 or above `max_attenuation`.
    """

    name: str
    level: float
    max_attenuation: float
    error: float = MONITOR_ERROR_DB

    def __post_init__(self) -> None:
        _check_order("level", self.level)
        _check_order(
            "the monitor's error and the maximum attenuation, none below 0,", 0.0, self.error, self.max_attenuation
        )

    @property
    def max_input(self) -> float:
        """Maximum power at its input in dBm: more than that it cannot attenuate to its level."""
        return self.level + self.max_attenuation

    def after(self, light: PowerLevel) -> PowerLevel:
        """Return the power behind the attenuator.

        Parameters
        ----------
        light : Light
            Power before the attenuator in dBm, not above `max_input`.

        Returns
        -------
        Light
            Power in dBm, not above the level by more than the error of the monitor.
        """
        return PowerLevel(
            min(light.worst, self.level - self.error),
            min(light.typical, self.level),
            min(light.best, self.level + self.error),
        )


Element = Passive | Amplifier | PowerLimiter


def through(light: PowerLevel, elements: Sequence[Element]) -> PowerLevel:
    """Return the power behind a series of elements.

    Parameters
    ----------
    light : Light
        Power in dBm before the first element.
    elements : sequence of Element
        In the order of the path.

    Returns
    -------
    Light
        Power in dBm. O(elements).

    Examples
    --------
    >>> splitter = Passive("splitter", ElementLoss(6.0, 6.5, 7.0))
    >>> through(PowerLevel(-1.0, 0.0, 1.0), [splitter, Passive("fiber", exactly(1.0))])
    PowerLevel(worst=-9.0, typical=-7.5, best=-6.0)
    """
    for element in elements:
        light = element.after(light)
    return light


@dataclass(frozen=True, slots=True)
class Piece:
    """A 1:N splitter, with the amplifier that is fixed before it, if any.

    Parameters
    ----------
    name : str
        Name of the splitter in a certificate.
    fan_out : int
        Number of outputs, from 2 on: the N of 1:N.
    loss : Loss
        Loss from the input to any output, in dB.
    amplifier : Amplifier, optional
        The amplifier before the splitter.
    price : float, optional
        In any one currency.

    Raises
    ------
    InvalidOpticsError
        If there are fewer than 2 outputs.
    """

    name: str
    fan_out: int
    loss: ElementLoss
    amplifier: Amplifier | None = None
    price: float = 0.0
    elements: tuple[Element, ...] = field(init=False, repr=False, compare=False)
    kind: Piece = field(init=False, repr=False, compare=False)
    """The piece without its name: pieces of one kind are interchangeable."""

    def __post_init__(self) -> None:
        if self.fan_out < 2:
            raise InvalidOpticsError(f"the splitter {self.name} has {self.fan_out} outputs, but needs at least 2")
        # Both are computed once, because every slot of every tree reads them.
        splitter = Passive(self.name, self.loss)
        object.__setattr__(self, "elements", (self.amplifier, splitter) if self.amplifier else (splitter,))
        amplifier = replace(self.amplifier, name="") if self.amplifier else None
        kind = replace(self, name="", amplifier=amplifier) if self.name or amplifier != self.amplifier else self
        object.__setattr__(self, "kind", kind)

    def hung(self, slot: PowerLevel, switch: Passive) -> PowerLevel | None:
        """Return the power at its outputs if a switch input feeds it.

        Parameters
        ----------
        slot : Light
            Power at the switch input in dBm.
        switch : Passive
            One pass through the switch.

        Returns
        -------
        Light or None
            Power at each output in dBm; None if the switch or the amplifier is overdriven.
        """
        light = slot
        for element in (switch, *self.elements):
            if light.best > element.max_input + ROUNDING_DB:
                return None
            light = element.after(light)
        return light.rounded


@dataclass(frozen=True, slots=True)
class Transceiver:
    """One optical port, and the fibers to and from the optical switch.

    Parameters
    ----------
    name : str
        Name of the port in a certificate.
    launch : Light
        Launch power of its transmitter in dBm.
    sensitivity : float
        Minimum power at its receiver in dBm; with less it makes errors.
    overload : float
        Maximum power at its receiver in dBm; with more it makes errors or is damaged.
    to_switch, from_switch : Loss, optional
        Losses of fibers, connectors and fixed attenuators, in dB.
    limiter : PowerLimiter, optional
        The variable attenuator at the switch output before its receiver; see `limited`.

    Raises
    ------
    InvalidOpticsError
        If sensitivity and overload are not finite or not in ascending order.
    """

    name: str
    launch: PowerLevel
    sensitivity: float
    overload: float
    to_switch: ElementLoss = ElementLoss()
    from_switch: ElementLoss = ElementLoss()
    limiter: PowerLimiter | None = None

    def __post_init__(self) -> None:
        _check_order("sensitivity and overload", self.sensitivity, self.overload)

    def limited(self, name: str, max_attenuation: float) -> Transceiver:
        """Return the port with an attenuator that keeps the power at its receiver below the overload.

        Parameters
        ----------
        name : str
            Name of the attenuator in a certificate.
        max_attenuation : float
            Maximum attenuation in dB.

        Returns
        -------
        Transceiver
            Unchanged if the power range of the receiver is too narrow for an attenuator: its monitor may be off by
            `MONITOR_ERROR_DB` in either direction, so that limited power may be below the sensitivity.

        Raises
        ------
        InvalidOpticsError
            If `max_attenuation` is not finite or below `MONITOR_ERROR_DB`.

        Examples
        --------
        >>> port = Transceiver("r1", PowerLevel(-1.0, 0.0, 1.0), sensitivity=-20.0, overload=-3.0)
        >>> port.limited("attenuator:ocs1/1", 20.0).needed
        Window(min_power=-20.0, max_power=16.0)
        """
        min_power, max_power = self.sensitivity + self.from_switch.worst, self.overload + self.from_switch.best
        limiter = PowerLimiter(name, max_power - MONITOR_ERROR_DB, max_attenuation)
        is_wide = max_power - min_power >= 2 * MONITOR_ERROR_DB - ROUNDING_DB
        return replace(self, limiter=limiter) if is_wide else self

    @property
    def entering(self) -> PowerLevel:
        """The power of its transmitter at the switch input."""
        return Passive(self.name, self.to_switch).after(self.launch)

    @property
    def needed(self) -> Window:
        """The power that must leave the switch for its receiver."""
        max_power = self.overload + self.from_switch.best if self.limiter is None else self.limiter.max_input
        return Window(self.sensitivity + self.from_switch.worst, max_power)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The power range of a receiver.

    Parameters
    ----------
    min_power : float
        Minimum power at worst, in dBm.
    max_power : float
        Maximum power at best, in dBm.
    """

    min_power: float
    max_power: float

    def margin(self, light: PowerLevel) -> float:
        """Return the smaller of the two margins.

        Parameters
        ----------
        light : Light
            Power in dBm.

        Returns
        -------
        float
            In dB, negative if the power is out of range.
        """
        return min(light.worst - self.min_power, self.max_power - light.best)

    def fits(self, light: PowerLevel) -> bool:
        """Return whether a receiver works with this power.

        Parameters
        ----------
        light : Light
            Power in dBm.

        Returns
        -------
        bool
            True if neither margin is negative, up to `ROUNDING_DB`.
        """
        return self.margin(light) >= -ROUNDING_DB


@dataclass(frozen=True, slots=True)
class Certificate:
    """The optical power at one receiver, its margins, and the element that binds the smaller one.

    Too little power is attributed to the element with the largest loss; too much to the element that is overdriven on
    the path, otherwise to the last element that sets the maximum power: a limiter, an amplifier, or the transmitter.

    Parameters
    ----------
    receiver : str
        Name of the receiver.
    received : Light
        Power at the receiver in dBm.
    sensitivity_margin : float
        Power at worst above the sensitivity, in dB.
    overload_margin : float
        Power at best below the overload of the receiver, or below the maximum input of an element if less, in dB.
    binding : str
        Name of the element that binds.
    """

    receiver: str
    received: PowerLevel
    sensitivity_margin: float
    overload_margin: float
    binding: str

    @property
    def margin(self) -> float:
        """The smaller margin in dB; the receiver works if it is not negative."""
        return min(self.sensitivity_margin, self.overload_margin)

    @property
    def holds(self) -> bool:
        """True if the receiver works with its power."""
        return self.margin >= -ROUNDING_DB

    @property
    def sentence(self) -> str:
        """The shortfall, or the margin, in words."""
        if self.holds:
            return f"{self.receiver} has {max(0.0, self.margin):.1f} dB of margin; {self.binding} binds"
        if self.sensitivity_margin <= self.overload_margin:
            return f"{self.receiver} lacks {-self.margin:.1f} dB of power; {self.binding} has the largest loss"
        return f"{self.receiver} receives {-self.margin:.1f} dB too much power; {self.binding} is the cause"


def certify(sender: Transceiver, path: Sequence[Element], receiver: Transceiver) -> Certificate:
    """Return the power and margins of `receiver` over the path from `sender`.

    Parameters
    ----------
    sender : Transceiver
        The port that transmits, powers in dBm.
    path : sequence of Element
        In the order of the path, losses and gains in dB.
    receiver : Transceiver
        The port that receives, powers in dBm.

    Returns
    -------
    Certificate
        Both margins in dB; it `holds` if neither is below 0.

    Notes
    -----
    O(elements). Worst cases are added end to end, without statistics.

    Examples
    --------
    >>> port = Transceiver("r1", PowerLevel(-1.0, 0.0, 1.0), sensitivity=-20.0, overload=0.5)
    >>> certify(port, [Passive("splitter", exactly(7.0))], port).sentence
    'r1 has 6.5 dB of margin; r1 binds'
    """
    row: list[Element] = [Passive(sender.name, sender.to_switch), *path]
    if receiver.limiter is not None:
        row.append(receiver.limiter)
    row.append(Passive(receiver.name, receiver.from_switch))
    light, source = sender.launch, sender.name
    overload, brightest = math.inf, sender.name
    for element in row:
        headroom = element.max_input - light.best
        if headroom < overload:
            overload, brightest = headroom, element.name
        behind = element.after(light)
        if isinstance(element, Amplifier) or (isinstance(element, PowerLimiter) and behind.best < light.best):
            source = element.name
        light = behind
    if receiver.overload - light.best < overload:
        overload, brightest = receiver.overload - light.best, source
    sensitivity = light.worst - receiver.sensitivity
    passive = (element for element in row if isinstance(element, Passive))
    darkest = max(passive, key=lambda element: element.loss.worst)
    binding = darkest.name if sensitivity <= overload else brightest
    return Certificate(receiver.name, light, sensitivity, overload, binding)
