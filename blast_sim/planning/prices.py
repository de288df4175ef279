"""The price table: price, power and loss of hardware, as a user edits it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from blast_sim.base.wrong_input import InputError, entry_of, list_of, number, whole

MAX_PRICE = 1e9
"""Larger numbers are mistakes of the unit, as in the bounds below."""
MAX_PORTS = 1_000_000
MAX_FAN_OUT = 4096
MAX_DB = 200.0


@dataclass(frozen=True, slots=True)
class Item:
    """Price (one currency for all) and power draw in watts of one piece."""

    price: float
    watts: float


@dataclass(frozen=True, slots=True)
class SwitchOffer:
    """An optical circuit switch with `ports` ports."""

    ports: int
    item: Item


@dataclass(frozen=True, slots=True)
class SplitterOffer:
    """A splitter of one size; `loss_db` is the most that an output loses (0 where no light budget is given)."""

    item: Item
    loss_db: float


@dataclass(frozen=True, slots=True)
class PricedLightBudget:
    """The allowed loss from a sender to a receiver in dB, and the loss of a pass through the switch."""

    budget_db: float
    pass_loss_db: float


@dataclass(frozen=True, slots=True)
class AmplifierOffer:
    """An optical amplifier: it adds `gain_db`, but gives no more than `max_output_db` above what a sender launches."""

    item: Item
    gain_db: float
    max_output_db: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The whole table; `splitters` by ways, `switches` with the fewest ports first. No `amplifier` without `light`."""

    rack_port: Item
    switches: tuple[SwitchOffer, ...]
    splitters: Mapping[int, SplitterOffer]
    light: PricedLightBudget | None
    amplifier: AmplifierOffer | None = None

    @property
    def per_switch_port(self) -> float:
        """The lowest price of one port of an optical switch."""
        return min(offer.item.price / offer.ports for offer in self.switches)


def example_text() -> str:
    """Return the text of the commented example of a price table."""
    return files("blast_sim.planning").joinpath("example_prices.toml").read_text(encoding="utf-8")


def read_prices(path: Path | None) -> Prices:
    """Read the price table in a file, or the example (None). Raises InputError, OSError."""
    if path is None:
        return parse_prices(example_text())
    try:
        return parse_prices(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"the price table is not UTF-8 text: {error.reason} at byte {error.start}") from None


def parse_prices(text: str) -> Prices:
    """Parse the price table in this text. Raises InputError."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise InputError("the price table is not TOML: its brackets are nested too deep") from None
    except ValueError as error:
        raise InputError(f"the price table is not TOML: {error}") from None
    top = entry_of(data, "the price table", ("rack_port", "optical_switch", "splitter"), ("light", "amplifier"))
    light = _light(top["light"]) if "light" in top else None
    if "amplifier" in top and light is None:
        raise InputError("the price table has an [amplifier] and no [light]: without a budget no tree lacks light")
    switches = [_switch(entry, place) for place, entry in enumerate(list_of(top["optical_switch"], "optical_switch"))]
    if not switches:
        raise InputError("the price table needs at least one [[optical_switch]]")
    splitters: dict[int, SplitterOffer] = {}
    for place, entry in enumerate(list_of(top["splitter"], "splitter")):
        fan_out, offer = _splitter(entry, place, light is not None)
        if fan_out in splitters:
            raise InputError(f"the price table has 1:{fan_out} splitters twice")
        splitters[fan_out] = offer
    rack_port = entry_of(top["rack_port"], "rack_port", ("price", "watts"))
    return Prices(
        _item(rack_port, "rack_port"),
        tuple(sorted(switches, key=lambda offer: (offer.ports, offer.item.price))),
        dict(sorted(splitters.items())),
        light,
        _amplifier(top["amplifier"]) if "amplifier" in top else None,
    )


def _item(entry: Mapping[str, object], where: str) -> Item:
    return Item(
        number(entry["price"], f"{where}: price", 0.0, MAX_PRICE),
        number(entry["watts"], f"{where}: watts", 0.0, MAX_PRICE),
    )


def _switch(value: object, place: int) -> SwitchOffer:
    where = f"optical_switch number {place + 1}"
    entry = entry_of(value, where, ("ports", "price", "watts"))
    return SwitchOffer(whole(entry["ports"], f"{where}: ports", 1, MAX_PORTS), _item(entry, where))


def _splitter(value: object, place: int, with_light: bool) -> tuple[int, SplitterOffer]:
    where = f"splitter number {place + 1}"
    needed, optional = (("loss_db",), ()) if with_light else ((), ("loss_db",))
    entry = entry_of(value, where, ("fan_out", "price", "watts", *needed), optional)
    fan_out = whole(entry["fan_out"], f"{where}: ways", 2, MAX_FAN_OUT)
    return fan_out, SplitterOffer(
        _item(entry, where), number(entry.get("loss_db", 0), f"{where}: loss_db", 0.0, MAX_DB)
    )


def _light(value: object) -> PricedLightBudget:
    entry = entry_of(value, "light", ("budget_db", "pass_loss_db"))
    return PricedLightBudget(
        number(entry["budget_db"], "light: budget_db", 0.0, MAX_DB),
        number(entry["pass_loss_db"], "light: pass_loss_db", 0.0, MAX_DB),
    )


def _amplifier(value: object) -> AmplifierOffer:
    entry = entry_of(value, "amplifier", ("price", "watts", "gain_db", "max_output_db"))
    return AmplifierOffer(
        _item(entry, "amplifier"),
        number(entry["gain_db"], "amplifier: gain_db", 0.0, MAX_DB),
        number(entry["max_output_db"], "amplifier: max_output_db", 0.0, MAX_DB),
    )
