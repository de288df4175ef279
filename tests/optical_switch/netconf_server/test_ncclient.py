"""An independent client, ncclient, and an independent validator of the models, libyang."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from optical_switch.emulator.netconf_server.messages.names import AnnouncedFeature
from tests.optical_switch.netconf_server.raw_client import HANGING, PASSWORD, netconf_lab
from tests.support.needs import ROOT

SCRIPT = Path(__file__).with_name("ncclient_script.py")
MODELS = ROOT.parent / "shared" / "data" / "yang"

pytestmark = pytest.mark.peers

PAIR = "/opsw:cross-connects/opsw:pair"
EXPECTED = {
    "pairs": {str(number): str(8 + number) for number in range(1, 9)},
    "locked": ["in-use", None],
    "notification": "activity-log-notification",
    "port 0": ["invalid-value", f"{PAIR}/opsw:ingress"],
    "swapped": {"1": "10", "2": "9"} | {str(number): str(8 + number) for number in range(4, 9)},
    "cancelled": {str(number): str(8 + number) for number in range(1, 9)},
    "status": "DISABLED",
    "lock": [True, ["lock-denied", None]],
    "unlocked": True,
}
CONTAINERS = {
    "product-information", "port-config", "opm-alarm-config", "voa", "cross-connects", "system-config", "opm-power",
    "ports",
}  # fmt: skip


@pytest.mark.parametrize("framing", ["1.1", "1.0"])
async def test_ncclient_works_with_the_device(framing: str, tmp_path: Path) -> None:
    """Subscription, lock, edit, commit, confirmed commit, filters, errors, `port-set-state` and kill-session."""
    (tmp_path / "password").write_text(PASSWORD)
    without = [AnnouncedFeature.BASE_1_1] if framing == "1.0" else []
    async with netconf_lab(without=without) as lab:
        (tmp_path / "key").write_text(lab.switch.host_key)
        host, port = lab.switch.address
        models = str(MODELS) if MODELS.is_dir() else ""
        process = await asyncio.create_subprocess_exec(
            sys.executable, SCRIPT, host, str(port), tmp_path / "key", models,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(4 * HANGING):
                output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, errors.decode()
        found = json.loads(output)
        validated = found.pop("validated")
        assert found == EXPECTED | {"version": framing, "capabilities": 9 - len(without)}
        if models:
            assert set(validated) == CONTAINERS
