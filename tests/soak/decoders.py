"""Fuzzing of the decoders of external input; half of the inputs are mutations of valid ones.

Seeds are fixed: a failure names its input and is repeatable. Once per run, the soak counts the branches that inputs
reach. It uses fewer inputs for that, because counting makes each of them several times slower.
"""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage

from tests.soak.episodes import Effort

REQUIRED_PERCENT = 95.0
_COUNTED = 40_000
ROOT = Path(__file__).parent.parent.parent
MODULES = (
    "blast_controller/configuration/access.py",
    "blast_controller/configuration/config.py",
    "blast_controller/configuration/etcd.py",
    "blast_controller/configuration/openflow.py",
    "blast_controller/configuration/optics.py",
    "blast_controller/configuration/reading.py",
    "blast_controller/configuration/section.py",
    "blast_controller/configuration/ssh.py",
    "blast_controller/rpc/connections/frames.py",
    "blast_controller/rpc/connections/messages.py",
    "blast_controller/rpc/convert.py",
    "blast_transport/store/files/folder_links.py",
    "blast_transport/store/files/folder_table.py",
    "blast_transport/wire/codec.py",
    "blast_transport/wire/fields.py",
    "tl1_driver/protocol/codec.py",
    "tl1_driver/protocol/scanner.py",
    "tl1_driver/protocol/messages.py",
    "tl1_driver/protocol/payload.py",
    "tl1_driver/protocol/alarms.py",
    "tl1_driver/dialects/*.py",
)
DECODING = {
    "blast_transport/store/files/folder_table.py": ("table_bytes", "decode", "_entries", "_text", "check_path"),
    "blast_transport/wire/codec.py": ("_checked", "_decode_digests", "_decode_nack", "_decode_repair"),
    "blast_transport/wire/fields.py": ("from_json", "_value", "_finite", "_tuple"),
    "blast_controller/rpc/convert.py": ("to_request", "to_extension", "_optional_float"),
    "blast_controller/rpc/connections/messages.py": (
        "ServiceCodec.read_header",
        "ServiceCodec.read_call",
        "ServiceCodec._read_arguments",
        "check_required_fields",
    ),
    "tl1_driver/protocol/payload.py": ("unquote", "parameters", "split_blocks"),
    "tl1_driver/protocol/alarms.py": ("read_rows", "_row"),
    "tl1_driver/dialects/base.py": ("Dialect.alarms", "Dialect._place", "power"),
    "tl1_driver/dialects/calient.py": (
        "Calient.circuits",
        "Calient.powers",
        "Calient._port_rows",
        "Calient._states",
        "Calient.ports_named",
        "_state",
    ),
    "tl1_driver/dialects/glimmerglass.py": (
        "Glimmerglass.circuits",
        "Glimmerglass.powers",
        "Glimmerglass._connection_rows",
        "Glimmerglass._circuit",
        "Glimmerglass.ports_named",
        "_number",
    ),
    "tl1_driver/dialects/polatis.py": (
        "Polatis.introduce",
        "Polatis.circuits",
        "Polatis.powers",
        "Polatis._circuit",
        "Polatis._port",
        "Polatis.ports_named",
    ),
}
"""Of modules that encode as well, the functions that decode."""


def run(effort: Effort) -> int:
    """Run each decoder on inputs, then count the branches reached; return the number of modules below the bar."""
    logging.disable(logging.WARNING)
    run_all(effort.units, effort)
    if effort.units < _COUNTED:
        print(f"branches not counted: fewer than {_COUNTED} inputs for each decoder")
        return 0
    return len(print_coverage(_branches(_COUNTED)))


def _branches(inputs: int) -> dict[str, Any]:
    """Return coverage's report, of a process of its own: definitions count as reached only if it starts before them."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.soak.decoders", str(inputs), folder]
        subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads(Path(folder, "coverage.json").read_text())
        return report


def _count_branches(inputs: int, folder: str) -> None:
    logging.disable(logging.WARNING)
    measured = coverage.Coverage(branch=True, include=[str(ROOT / m) for m in MODULES], data_file=None)
    with measured.collect():
        run_all(inputs)
    measured.json_report(outfile=str(Path(folder, "coverage.json")), pretty_print=False)


def run_all(count: int, effort: Effort | None = None) -> None:
    """Fuzz one decoder after the other, and print a line for each as soon as it is done."""
    from tests.blast_controller.configuration.test_config_fuzz import CONFIG
    from tests.blast_controller.rpc.test_rpc_messages_fuzz import BODY, STREAM
    from tests.blast_sim.planning.test_network_fuzz import NETWORK
    from tests.blast_transport.session.test_measuring_fuzz import CAPACITIES, MESSAGES
    from tests.blast_transport.session.test_transport_wire_fuzz import STREAM as CONTROL
    from tests.blast_transport.store.test_folder_fuzz import TABLES
    from tests.support.fuzzing import fuzz
    from tests.tl1_driver.test_tl1_fuzz import TRANSCRIPTS

    print(f"{'decoder':<16}{'inputs':>10}{'mutations':>11}{'seeds found':>13}{'CPU seconds':>13}  outcomes")
    for decoder in (STREAM, BODY, TRANSCRIPTS, CONFIG, CONTROL, MESSAGES, NETWORK, CAPACITIES, TABLES):
        if effort is not None and time.monotonic() > effort.deadline:
            print(f"{decoder.name:<16} not fuzzed: the time is over")
            continue
        run = fuzz(decoder, count, effort.seed if effort else 0)
        found = ", ".join(f"{name}: {number}" for name, number in run.outcomes.most_common())
        line = f"{decoder.name:<16}{run.inputs:>10}{run.mutated:>11}{run.seeds:>13}{run.seconds:>13.1f}  {found}"
        print(line, flush=True)


def print_coverage(report: dict[str, Any]) -> list[str]:
    """Print a line for each module, and mark modules below the required coverage."""
    lacking = []
    out = io.StringIO()
    for name, statements, branches, percent, missing in rows(report):
        print(f"{name:<42}{statements:>11}{branches:>10}{percent:>9.1f}  {missing}", file=out)
        if percent < REQUIRED_PERCENT:
            lacking.append(name)
    print(f"\n{'module':<42}{'statements':>11}{'branches':>10}{'percent':>9}  lines that no input reached")
    print(out.getvalue(), end="")
    if lacking:
        print(f"below {REQUIRED_PERCENT} %: {', '.join(lacking)}")
    return lacking


def rows(report: dict[str, Any]) -> Iterator[tuple[str, int, int, float, str]]:
    """Return name, statements, branches, percentage covered, and uncovered parts of every module."""
    for file, found in sorted(report["files"].items()):
        name = str(Path(file).resolve().relative_to(ROOT))
        functions = DECODING.get(name)
        parts = [found] if functions is None else [found["functions"][one] for one in functions]
        sums = {key: sum(p["summary"][key] for p in parts) for key in KEYS}
        total = sums["num_statements"] + sums["num_branches"]
        reached = sums["covered_lines"] + sums["covered_branches"]
        missing = sorted(line for part in parts for line in part["missing_lines"])
        yield (
            name + (" (decoding)" if functions else ""),
            sums["num_statements"],
            sums["num_branches"],
            100.0 * reached / total if total else 100.0,
            " ".join(map(str, missing)),
        )


KEYS = ("num_statements", "num_branches", "covered_lines", "covered_branches")

if __name__ == "__main__":
    _count_branches(int(sys.argv[1]), sys.argv[2])
