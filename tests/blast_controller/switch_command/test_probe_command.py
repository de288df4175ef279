"""`blast switch probe` as a process: text, JSON, errors, and Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from optical_switch.model import Circuit
from tests.blast_controller.switch_command.peers import greeting_with, served
from tests.support.controller.tl1 import emulated
from tests.support.interrupted import ended, started
from tl1_driver.dialects import DIALECTS

BLAST = str(Path(sys.executable).with_name("blast"))


async def run(*arguments: str) -> tuple[int, str, str]:
    """Run the command beside a switch in this process; return status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        BLAST, "switch", "probe", *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        async with asyncio.timeout(120):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_report_as_text_and_as_json() -> None:
    async with emulated(DIALECTS["glimmerglass"]) as lab:
        await lab.switch.connect_by_hand(Circuit(2, 5), "noc\x1b[2J", locked=True)
        address = f"127.0.0.1:{lab.port}"
        status, out, err = await run(address)
        assert (status, err) == (0, "")
        assert out.startswith(f"{address}: driver tl1, glimmerglass by plain TCP\n")
        assert "\nINPUT  OUTPUT  STATE " in out and "locked" in out and "\x1b" not in out
        assert out.endswith('\n[[optical_switch]]\nname = "ocs1"\ndriver = "tl1"\naddress = "' + address + '"\n'
                            'inputs = 8\noutputs = 8\ndialect = "glimmerglass"\n')  # fmt: skip
        status, out, err = await run(address, "--json", "--driver", "tl1", "--set", "dialect=glimmerglass")
        assert (status, err) == (0, "")
        found = json.loads(out)
        assert found["table"]["dialect"] == "glimmerglass" and found["capabilities"]["light"] == "powers"
        [circuit] = found["circuits"]
        assert (circuit["input"], circuit["output"], circuit["locked"], circuit["owner"]) == (2, 5, True, "noc?[2J")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("127.0.0.1",), "has no port"),
        (("127.0.0.1:1", "--set", "user"), "has no value"),
        ((), "give ADDRESS, or --set socket=PATH"),
        (("127.0.0.1:1", "--set", "socket=/s"), "give ADDRESS, or --set socket=PATH"),
        (("--driver", "tl1", "--set", "socket=/s"), "unknown key optical_switch.access: only sonic-ocs has it"),
        (("127.0.0.1:1", "--driver", "none"), "driver must be one of netconf, sonic-ocs, tl1"),
    ],
)
async def test_wrong_use_is_status_2(arguments: tuple[str, ...], reason: str) -> None:
    status, out, err = await run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1) and reason in err and err.startswith("blast switch probe: ")


async def test_failure_is_status_1_and_json_on_request() -> None:
    async with served(greeting_with(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as endpoint:
        status, out, err = await run(str(endpoint), "--json")
    assert (status, out) == (1, "")
    assert json.loads(err) == {
        "error": f"{endpoint} is a web server: give the port of TL1, NETCONF, gNMI or Redis",
        "status": 1,
    }


async def test_unknown_host_key_is_a_note_with_json() -> None:
    pytest.importorskip("asyncssh")
    from tests.optical_switch.netconf_server.raw_client import netconf_lab

    async with netconf_lab() as lab:
        host, port = lab.switch.address
        status, out, err = await run(f"{host}:{port}", "--json")
        explanation, key, error = map(json.loads, err.splitlines())
        assert (status, out, key) == (2, "", {"note": lab.switch.host_key})
    assert "SHA256:" in explanation["note"] and error["status"] == 2


async def test_interrupt_ends_it_at_once() -> None:
    connected = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read(-1)

    async with served(behave) as endpoint:
        words = ("switch", "probe", str(endpoint), "--driver", "tl1", "--set", "step_timeout_ms=600000")
        with started(*words) as process:
            await connected.wait()
            assert await asyncio.to_thread(ended, process) == (130, "", "")


def test_command_loads_neither_pydantic_nor_libraries_of_protocols() -> None:
    code = (
        "import sys\n"
        "from blast_client.cli.command import main\n"
        "main(sys.argv[1:])\n"
        "heavy = {'pydantic', 'grpc', 'redis', 'asyncssh', 'asyncio', 'tl1_driver', 'xml', 'optical_switch'}\n"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    for words in (["switch", "--help"], ["switch", "probe", "--help"], ["switch", "decode", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
