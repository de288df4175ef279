"""`probe` on emulated switches with TL1, and keys that are wrong."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.failures import ProbeFailureError
from blast_controller.cli.switch.probe.probing import probe
from blast_controller.cli.switch.probe.settings import settings_table
from blast_controller.cli.switch.probe.views import json_report, text_report
from optical_switch.model import Circuit
from tests.blast_controller.switch_command.peers import (
    HOST,
    TIMES,
    configured,
    greeting_with,
    probed,
    served,
)
from tests.support.controller.tl1 import emulated, scripted
from tl1_driver.dialects import DIALECTS


@pytest.mark.parametrize("language", ["glimmerglass", "calient", "calient-prompt", "polatis", "polatis-output-first"])
async def test_dialect_of_tl1_is_found_by_reading(language: str) -> None:
    async with emulated(DIALECTS["glimmerglass"], dialect=language) as lab:
        await lab.switch.connect_by_hand(Circuit(2, 5), "noc")
        report = await probed(Endpoint(HOST, lab.port))
        assert lab.switch.circuits == (Circuit(2, 5),) and lab.paths.calls == 1, "nothing was changed"
    family = language.partition("-")[0]
    assert (report.table["driver"], report.table["dialect"]) == ("tl1", family)
    assert [one.circuit for one in report.readings.circuits] == [Circuit(2, 5)]
    assert report.counts == (8, 8) and len(report.readings.powers) == 16
    assert any("polatis-output-first fits as well" in remark for remark in report.remarks) == (family == "polatis")
    section = configured(report)
    assert (section.inputs, section.outputs, section.dialect) == (8, 8, family)


async def test_login_of_tl1_is_asked_for_and_used(files: Path) -> None:
    async with emulated(DIALECTS["glimmerglass"], user="blast", password="open sesame") as lab:
        endpoint = Endpoint(HOST, lab.port)
        with pytest.raises(ProbeFailureError, match=r"PLNA: .*: give --set user=USER and --set password_file=FILE"):
            await probed(endpoint)
        with pytest.raises(ProbeFailureError, match=r"PIUI: .*: correct --set user=USER") as caught:
            await probed(endpoint, "user=blast", f"password_file={files}/wrong")
        assert caught.value.status == 1
        report = await probed(endpoint, "user=blast", f"password_file={files}/password")
    assert report.table["password_file"] == f"{files}/password" and "sesame" not in report.toml + json_report(report)
    assert configured(report).user == "blast"


async def test_switch_with_one_session_is_read() -> None:
    async with emulated(DIALECTS["calient"], dialect="calient") as lab:
        lab.switch.faults.max_sessions = 1
        assert (await probed(Endpoint(HOST, lab.port), "dialect=calient")).table["dialect"] == "calient"


async def test_unknown_dialect_lists_the_reason_of_each() -> None:
    async def deny(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while command := await reader.readuntil(b";"):
                text = b"\r\n\n   sw1 26-11-20 10:00:00\r\nM  %s DENY\r\n   IICM\r\n   /* %s\x1b */\r\n;"
                writer.write(text % (command.split(b":")[3].strip(b"; \r\n"), b"x" * 999))

    async with scripted(deny) as port:
        with pytest.raises(ProbeFailureError) as caught:
            await probed(Endpoint(HOST, port))
    text = str(caught.value)
    assert all(f"{name}: IICM: xxx" in text for name in DIALECTS) and text.endswith(
        "give the dialect, or correct the port"
    )
    assert text.isprintable() and len(text) < 1500


async def test_ports_that_a_switch_does_not_report_are_asked_for() -> None:
    async with emulated(DIALECTS["polatis"], dialect="polatis") as lab:
        lab.switch._language.reads["RTRV-PORT-POWER"] = lambda _: []
        report = await probed(Endpoint(HOST, lab.port), "dialect=polatis")
        assert "add inputs and outputs: the switch does not report its ports" in report.remarks
        assert report.counts == (0, 0) and "unknown inputs" in text_report(report, 100)
        assert (
            configured(await probed(Endpoint(HOST, lab.port), "dialect=polatis", "inputs=8", "outputs=8")).inputs == 8
        )


# ----------------------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("driver", "settings", "reason"),
    [
        ("tl1", ["dialekt=calient"], r"unknown key optical_switch\.dialekt; did you mean dialect"),
        ("tl1", ["inputs=many"], r"optical_switch\.inputs: .*integer"),
        ("netconf", [], r"the key optical_switch\.ssh is missing"),
        ("nothing", [], "driver must be one of netconf, sonic-ocs, tl1"),
        ("tl1", ["user=a", "password_file=/no/such/file"], "/no/such/file cannot be read"),
        ("tl1", ["user=a"], "has user but no password_file"),
        ("tl1", ["name=a b"], r"optical_switch\.name"),
    ],
)
async def test_wrong_keys_are_status_2_without_a_connection(driver: str, settings: list[str], reason: str) -> None:
    with pytest.raises(ProbeFailureError, match=reason) as caught:
        await probe(Endpoint(HOST, 1), driver, settings_table(settings), TIMES)
    assert caught.value.status == 2


async def test_wrong_driver_is_explained_by_the_protocol_of_the_peer() -> None:
    async with served(greeting_with(b"SSH-2.0-x\r\n")) as endpoint:
        with pytest.raises(ProbeFailureError, match=r"; the peer is an SSH server: give --set ssh\.user"):
            await probed(endpoint, "step_timeout_ms=100", driver="tl1")
    with pytest.raises(ProbeFailureError, match=r"is not reachable: .*: check the address and the port"):
        await probed(endpoint, driver="tl1")
    with pytest.raises(ProbeFailureError, match=r"is not reachable: .*: check the address and the port"):
        await probed(endpoint)
