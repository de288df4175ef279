"""What a connect command to an optical switch takes by SSH beside plain TCP.

Both ways take turns at one emulated switch without switching time, so that a busy machine slows them equally; times are
told and decide nothing. By SSH there is a real sshd, on this machine too, and the program that it runs to reach the
emulator, which a switch would not need. Needs root and OpenSSH.

    .venv/bin/python benchmarks/ssh_switch.py --rounds 1000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import machine

sys.path.append(str(Path(__file__).resolve().parents[1]))

from tests.support.ssh_switch import SETTLED, USER, SshSwitch, emulated, lacks
from tl1_driver.circuits import Circuit
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS
from tl1_driver.ssh import Ssh, host_keys, private_key

CIRCUIT = [Circuit(1, 2)]
OPENINGS = 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if (why := lacks()) is not None:
        raise SystemExit(f"ssh_switch: {why}")
    with tempfile.TemporaryDirectory() as folder, SshSwitch(Path(folder)).running() as server:
        seconds = asyncio.run(measured(server, args.rounds))
    rows = {way: {**told(times["connect"]), "open_p50": told(times["open"])["p50"]} for way, times in seconds.items()}
    more = statistics.median(ssh - tcp for tcp, ssh in zip(*(seconds[way]["connect"] for way in rows), strict=True))
    ratio = rows["SSH"]["p50"] / rows["TCP"]["p50"]
    if args.json:
        result = {"machine": machine.describe(), "rounds": args.rounds, "ms": rows, "more_ms": more * 1000}
        print(json.dumps({**result, "ratio": ratio}, indent=2))
        return
    print(machine.describe())
    print(
        f"{args.rounds} connects of one circuit by each way in turn, Glimmerglass without switching time; "
        f"{OPENINGS} openings"
    )
    print(f"{'ms':<6}{'p50':>8}{'p99':>8}{'most':>8}{'open, p50':>12}")
    for way, row in rows.items():
        print(f"{way:<6}{row['p50']:>8.2f}{row['p99']:>8.2f}{row['most']:>8.2f}{row['open_p50']:>12.1f}")
    print(f"SSH ÷ TCP, p50: {ratio:.2f}; SSH − TCP, median of the rounds: {more * 1000:.2f} ms")


async def measured(server: SshSwitch, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of every connect and of every opening, by way."""
    folder = server.folder
    trusted = host_keys((folder / "host_key.pub").read_text())
    way = Ssh(USER, trusted, key=private_key((folder / "user_key").read_text()))
    seconds: dict[str, dict[str, list[float]]] = {name: {"connect": [], "open": []} for name in ("TCP", "SSH")}
    async with emulated(server, way, DIALECTS["glimmerglass"]) as lab:
        clients = {
            "TCP": SwitchClient("127.0.0.1", lab.port, DIALECTS["glimmerglass"], timeout=SETTLED),
            "SSH": lab.client(timeout=SETTLED),
        }
        for _ in range(OPENINGS):
            for name, client in clients.items():
                await client.close()
                started = time.perf_counter()
                await client.open()
                # By SSH the program on the other side may not have started yet.
                await client.circuits()
                seconds[name]["open"].append(time.perf_counter() - started)
        for turn in range(rounds):
            for name in list(clients)[:: -1 if turn % 2 else 1]:
                started = time.perf_counter()
                await clients[name].connect(CIRCUIT)
                seconds[name]["connect"].append(time.perf_counter() - started)
                await clients[name].disconnect(CIRCUIT)
        for client in clients.values():
            await client.close()
    return seconds


def told(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50": statistics.median(ordered) * 1000,
        "p99": ordered[int(0.99 * (len(ordered) - 1))] * 1000,
        "most": ordered[-1] * 1000,
    }


if __name__ == "__main__":
    main()
