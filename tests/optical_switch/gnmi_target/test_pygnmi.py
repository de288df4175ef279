"""pygnmi, a client that knows nothing of this project, against the emulated switch."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.certificates import Authority
from tests.support.waiting import HANGING

if TYPE_CHECKING:
    from tests.optical_switch.gnmi_target.conftest import Serve

SCRIPT = Path(__file__).with_name("pygnmi_script.py")

pytestmark = pytest.mark.peers


async def test_pygnmi_reads_writes_and_subscribes(serve: Serve, tmp_path: Path) -> None:
    from optical_switch.emulator.gnmi_target.admission import TargetLogin
    from optical_switch.emulator.gnmi_target.rpc_server import TargetTls

    authority = Authority(tmp_path / "tls", "ca")
    server = authority.issue("/CN=ocs", "IP:127.0.0.1")
    pair = authority.issue("/CN=pygnmi")
    tls, login = TargetTls(server.cert, server.key, authority.cert), TargetLogin("admin", "secret")
    async with serve(tls=tls, login=login) as target:
        host, _, port = target.address.rpartition(":")
        answers = await run(host, port, authority.cert, pair.cert, pair.key)
    assert answers.pop("stream")[-1] == ["OCS_PORT_TABLE/1A/oper_status", "connected"]
    assert "OCS_CROSS_CONNECT/1A-9B" in answers.pop("refused")
    assert answers == {
        "models": ["sonic-ocs"],
        "version": "0.10.0",
        "encodings": ["json", "json_ietf"],
        "database": {"OCS_CROSS_CONNECT": {"1A-2B": {"a_side": "1A", "b_side": "2B"}}},
        # pygnmi leaves the origin out of paths.
        "model": {
            "sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id=1A-2B]": {
                "sonic-ocs:cross_connect_id": "1A-2B",
                "sonic-ocs:a_side": "1A",
                "sonic-ocs:b_side": "2B",
            }
        },
        "once": [["OCS_CROSS_CONNECT/1A-2B/a_side", "1A"], ["OCS_CROSS_CONNECT/1A-2B/b_side", "2B"]],
        "empty": {"OCS_CROSS_CONNECT": {}},
    }


async def run(*arguments: object) -> dict[str, object]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(2 * HANGING):
            output, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, error.decode()
    # pygnmi prints errors, too.
    return json.loads(output.splitlines()[-1])
