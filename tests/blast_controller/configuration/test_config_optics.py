"""Losses, powers and prices in the configuration file; each error is one sentence."""

from __future__ import annotations

import math
import re

import pytest

from algorithms.power_budget import (
    MONITOR_ERROR_DB,
    Amplifier,
    ElementLoss,
    Passive,
    Piece,
    PowerLevel,
    PowerLimiter,
    Transceiver,
    Window,
)
from blast_controller.configuration.config import ConfigError
from blast_controller.configuration.optics import usual_price
from blast_controller.configuration.reading import parse
from blast_controller.core.model.optics import Optics
from tests.blast_controller.configuration.test_config import EXAMPLE, GOOD, sentence

FABRIC = "[fabric]\nlaunch_dbm = [-4.7, 0, 4]\nsensitivity_dbm = -15.8\noverload_dbm = -1\n"
WITH_PASS = GOOD.replace('address = "192.0.2.10:10033"', 'address = "192.0.2.10:10033"\npass_loss_db = [0.5, 1.5, 2]')
WITH_LOSS = WITH_PASS + "insertion_loss_db = 7.4\n"
NETCONF = 'driver = "netconf"\nssh = { user = "blast", private_key = "/k", host_key = "/h" }\n'


def with_range(text, value, driver=NETCONF):
    return text.replace('name = "ocs1"\n', f'name = "ocs1"\n{driver}attenuator_range_db = {value}\n', 1)


def with_port(keys):
    return WITH_LOSS.replace("port = 49, ", f"port = 49, {keys}, ", 1)


def test_power_budget_is_off_by_default():
    fabric = parse(GOOD).build_fabric()
    assert fabric.optics == Optics() and not fabric.optics.budgeted("ocs1")


def test_common_values_apply_to_every_port():
    optics = parse(FABRIC + "fiber_loss_db = [0.2, 0.3, 0.75]\n" + WITH_LOSS).build_fabric().optics
    assert optics.budgeted("ocs1") and optics.passes == {"ocs1": Passive("switch:ocs1", ElementLoss(0.5, 1.5, 2))}
    fiber = ElementLoss(0.2, 0.3, 0.75)
    ports = {
        name: Transceiver(name, PowerLevel(-4.7, 0, 4), -15.8, -1, fiber, fiber)
        for name in ("port:r1/49", "port:r2/49")
    }
    assert optics.ports == ports
    assert optics.splitters == {"splitter:s1": Piece("splitter:s1", 4, ElementLoss(7.4, 7.4, 7.4), price=40.0)}


def test_value_of_an_element_overrides_the_common_value():
    text = FABRIC + with_port("fiber_loss_db = 9, launch_dbm = 3, overload_dbm = 0")
    text = text.replace("pass_loss_db", "max_input_dbm = 20\npass_loss_db")
    text += "price = 7\namplifier = { gain_db = [17, 20, 25], max_output_dbm = 17, max_input_dbm = 10 }\n"
    optics = parse(text).build_fabric().optics
    assert optics.ports["port:r1/49"] == Transceiver(
        "port:r1/49", PowerLevel(3, 3, 3), -15.8, 0, ElementLoss(9, 9, 9), ElementLoss(9, 9, 9)
    )
    assert optics.ports["port:r2/49"].launch == PowerLevel(-4.7, 0, 4)
    amplifier = Amplifier("amplifier:s1", (17, 20, 25), 17, 10)
    assert optics.splitters["splitter:s1"] == Piece("splitter:s1", 4, ElementLoss(7.4, 7.4, 7.4), amplifier, 7)
    assert optics.passes["ocs1"].max_input == 20


