"""The contract of every driver, against its emulator."""

from __future__ import annotations

import pytest

from optical_switch.drivers import drivers
from tests.support.switch_beds import BEDS
from tests.support.switch_contract import AgentContract, DatabaseContract, LossContract


class TestGlimmerglass(AgentContract):
    make_bed = staticmethod(BEDS["tl1 glimmerglass"])


class TestCalient(AgentContract):
    make_bed = staticmethod(BEDS["tl1 calient"])


class TestPolatis(AgentContract):
    make_bed = staticmethod(BEDS["tl1 polatis"])


class TestSonicOcsByGnmi(AgentContract, DatabaseContract, LossContract):
    make_bed = staticmethod(BEDS["sonic-ocs gnmi"])


class TestSonicOcsByMixedSchema(AgentContract, DatabaseContract, LossContract):
    make_bed = staticmethod(BEDS["sonic-ocs gnmi with mixed schema"])


class TestSonicOcsByRedis(DatabaseContract, LossContract):
    make_bed = staticmethod(BEDS["sonic-ocs redis"])


class TestNetconf(AgentContract):
    make_bed = staticmethod(BEDS["netconf"])


@pytest.mark.parametrize("name", sorted(drivers()))
def test_every_driver_is_held_to_the_contract(name: str) -> None:
    assert any(bed.partition(" ")[0] == name for bed in BEDS)
