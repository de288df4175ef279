"""Ending, reloading and starting the controller while light is live: what the devices hold stays as it is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from blast_api.ttypes import Grant, MulticastRequest
from blast_client import Client
from mininet_topos.plan import LabPlan
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.lab import Lab
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

pytestmark = pytest.mark.lab

PATIENCE = 30.0


@pytest.fixture
def lab():
    with Lab(LabPlan(racks=4, hosts_per_rack=1, splitters={4: 1})) as lab:
        wait_for_devices(lab)
        yield lab


def wait_for_devices(lab: Lab) -> None:
    with Client(lab.thrift) as client:
        eventually(
            lambda: all(d.connected for d in (*client.fabric().racks, *client.fabric().opticalSwitches)), "all devices"
        )


def grant(lab: Lab, key: str) -> Grant:
    with Client(lab.thrift) as client:
        return client.request(MulticastRequest(key, "r1h1", ["r2h1", "r3h1"], 10**8), timeout=PATIENCE)


def circuits(lab: Lab) -> set[tuple[int, int]]:
    """What the optical switch holds."""

    async def read() -> set[tuple[int, int]]:
        host, port = lab.tl1.split(":")
        client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
        await client.open()
        try:
            return {(state.input, state.output) for state in await client.circuits()}
        finally:
            await client.close()

    return asyncio.run(read())


def rules(lab: Lab) -> dict[str, float]:
    """Blast's rules on the ToRs, each with its age in seconds: a rule that is written again is young again."""
    found = {}
    for datapath in lab.plan.datapaths:
        bridge = lab.names.bridge(datapath)
        dump = subprocess.run(
            ["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", bridge, "cookie=0xb1a5000000000000/0xffff000000000000"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for line in dump.splitlines():
            if (age := re.search(r"duration=([\d.]+)s", line)) is not None:
                rule = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ", "", line)
                found[f"{bridge} {rule.strip()}"] = float(age[1])
    return found


def activity(lab: Lab, event: str) -> list[str]:
    log = (lab.directory / "controller.log").read_text()
    return [line for line in log.splitlines() if f"event={event}" in line]


def wait_until_ended(pid: int) -> None:
    eventually(lambda: _is_zombie_or_gone(pid), "the controller's end")


def _is_zombie_or_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_controller_that_ends_leaves_the_light_as_it_is(lab, how):
    grant(lab, "live")
    held, lit = rules(lab), circuits(lab)
    assert len(lit) == 3 and any("239.77." in rule for rule in held)
    os.kill(lab.controller_pid, how)
    wait_until_ended(lab.controller_pid)
    time.sleep(0.3)  # nothing tells that nothing more is done
    assert circuits(lab) == lit
    after = rules(lab)
    assert after.keys() == held.keys()
    assert all(after[rule] > age for rule, age in held.items()), "not one was written again"


def test_a_reload_with_light_touches_no_device(lab):
    before = grant(lab, "live")
    held, lit = rules(lab), circuits(lab)
    text = lab.config.read_text()
    lab.config.write_text(text.replace("[controller]", "[controller]\nlease_minimum_ms = 77_000", 1))
    os.kill(lab.controller_pid, signal.SIGHUP)
    eventually(lambda: activity(lab, "reload"), "the reload in the log")
    assert circuits(lab) == lit
    after = rules(lab)
    assert after.keys() == held.keys() and all(after[rule] > age for rule, age in held.items())
    with Client(lab.thrift) as client:
        (part,) = client.status("live").parts
        assert part.grant.leaseMs == before.leaseMs, "a lease that was given stays"
        client.finish("live")
    assert grant(lab, "next").leaseMs == 77_000


def test_grants_and_releases_are_in_the_log(lab):
    given = grant(lab, "told")
    with Client(lab.thrift) as client:
        client.finish("told")
    eventually(lambda: activity(lab, "release"), "the release in the log")
    (line,) = activity(lab, "grant")
    assert f"request=told reservation={given.reservation}" in re.sub(r" part=\d+.*reservation", " reservation", line)
    assert json.dumps("told") not in line and "epoch=" in line
    assert "state=done" in activity(lab, "release")[0]