def test_price_alone_enables_no_power_budget():
    assert parse(GOOD + "price = 35\n").build_fabric().optics == Optics()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            FABRIC + GOOD,
            "launch_dbm of fabric is set, but no optical switch has pass_loss_db: set pass_loss_db, or remove the key.",
        ),
        (GOOD + "insertion_loss_db = 7.4\n", "insertion_loss_db of splitter s1 is set, but no optical switch"),
        (
            GOOD.replace("port = 49, ", "port = 49, fiber_loss_db = 1, ", 1),
            "fiber_loss_db of rack r1 port 49 is set, but no",
        ),
        (FABRIC + WITH_PASS, "the splitter s1 has no insertion_loss_db, but its optical switch ocs1 has"),
        (WITH_LOSS, "launch_dbm is set neither for rack r1 port 49 nor in fabric"),
        (FABRIC + with_port("overload_dbm = -20"), "rack r1 port 49: sensitivity and overload must be"),
        (FABRIC + with_port("launch_dbm = [4, 0, -4]"), "must be in ascending order: minimum, typical, maximum"),
        (
            FABRIC + with_port("launch_dbm = [4, 5]"),
            "rack[1].optical_ports[1].launch_dbm: must be one number or three: minimum, typical, maximum",
        ),
        (FABRIC + with_port("fiber_loss_db = [-1, 0, 1]"), "must not be negative"),
        (FABRIC + with_port("fiber_loss_db = nan"), "finite"),
        (
            FABRIC + with_port('launch_dbm = "bright"'),
            "launch_dbm: must be one number or three: minimum, typical, maximum",
        ),
        (FABRIC + WITH_PASS + "insertion_lost_db = 1\n", "did you mean insertion_loss_db?"),
        (FABRIC + WITH_LOSS + "amplifier = { gain_db = 20 }\n", "amplifier.max_output_dbm is missing"),
        (FABRIC + WITH_LOSS + "price = -1\n", "splitter[1].price"),
        (
            with_range(FABRIC + WITH_LOSS, 20, driver=""),
            "the optical switch ocs1 has attenuator_range_db, but the driver tl1 sets no attenuators: remove "
            "attenuator_range_db, or use a driver that sets them (netconf).",
        ),
        (
            with_range(GOOD, 20),
            "attenuator_range_db of the optical switch ocs1 has no effect without pass_loss_db: set pass_loss_db, or "
            "remove attenuator_range_db.",
        ),
        (
            with_range(FABRIC + WITH_LOSS, 0.5),
            "optical_switch[1].attenuator_range_db: input should be greater than or equal to 1",
        ),
        (with_range(FABRIC + WITH_LOSS, "inf"), "finite"),
    ],
)
def test_invalid_optics_are_rejected_in_one_sentence(text, expected):
    assert expected in sentence(text)


def test_attenuators_limit_the_power_of_each_receiver_to_its_overload():
    text = with_range(FABRIC + with_port("fiber_loss_db = [0.2, 0.3, 0.75], overload_dbm = -14"), 20)
    ports = parse(text).build_fabric().optics.ports
    assert ports["port:r2/49"].limiter == PowerLimiter("attenuator:ocs1/1", -1 - MONITOR_ERROR_DB, 20)
    assert ports["port:r2/49"].needed == Window(-15.8, -1 - MONITOR_ERROR_DB + 20)
    assert ports["port:r1/49"].limiter is None, "too narrow for an attenuator: from -15.05 to -13.8 dBm"
    sides = parse(text.replace("[fabric]", "[fabric]\ndirectional = true")).build_fabric().optics.ports
    limited = {name for name, transceiver in sides.items() if transceiver.limiter is not None}
    assert limited == {"port:r2/49/rx"}


def test_usual_price_interpolates_the_prices_of_the_paper():
    assert [usual_price(fan_out) for fan_out in (2, 4, 10, 16, 40, 64)] == [20, 40, 60, 80, 165, 250]
    assert usual_price(128) > 2 * 250 - 80 and math.isfinite(usual_price(1024))


def test_descending_loss_range_of_a_switch_is_rejected():
    with pytest.raises(ConfigError, match="pass_loss_db"):
        parse(FABRIC + WITH_LOSS.replace("[0.5, 1.5, 2]", "[2, 1, 0]"))


def test_commented_keys_of_the_example_enable_a_power_budget():
    text = EXAMPLE.read_text()
    for key in ("launch", "sensitivity", "overload", "fiber_loss", "pass_loss", "max_input", "insertion_loss"):
        text, count = re.subn(rf"^# ({key}_db)", r"\1", text, flags=re.MULTILINE)
        assert count == 1, key
    text = text.replace("# amplifier =", "amplifier =").replace("# price =", "price =")
    text = text.replace("outputs = [71, 72]", "outputs = [71, 72]\ninsertion_loss_db = 4.3")
    optics = parse(text).build_fabric().optics
    assert optics.budgeted("ocs1") and len(optics.ports) == 3
    assert optics.splitters["splitter:s1"].amplifier is not None and optics.splitters["splitter:s2"].price == 20.0
