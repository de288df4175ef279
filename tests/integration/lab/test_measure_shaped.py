"""Measured rates between emulated sites do not exceed the shaped rates of the links."""

from __future__ import annotations

import json
import subprocess

import pytest

from mininet_topos.lab.agents import BLAST, PORT
from mininet_topos.sites import plan
from mininet_topos.sites.agents import agents_on
from mininet_topos.sites.plan import SitesPlan
from mininet_topos.sites.sites import Sites

pytestmark = pytest.mark.lab

NEAR = 0.15
"""A machine that does something else measures less than there is, and never more."""
STARVED = ("h3", "h2")
"""A link over which next to nothing comes in time, nor what acknowledges the other direction."""
STARVED_BPS = 8e3
MBPS = {"h0": {"h1": 100, "h2": 40, "h3": 60}, "h1": {"h2": 20, "h3": 80}, "h2": {"h1": 90, "h3": 30}, "h3": {"h1": 70}}
LINKS = {(start, end): mbps * 1e6 for start, ends in MBPS.items() for end, mbps in ends.items()}
OUT = {"h0": 120e6, "h1": 200e6, "h2": 60e6, "h3": 200e6}
INTO = {"h1": 110e6, "h2": 200e6, "h3": 90e6}


def test_measured_rates_do_not_exceed_link_rates(monkeypatch):
    """The root h0 measures; the unmeasured paths to it have no limit of their own."""
    # The emulation is for links that TCP can use.
    monkeypatch.setattr(plan, "MIN_BPS", STARVED_BPS)
    back = {(host, "h0"): 200e6 for host in INTO}
    shape = SitesPlan(tuple(OUT), {**LINKS, **back, STARVED: STARVED_BPS}, OUT, INTO)
    with Sites(shape) as sites, agents_on(sites) as agents:
        to = ",".join(f"{host}={sites.address(host)}:{PORT}" for host in INTO)
        secret = str(agents.places.secret)
        words = [BLAST, "measure", "--hosts", to, "--root", "h0", "--secret-file", secret, "--json"]
        done = subprocess.run(sites.on("h0", words), capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    rates = {(start, end): rate for start, end, rate in found["links"]}
    assert rates.pop(STARVED) < 100_000
    assert rates.keys() == LINKS.keys()
    for (start, end), rate in rates.items():
        assert 0 < rate <= (1 + NEAR) * min(LINKS[start, end], OUT[start], INTO[end])
    for way, shaped in (("out", OUT), ("in", INTO)):
        assert all(0 < found[way][host] <= (1 + NEAR) * rate for host, rate in shaped.items())
