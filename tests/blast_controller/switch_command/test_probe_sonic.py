"""`probe` on an emulated switch with SONiC: gNMI and Redis, with and without TLS."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.failures import ProbeFailureError
from blast_controller.cli.switch.probe.probing import probe_socket
from blast_controller.cli.switch.probe.views import json_report, text_report
from optical_switch.model import Circuit, CircuitState
from tests.blast_controller.switch_command.peers import (
    HOST,
    configured,
    needs_redis,
    probed,
    relay_to,
    served,
    server_context,
)
from tests.support.certificates import Authority


@contextlib.asynccontextmanager
async def sonic(folder: Path, **options) -> AsyncIterator[tuple[Endpoint, Path]]:
    """Run a switch with one circuit; yield the address of gNMI and the socket of Redis."""
    pytest.importorskip("redis")
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs
    from tests.support.waiting import eventually_async

    async with serve_sonic_ocs(folder, 2, 2, connect_seconds=0.0, **options) as target:
        await target.another_writer(Circuit(1, 2))
        await eventually_async(lambda: target.hardware.crossbar.circuits, "the circuit")
        host, _, port = target.address.rpartition(":")
        yield Endpoint(host, int(port)), target.redis_socket


@needs_redis
async def test_gnmi_is_read_with_losses(tmp_path: Path) -> None:
    async with sonic(tmp_path) as (endpoint, _):
        report = await probed(endpoint)
    assert (report.table["access"], report.table["origin"], report.remarks) == ("gnmi", "databases", ())
    [circuit] = report.readings.circuits
    assert (circuit.circuit, circuit.state) == (Circuit(1, 2), CircuitState.CONNECTED)
    assert set(report.readings.losses) == {Circuit(1, 2)}
    assert [one.name for one in report.readings.ports] == ["1A", "2A", "1B", "2B"]
    assert configured(report).origin == "databases"
    found = json.loads(json_report(report))
    assert found["circuits"][0]["loss_db"] == report.readings.losses[Circuit(1, 2)]
    assert (found["inputs"], found["outputs"], found["toml"]) == (2, 2, report.toml)
    text = text_report(report, 100)
    assert f"{report.readings.losses[Circuit(1, 2)]:.2f}" in text and text.endswith(report.toml)


@needs_redis
async def test_gnmi_with_tls_and_login_names_missing_keys(tmp_path: Path, files: Path, authority: Authority) -> None:
    from optical_switch.emulator.gnmi_target.admission import TargetLogin
    from optical_switch.emulator.gnmi_target.rpc_server import TargetTls

    pair = authority.issue("/CN=ocs", f"IP:{HOST}")
    tls = TargetTls(pair.cert, pair.key)
    async with sonic(tmp_path, tls=tls, login=TargetLogin("blast", "open sesame")) as (endpoint, _):
        with pytest.raises(ProbeFailureError, match="speaks gNMI in TLS: give --set ca=FILE") as caught:
            await probed(endpoint)
        assert caught.value.status == 2
        with pytest.raises(ProbeFailureError, match=r"UNAUTHENTICATED: .*: give --set user=USER"):
            await probed(endpoint, f"ca={authority.cert}")
        login = ["user=blast", f"password_file={files}/password"]
        other = Authority(tmp_path / "other", "other")
        with pytest.raises(ProbeFailureError, match="the authority in the file of ca has signed the certificate"):
            await probed(endpoint, f"ca={other.cert}", *login, "step_timeout_ms=500")
        with pytest.raises(ProbeFailureError, match="the peer speaks TLS: give --set ca=FILE"):
            await probed(endpoint, *login, "step_timeout_ms=500", driver="sonic-ocs")
        report = await probed(endpoint, f"ca={authority.cert}", *login)
    assert configured(report).ca == authority.cert and report.counts == (2, 2)


@needs_redis
async def test_redis_is_read_by_tcp_tls_and_unix_socket(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("/CN=ocs", f"IP:{HOST}")
    async with sonic(tmp_path) as (_, socket):
        async with served(relay_to(socket)) as endpoint:
            reports = [await probed(endpoint)]
        async with served(relay_to(socket), server_context(pair)) as endpoint:
            with pytest.raises(ProbeFailureError, match="speaks Redis in TLS: give --set ca=FILE"):
                await probed(endpoint)
            reports.append(await probed(endpoint, f"ca={authority.cert}"))
        reports.append(await probe_socket(None, {"socket": str(socket)}))
    for report in reports:
        assert (report.table["access"], report.counts) == ("redis", (2, 2))
        assert [one.circuit for one in report.readings.circuits] == [Circuit(1, 2)]
        assert configured(report).access == "redis"
